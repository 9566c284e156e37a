#include "sim/time/machine_schedule.h"

#include "sim/time/issue_order.h"
#include "sim/time/machine_units.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

namespace tilewright::sim {

namespace {

constexpr std::uint32_t kNoOwner = kNoMachineOp;
/// Of what can be paired, so much must be
constexpr double kLeastPaired = 0.6;
/// Cells of the table that finds the longest common subsequence
constexpr std::size_t kMostCells = 4'000'000;

struct NumberedLine {
  std::uint32_t number = 0, line = 0;
};

/// Pairs by line in the order of both lists, as many as possible.
class Alignment {
 public:
  Alignment(const std::vector<NumberedLine>& ptx, const std::vector<NumberedLine>& machine)
      : ptx_(ptx), machine_(machine), width_(machine.size() + 1) {}

  /// Calls pair(index in ptx, index in machine), ascending.
  template <class Pair>
  void run(Pair&& pair) {
    if ((ptx_.size() + 1) * width_ > kMostCells) return;
    longest_.assign((ptx_.size() + 1) * width_, 0);
    for (std::size_t i = ptx_.size(); i-- > 0;) {
      for (std::size_t j = machine_.size(); j-- > 0;) {
        at(i, j) = is_equal(i, j) ? static_cast<std::uint16_t>(at(i + 1, j + 1) + 1)
                                  : std::max(at(i + 1, j), at(i, j + 1));
      }
    }
    for (std::size_t i = 0, j = 0; i < ptx_.size() && j < machine_.size();) {
      if (is_equal(i, j)) {
        pair(i++, j++);
      } else if (at(i + 1, j) >= at(i, j + 1)) {
        ++i;
      } else {
        ++j;
      }
    }
  }

 private:
  std::uint16_t& at(std::size_t i, std::size_t j) { return longest_[i * width_ + j]; }
  bool is_equal(std::size_t i, std::size_t j) const { return ptx_[i].line == machine_[j].line; }

  const std::vector<NumberedLine>&ptx_, &machine_;
  std::size_t width_;
  std::vector<std::uint16_t> longest_;
};

class Scheduler {
 public:
  Scheduler(const KernelCode& code, const std::vector<MachineInsn>& machine,
            const std::vector<InsnCost>& costs, const TimeParameters& parameters)
      : code_(code), machine_(machine), costs_(costs), parameters_(parameters) {}

  MachineSchedule run() {
    number_blocks();
    owner_.assign(machine_.size(), kNoOwner);
    out_.pair.assign(code_.insns.size(), kNoOwner);
    for (auto kind = MachineKind::kShared; kind <= MachineKind::kSpecial;
         kind = static_cast<MachineKind>(static_cast<int>(kind) + 1)) {
      pair_kind(kind);
    }
    if (num_pairable_ == 0 || num_paired_ < kLeastPaired * static_cast<double>(num_pairable_)) {
      return {};
    }
    give_by_line();
    fill_blocks();
    return std::move(out_);
  }

 private:
  const Instruction* syntax(std::size_t insn) const {
    return code_.place(code_.insns[insn]).syntax;
  }
  std::uint32_t line_of(std::size_t insn) const {
    const Instruction* const text = syntax(insn);
    return text == nullptr ? 0 : text->pos.line;
  }

  void number_blocks() {
    const std::vector<std::size_t> starts = control_block_starts(code_, costs_);
    out_.block.resize(code_.insns.size());
    for (std::size_t b = 0; b + 1 < starts.size(); ++b) {
      for (std::size_t i = starts[b]; i < starts[b + 1]; ++i) {
        out_.block[i] = static_cast<std::uint32_t>(b);
        first_of_line_.try_emplace(line_of(i), static_cast<std::uint32_t>(i));
      }
    }
    out_.blocks.resize(starts.size());
  }

  void pair_kind(MachineKind kind) {
    std::vector<NumberedLine> ptx, machine;
    std::vector<bool> is_seen(code_.places.size());
    for (std::size_t i = 0; i < code_.insns.size(); ++i) {
      const Insn& insn = code_.insns[i];
      const Instruction* const text = syntax(i);
      if (text == nullptr || is_seen[insn.syntax]) continue;
      is_seen[insn.syntax] = true;
      if (machine_kind(*text, insn.insn_class) != kind) continue;
      ptx.push_back({static_cast<std::uint32_t>(i), text->pos.line});
    }
    for (std::size_t i = 0; i < machine_.size(); ++i) {
      if (machine_kind(machine_[i]) != kind) continue;
      machine.push_back({static_cast<std::uint32_t>(i), machine_[i].line});
    }
    if (kind != MachineKind::kSpecial) num_pairable_ += std::min(ptx.size(), machine.size());
    pair_lists(kind, ptx, machine);
  }

