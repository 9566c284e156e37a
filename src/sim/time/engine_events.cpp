#include "sim/time/engine.h"

namespace tilewright::sim {

// A kind that is added to TraceKind and has no unit here does not compile.
bool Engine::handle(PlayingWarp& warp, const TraceEvent& event) {
  switch (event.kind) {
    case TraceKind::kShared:
    case TraceKind::kGlobal:
    case TraceKind::kLine:
    case TraceKind::kRemoteShared:
    case TraceKind::kLocal:
      return handle_access(warp, event), true;
    case TraceKind::kCopyIn:
    case TraceKind::kCopyOut:
    case TraceKind::kThreadCopy:
    case TraceKind::kStoreAsync:
    case TraceKind::kCopyCommit:
    case TraceKind::kCopyWait:
    case TraceKind::kCopyArrive:
    case TraceKind::kBulkCommit:
    case TraceKind::kBulkWait:
      return handle_copy(warp, event);
    case TraceKind::kWgmma:
    case TraceKind::kWgmmaCommit:
    case TraceKind::kWgmmaWait:
      return handle_wgmma(warp, event);
    case TraceKind::kMbarrierInit:
    case TraceKind::kExpect:
    case TraceKind::kArrive:
    case TraceKind::kComplete:
    case TraceKind::kMbarrierWait:
      return handle_mbarrier(warp, event);
    case TraceKind::kBarrierArrive:
    case TraceKind::kBarrierWait:
    case TraceKind::kClusterArrive:
    case TraceKind::kClusterWait:
      return handle_barrier(warp, event);
    case TraceKind::kProxyFence:
    case TraceKind::kMemoryFence:
    case TraceKind::kGridWait:
      return handle_fence(warp, event), true;
    case TraceKind::kTensorMma:
    case TraceKind::kTensorCommit:
    case TraceKind::kTensorAccess:
    case TraceKind::kTensorWait:
    case TraceKind::kTensorAlloc:
      return handle_tcgen05(warp, event);
  }
  return true;
}

}  // namespace tilewright::sim
