#include "sim/compile/contract.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string_view>

namespace tilewright::sim {

namespace {

/// What mul, add and sub must have in common.
struct Arithmetic {
  std::string_view type;
  std::string_view rounding;  ///< of f32x2, which is contracted whatever it says
  bool is_ftz = false, is_saturating = false;

  bool fits(const Arithmetic& product) const {
    return type == product.type && is_ftz == product.is_ftz && rounding == product.rounding;
  }
};

constexpr std::array<std::string_view, 7> kTypes = {"f32",  "f64",    "f16",  "f16x2",
                                                    "bf16", "bf16x2", "f32x2"};
constexpr std::array<std::string_view, 4> kRoundings = {"rn", "rz", "rm", "rp"};

/// Empty if ptxas leaves instructions with these modifiers alone.
std::optional<Arithmetic> arithmetic_of(const Instruction& syntax) {
  Arithmetic out;
  bool has_rounding = false;
  out.rounding = "rn";
  for (const std::string_view modifier : syntax.modifiers) {
    if (modifier == "ftz") {
      out.is_ftz = true;
    } else if (modifier == "sat") {
      out.is_saturating = true;
    } else if (std::ranges::count(kRoundings, modifier) > 0) {
      has_rounding = true;
      out.rounding = modifier;
    } else if (std::ranges::count(kTypes, modifier) > 0 && out.type.empty()) {
      out.type = modifier;
    } else {
      return std::nullopt;
    }
  }
  if (out.type.empty() || (has_rounding && out.type != "f32x2")) return std::nullopt;
  return out;
}

bool is_plain_register(const Operand& operand) {
  return operand.kind == OperandKind::kRegister && !operand.has_component && !operand.is_minus;
}

bool is_value(const Operand& operand) {
  return is_plain_register(operand) || operand.kind == OperandKind::kFloat ||
         operand.kind == OperandKind::kInteger;
}

template <class F>
void for_each_index(const Operand& operand, F&& f) {
  if (operand.kind == OperandKind::kRegister) f(operand.index);
  for (const Operand& part : operand.parts) for_each_index(part, f);
}

/// A product and the additions that use it, by index of the instruction.
struct Product {
  std::uint32_t at = 0;
  Arithmetic arithmetic;
  std::vector<std::uint32_t> uses;
  bool is_open = true;  ///< it can still become part of additions
};

class Contractor {
 public:
  explicit Contractor(FlatKernel& kernel) : kernel_(kernel) {
    find_blocks();
    find_mentions();
  }

  void run() {
    for (std::uint32_t i = 0; i < kernel_.body.size(); ++i) {
      if (auto product = product_at(i)) products_.emplace(i, *std::move(product));
    }
    if (products_.empty()) return;
    for (auto& [at, product] : products_) {
      for (const std::uint32_t use : product.uses) users_[use].push_back(at);
    }
    for (const bool is_single : {true, false}) {
      for (const auto& [use, candidates] : users_) choose(use, is_single);
    }
    remove_products();
  }

 private:
  const Instruction& syntax(std::uint32_t at) const { return *kernel_.body[at].syntax; }
  bool is_syntax(std::uint32_t at) const { return kernel_.body[at].kind == FlatKind::kSyntax; }
  std::uint32_t number(std::uint32_t at, std::uint32_t index) const {
    return kernel_.copies[kernel_.body[at].copy].register_base + index;
  }

  /// A label is the start of a block if something jumps to it from elsewhere.
  void find_blocks() {
    const auto size = static_cast<std::uint32_t>(kernel_.body.size());
    std::vector<bool> is_start(size + 1, false);
    for (std::uint32_t i = 0; i < size; ++i) {
      if (!ends_block(i)) continue;
      is_start[i + 1] = true;
      for_each_target(i, [&](std::uint32_t target) { is_start[target] = true; });
    }
    std::uint32_t block = 0;
    for (std::uint32_t i = 0; i < size; ++i) {
      if (is_start[i]) ++block;
      block_of_.push_back(block);
    }
  }

  bool ends_block(std::uint32_t at) const {
    static constexpr std::string_view kJumps[] = {"bra", "brx", "ret", "exit", "trap"};
    const FlatInsn& insn = kernel_.body[at];
    if (insn.kind == FlatKind::kReturn) return kernel_.labels[insn.label] != at + 1;
    if (insn.kind == FlatKind::kBuiltin) return false;
    return insn.kind != FlatKind::kSyntax || std::ranges::count(kJumps, insn.syntax->opcode) > 0;
  }

