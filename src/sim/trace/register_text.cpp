#include "sim/trace/register_text.h"

#include "formats/minifloat.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

namespace tilewright::sim {

namespace {

Type type_of_bits(int bits) {
  switch (bits) {
    case 1:
      return Type::kPred;
    case 8:
      return Type::kB8;
    case 16:
      return Type::kB16;
    case 64:
      return Type::kB64;
    case 128:
      return Type::kB128;
    default:
      return Type::kB32;
  }
}

bool says_more(Type type) {
  return type != Type::kB8 && type != Type::kB16 && type != Type::kB32 && type != Type::kB64;
}

/// How to show a register: as the instruction takes it, else as it is declared. Instructions with
/// two types name the destination's first.
Type display_type(const Instruction& instruction, Type declared, bool is_destination) {
  Type found = Type::kNone;
  for (const std::string_view modifier : instruction.modifiers) {
    const Type type = parse_type(modifier);
    if (type == Type::kNone || bits_of(type) != bits_of(declared)) continue;
    if (found == Type::kNone || !is_destination) found = type;
  }
  if (found != Type::kNone && says_more(found)) return found;
  return declared;
}

/// How to show 32-bit registers of A and B of mma and wgmma; kNone for other operands.
Type matrix_type(const Instruction& instruction, std::size_t operand_idx) {
  const bool is_matrix = instruction.opcode == "mma" || instruction.opcode == "wgmma";
  if (!is_matrix || (operand_idx != 1 && operand_idx != 2)) return Type::kNone;
  for (const std::string_view modifier : instruction.modifiers) {
    if (modifier == "bf16") return Type::kBf16x2;
    if (modifier == "tf32") return Type::kF32;
    if (modifier == "e4m3" || modifier == "e5m2" || modifier == "s8" || modifier == "u8") {
      return Type::kB32;
    }
  }
  const auto is_f16 = [](std::string_view modifier) { return modifier == "f16"; };
  return std::ranges::any_of(instruction.modifiers, is_f16) ? Type::kF16x2 : Type::kNone;
}

class Collector {
 public:
  Collector(const KernelCode& code, const Insn& insn)
      : code_(code), place_(code.place(insn)), instruction_(*place_.syntax) {}

  /// `shown_as`: kNone for what follows from instruction and declaration.
  void add(const Operand& operand, bool is_destination, Type shown_as) {
    if (operand.kind == OperandKind::kRegister) {
      add_register(operand.index, operand.component, is_destination, shown_as);
    }
    for (const Operand& part : operand.parts) {
      add(part, is_destination && operand.kind != OperandKind::kMemory, shown_as);
    }
  }

  void add_register(std::uint32_t index, std::uint8_t component, bool is_destination,
                    Type shown_as) {
    const RegisterDecl& decl = place_.function->registers.at(index);
    NamedRow named;
    named.name = decl.name;
    if (decl.num_components > 1) named.name += fmt::format(".{}", "xyzw"[component & 3]);
    const std::uint32_t bytes =
        decl.type == Type::kPred ? 4 : static_cast<std::uint32_t>(bits_of(decl.type)) / 8 * kLanes;
    const std::uint32_t component_idx = decl.num_components > 1 ? component & 3 : 0;
    named.row = code_.register_rows.at(place_.register_base + index) + component_idx * bytes;
    const bool is_typed = says_more(decl.type) || decl.type == Type::kPred;
    named.type = is_typed
                     ? decl.type
                     : display_type(instruction_, type_of_bits(bits_of(decl.type)), is_destination);
    if (shown_as != Type::kNone && bits_of(decl.type) == 32) named.type = shown_as;
    named.is_destination = is_destination;
    named.is_source = !is_destination;
    const auto known = std::ranges::find(rows_, named.name, &NamedRow::name);
    if (known == rows_.end()) {
      rows_.push_back(std::move(named));
    } else {
      known->is_source |= named.is_source;
    }
  }

  std::vector<NamedRow> take() { return std::move(rows_); }

