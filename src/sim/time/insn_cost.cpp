#include "sim/time/insn_cost.h"

#include "sim/report/tensor_work.h"

#include <algorithm>
#include <string_view>

namespace tilewright::sim {

namespace {

bool has(const Instruction& insn, std::string_view modifier) {
  return std::ranges::find(insn.modifiers, modifier) != insn.modifiers.end();
}

bool starts(const Instruction& insn, std::string_view prefix) {
  return std::ranges::any_of(insn.modifiers,
                             [&](std::string_view word) { return word.starts_with(prefix); });
}

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

bool is_wide(const Instruction& insn) {
  return has(insn, "s64") || has(insn, "u64") || has(insn, "b64");
}

class Coster {
 public:
  explicit Coster(const TimeParameters& parameters) : p_(parameters) {}

  InsnCost of(const Instruction& insn, InsnClass insn_class) const {
    InsnCost cost = by_class(insn, insn_class);
    const std::string_view op = insn.opcode;
    if (is_one_of(op, {"bra", "brx", "ret", "exit", "call", "trap"})) cost.ends_block = true;
    return cost;
  }

 private:
  InsnCost by_class(const Instruction& insn, InsnClass insn_class) const {
    switch (insn_class) {
      case InsnClass::kMove:
        return move(insn);
      case InsnClass::kInteger:
      case InsnClass::kPredicate:
        return integer(insn);
      case InsnClass::kFloat:
      case InsnClass::kHalf:
        return real(insn);
      case InsnClass::kDouble:
        return on(Pipe::kDouble, 1, p_.double_interval, p_.double_latency);
      case InsnClass::kConvert:
        return convert(insn);
      case InsnClass::kSpecialFunction:
        return special(insn);
      case InsnClass::kLoad:
      case InsnClass::kStore:
      case InsnClass::kAtomic:
        return memory(insn, insn_class);
      case InsnClass::kShuffle:
        return shuffle(insn);
      case InsnClass::kTensor:
        return tensor(insn);
      case InsnClass::kBarrier:
      case InsnClass::kAsync:
        return async(insn);
      case InsnClass::kControl:
      case InsnClass::kOther:
        return other(insn);
    }
    return {};
  }

  static InsnCost on(Pipe pipe, double slots, double interval, double latency) {
    InsnCost cost;
    cost.pipe = pipe;
    cost.slots = static_cast<float>(slots);
    cost.interval = static_cast<float>(interval);
    cost.latency = static_cast<float>(latency);
    return cost;
  }
  static InsnCost free() {
    InsnCost cost;
    cost.is_free = true;
    cost.slots = 0;
    return cost;
  }
  InsnCost alu(double count = 1) const {
    return on(Pipe::kAlu, count, count * p_.alu_interval, p_.alu_latency + 4 * (count - 1));
  }
  InsnCost fma(double count = 1) const {
    return on(Pipe::kFma, count, count * p_.fma_interval, p_.fma_latency + 4 * (count - 1));
  }

  // ptxas renames registers, and addresses in other windows are the same numbers. What a warp reads
  // of itself (%tid) it reads once.
  InsnCost move(const Instruction& insn) const {
    return is_one_of(insn.opcode, {"prmt", "selp", "slct"}) ? alu() : free();
  }

  // 64 bits are two words, but what is extended from 32 has its upper word for nothing, and
  // addresses are added to in the instruction that uses them where they can be.
  InsnCost integer(const Instruction& insn) const {
    const std::string_view op = insn.opcode;
    // Weak: a guess. ptxas makes some twenty instructions of it.
    if (is_one_of(op, {"div", "rem"})) return on(Pipe::kAlu, 20, 40, 100);
    if (is_one_of(op, {"mul", "mad"})) {
      const bool is_pair = is_wide(insn) && !has(insn, "wide");
      return on(Pipe::kFma, is_pair ? 3 : 1, (is_pair ? 3 : 1) * p_.alu_interval, p_.alu_latency);
    }
    const bool is_logic = is_one_of(op, {"and", "or", "xor", "not"});
    if (is_wide(insn) && !is_logic && !is_one_of(op, {"shl", "shr"})) return alu(2);
    return alu();
  }

  InsnCost real(const Instruction& insn) const {
    const std::string_view op = insn.opcode;
    if (is_one_of(op, {"neg", "abs", "copysign"})) return free();  // part of the next instruction
    if (is_one_of(op, {"min", "max", "setp", "set", "selp"})) return alu();
    if (op == "div") {
      // rcp and mul; rounded correctly, steps of Newton's method and a check beside them.
      const bool is_short = has(insn, "approx") || has(insn, "full");
      return on(Pipe::kSpecial, is_short ? 2 : 9, p_.special_interval,
                p_.special_latency + (is_short ? 1 : 8) * p_.fma_latency);
    }
    if (has(insn, "f32x2")) return fma(2);
    return fma();
  }