  template <class F>
  void for_each_target(std::uint32_t at, F&& f) const {
    const FlatInsn& insn = kernel_.body[at];
    if (insn.kind != FlatKind::kSyntax) {
      switch (insn.kind) {
        case FlatKind::kBadCall:
        case FlatKind::kResults:
        case FlatKind::kFrameReturn:  // what it goes to stands behind a call and starts a block
        case FlatKind::kExit:
          return;
        default:
          f(kernel_.labels[insn.label]);
      }
      return;
    }
    const FunctionCopy& copy = kernel_.copies[insn.copy];
    for (const Operand& operand : insn.syntax->operands) {
      if (operand.kind == OperandKind::kLabel) {
        f(kernel_.labels[copy.label_base + operand.index]);
      } else if (operand.kind == OperandKind::kTable) {
        for (const std::uint32_t label : copy.function->tables[operand.index].targets) {
          f(kernel_.labels[copy.label_base + label]);
        }
      }
    }
  }

  /// Where each register stands, once for each time.
  void find_mentions() {
    mentions_.resize(kernel_.num_registers);
    for (std::uint32_t i = 0; i < kernel_.body.size(); ++i) {
      if (kernel_.body[i].syntax == nullptr) continue;
      const Instruction& insn = syntax(i);
      if (insn.guard) mentions_[number(i, insn.guard->register_idx)].push_back(i);
      for (const Operand& operand : insn.operands) {
        for_each_index(operand, [&](std::uint32_t r) { mentions_[number(i, r)].push_back(i); });
      }
    }
  }

  std::optional<Product> product_at(std::uint32_t at) const {
    if (!is_syntax(at) || syntax(at).opcode != "mul" || syntax(at).guard) return std::nullopt;
    const Instruction& insn = syntax(at);
    const auto arithmetic = arithmetic_of(insn);
    if (!arithmetic || arithmetic->is_saturating || insn.operands.size() != 3 ||
        !is_plain_register(insn.operands[0]) || !is_value(insn.operands[1]) ||
        !is_value(insn.operands[2])) {
      return std::nullopt;
    }
    Product product{at, *arithmetic, {}, true};
    if (!find_uses(number(at, insn.operands[0].index), product)) return std::nullopt;
    for (const std::size_t source : {1, 2}) {
      const Operand& operand = insn.operands[source];
      if (operand.kind == OperandKind::kRegister &&
          is_written_between(number(at, operand.index), at, product.uses.back())) {
        return std::nullopt;
      }
    }
    return product;
  }

  /// Whether all uses of the value that the register gets at `product.at` are additions.
  bool find_uses(std::uint32_t reg, Product& product) const {
    const std::vector<std::uint32_t>& all = mentions_[reg];
    bool ends_here = false;
    for (auto it = std::ranges::upper_bound(all, product.at); it != all.end(); ++it) {
      if (block_of_[*it] != block_of_[product.at]) return false;
      const bool is_use = is_addition_of(*it, reg, product.arithmetic);
      if (is_use) product.uses.push_back(*it);
      ends_here = is_new_value(*it, reg);
      if (!is_use && !ends_here) return false;
      if (ends_here) break;
    }
    if (product.uses.empty()) return false;
    return ends_here || std::ranges::all_of(all, [&](std::uint32_t at) {
             return at >= product.at && block_of_[at] == block_of_[product.at];
           });
  }

  bool is_addition_of(std::uint32_t at, std::uint32_t reg, const Arithmetic& product) const {
    if (!is_syntax(at) || (syntax(at).opcode != "add" && syntax(at).opcode != "sub")) return false;
    const Instruction& insn = syntax(at);
    const auto arithmetic = arithmetic_of(insn);
    if (!arithmetic || !arithmetic->fits(product) || insn.operands.size() != 3) return false;
    if (!is_plain_register(insn.operands[0])) return false;
    const auto is_product = [&](const Operand& operand) {
      return is_plain_register(operand) && number(at, operand.index) == reg;
    };
    return is_value(insn.operands[1]) && is_value(insn.operands[2]) &&
           is_product(insn.operands[1]) != is_product(insn.operands[2]);
  }

