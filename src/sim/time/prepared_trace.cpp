#include "sim/time/prepared_trace.h"

#include <algorithm>

namespace tilewright::sim {

namespace {

/// Sorts each run through a basic block. A block that a warp enters again from its end is two runs.
void sort_blocks(std::vector<PreparedOp>& ops, const IssueOrder& order) {
  for (auto begin = ops.begin(); begin != ops.end();) {
    auto end = begin + 1;
    while (end != ops.end() && order.block[end->insn] == order.block[begin->insn] &&
           end->insn > (end - 1)->insn) {
      ++end;
    }
    std::stable_sort(begin, end, [&](const PreparedOp& a, const PreparedOp& b) {
      return order.rank[a.insn] < order.rank[b.insn];
    });
    begin = end;
  }
}

PreparedWarp prepare_warp(const WarpTrace& trace, const IssueOrder& order) {
  PreparedWarp out;
  out.events = &trace.events;
  out.ops.reserve(trace.ops.size());
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const std::size_t end =
        i + 1 < trace.ops.size() ? trace.ops[i + 1].first_event : trace.events.size();
    out.ops.push_back({trace.ops[i].insn, trace.ops[i].first_event,
                       static_cast<std::uint32_t>(end - trace.ops[i].first_event)});
  }
  sort_blocks(out.ops, order);
  return out;
}

}  // namespace

PreparedCta prepare(const CtaTrace& trace, const IssueOrder& order) {
  PreparedCta out;
  for (const WarpTrace& warp : trace.warps) {
    out.warps.push_back(prepare_warp(warp, order));
    for (const TraceEvent& event : warp.events) {
      if (event.kind == TraceKind::kBarrierArrive) ++out.barrier_arrivals[barrier_key(event)];
    }
  }
  return out;
}

}  // namespace tilewright::sim
