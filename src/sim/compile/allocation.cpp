#include "sim/compile/allocation.h"

#include "sim/parse/types.h"

#include <algorithm>
#include <map>
#include <queue>
#include <string_view>

namespace tilewright::sim {

namespace {

constexpr Row kFirstRow = 64;  // the true predicate has the first 64 bytes for itself

/// Registers by number.
class RegisterSet {
 public:
  explicit RegisterSet(std::size_t size = 0, bool value = false)
      : words_((size + 63) / 64, value ? ~std::uint64_t{0} : 0) {}
  bool test(std::size_t i) const { return words_[i / 64] >> (i % 64) & 1; }
  void set(std::size_t i) { words_[i / 64] |= std::uint64_t{1} << (i % 64); }
  void reset(std::size_t i) { words_[i / 64] &= ~(std::uint64_t{1} << (i % 64)); }
  /// *this |= other & ~without; whether anything was added.
  bool merge(const RegisterSet& other, const RegisterSet& without) {
    std::uint64_t changed = 0;
    for (std::size_t w = 0; w < words_.size(); ++w) {
      const std::uint64_t next = words_[w] | (other.words_[w] & ~without.words_[w]);
      changed |= next ^ words_[w];
      words_[w] = next;
    }
    return changed != 0;
  }
  /// *this |= other
  void add(const RegisterSet& other) {
    for (std::size_t w = 0; w < words_.size(); ++w) words_[w] |= other.words_[w];
  }
  /// *this &= other; whether anything was taken away.
  bool intersect(const RegisterSet& other) {
    std::uint64_t changed = 0;
    for (std::size_t w = 0; w < words_.size(); ++w) {
      changed |= words_[w] & ~other.words_[w];
      words_[w] &= other.words_[w];
    }
    return changed != 0;
  }
  template <class F>
  void for_each(F&& f) const {
    for (std::size_t w = 0; w < words_.size(); ++w) {
      for (std::uint64_t rest = words_[w]; rest != 0; rest &= rest - 1) {
        f(64 * w + static_cast<std::size_t>(__builtin_ctzll(rest)));
      }
    }
  }

 private:
  std::vector<std::uint64_t> words_;
};

/// Whether the first operand of an instruction is written and not read. To say no is always safe.
bool writes_first_operand(const Instruction& syntax) {
  static constexpr std::string_view kSourcesOnly[] = {
      "st", "red", "bra", "brx", "nanosleep", "wgmma", "setmaxnreg", "call", "ret", "exit", "trap"};
  if (std::ranges::count(kSourcesOnly, syntax.opcode) > 0) return false;
  const auto has = [&](std::string_view m) { return std::ranges::count(syntax.modifiers, m) > 0; };
  if (syntax.opcode == "bar" || syntax.opcode == "barrier") return has("red");
  if (syntax.opcode == "tcgen05") return has("ld");
  return true;
}

template <class F>
void for_each_register(const Operand& operand, F&& f) {
  if (operand.kind == OperandKind::kRegister) f(operand);
  for (const Operand& part : operand.parts) for_each_register(part, f);
}

struct Block {
  std::uint32_t begin = 0, end = 0;
  std::vector<std::uint32_t> next;
  RegisterSet uses, defs;  // read before written here; written here in all lanes that pass
  RegisterSet live_in, live_out;
  RegisterSet assigned_in;  // written on every path that leads here
};

class Allocator {
 public:
  explicit Allocator(const FlatKernel& kernel) : kernel_(kernel) {
    collect_wgmma_registers();
    find_blocks();
    for (Block& block : blocks_) summarize(block);
    solve_liveness();
    solve_assignment();
  }

  RegisterRows run() {
    find_intervals();
    return assign_rows();
  }

 private:
  struct Interval {
    std::uint32_t begin = ~0U, end = 0;
    bool is_used() const { return begin <= end; }
    void extend(std::uint32_t at) {
      begin = std::min(begin, at);
      end = std::max(end, at);
    }
  };

  static bool is_wait(const FlatInsn& insn) {
    return insn.kind == FlatKind::kSyntax && insn.syntax->opcode == "wgmma" &&
           !insn.syntax->modifiers.empty() && insn.syntax->modifiers[0] == "wait_group";
  }

