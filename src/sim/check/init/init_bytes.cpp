// The init check on registers of which only some bytes have a value: packs and unpacks, masks,
// shifts, permutations and conversions to less bytes leave the others behind.
#include "sim/check/init/init_checker.h"
#include "sim/state/warp.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace tilewright::sim {

namespace {

using Masks = std::array<std::uint16_t, kLanes>;

/// Of ".b32", ".u16", ".f16x2": 0 if it is no type.
std::uint32_t bytes_of(std::string_view type) {
  const std::size_t digits = type.find_first_of("0123456789");
  if (digits == 0 || digits == std::string_view::npos || type.size() < 2) return 0;
  std::uint32_t bits = 0;
  for (std::size_t i = digits; i < type.size() && type[i] >= '0' && type[i] <= '9'; ++i) {
    bits = bits * 10 + static_cast<std::uint32_t>(type[i] - '0');
  }
  if (type.ends_with("x2")) bits *= 2;
  return bits % 8 == 0 && bits <= 128 ? bits / 8 : 0;
}

bool is_integer(std::string_view type) {
  return bytes_of(type) != 0 && (type[0] == 'b' || type[0] == 'u' || type[0] == 's') &&
         type.find('f') == std::string_view::npos;
}

std::uint16_t all_of(std::uint32_t bytes) {
  return static_cast<std::uint16_t>((1U << bytes) - 1);
}

/// The value of a register of these bytes in one lane.
std::uint64_t value_of(Warp& warp, Row row, std::uint32_t bytes, std::size_t lane) {
  std::uint64_t out = 0;
  if (bytes <= 8) std::memcpy(&out, warp.row<std::byte>(row) + bytes * lane, bytes);
  return out;
}

std::uint32_t byte_of(std::uint64_t value, std::uint32_t i) {
  return static_cast<std::uint32_t>(value >> (8 * i) & 0xff);
}

/// Bytes of a shifted value: those that come from outside are zeros, or copies of the sign.
std::uint16_t shift(std::uint16_t mask, std::uint32_t bytes, std::int64_t bits, bool has_sign) {
  const auto is_defined = [&](std::int64_t i) {
    if (i < 0) return true;
    if (i >= bytes) return !has_sign || (mask >> (bytes - 1) & 1) != 0;
    return (mask >> i & 1) != 0;
  };
  std::uint16_t out = 0;
  for (std::int64_t i = 0; i < bytes; ++i) {
    // Result bit 8 i comes from bit 8 i + bits of the source.
    const std::int64_t low = 8 * i + bits, high = low + 7;
    const bool good = is_defined(low < 0 ? -1 : low / 8) && is_defined(high < 0 ? -1 : high / 8);
    if (good) out |= static_cast<std::uint16_t>(1U << i);
  }
  return out;
}

}  // namespace

std::uint16_t InitChecker::defined_bytes(const Warp& warp, Row row, std::size_t lane) const {
  if ((defined(warp, row) >> lane & 1) != 0) return 0xffff;
  const auto at = warp.definedness->partial.find(row);
  return at == warp.definedness->partial.end() ? 0 : at->second[lane];
}

/// `masks` say which bytes of a register of so many have a value.
void InitChecker::set_bytes(Warp& warp, Row row, std::uint32_t active, std::uint32_t bytes,
                            const Masks& masks) {
  Masks kept{};
  std::uint32_t full = 0, any = 0;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    const auto one = static_cast<std::uint32_t>(1U << lane);
    const bool is_new = (active & one) != 0;
    const std::uint16_t mask = is_new ? masks[lane] : defined_bytes(warp, row, lane);
    if ((mask & all_of(bytes)) == all_of(bytes)) {
      full |= one;
    } else {
      kept[lane] = mask;
      any |= mask;
    }
  }
  set(warp, row, active, full);
  if (any != 0 && warp.definedness->num_partial != 0) warp.definedness->partial[row] = kept;
}

struct InitChecker::LaneBytes {
  Warp& warp;
  const InitChecker& checker;
  const Insn& insn;
  std::string_view opcode, type;
  std::uint32_t bytes = 0;
  std::size_t lane = 0;