  // Pairs of small floats are packed at the rate of integers; widening a bf16 is a shift.
  InsnCost convert(const Instruction& insn) const {
    if (insn.modifiers.size() >= 2) {
      const std::string_view to = insn.modifiers[insn.modifiers.size() - 2];
      const std::string_view from = insn.modifiers.back();
      const auto is_integer = [](std::string_view type) {
        return type.size() > 1 && (type[0] == 'u' || type[0] == 's' || type[0] == 'b') &&
               type.find_first_not_of("0123456789", 1) == std::string_view::npos;
      };
      if (is_integer(to) && is_integer(from)) return free();
      if (is_integer(to) != is_integer(from)) {
        return on(Pipe::kSpecial, 1, p_.special_interval / 4, p_.special_latency);
      }
    }
    return alu();
  }

  InsnCost special(const Instruction& insn) const {
    const bool is_exact = has(insn, "rn") || has(insn, "rz") || has(insn, "ru") || has(insn, "rd");
    // Without ftz, small arguments are scaled before and after.
    const bool is_scaled = !has(insn, "ftz") && has(insn, "f32") && !is_exact &&
                           is_one_of(insn.opcode, {"ex2", "lg2", "sqrt", "rsqrt", "rcp"});
    const double slots = is_exact ? 8 : is_scaled ? 4 : 1;
    return on(Pipe::kSpecial, slots, p_.special_interval, p_.special_latency + 4 * (slots - 1));
  }

  InsnCost memory(const Instruction& insn, InsnClass insn_class) const {
    if (starts(insn, "param") || starts(insn, "const")) return free();
    const bool is_shared =
        starts(insn, "shared") || is_one_of(insn.opcode, {"ldmatrix", "stmatrix"});
    InsnCost cost = on(is_shared ? Pipe::kShared : Pipe::kGlobal, 1, 1,
                       is_shared ? p_.shared_latency : p_.l2_latency);
    if (insn.opcode == "ldmatrix") cost.latency = static_cast<float>(p_.matrix_load_latency);
    cost.is_ordered = insn_class != InsnClass::kLoad;
    return cost;
  }

  InsnCost shuffle(const Instruction& insn) const {
    InsnCost cost = insn.opcode == "shfl" ? on(Pipe::kShared, 1, 1, p_.shuffle_latency)
                                          : on(Pipe::kAlu, 1, 4, p_.shuffle_latency);
    cost.is_ordered = true;
    return cost;
  }

  InsnCost tensor(const Instruction& insn) const {
    if (insn.opcode == "mma" || insn.opcode == "wmma") {
      // The same products at the rate of wgmma are 2 m n k / rate clocks of the SM, and each of
      // its four tensor cores has a scheduler of its own.
      const double flop = tensor_work(insn).flop_per_warp;
      const double per_clock = 1024;  // of one tensor core, in bf16
      InsnCost cost =
          on(Pipe::kMmaSync, 1, p_.mma_sync_interval_scale * flop / per_clock, p_.mma_sync_latency);
      return cost;
    }
    InsnCost cost = on(Pipe::kAsync, 1, 0, 0);
    cost.is_ordered = true;
    cost.is_fence = insn.opcode != "wgmma";
    cost.stall = static_cast<float>(insn.opcode == "wgmma" ? p_.wgmma_issue : p_.tcgen05_issue);
    return cost;
  }

  InsnCost async(const Instruction& insn) const {
    InsnCost cost = on(Pipe::kAsync, 1, 0, 0);
    cost.is_ordered = cost.is_fence = true;
    if (insn.opcode == "wgmma" && !has(insn, "wait_group")) cost.is_fence = has(insn, "fence");
    const bool is_copy = insn.opcode == "cp" && !starts(insn, "wait");
    if (is_copy) cost.is_fence = false;
    if (is_copy && has(insn, "bulk") && !starts(insn, "commit")) {
      cost.stall = static_cast<float>(p_.copy_issue);
    }
    return cost;
  }

  InsnCost other(const Instruction& insn) const {
    const std::string_view op = insn.opcode;
    if (op == "setmaxnreg") {
      InsnCost cost = on(Pipe::kAsync, 1, 0, 0);
      cost.is_fence = true;
      cost.stall = static_cast<float>(p_.set_registers);
      return cost;
    }
    if (is_one_of(op, {"membar", "fence", "griddepcontrol", "bar", "barrier"})) {
      InsnCost cost = on(Pipe::kAsync, 1, 0, 0);
      cost.is_fence = true;
      return cost;
    }
    if (op == "elect" || op == "activemask") return on(Pipe::kNone, 1, 0, 12);
    return on(Pipe::kNone, 1, 0, 0);
  }

  const TimeParameters& p_;
};

}  // namespace

std::vector<InsnCost> insn_costs(const KernelCode& code, const TimeParameters& parameters) {
  const Coster coster(parameters);
  std::vector<InsnCost> costs(code.insns.size());
  std::vector<bool> is_seen(code.places.size());
  for (std::size_t i = 0; i < code.insns.size(); ++i) {
    const std::uint32_t syntax = code.insns[i].syntax;
    const Instruction* const insn = code.places[syntax].syntax;
    if (insn == nullptr || is_seen[syntax]) {  // the end, or more of the same instruction
      costs[i].is_free = true;
      costs[i].slots = 0;
      costs[i].ends_block = insn == nullptr;
      continue;
    }
    is_seen[syntax] = true;
    costs[i] = coster.of(*insn, code.insns[i].insn_class);
  }
  return costs;
}

}  // namespace tilewright::sim