  std::uint32_t number(const FlatInsn& insn, const Operand& operand) const {
    return kernel_.copies[insn.copy].register_base + operand.index;
  }

  const RegisterDecl& decl(std::uint32_t number) const {
    const auto after = std::upper_bound(
        kernel_.copies.begin(), kernel_.copies.end(), number,
        [](std::uint32_t n, const FunctionCopy& copy) { return n < copy.register_base; });
    // Copies without registers share their base with the next one: the last of them owns it.
    const FunctionCopy& copy = *(after - 1);
    return copy.function->registers[number - copy.register_base];
  }

  /// Calls use(number) and define(number), uses first.
  template <class Use, class Define>
  void visit(const FlatInsn& insn, Use&& use, Define&& define) const {
    if (insn.syntax == nullptr) return;
    const Instruction& syntax = *insn.syntax;
    if (insn.kind == FlatKind::kReturn || insn.kind == FlatKind::kBadCall) return;
    if (insn.kind == FlatKind::kFrameCall || insn.kind == FlatKind::kResults ||
        insn.kind == FlatKind::kFrameReturn || insn.kind == FlatKind::kExit) {
      return;
    }
    if (syntax.guard && insn.kind != FlatKind::kSkipTarget && insn.kind != FlatKind::kBuiltin) {
      use(kernel_.copies[insn.copy].register_base + syntax.guard->register_idx);
    }
    if (insn.kind == FlatKind::kSkip) return;
    const bool writes_first = insn.kind == FlatKind::kSyntax && writes_first_operand(syntax);
    for (std::size_t i = 0; i < syntax.operands.size(); ++i) {
      const Operand& operand = syntax.operands[i];
      const bool is_written = i == 0 && writes_first && operand.kind != OperandKind::kMemory;
      for_each_register(operand, [&](const Operand& reg) {
        if (!is_written || reg.has_component) use(number(insn, reg));
      });
    }
    if (is_wait(insn)) {
      for (const std::uint32_t reg : wgmma_registers_) use(reg);
    }
    if (writes_first && !syntax.operands.empty() && !syntax.guard &&
        syntax.operands[0].kind != OperandKind::kMemory) {
      for_each_register(syntax.operands[0], [&](const Operand& reg) {
        if (!reg.has_component) define(number(insn, reg));
      });
    }
  }

  /// Every register that is mentioned, written under a guard too.
  template <class F>
  void visit_all(const FlatInsn& insn, F&& f) const {
    visit(insn, f, f);
    if (insn.kind == FlatKind::kSyntax) {
      for (const Operand& operand : insn.syntax->operands) {
        for_each_register(operand, [&](const Operand& reg) { f(number(insn, reg)); });
      }
    }
  }

  // Registers of a wgmma stay in use until a wait: nothing else may get their rows before.
  void collect_wgmma_registers() {
    for (const FlatInsn& insn : kernel_.body) {
      if (insn.kind != FlatKind::kSyntax || insn.syntax->opcode != "wgmma") continue;
      for (const Operand& operand : insn.syntax->operands) {
        for_each_register(
            operand, [&](const Operand& reg) { wgmma_registers_.push_back(number(insn, reg)); });
      }
    }
    std::ranges::sort(wgmma_registers_);
    wgmma_registers_.erase(std::unique(wgmma_registers_.begin(), wgmma_registers_.end()),
                           wgmma_registers_.end());
  }

