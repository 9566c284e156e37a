#include "sim/check/tensor/register_tags.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <string_view>

namespace tilewright::sim {

namespace {

/// Bytes of a type that an arithmetic instruction names: of an element and of the register.
struct TypeBytes {
  std::uint8_t element = 0, whole = 0;
};

TypeBytes bytes_of_type(std::string_view name) {
  struct Known {
    std::string_view name;
    TypeBytes bytes;
  };
  constexpr Known kKnown[] = {
      {"f32", {4, 4}}, {"b32", {4, 4}}, {"u32", {4, 4}},    {"s32", {4, 4}},    {"f32x2", {4, 8}},
      {"f16", {2, 2}}, {"b16", {2, 2}}, {"bf16", {2, 2}},   {"f16x2", {2, 4}},  {"bf16x2", {2, 4}},
      {"b64", {8, 8}}, {"u64", {8, 8}}, {"s64", {8, 8}},    {"f64", {8, 8}},    {"u16", {2, 2}},
      {"s16", {2, 2}}, {"b8", {1, 1}},  {"e4m3x2", {1, 2}}, {"e5m2x2", {1, 2}}, {"tf32", {4, 4}},
  };
  for (const Known& known : kKnown) {
    if (known.name == name) return known.bytes;
  }
  return {};
}

std::vector<TypeBytes> types_of(const Instruction& syntax) {
  std::vector<TypeBytes> out;
  for (const std::string_view modifier : syntax.modifiers) {
    if (const TypeBytes bytes = bytes_of_type(modifier); bytes.element != 0) out.push_back(bytes);
  }
  return out;
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

Lineage conversion_of(const std::vector<TypeBytes>& types, std::size_t num_read, bool is_integer) {
  if (types.size() != 2) return {};
  const TypeBytes to = types[0], from = types[1];
  const bool is_pair = to.whole == 2 * to.element && from.element == from.whole;
  if (is_pair && num_read == 2) return {LineageRule::kConvertPair, from.whole, to.element};
  const bool is_single = to.whole == to.element && from.whole == from.element && num_read == 1;
  if (!is_single) return {};
  return {is_integer ? LineageRule::kResize : LineageRule::kConvert, from.whole, to.whole};
}

Lineage lineage_of(const Instruction& syntax, const RowUse& use) {
  const std::string_view opcode = syntax.opcode;
  if (opcode == "tcgen05") {
    const bool is_load = std::ranges::find(syntax.modifiers, "ld") != syntax.modifiers.end();
    return {is_load ? LineageRule::kLoaded : LineageRule::kDrop};
  }
  const std::vector<TypeBytes> types = types_of(syntax);
  if (opcode == "cvt") {
    const bool is_integer = std::ranges::none_of(syntax.modifiers, [](std::string_view modifier) {
      return modifier.find('f') != modifier.npos || modifier.starts_with('e');
    });
    return conversion_of(types, use.num_read, is_integer);
  }
  if (types.size() != 1) return {};
  const std::uint8_t element = types[0].element, whole = types[0].whole;
  if (opcode == "mov") return {LineageRule::kMove, whole, whole};
  if (opcode == "selp") return {LineageRule::kSelect, whole, whole};
  if (is_one_of(opcode, {"and", "or", "xor", "lop3"})) return {LineageRule::kBytes, whole, whole};
  if (is_one_of(opcode, {"shl", "shr"}) && whole == 4) return {LineageRule::kShift, 4, 4};
  if (opcode == "prmt" && syntax.modifiers.size() == 1) {
    const Operand& selector = syntax.operands[3];
    const bool is_known = selector.kind == OperandKind::kInteger;
    return {LineageRule::kPermute, 4, 4, is_known ? selector.value & 0xffff : -1};
  }
  const bool is_wide = std::ranges::find(syntax.modifiers, "wide") != syntax.modifiers.end();
  if (is_wide) return {};
  // Not min and max: in a row with one column that counts they would be that column's, everywhere.
  if (is_one_of(opcode, {"add", "sub", "mul", "fma", "mad", "neg", "abs", "ex2", "lg2", "rcp",
                         "sqrt", "rsqrt", "tanh", "sin", "cos", "copysign", "not", "div"})) {
    return {LineageRule::kElements, element, whole};
  }
  return {};
}

}  // namespace

std::vector<Lineage> plan_lineage(const KernelCode& code) {
  std::vector<Lineage> out;
  for (std::size_t i = 0; i < code.insns.size(); ++i) {
    const Instruction* const syntax = code.place(code.insns[i]).syntax;
    out.push_back(syntax == nullptr ? Lineage{} : lineage_of(*syntax, code.uses[i]));
  }
  return out;
}

/// Rows without predicates.
struct RegisterTags::Use {
  std::array<Row, 5> written{}, read{};
  std::uint32_t num_written = 0, num_read = 0;
};

RegisterTags::RegisterTags(const KernelCode& code)
    : predicate_end_(code.predicate_end),
      tags_((code.register_bytes / kUnitBytes + 1) * kUnitBytes),
      is_set_(code.register_bytes / kUnitBytes + 1),
      row_units_(is_set_.size(), 1) {
  std::vector<std::uint8_t> is_start(is_set_.size());
  for (const Row row : code.rows) is_start[row / kUnitBytes] = 1;
  for (const Row row : code.register_rows) {
    if (row != kNoRow) is_start[row / kUnitBytes] = 1;
  }
  for (std::size_t i = is_start.size() - 1; i-- > 0;) {
    if (is_start[i + 1] == 0) row_units_[i] = std::min(row_units_[i + 1] + 1, kMostUnits);
  }
}

bool RegisterTags::has_tags(Row row) const {
  const std::uint32_t first = row / kUnitBytes;
  for (std::uint32_t i = 0; i < row_units_[first]; ++i) {
    if (is_set_[first + i] != 0) return true;
  }
  return false;
}

void RegisterTags::set(Row row, std::uint32_t width, std::uint32_t lane, std::uint32_t byte,
                       Tag tag) {
  const std::uint32_t at = row + lane * width + byte;
  tags_[at] = tag;
  if (tag != 0) is_set_[at / kUnitBytes] = 1;
}

void RegisterTags::clear(Row row) {
  if (!has_tags(row)) return;
  const std::uint32_t first = row / kUnitBytes, count = row_units_[first];
  std::fill_n(tags_.begin() + row, count * kUnitBytes, 0);
  std::fill_n(is_set_.begin() + first, count, std::uint8_t{0});
}

Tag RegisterTags::element(Row row, std::uint32_t width, std::uint32_t lane, std::uint32_t from,
                          std::uint32_t bytes) const {
  const Tag* const first = &tags_[row + lane * width + from];
  for (std::uint32_t i = 1; i < bytes; ++i) {
    if (first[i] != *first) return 0;
  }
  return *first;
}

void RegisterTags::put(Row row, std::uint32_t width, std::uint32_t lane, std::uint32_t from,
                       std::uint32_t bytes, Tag tag) {
  for (std::uint32_t i = 0; i < bytes; ++i) set(row, width, lane, from + i, tag);
}

namespace {

/// Of two values that go into one. ~0 stands for values with different tags.
constexpr Tag kMixed = ~Tag{0};

Tag combined(Tag a, Tag b) {
  if (a == 0 || a == b) return b;
  return b == 0 ? a : kMixed;
}

}  // namespace

void RegisterTags::elements(const Use& use, const Lineage& lineage, std::uint32_t active) {
  const std::uint32_t width = lineage.result_bytes, bytes = lineage.element_bytes;
  for_each_lane(active, [&](std::uint32_t lane) {
    for (std::uint32_t from = 0; from < width; from += bytes) {
      Tag tag = 0;
      for (std::uint32_t i = 0; i < use.num_read; ++i) {
        tag = combined(tag, element(use.read[i], width, lane, from, bytes));
      }
      put(use.written[0], width, lane, from, bytes, tag == kMixed ? 0 : tag);
    }
  });
}

void RegisterTags::bytes(const Use& use, const Lineage& lineage, std::uint32_t active) {
  elements(use, {LineageRule::kBytes, 1, lineage.result_bytes}, active);
}

// op: d, a, b, p
void RegisterTags::select(Warp& warp, const Use& use, const Insn& insn, const Lineage& lineage,
                          std::uint32_t active) {
  const std::uint32_t width = lineage.result_bytes;
  const std::uint32_t chosen = warp.predicate(insn.op[3]) ^ (insn.small != 0 ? kAllLanes : 0);
  for_each_lane(active, [&](std::uint32_t lane) {
    const Row from = (chosen >> lane & 1) != 0 ? insn.op[1] : insn.op[2];
    for (std::uint32_t i = 0; i < width; ++i) {
      set(use.written[0], width, lane, i, at(from, width, lane, i));
    }
  });
}

// op: d, a, b. Of one value all bytes keep their tag; parts of a register move by whole bytes.
void RegisterTags::shift(Warp& warp, const Use& use, const Insn& insn, std::uint32_t active) {
  const std::string_view opcode = warp.grid->code->place(insn).syntax->opcode;
  for_each_lane(active, [&](std::uint32_t lane) {
    const std::uint32_t by = warp.row<std::uint32_t>(insn.op[2])[lane];
    const Tag whole = element(insn.op[1], 4, lane, 0, 4);
    std::array<Tag, 4> out{};
    if (whole != 0) {
      out.fill(whole);
    } else if (by % 8 == 0 && by < 32) {
      for (std::uint32_t i = 0; i + by / 8 < 4; ++i) {
        const std::uint32_t other = i + by / 8;
        opcode == "shl" ? out[other] = at(insn.op[1], 4, lane, i)
                        : out[i] = at(insn.op[1], 4, lane, other);
      }
    }
    for (std::uint32_t i = 0; i < 4; ++i) set(use.written[0], 4, lane, i, out[i]);
  });
}

void RegisterTags::move(const Use& use, const Lineage& lineage, std::uint32_t active) {
  if (use.num_read == 0 || use.num_written == 0 || lineage.element_bytes > 16) return;
  const std::uint32_t read = lineage.element_bytes / use.num_read;
  const std::uint32_t written = lineage.element_bytes / use.num_written;
  for_each_lane(active, [&](std::uint32_t lane) {
    std::array<Tag, 16> all{};
    for (std::uint32_t i = 0; i < lineage.element_bytes; ++i) {
      all[i] = at(use.read[i / read], read, lane, i % read);
    }
    for (std::uint32_t i = 0; i < lineage.element_bytes; ++i) {
      set(use.written[i / written], written, lane, i % written, all[i]);
    }
  });
}

void RegisterTags::resize(const Use& use, const Lineage& lineage, std::uint32_t active) {
  const std::uint32_t from = lineage.element_bytes, to = lineage.result_bytes;
  for_each_lane(active, [&](std::uint32_t lane) {
    std::array<Tag, 8> tags{};
    for (std::uint32_t i = 0; i < std::min(from, to); ++i) tags[i] = at(use.read[0], from, lane, i);
    for (std::uint32_t i = 0; i < to; ++i) set(use.written[0], to, lane, i, tags[i]);
  });
}

void RegisterTags::convert(const Use& use, const Lineage& lineage, std::uint32_t active) {
  const bool is_pair = lineage.rule == LineageRule::kConvertPair;
  const std::uint32_t width = lineage.result_bytes * (is_pair ? 2u : 1u);
  for_each_lane(active, [&](std::uint32_t lane) {
    std::array<Tag, 2> tags{};
    for (std::uint32_t i = 0; i < use.num_read; ++i) {
      tags[i] = element(use.read[i], lineage.element_bytes, lane, 0, lineage.element_bytes);
    }
    if (is_pair) std::swap(tags[0], tags[1]);
    for (Tag& tag : tags) {
      if (tag != 0 && lineage.result_bytes < lineage.element_bytes) tag |= kNarrowTag;
    }
    for (std::uint32_t i = 0; i < use.num_read; ++i) {
      put(use.written[0], width, lane, i * lineage.result_bytes, lineage.result_bytes, tags[i]);
    }
  });
}

// op: d, a, b, selector
void RegisterTags::permute(Warp& warp, const Use& use, const Insn& insn, const Lineage& lineage,
                           std::uint32_t active) {
  for_each_lane(active, [&](std::uint32_t lane) {
    const auto selector = lineage.selector >= 0 ? static_cast<std::uint32_t>(lineage.selector)
                                                : warp.row<std::uint32_t>(insn.op[3])[lane];
    std::array<Tag, 4> out{};
    for (std::uint32_t i = 0; i < 4; ++i) {
      const std::uint32_t from = selector >> 4 * i & 15;
      if (from < 8) out[i] = at(insn.op[from < 4 ? 1 : 2], 4, lane, from % 4);
    }
    for (std::uint32_t i = 0; i < 4; ++i) set(use.written[0], 4, lane, i, out[i]);
  });
}

/// Whether the registers are as wide as the rule takes them to be. PTX allows wider ones in places.
bool RegisterTags::is_usable(const Insn& insn, const Lineage& lineage, const Use& use) const {
  std::uint32_t read = lineage.element_bytes, written = lineage.result_bytes;
  std::size_t num_operands = 0;
  switch (lineage.rule) {
    case LineageRule::kDrop:
      return false;
    case LineageRule::kMove:
      if (use.num_read == 0) return false;
      read = lineage.element_bytes / use.num_read;
      written = lineage.element_bytes / use.num_written;
      break;
    case LineageRule::kElements:
      read = lineage.result_bytes;
      break;
    case LineageRule::kConvertPair:
      written = 2u * lineage.result_bytes;
      break;
    case LineageRule::kSelect:
      num_operands = 4;
      break;
    case LineageRule::kShift:
      num_operands = 3;
      break;
    case LineageRule::kPermute:
      num_operands = lineage.selector >= 0 ? 3 : 4;
      break;
    default:
      break;
  }
  const auto is_operand = [](Row row) { return row != kNoRow; };
  if (!std::all_of(insn.op.begin(), insn.op.begin() + num_operands, is_operand)) return false;
  const auto fits = [&](Row row, std::uint32_t width) {
    return row_units_[row / kUnitBytes] * kUnitBytes == std::max(kUnitBytes, kLanes * width) &&
           width != 1;
  };
  for (std::uint32_t i = 0; i < use.num_read; ++i) {
    if (has_tags(use.read[i]) && !fits(use.read[i], read)) return false;
  }
  return fits(use.written[0], written);
}

void RegisterTags::run(Warp& warp, const Insn& insn, const Lineage& lineage, const RowUse& use,
                       std::uint32_t active) {
  const Row* const rows = warp.grid->code->rows.data() + use.begin;
  bool reads_tags = false, writes_over = false;
  Use kept;
  for (std::uint32_t i = 0; i < use.num_read; ++i) {
    const Row row = rows[use.num_written + i];
    if (row < predicate_end_) continue;
    reads_tags |= has_tags(row);
    if (kept.num_read < kept.read.size()) kept.read[kept.num_read++] = row;
  }
  for (std::uint32_t i = 0; i < use.num_written; ++i) {
    if (rows[i] < predicate_end_) continue;
    writes_over |= has_tags(rows[i]);
    if (kept.num_written < kept.written.size()) kept.written[kept.num_written++] = rows[i];
  }
  if (!reads_tags && !writes_over) return;
  if (kept.num_written == 0 || lineage.rule == LineageRule::kLoaded) return;
  if (!reads_tags || !is_usable(insn, lineage, kept)) {
    for (std::uint32_t i = 0; i < use.num_written; ++i) {
      if (rows[i] >= predicate_end_) clear(rows[i]);
    }
    return;
  }
  if (lineage.rule != LineageRule::kMove) {
    for (std::uint32_t i = 1; i < kept.num_written; ++i) clear(kept.written[i]);
  }
  switch (lineage.rule) {
    case LineageRule::kElements:
      return elements(kept, lineage, active);
    case LineageRule::kBytes:
      return bytes(kept, lineage, active);
    case LineageRule::kSelect:
      return select(warp, kept, insn, lineage, active);
    case LineageRule::kShift:
      return shift(warp, kept, insn, active);
    case LineageRule::kMove:
      return move(kept, lineage, active);
    case LineageRule::kConvert:
    case LineageRule::kConvertPair:
      return convert(kept, lineage, active);
    case LineageRule::kResize:
      return resize(kept, lineage, active);
    case LineageRule::kPermute:
      return permute(warp, kept, insn, lineage, active);
    default:
      return;
  }
}

}  // namespace tilewright::sim