 private:
  const KernelCode& code_;
  const CodePlace& place_;
  const Instruction& instruction_;
  std::vector<NamedRow> rows_;
};

/// Whether the first operand is written.
bool has_destination(const Instruction& instruction) {
  static constexpr std::string_view kWithout[] = {
      "st",  "red",        "bra",       "bar",      "barrier",
      "ret", "exit",       "fence",     "membar",   "prefetch",
      "cp",  "call",       "trap",      "stmatrix", "griddepcontrol",
      "brx", "setmaxnreg", "nanosleep", "prefetchu"};
  if (std::ranges::find(kWithout, instruction.opcode) != std::end(kWithout)) return false;
  if (instruction.operands.empty()) return false;
  return instruction.operands[0].kind != OperandKind::kMemory;
}

double decoded(const FormatSpec& format, std::uint32_t code) {
  return decode(format, code);
}

std::string number_text(std::uint64_t bits, Type type) {
  switch (type) {
    case Type::kF32:
      return fmt::format("{:.6g}", std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    case Type::kF64:
      return fmt::format("{:.9g}", std::bit_cast<double>(bits));
    case Type::kF16:
      return fmt::format("{:.5g}", decoded(kFp16, bits & 0xffff));
    case Type::kBf16:
      return fmt::format("{:.4g}", decoded(kBf16, bits & 0xffff));
    case Type::kF16x2:
    case Type::kBf16x2: {
      const FormatSpec& format = type == Type::kF16x2 ? kFp16 : kBf16;
      return fmt::format("{:.4g}|{:.4g}", decoded(format, bits & 0xffff),
                         decoded(format, bits >> 16 & 0xffff));
    }
    case Type::kS8:
      return fmt::format("{}", static_cast<std::int8_t>(bits));
    case Type::kS16:
      return fmt::format("{}", static_cast<std::int16_t>(bits));
    case Type::kS32:
      return fmt::format("{}", static_cast<std::int32_t>(bits));
    case Type::kS64:
      return fmt::format("{}", static_cast<std::int64_t>(bits));
    case Type::kU8:
    case Type::kU16:
    case Type::kU32:
    case Type::kU64:
    case Type::kPred:
      return fmt::format("{}", bits);
    default:
      return fmt::format("{:#x}", bits);
  }
}

std::uint64_t bits_at(Warp& warp, Row row, Type type, int lane) {
  switch (bits_of(type)) {
    case 1:
      return warp.predicate(row) >> lane & 1;
    case 8:
      return warp.row<std::uint8_t>(row)[lane];
    case 16:
      return warp.row<std::uint16_t>(row)[lane];
    case 64:
      return warp.row<std::uint64_t>(row)[lane];
    case 128:
      return warp.row<std::uint64_t>(row)[2 * lane];
    default:
      return warp.row<std::uint32_t>(row)[lane];
  }
}

std::string_view shown_type(Type type) {
  return type == Type::kPred ? "pred" : name_of(type);
}

/// Whether all of these lanes show the same, and what.
bool is_uniform(Warp& warp, const NamedRow& named, std::uint32_t lanes) {
  const std::string first = value_text(warp, named, std::countr_zero(lanes));
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) != 0 && value_text(warp, named, lane) != first) return false;
  }
  return true;
}

}  // namespace

std::vector<NamedRow> named_rows(const KernelCode& code, const Insn& insn) {
  const Instruction* instruction = code.place(insn).syntax;
  if (instruction == nullptr) return {};
  Collector collector(code, insn);
  const bool has_first = has_destination(*instruction);
  for (std::size_t i = 0; i < instruction->operands.size(); ++i) {
    collector.add(instruction->operands[i], i == 0 && has_first, matrix_type(*instruction, i));
  }
  if (instruction->guard)
    collector.add_register(instruction->guard->register_idx, 0, false, Type::kNone);
  return collector.take();
}

std::string value_text(Warp& warp, const NamedRow& named, int lane) {
  return number_text(bits_at(warp, named.row, named.type, lane), named.type);
}

std::string lanes_text(Warp& warp, const NamedRow& named, std::uint32_t lanes) {
  constexpr int kPerRow = 8;
  std::string out = fmt::format("    {:<8} {:<6}", named.name, shown_type(named.type));
  if (lanes != 0 && is_uniform(warp, named, lanes)) {
    return out +
           fmt::format(" {} in all of them\n", value_text(warp, named, std::countr_zero(lanes)));
  }
  std::size_t width = 1;
  for (int lane = 0; lane < kLanes; ++lane) {
    width = std::max(width, value_text(warp, named, lane).size());
  }
  for (int first = 0; first < kLanes; first += kPerRow) {
    out += first == 0 ? fmt::format(" {:>2}:", first) : fmt::format("{:>22}:", first);
    for (int lane = first; lane < first + kPerRow; ++lane) {
      const bool is_active = (lanes >> lane & 1) != 0;
      out += fmt::format(" {:>{}}", is_active ? value_text(warp, named, lane) : "-", width);
    }
    out += "\n";
  }
  return out;
}

std::string short_text(Warp& warp, const NamedRow& named, std::uint32_t lanes) {
  if (lanes == 0) return {};
  const int first = std::countr_zero(lanes);
  if (is_uniform(warp, named, lanes)) {
    return fmt::format("{} = {}", named.name, value_text(warp, named, first));
  }
  const int last = 31 - std::countl_zero(lanes);
  return fmt::format("{} = {} .. {}", named.name, value_text(warp, named, first),
                     value_text(warp, named, last));
}

}  // namespace tilewright::sim
