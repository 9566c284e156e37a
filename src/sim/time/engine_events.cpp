#include "sim/time/engine.h"

#include <algorithm>

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
    case TraceKind::kGridArrive:
    case TraceKind::kGridPoll:
      return handle_barrier(warp, event);
    case TraceKind::kProxyFence:
    case TraceKind::kMemoryFence:
      return handle_fence(warp, event), true;
    case TraceKind::kGridWait:
      return await_time(warp, WaitCause::kGridBarrier, around_.launch_before_ends);
    case TraceKind::kGridTrigger:
      grid_trigger_ = std::max(grid_trigger_, now_);
      return true;
    case TraceKind::kTensorMma:
    case TraceKind::kTensorCommit:
    case TraceKind::kTensorAccess:
    case TraceKind::kTensorWait:
    case TraceKind::kTensorAlloc:
      return handle_tcgen05(warp, event);
    case TraceKind::kNothing:
      return true;
  }
  return true;
}

}  // namespace tilewright::sim