  void pair_lists(MachineKind kind, const std::vector<NumberedLine>& ptx,
                  const std::vector<NumberedLine>& machine) {
    std::size_t next_ptx = 0, next_machine = 0;
    // What lies between two pairs belongs together, too, where it is equally much: ptxas gives the
    // first of a group the line of a neighbour.
    const auto pair_between = [&](std::size_t end_ptx, std::size_t end_machine) {
      if (end_ptx - next_ptx != end_machine - next_machine) return;
      for (; next_ptx < end_ptx; ++next_ptx, ++next_machine) {
        pair(kind, ptx[next_ptx].number, machine[next_machine].number);
      }
    };
    Alignment(ptx, machine).run([&](std::size_t i, std::size_t j) {
      pair_between(i, j);
      pair(kind, ptx[i].number, machine[j].number);
      next_ptx = i + 1;
      next_machine = j + 1;
    });
    pair_between(ptx.size(), machine.size());
    // Blocks that stand elsewhere in the machine code are out of order: by their line alone.
    std::unordered_multimap<std::uint32_t, std::uint32_t> free_by_line;
    for (const NumberedLine& insn : machine) {
      if (owner_[insn.number] == kNoOwner) free_by_line.emplace(insn.line, insn.number);
    }
    for (const NumberedLine& insn : ptx) {
      if (out_.pair[insn.number] != kNoOwner) continue;
      const auto found = free_by_line.find(insn.line);
      if (found == free_by_line.end()) continue;
      pair(kind, insn.number, found->second);
      free_by_line.erase(found);
    }
  }

  void pair(MachineKind kind, std::uint32_t insn, std::uint32_t machine) {
    // There is no event to carry, and division and its like make several.
    if (kind != MachineKind::kSpecial) {
      out_.pair[insn] = machine;
      ++num_paired_;
    }
    owner_[machine] = insn;
  }

  void give_by_line() {
    is_copy_.assign(machine_.size(), false);
    for (std::size_t i = 0; i < machine_.size(); ++i) {
      if (owner_[i] != kNoOwner) continue;
      const auto found = first_of_line_.find(machine_[i].line);
      if (found == first_of_line_.end()) continue;
      owner_[i] = found->second;
      // What is of another kind than its pair is no copy of it: the fence before an arrival.
      const MachineKind kind = machine_kind(machine_[i]);
      const std::uint32_t pair = out_.pair[found->second];
      is_copy_[i] = kind != MachineKind::kOther && kind != MachineKind::kSpecial &&
                    pair != kNoOwner && machine_kind(machine_[pair]) == kind;
    }
  }

  void fill_blocks() {
    std::vector<std::vector<std::uint32_t>> members(out_.blocks.size());
    for (std::size_t i = 0; i < machine_.size(); ++i) {
      if (owner_[i] != kNoOwner)
        members[out_.block[owner_[i]]].push_back(static_cast<std::uint32_t>(i));
    }
    std::vector<std::uint32_t> number(machine_.size(), kNoOwner);
    for (std::size_t b = 0; b < members.size(); ++b) {
      for (const std::uint32_t insn : one_copy(members[b])) {
        number[insn] = static_cast<std::uint32_t>(out_.ops.size());
        out_.blocks[b].push_back(number[insn]);
        out_.ops.push_back(op_of(insn));
      }
    }
    for (std::uint32_t& pair : out_.pair) pair = pair == kNoOwner ? kNoOwner : number[pair];
    group_blocks(members);
  }

  // Neighbours most of whose instructions lie between the same two jumps. Of a block with copies it
  // is not known which copy goes with which of its neighbour's.
  void group_blocks(const std::vector<std::vector<std::uint32_t>>& members) {
    std::vector<std::uint32_t> stretch(machine_.size());
    for (std::size_t i = 1; i < machine_.size(); ++i)
      stretch[i] = stretch[i - 1] + (is_jump(machine_[i - 1]) ? 1 : 0);
    out_.group.resize(members.size());
    std::uint32_t before = kNoOwner;  // stretch of the last block that has instructions
    for (std::size_t b = 0; b < members.size(); ++b) {
      out_.group[b] = static_cast<std::uint32_t>(b);
      const bool has_copies = out_.blocks[b].size() != members[b].size();
      const std::uint32_t now = has_copies ? kNoOwner : most_frequent(members[b], stretch, before);
      if (b != 0 && now != kNoOwner && now == before) out_.group[b] = out_.group[b - 1];
      before = now;
    }
  }

