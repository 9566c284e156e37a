#include "sim/time/prepared_trace.h"

#include <algorithm>
#include <map>
#include <utility>

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

/// Puts the instructions of the machine in the place of each run through a group of blocks.
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
  std::uint32_t group_of(std::size_t op) const {
    return machine_.group[machine_.block[ptx_[op].insn]];
  }

  std::size_t end_of_run(std::size_t begin) const {
    std::size_t end = begin + 1;
    while (end < ptx_.size() && group_of(end) == group_of(begin) &&
           ptx_[end].insn > ptx_[end - 1].insn) {
      ++end;
    }
    return end;
  }

  // Blocks of a group that are skipped are played: their instructions are issued all the same.
  const std::vector<std::uint32_t>& ops_of(std::uint32_t first, std::uint32_t last) {
    if (first == last) return machine_.blocks[first];
    std::vector<std::uint32_t>& ops = merged_[{first, last}];
    if (!ops.empty()) return ops;
    for (std::uint32_t b = first; b <= last; ++b)
      ops.insert(ops.end(), machine_.blocks[b].begin(), machine_.blocks[b].end());
    std::ranges::sort(ops, {}, [this](std::uint32_t op) { return machine_.ops[op].place; });
    return ops;
  }

  /// Where the instruction is among `ops`, from 1; 0: nowhere.
  std::size_t place_of(const std::vector<std::uint32_t>& ops, std::uint32_t op) const {
    if (op == kNoMachineOp) return 0;
    const auto found =
        std::ranges::lower_bound(ops, machine_.ops[op].place, {},
                                 [this](std::uint32_t other) { return machine_.ops[other].place; });
    return found != ops.end() && *found == op ? static_cast<std::size_t>(found - ops.begin()) + 1
                                              : 0;
  }

  // Events go with the instruction that is paired with theirs; those without one, right behind the
  // event before them. What orders threads keeps the order that it has in PTX.
  void add_run(std::size_t begin, std::size_t end) {
    const auto& ops = ops_of(machine_.block[ptx_[begin].insn], machine_.block[ptx_[end - 1].insn]);
    events_.resize(std::max(events_.size(), ops.size() + 1));  // [0]: before all
    std::size_t last = 0, last_ordered = 0;
    for (std::size_t i = begin; i < end; ++i) {
      const PreparedOp& op = ptx_[i];
      if (op.num_events == 0) continue;
      const std::size_t found = place_of(ops, machine_.pair[op.insn]);
      std::size_t place = found == 0 ? last : found;
      if (costs_[op.insn].is_ordered) last_ordered = place = std::max(place, last_ordered);
      last = place;
      events_[place].push_back(&op);
    }
    add_events(events_[0], kNoMachineOp);
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (events_[i + 1].empty()) {
        out_.push_back({machine_.ops[ops[i]].insn, 0, 0, ops[i]});
      } else {
        add_events(events_[i + 1], ops[i]);
      }
    }
  }

  /// The first one comes with the instruction of the machine.
  void add_events(std::vector<const PreparedOp*>& events, std::uint32_t machine) {
    for (const PreparedOp* const op : events) {
      out_.push_back({op->insn, op->first_event, op->num_events, machine});
      machine = kNoMachineOp;
    }
    events.clear();
  }

  const std::vector<PreparedOp>& ptx_;
  const MachineSchedule& machine_;
  const std::vector<InsnCost>& costs_;
  std::vector<PreparedOp> out_;
  std::vector<std::vector<const PreparedOp*>> events_;  ///< of a run, by place
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>> merged_;
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
