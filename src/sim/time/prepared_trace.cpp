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

/// Puts the instructions of the machine in the place of each run through a block.
class MachineRuns {
 public:
  MachineRuns(const std::vector<PreparedOp>& ptx, const MachineSchedule& machine,
              const std::vector<InsnCost>& costs)
      : ptx_(ptx), machine_(machine), costs_(costs) {}

  std::vector<PreparedOp> take() {
    for (std::size_t begin = 0; begin < ptx_.size();) {
      const std::size_t end = end_of_run(begin);
      add_run(begin, end);
      begin = end;
    }
    return std::move(out_);
  }

 private:
  std::size_t end_of_run(std::size_t begin) const {
    std::size_t end = begin + 1;
    while (end < ptx_.size() &&
           machine_.block[ptx_[end].insn] == machine_.block[ptx_[begin].insn] &&
           ptx_[end].insn > ptx_[end - 1].insn) {
      ++end;
    }
    return end;
  }

  // Events go with the instruction that is paired with theirs; those without one, right behind the
  // event before them. What orders threads keeps the order that it has in PTX.
  void add_run(std::size_t begin, std::size_t end) {
    const auto& block = machine_.blocks[machine_.block[ptx_[begin].insn]];
    std::vector<std::vector<const PreparedOp*>> events(block.size() + 1);  // [0]: before all
    std::size_t last = 0, last_ordered = 0;
    for (std::size_t i = begin; i < end; ++i) {
      const PreparedOp& op = ptx_[i];
      if (op.num_events == 0) continue;
      const auto found = std::ranges::find(block, machine_.pair[op.insn]);
      std::size_t place =
          found == block.end() ? last : static_cast<std::size_t>(found - block.begin()) + 1;
      if (costs_[op.insn].is_ordered) last_ordered = place = std::max(place, last_ordered);
      last = place;
      events[place].push_back(&op);
    }
    add_events(events[0], kNoMachineOp);
    for (std::size_t i = 0; i < block.size(); ++i) {
      if (events[i + 1].empty()) {
        out_.push_back({machine_.ops[block[i]].insn, 0, 0, block[i]});
      } else {
        add_events(events[i + 1], block[i]);
      }
    }
  }

  /// The first one comes with the instruction of the machine.
  void add_events(const std::vector<const PreparedOp*>& events, std::uint32_t machine) {
    for (const PreparedOp* const op : events) {
      out_.push_back({op->insn, op->first_event, op->num_events, machine});
      machine = kNoMachineOp;
    }
  }

  const std::vector<PreparedOp>& ptx_;
  const MachineSchedule& machine_;
  const std::vector<InsnCost>& costs_;
  std::vector<PreparedOp> out_;
};

PreparedWarp prepare_warp(const WarpTrace& trace, const IssueOrder& order,
                          const MachineSchedule& machine, const std::vector<InsnCost>& costs) {
  PreparedWarp out;
  out.events = &trace.events;
  out.ops.reserve(trace.ops.size());
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const std::size_t end =
        i + 1 < trace.ops.size() ? trace.ops[i + 1].first_event : trace.events.size();
    out.ops.push_back({trace.ops[i].insn, trace.ops[i].first_event,
                       static_cast<std::uint32_t>(end - trace.ops[i].first_event)});
  }
  if (machine.is_empty()) {
    sort_blocks(out.ops, order);
  } else {
    out.ops = MachineRuns(out.ops, machine, costs).take();
  }
  return out;
}

}  // namespace

PreparedCta prepare(const CtaTrace& trace, const IssueOrder& order, const MachineSchedule& machine,
                    const std::vector<InsnCost>& costs) {
  PreparedCta out;
  for (const WarpTrace& warp : trace.warps) {
    out.warps.push_back(prepare_warp(warp, order, machine, costs));
    for (const TraceEvent& event : warp.events) {
      if (event.kind == TraceKind::kBarrierArrive) ++out.barrier_arrivals[barrier_key(event)];
    }
    for (const PreparedOp& op : out.warps.back().ops) {
      if (machine.is_empty() || op.machine == kNoMachineOp) continue;
      const std::size_t line = machine.ops[op.machine].place / kCodeLineInstructions;
      if (line >= out.code_lines.size()) out.code_lines.resize(line + 1);
      out.code_lines[line] = true;
    }
  }
  return out;
}

}  // namespace tilewright::sim