  /// Where control may go besides the next instruction; `falls` tells whether it may go there.
  std::vector<std::uint32_t> jump_targets(const FlatInsn& insn, bool& falls) const {
    falls = true;
    if (insn.kind == FlatKind::kReturn) {
      falls = false;
      return {kernel_.labels[insn.label]};
    }
    if (insn.kind == FlatKind::kSkip || insn.kind == FlatKind::kSkipTarget) {
      return {kernel_.labels[insn.label]};
    }
    if (insn.kind == FlatKind::kBadCall || insn.kind == FlatKind::kExit) falls = false;
    if (insn.kind == FlatKind::kFrameCall) {
      falls = false;
      return {kernel_.labels[insn.label]};
    }
    if (insn.kind == FlatKind::kFrameReturn) {
      falls = false;
      std::vector<std::uint32_t> back;
      for (const std::uint32_t label : kernel_.copies[insn.copy].return_labels) {
        back.push_back(kernel_.labels[label]);
      }
      return back;
    }
    if (insn.kind != FlatKind::kSyntax) return {};
    const Instruction& syntax = *insn.syntax;
    const FunctionCopy& copy = kernel_.copies[insn.copy];
    std::vector<std::uint32_t> targets;
    if (syntax.opcode == "bra" || syntax.opcode == "brx") {
      falls = syntax.guard.has_value();
      for (const Operand& operand : syntax.operands) {
        if (operand.kind == OperandKind::kLabel) {
          targets.push_back(kernel_.labels[copy.label_base + operand.index]);
        } else if (operand.kind == OperandKind::kTable) {
          for (const std::uint32_t label : copy.function->tables[operand.index].targets) {
            targets.push_back(kernel_.labels[copy.label_base + label]);
          }
        }
      }
    } else if (syntax.opcode == "ret" || syntax.opcode == "exit" || syntax.opcode == "trap") {
      falls = syntax.guard.has_value();
    }
    return targets;
  }

  void find_blocks() {
    const auto size = static_cast<std::uint32_t>(kernel_.body.size());
    std::vector<bool> is_start(size + 1, false);
    if (size != 0) is_start[0] = true;
    for (const std::uint32_t label : kernel_.labels) is_start[label] = true;
    for (std::uint32_t i = 0; i < size; ++i) {
      bool falls = true;
      if (!jump_targets(kernel_.body[i], falls).empty() || !falls) is_start[i + 1] = true;
    }
    std::vector<std::uint32_t> block_at(size + 1, 0);
    for (std::uint32_t i = 0; i < size; ++i) {
      if (is_start[i]) blocks_.emplace_back().begin = i;
      block_at[i] = static_cast<std::uint32_t>(blocks_.size() - 1);
      blocks_.back().end = i + 1;
    }
    for (Block& block : blocks_) {
      bool falls = true;
      for (const std::uint32_t target : jump_targets(kernel_.body[block.end - 1], falls)) {
        if (target < size) block.next.push_back(block_at[target]);
      }
      if (falls && block.end < size) block.next.push_back(block_at[block.end]);
    }
  }

  void summarize(Block& block) const {
    const std::size_t n = kernel_.num_registers;
    block.uses = block.defs = block.live_in = block.live_out = RegisterSet(n);
    block.assigned_in = RegisterSet(n, true);
    for (std::uint32_t i = block.begin; i < block.end; ++i) {
      visit(
          kernel_.body[i],
          [&](std::uint32_t reg) {
            if (!block.defs.test(reg)) block.uses.set(reg);
          },
          [&](std::uint32_t reg) { block.defs.set(reg); });
    }
  }

  void solve_liveness() {
    const RegisterSet nothing(kernel_.num_registers);
    for (Block& block : blocks_) block.live_in = block.uses;
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t b = blocks_.size(); b-- > 0;) {
        Block& block = blocks_[b];
        bool out_changed = false;
        for (const std::uint32_t next : block.next) {
          out_changed |= block.live_out.merge(blocks_[next].live_in, nothing);
        }
        if (out_changed) changed |= block.live_in.merge(block.live_out, block.defs);
      }
    }
  }

  void solve_assignment() {
    if (blocks_.empty()) return;
    blocks_[0].assigned_in = RegisterSet(kernel_.num_registers);
    for (bool changed = true; changed;) {
      changed = false;
      for (const Block& block : blocks_) {
        RegisterSet out = block.assigned_in;
        out.add(block.defs);
        for (const std::uint32_t next : block.next) {
          changed |= blocks_[next].assigned_in.intersect(out);
        }
      }
    }
  }