  /// Of the stretches of the members the one with most of them; `otherwise` without members.
  static std::uint32_t most_frequent(const std::vector<std::uint32_t>& members,
                                     const std::vector<std::uint32_t>& stretch,
                                     std::uint32_t otherwise) {
    std::map<std::uint32_t, std::size_t> count;
    for (const std::uint32_t insn : members) ++count[stretch[insn]];
    const auto most =
        std::ranges::max_element(count, {}, [](const auto& one) { return one.second; });
    return most == count.end() ? otherwise : most->first;
  }

  /// Members of a block without those of further copies of it.
  std::vector<std::uint32_t> one_copy(const std::vector<std::uint32_t>& members) const {
    std::size_t num_paired = 0, num_copies = 0;
    double middle = 0;
    for (const std::uint32_t insn : members) {
      if (is_copy_[insn]) {
        ++num_copies;
      } else if (is_pair(insn)) {
        ++num_paired;
        middle += insn;
      }
    }
    const double copies =
        num_paired == 0 ? copies_by_line(members)
                        : 1 + static_cast<double>(num_copies) / static_cast<double>(num_paired);
    if (copies < 1.5) return without_copies(members);
    middle = num_paired == 0 ? members.front() : middle / static_cast<double>(num_paired);
    return nearest(members, std::round(copies), middle);
  }

  bool is_pair(std::uint32_t insn) const { return out_.pair[owner_[insn]] == insn; }

  std::vector<std::uint32_t> without_copies(const std::vector<std::uint32_t>& members) const {
    std::vector<std::uint32_t> out;
    std::ranges::copy_if(members, std::back_inserter(out),
                         [this](std::uint32_t insn) { return !is_copy_[insn]; });
    return out;
  }

  /// The least that any line of the block has.
  double copies_by_line(const std::vector<std::uint32_t>& members) const {
    std::unordered_map<std::uint32_t, int> count;
    for (const std::uint32_t insn : members) ++count[machine_[insn].line];
    int least = members.empty() ? 1 : static_cast<int>(members.size());
    for (const auto& [line, its] : count) least = std::min(least, its);
    return count.size() < 4 ? 1 : least;
  }

  /// Of each line its part of the instructions, those nearest to the middle of what is paired.
  std::vector<std::uint32_t> nearest(const std::vector<std::uint32_t>& members, double copies,
                                     double middle) const {
    std::map<std::uint32_t, std::vector<std::uint32_t>> by_line;
    for (const std::uint32_t insn : members) {
      if (!is_copy_[insn]) by_line[machine_[insn].line].push_back(insn);
    }
    std::vector<std::uint32_t> out;
    for (auto& [line, insns] : by_line) {
      std::ranges::stable_sort(insns, {}, [middle, this](std::uint32_t insn) {
        return is_pair(insn) ? -1 : std::abs(insn - middle);
      });
      const auto kept = static_cast<std::size_t>(
          std::max(1.0, std::round(static_cast<double>(insns.size()) / copies)));
      for (std::size_t i = 0; i < insns.size(); ++i) {
        if (i < kept || is_pair(insns[i])) out.push_back(insns[i]);
      }
    }
    std::ranges::sort(out);
    return out;
  }

  MachineOp op_of(std::uint32_t number) const {
    const MachineInsn& insn = machine_[number];
    MachineOp op;
    op.insn = owner_[number];
    op.place = number;
    op.cost = machine_cost(insn, parameters_);
    op.cost.ends_block = costs_[op.insn].ends_block && is_branch(insn);
    if (is_pair(number)) {
      op.cost.stall = costs_[op.insn].stall;
      if (op.cost.pipe == Pipe::kMmaSync) op.cost.interval = costs_[op.insn].interval;
    }
    op.is_wide_fence = insn.is_wide_fence;
    op.stall = std::max<std::uint8_t>(1, insn.stall);
    op.write_counter = insn.write_counter;
    op.read_counter = insn.read_counter;
    op.wait_mask = insn.wait_mask;
    return op;
  }

  const KernelCode& code_;
  const std::vector<MachineInsn>& machine_;
  const std::vector<InsnCost>& costs_;
  const TimeParameters& parameters_;
  MachineSchedule out_;
  std::unordered_map<std::uint32_t, std::uint32_t> first_of_line_;
  std::vector<std::uint32_t> owner_;  ///< of each instruction of the machine: that of PTX
  std::vector<bool> is_copy_;         ///< of one that is paired already
  std::size_t num_pairable_ = 0, num_paired_ = 0;
};

}  // namespace

MachineSchedule machine_schedule(const KernelCode& code, const std::vector<MachineInsn>& machine,
                                 const std::vector<InsnCost>& costs,
                                 const TimeParameters& parameters) {
  return Scheduler(code, machine, costs, parameters).run();
}

}  // namespace tilewright::sim
