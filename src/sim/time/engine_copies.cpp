#include "sim/time/engine.h"

#include <algorithm>
#include <utility>

namespace tilewright::sim {

namespace {

/// Wavefronts of shared memory.
double wavefronts_of(const TraceEvent& copy) {
  return copy.shared_units / (double{kCacheLineBytes} / kSharedUnitBytes);
}

/// When all groups but the newest `num_open` are there.
double end_of_groups(const std::vector<double>& groups, std::uint32_t num_open) {
  return *std::max_element(groups.begin(), groups.end() - num_open);
}

}  // namespace

bool Engine::handle_copy(PlayingWarp& warp, const TraceEvent& event) {
  PlayingCta& cta = *warp.cta;
  switch (event.kind) {
    case TraceKind::kCopyIn:
      copy_in(warp, event);
      return true;
    case TraceKind::kCopyOut:
      copy_out(warp, event);
      return true;
    case TraceKind::kStoreAsync:
      arrive_later(now_ + p_.remote_shared_latency, warp, event.b, 0, event.a);
      return true;
    case TraceKind::kBulkCommit:
      warp.bulk_groups.emplace_back(std::exchange(warp.open_bulk_read, 0),
                                    std::exchange(warp.open_bulk, 0));
      return true;
    case TraceKind::kBulkWait: {
      if (warp.bulk_groups.size() <= event.a) return true;
      const auto& [read, done] = warp.bulk_groups[warp.bulk_groups.size() - 1 - event.a];
      return await_time(warp, WaitCause::kCopies, event.is_read ? read : done);
    }
    case TraceKind::kThreadCopy:
      through_shared(warp, static_cast<double>(event.b) + event.a / double{kCacheLineBytes});
      warp.open_copies = std::max(warp.open_copies, request(*cta.sm, event.area, event.a, false));
      warp.copies_done = std::max(warp.copies_done, warp.open_copies);
      return true;
    case TraceKind::kCopyCommit:
      warp.copy_groups.push_back(std::exchange(warp.open_copies, 0));
      return true;
    case TraceKind::kCopyWait:
      if (warp.copy_groups.size() <= event.a) return true;
      return await_time(warp, WaitCause::kCopies, end_of_groups(warp.copy_groups, event.a));
    case TraceKind::kCopyArrive:
      arrive_later(std::max(now_, warp.copies_done) + p_.mbarrier_arrival, warp, event.b, event.a,
                   0);
      return true;
    default:
      return true;
  }
}

void Engine::copy_in(PlayingWarp& warp, const TraceEvent& event) {
  PlayingCta& cta = *warp.cta;
  // Of a pair that multiplies together, bytes for both report to the barrier of one.
  PlayingCta& target = event.rank < cta.cluster->ctas.size() ? *cta.cluster->ctas[event.rank] : cta;
  double done = now_ + p_.copy_latency;
  if (event.area == kNoArea) {
    constexpr double kBytes = 20;  // between SMs of a cluster: DSMEM, 19 to 21 a clock
    done =
        std::max(done, target.sm->port_in.serve(now_, event.a / kBytes)) + p_.remote_shared_latency;
  } else if (event.is_repeat) {  // L2 has read the bytes for the first receiver
    done += target.sm->port_in.serve(now_, event.a / p_.sm_bytes) - now_ + p_.l2_latency;
  } else {
    const std::uint32_t insn = op_of(warp).insn;
    if (std::ranges::find(cta.used_copies, insn) == cta.used_copies.end()) {
      cta.used_copies.push_back(insn);
      done += p_.copy_first_use;
    }
    done += request(*target.sm, event.area, event.a, false) - now_;
  }
  target.sm->serve_shared(now_, wavefronts_of(event));
  if (event.b != 0) arrive_later(done, warp, event.b, 0, event.a);
}

void Engine::copy_out(PlayingWarp& warp, const TraceEvent& event) {
  const double read = warp.cta->sm->serve_shared(now_, wavefronts_of(event));
  const double done = request(*warp.cta->sm, event.area, event.a, true);
  warp.open_bulk_read = std::max(warp.open_bulk_read, read + p_.copy_latency);
  warp.open_bulk = std::max(warp.open_bulk, done + p_.copy_latency);
}

}  // namespace tilewright::sim