  std::uint16_t mask(std::size_t i) const { return checker.defined_bytes(warp, insn.op[i], lane); }
  bool has(std::size_t i, std::uint64_t byte) const { return (mask(i) >> byte & 1) != 0; }
  std::uint64_t value(std::size_t i, std::uint32_t width) const {
    return value_of(warp, insn.op[i], width, lane);
  }
  bool is_full(std::size_t i) const { return mask(i) == 0xffff; }

  /// A byte is known if both are, or one that decides alone: 0 for and, 0xff for or.
  std::uint16_t combine(std::uint32_t decides) const {
    const std::uint64_t a = value(1, bytes), b = value(2, bytes);
    std::uint16_t out = mask(1) & mask(2);
    for (std::uint32_t i = 0; i < bytes; ++i) {
      const bool is_decided =
          (has(1, i) && byte_of(a, i) == decides) || (has(2, i) && byte_of(b, i) == decides);
      if (is_decided) out |= static_cast<std::uint16_t>(1U << i);
    }
    return out;
  }
  std::uint16_t shifted() const {
    if (!is_full(2)) return 0;
    const auto bits = static_cast<std::int64_t>(std::min<std::uint64_t>(value(2, 4), 8 * bytes));
    return shift(mask(1), bytes, opcode == "shl" ? -bits : bits, type[0] == 's');
  }
  std::uint16_t permuted() const {
    if (!is_full(3)) return 0;
    const std::uint64_t chosen = value(3, 4);
    const std::uint32_t both = (mask(1) & 15U) | (mask(2) & 15U) << 4;
    std::uint16_t out = 0;
    for (std::uint32_t i = 0; i < 4; ++i) {
      if ((both >> (chosen >> (4 * i) & 7) & 1) != 0) out |= static_cast<std::uint16_t>(1U << i);
    }
    return out;
  }
  std::uint16_t extracted() const {
    if (!is_full(2) || !is_full(3)) return 0;
    const std::uint64_t at = value(2, 4) & 0xff, length = value(3, 4) & 0xff;
    bool good = type[0] != 's' || at + length <= 8 * bytes || has(1, bytes - 1);
    for (std::uint64_t i = at / 8; length != 0 && i <= (at + length - 1) / 8 && i < bytes; ++i) {
      good = good && has(1, i);
    }
    return good ? 0xffff : 0;
  }
  /// op: result, inserted, base, position, length
  std::uint16_t inserted() const {
    if (!is_full(3) || !is_full(4)) return 0;
    const std::uint64_t at = value(3, 4) & 0xff, end = at + (value(4, 4) & 0xff);
    std::uint16_t out = 0;
    for (std::uint32_t i = 0; i < bytes; ++i) {
      const std::uint64_t low = 8 * i, high = low + 8;
      const bool has_base = has(2, i) || (at <= low && end >= high);
      const bool is_touched = at < high && end > low;
      bool has_new = true;
      for (std::uint64_t k = 0; is_touched && k < bytes; ++k) {
        const bool is_needed = at + 8 * k < high && at + 8 * k + 8 > low;
        has_new = has_new && (!is_needed || has(1, k));
      }
      if (has_base && has_new) out |= static_cast<std::uint16_t>(1U << i);
    }
    return out;
  }
  std::uint16_t result() const {
    if (opcode == "not") return mask(1);
    if (opcode == "xor") return mask(1) & mask(2);
    if (opcode == "and") return combine(0);
    if (opcode == "or") return combine(0xff);
    if (opcode == "shl" || opcode == "shr") return shifted();
    if (opcode == "prmt") return permuted();
    if (opcode == "bfe") return extracted();
    if (opcode == "bfi") return inserted();
    return mask(1) & mask(2) & mask(3);  // lop3
  }
};

namespace {

/// How many sources an instruction that goes byte by byte has; 0 for any other.
std::size_t num_sources(const Instruction& syntax) {
  struct Word {
    std::string_view opcode;
    std::size_t num_sources;
  };
  constexpr std::array<Word, 9> kWords = {{{"not", 1},
                                           {"and", 2},
                                           {"or", 2},
                                           {"xor", 2},
                                           {"shl", 2},
                                           {"shr", 2},
                                           {"bfe", 3},
                                           {"lop3", 3},
                                           {"bfi", 4}}};
  if (syntax.opcode == "prmt") return syntax.modifiers.size() == 1 ? 3 : 0;
  const auto at = std::ranges::find(kWords, syntax.opcode, &Word::opcode);
  return at == kWords.end() ? 0 : at->num_sources;
}

}  // namespace