  void find_intervals() {
    intervals_.assign(kernel_.num_registers, {});
    is_maybe_undefined_.assign(kernel_.num_registers, false);
    for (const Block& block : blocks_) {
      block.live_in.for_each([&](std::size_t reg) { intervals_[reg].extend(block.begin); });
      block.live_out.for_each([&](std::size_t reg) { intervals_[reg].extend(block.end); });
      RegisterSet assigned = block.assigned_in;
      for (std::uint32_t i = block.begin; i < block.end; ++i) {
        visit_all(kernel_.body[i], [&](std::uint32_t reg) { intervals_[reg].extend(i); });
        visit(
            kernel_.body[i],
            [&](std::uint32_t reg) {
              if (!assigned.test(reg) && !is_wait(kernel_.body[i])) is_maybe_undefined_[reg] = true;
            },
            [&](std::uint32_t reg) { assigned.set(reg); });
      }
    }
  }

  RegisterRows assign_rows() {
    RegisterRows out;
    out.row_of.assign(kernel_.num_registers, kNoRow);
    out.is_maybe_undefined = is_maybe_undefined_;
    std::vector<std::uint32_t> order;
    for (std::uint32_t reg = 0; reg < kernel_.num_registers; ++reg) {
      if (intervals_[reg].is_used()) order.push_back(reg);
    }
    std::ranges::sort(order, {}, [&](std::uint32_t reg) { return intervals_[reg].begin; });
    Row next = kFirstRow;
    assign(order, out, next, true);
    out.predicate_end = next = (next + 63) / 64 * 64;
    assign(order, out, next, false);
    out.end = next;
    out.num_live = max_live(order);
    return out;
  }

  void assign(const std::vector<std::uint32_t>& order, RegisterRows& out, Row& next,
              bool predicates) const {
    using Ending = std::pair<std::uint32_t, std::uint32_t>;  // end, register
    std::priority_queue<Ending, std::vector<Ending>, std::greater<>> active;
    std::map<std::uint32_t, std::vector<Row>> free_rows;  // by size
    for (const std::uint32_t reg : order) {
      if ((decl(reg).type == Type::kPred) != predicates) continue;
      while (!active.empty() && active.top().first < intervals_[reg].begin) {
        const std::uint32_t ended = active.top().second;
        free_rows[bytes_of(ended)].push_back(out.row_of[ended]);
        active.pop();
      }
      const std::uint32_t bytes = bytes_of(reg);
      std::vector<Row>& free_list = free_rows[bytes];
      if (!free_list.empty() && !is_maybe_undefined_[reg]) {
        out.row_of[reg] = free_list.back();
        free_list.pop_back();
      } else {
        out.row_of[reg] = next;
        next += bytes;
      }
      if (!is_maybe_undefined_[reg]) active.emplace(intervals_[reg].end, reg);
    }
  }

  std::uint32_t bytes_of(std::uint32_t reg) const {
    return row_bytes(decl(reg).type) * decl(reg).num_components;
  }

  std::uint32_t max_live(const std::vector<std::uint32_t>& order) const {
    std::map<std::uint32_t, std::int64_t> change;
    for (const std::uint32_t reg : order) {
      if (decl(reg).type == Type::kPred) continue;
      const std::int64_t words = std::max<std::int64_t>(1, bytes_of(reg) / 128);
      change[intervals_[reg].begin] += words;
      change[intervals_[reg].end + 1] -= words;
    }
    std::int64_t live = 0, most = 0;
    for (const auto& [at, delta] : change) {
      live += delta;
      most = std::max(most, live);
    }
    return static_cast<std::uint32_t>(most);
  }

  const FlatKernel& kernel_;
  std::vector<Block> blocks_;
  std::vector<std::uint32_t> wgmma_registers_;
  std::vector<Interval> intervals_;
  std::vector<bool> is_maybe_undefined_;
};

}  // namespace

std::uint32_t row_bytes(Type type) {
  switch (bits_of(type)) {
    case 1:
      return 4;
    case 8:
    case 16:
      return 64;
    case 32:
      return 128;
    case 64:
      return 256;
    default:
      return 512;
  }
}

RegisterRows allocate_rows(const FlatKernel& kernel) {
  return Allocator(kernel).run();
}

}  // namespace tilewright::sim