  /// Whether the register's old value is gone after this instruction.
  bool is_new_value(std::uint32_t at, std::uint32_t reg) const {
    static constexpr std::string_view kWriters[] = {"mul", "add", "sub", "fma", "mov", "ld"};
    if (!is_syntax(at) || syntax(at).guard) return false;
    const Instruction& insn = syntax(at);
    if (std::ranges::count(kWriters, insn.opcode) == 0 || !is_plain_register(insn.operands[0]) ||
        number(at, insn.operands[0].index) != reg) {
      return false;
    }
    const bool is_also_read = std::ranges::count(mentions_[reg], at) > 1;
    return !is_also_read || insn.opcode == "add" || insn.opcode == "sub";
  }

  /// Seen strictly: any mention in a first operand, where results are.
  bool is_written_between(std::uint32_t reg, std::uint32_t begin, std::uint32_t end) const {
    const std::vector<std::uint32_t>& all = mentions_[reg];
    for (auto it = std::ranges::upper_bound(all, begin); it != all.end() && *it < end; ++it) {
      const Instruction& insn = syntax(*it);
      bool is_first = !is_syntax(*it);
      if (!insn.operands.empty()) {
        for_each_index(insn.operands[0],
                       [&](std::uint32_t r) { is_first = is_first || number(*it, r) == reg; });
      }
      if (is_first) return true;
    }
    // A result of the product itself: mul.f32 a, a, b
    return number(begin, syntax(begin).operands[0].index) == reg;
  }

  void choose(std::uint32_t use, bool is_single) {
    const Instruction& insn = syntax(use);
    for (const std::size_t operand_idx : {1, 2}) {
      for (const std::uint32_t at : users_.at(use)) {
        Product& product = products_.at(at);
        const Operand& operand = insn.operands[operand_idx];
        if (!product.is_open || (product.uses.size() == 1) != is_single ||
            !is_plain_register(operand) ||
            number(use, operand.index) != number(at, syntax(at).operands[0].index)) {
          continue;
        }
        contract(product);
        return;
      }
    }
  }

  /// All its uses become fma; other products there are what is added from now on.
  void contract(Product& product) {
    const std::uint32_t reg = number(product.at, syntax(product.at).operands[0].index);
    for (const std::uint32_t use : product.uses) {
      for (const std::uint32_t other : users_.at(use)) products_.at(other).is_open = false;
      kernel_.body[use].syntax = fused(product, use, reg);
    }
    removed_.push_back(product.at);
  }

  const Instruction* fused(const Product& product, std::uint32_t use, std::uint32_t reg) {
    const Instruction& sum = syntax(use);
    auto out = std::make_shared<Instruction>(sum);
    const bool is_first =
        is_plain_register(sum.operands[1]) && number(use, sum.operands[1].index) == reg;
    out->opcode = "fma";
    const auto names_rounding = [](std::string_view modifier) {
      return std::ranges::count(kRoundings, modifier) > 0;
    };
    std::erase_if(out->modifiers, names_rounding);
    out->modifiers.insert(out->modifiers.begin(), product.arithmetic.rounding);
    if (sum.opcode == "sub") out->modifiers.push_back(is_first ? kMinusC : kMinusA);
    const Instruction& factors = syntax(product.at);
    out->operands = {sum.operands[0], factors.operands[1], factors.operands[2],
                     sum.operands[is_first ? 2 : 1]};
    kernel_.made.push_back(out);
    return out.get();
  }

  void remove_products() {
    std::ranges::sort(removed_);
    std::vector<std::uint32_t> new_index;
    std::vector<FlatInsn> body;
    for (std::uint32_t i = 0; i < kernel_.body.size(); ++i) {
      new_index.push_back(static_cast<std::uint32_t>(body.size()));
      if (!std::ranges::binary_search(removed_, i)) body.push_back(kernel_.body[i]);
    }
    new_index.push_back(static_cast<std::uint32_t>(body.size()));
    for (std::uint32_t& label : kernel_.labels) label = new_index[label];
    kernel_.body = std::move(body);
  }

  FlatKernel& kernel_;
  std::vector<std::uint32_t> block_of_;
  std::vector<std::vector<std::uint32_t>> mentions_;
  std::map<std::uint32_t, Product> products_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> users_;  // additions and their products
  std::vector<std::uint32_t> removed_;
};

}  // namespace

void contract_products(FlatKernel& kernel) {
  Contractor(kernel).run();
}

}  // namespace tilewright::sim