/// Whether it is one of the instructions whose result is known byte by byte.
bool InitChecker::spread_bytes(Warp& warp, const Insn& insn, std::uint32_t active) {
  const Instruction* const syntax = warp.grid->code->place(insn).syntax;
  if (syntax == nullptr || syntax->modifiers.empty()) return false;
  const std::string_view type = syntax->modifiers.back();
  const std::uint32_t bytes = bytes_of(type);
  if (bytes == 0 || insn.op[1] == kNoRow) return false;
  if (syntax->opcode == "mov") return spread_mov(warp, insn, bytes, active);
  if (syntax->opcode == "cvt") return narrow(warp, insn, active);
  const std::size_t count = num_sources(*syntax);
  if (count == 0 || bytes > 8 || insn.op[count] == kNoRow) return false;
  LaneBytes lane{warp, *this, insn, syntax->opcode, type, bytes};
  Masks out{};
  for (lane.lane = 0; lane.lane < kLanes; ++lane.lane) out[lane.lane] = lane.result();
  set_bytes(warp, insn.op[0], active, bytes, out);
  return true;
}

/// A plain mov, a pack (d, parts) or an unpack (parts, whole).
bool InitChecker::spread_mov(Warp& warp, const Insn& insn, std::uint32_t bytes,
                             std::uint32_t active) {
  const Instruction& syntax = *warp.grid->code->place(insn).syntax;
  const auto num_ops =
      static_cast<std::uint32_t>(std::ranges::find(insn.op, kNoRow) - insn.op.begin());
  const bool is_unpack = syntax.operands[0].kind == OperandKind::kVector;
  const std::uint32_t num_parts = std::max(1U, num_ops - 1);
  const std::uint32_t part = bytes / num_parts;
  if (num_ops < 2 || num_parts > 4 || part == 0) return false;
  std::array<Masks, 4> parts{};
  Masks whole{};
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    for (std::uint32_t k = 0; k < num_parts; ++k) {
      const std::uint16_t source =
          defined_bytes(warp, insn.op[is_unpack ? num_parts : k + 1], lane);
      if (is_unpack) {
        parts[k][lane] = static_cast<std::uint16_t>(source >> (k * part) & all_of(part));
      } else {
        whole[lane] |= static_cast<std::uint16_t>((source & all_of(part)) << (k * part));
      }
    }
  }
  if (!is_unpack) {
    set_bytes(warp, insn.op[0], active, bytes, whole);
    return true;
  }
  for (std::uint32_t k = 0; k < num_parts; ++k) {
    set_bytes(warp, insn.op[k], active, part, parts[k]);
  }
  return true;
}

/// op: result, the one that is chosen, the other, the predicate.
void InitChecker::select_bytes(Warp& warp, const Insn& insn, std::uint32_t chosen,
                               std::uint32_t active) {
  const std::uint32_t known = defined(warp, insn.op[3]);
  Masks out{};
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    if ((known >> lane & 1) == 0) continue;
    out[lane] = defined_bytes(warp, insn.op[(chosen >> lane & 1) != 0 ? 1 : 2], lane);
  }
  set_bytes(warp, insn.op[0], active, 16, out);
}

// Only as many bytes are read as the source type has, whatever the register holds.
bool InitChecker::narrow(Warp& warp, const Insn& insn, std::uint32_t active) {
  const auto& modifiers = warp.grid->code->place(insn).syntax->modifiers;
  if (modifiers.size() < 2 || insn.op[2] != kNoRow) return false;
  const std::string_view to = modifiers[modifiers.size() - 2], from = modifiers.back();
  const std::uint32_t to_bytes = bytes_of(to), from_bytes = bytes_of(from);
  if (to_bytes == 0 || from_bytes == 0) return false;
  const bool keeps_bytes = is_integer(to) && is_integer(from) && to_bytes <= from_bytes &&
                           std::ranges::find(modifiers, "sat") == modifiers.end();
  Masks out{};
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    const std::uint16_t mask = defined_bytes(warp, insn.op[1], lane);
    const bool is_full = (mask & all_of(from_bytes)) == all_of(from_bytes);
    out[lane] = is_full ? 0xffff : keeps_bytes ? mask & all_of(to_bytes) : 0;
  }
  set_bytes(warp, insn.op[0], active, to_bytes, out);
  return true;
}

}  // namespace tilewright::sim
