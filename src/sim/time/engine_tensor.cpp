#include "sim/time/engine.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tilewright::sim {

// wgmma.

bool Engine::handle_wgmma(PlayingWarp& warp, const TraceEvent& event) {
  switch (event.kind) {
    case TraceKind::kWgmma:
      return issue_wgmma(warp, event);
    case TraceKind::kWgmmaCommit:
      warp.wgmma_groups.push_back(warp.num_wgmmas);
      return true;
    case TraceKind::kWgmmaWait:
      return await_wgmma(warp, event);
    default:
      return true;
  }
}

// The last warp of the four starts the product.
bool Engine::issue_wgmma(PlayingWarp& warp, const TraceEvent& event) {
  Sm& sm = *warp.cta->sm;
  while (!sm.products.empty() && sm.products.front() <= now_) sm.products.pop_front();
  const auto most = static_cast<std::size_t>(p_.wgmma_queued);
  if (sm.products.size() >= most) {
    const double room = sm.products[sm.products.size() - most];
    return wait_until(warp, WaitCause::kTensorQueue, room), false;
  }
  Warpgroup& group = warp.cta->warpgroups[warp.index / kWarpgroupWarps];
  const std::uint64_t number = warp.num_wgmmas++;
  if (group.arrived.size() <= number) group.arrived.resize(number + 1);
  if (++group.arrived[number] != kWarpgroupWarps) return true;
  const double rate = std::max(1.0, kernel_.tensor_rate[op_of(warp).insn]);
  const double n = event.a;
  const double product = 2 * 64 * n * static_cast<double>(event.b) / rate;
  // A and B are read from shared memory at 128 bytes a clock, A once for each 128 columns. From
  // registers A takes as long.
  const double read = 16 + n / 4;
  multiply(*warp.cta, std::max(product, read));
  const double both = 16 * std::ceil(n / 128) + n / 4;
  sm.product_shared =
      std::min(0.95, both / std::max(product, read)) * std::min(1.0, p_.tensor_scale);
  group.done.push_back(sm.tensor.free_at);
  sm.products.push_back(sm.tensor.free_at);
  sm.has_wgmma = true;
  for (PlayingWarp* const waiting : std::exchange(group.waiting, {})) wake(*waiting, now_);
  return true;
}

bool Engine::await_wgmma(PlayingWarp& warp, const TraceEvent& event) {
  Warpgroup& group = warp.cta->warpgroups[warp.index / kWarpgroupWarps];
  if (warp.wgmma_groups.size() <= event.a) return true;
  const std::uint64_t needed = warp.wgmma_groups[warp.wgmma_groups.size() - 1 - event.a];
  if (needed == 0) return true;
  if (group.done.size() < needed) {  // another warp of the four is late
    group.waiting.push_back(&warp);
    return false;
  }
  const double done = group.done[needed - 1] + p_.wgmma_tail;
  if (done > now_) return wait_until(warp, WaitCause::kTensor, done), false;
  account(warp, WaitCause::kTensor, now_);
  return true;
}

void Engine::multiply(PlayingCta& cta, double clocks) {
  Sm& sm = *cta.sm;
  const double end = sm.tensor.serve(now_, clocks * p_.tensor_scale);
  sm.lower_clock(now_, end, p_.tensor_clock_hold);
  if (cta.is_shown) show({end - clocks * p_.tensor_scale, end, -1, WaitCause::kTensor, 0});
}

// tcgen05.

bool Engine::handle_tcgen05(PlayingWarp& warp, const TraceEvent& event) {
  PlayingCta& cta = *warp.cta;
  switch (event.kind) {
    case TraceKind::kTensorMma:
      issue_tcgen05_mma(warp, event);
      return true;
    case TraceKind::kTensorCommit:
      arrive_later(std::max(now_, cta.tensor_done) + p_.tcgen05_tail, warp, event.b, 1, 0);
      return true;
    case TraceKind::kTensorAccess:
      access_tensor_memory(warp, event);
      return true;
    case TraceKind::kTensorWait:
      return await_time(warp, WaitCause::kCopies,
                        event.is_write ? warp.tensor_stored : warp.tensor_loaded);
    case TraceKind::kTensorAlloc:
      delay(p_.tcgen05_alloc);
      return true;
    default:
      return true;
  }
}

// N / 2 clocks of M = 128 rows of one CTA or 256 of a pair, or what reading A and B from shared
// memory takes.
void Engine::issue_tcgen05_mma(PlayingWarp& warp, const TraceEvent& event) {
  const double n = event.a & 0xffff, m = event.a >> 16;
  const double read = event.is_shared && !event.is_pair ? (m > 64 ? 32 : 0) + n / 4 : 0;
  multiply(*warp.cta, std::max(n / 2, read));
  const double tail =
      (event.is_shared ? p_.tcgen05_shared_tail : 0) + (event.is_pair ? p_.tcgen05_pair_tail : 0);
  warp.cta->tensor_done = std::max(warp.cta->tensor_done, warp.cta->sm->tensor.free_at + tail);
}

void Engine::access_tensor_memory(PlayingWarp& warp, const TraceEvent& event) {
  Server& port = warp.cta->sm->tensor_memory[warp.index % kWarpgroupWarps];
  const double bytes = event.a * 4.0 * kLanes;
  const double rate = event.is_write ? p_.tcgen05_store_bytes : p_.tcgen05_load_bytes;
  const double done = port.serve(now_, bytes / rate) + p_.tcgen05_access_latency;
  if (event.is_write) {
    warp.tensor_stored = done;
  } else if (machine_of(warp) != nullptr) {  // those that use the registers wait, not the warp
    set_results(warp, done, WaitCause::kCopies);
  } else {
    warp.tensor_loaded = done;
  }
}

}  // namespace tilewright::sim
