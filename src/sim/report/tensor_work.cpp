#include "sim/report/tensor_work.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace tilewright::sim {

namespace {

struct Shape {
  int m = 0, n = 0, k = 0;
};

/// "m64n128k16"
std::optional<Shape> parse_shape(std::string_view text) {
  Shape shape;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (const auto& [letter, value] : {std::pair{'m', &shape.m}, {'n', &shape.n}, {'k', &shape.k}}) {
    if (at == end || *at != letter) return std::nullopt;
    const auto parsed = std::from_chars(at + 1, end, *value);
    if (parsed.ec != std::errc()) return std::nullopt;
    at = parsed.ptr;
  }
  return at == end ? std::optional(shape) : std::nullopt;
}

constexpr std::array<std::string_view, 17> kElementTypes = {
    "f16",  "bf16", "tf32", "f32", "f64", "e4m3", "e5m2", "e3m2", "e2m3",
    "e2m1", "s8",   "u8",   "s4",  "u4",  "b1",   "s32",  "ue8m0"};

bool is_type(std::string_view text) {
  return std::find(kElementTypes.begin(), kElementTypes.end(), text) != kElementTypes.end();
}

/// "mxf4" of .kind::mxf4
std::string_view kind_of(const Instruction& instruction) {
  constexpr std::string_view kPrefix = "kind::";
  for (const std::string_view modifier : instruction.modifiers) {
    if (modifier.starts_with(kPrefix)) return modifier.substr(kPrefix.size());
  }
  return {};
}

constexpr int kBytesOfWgmmaK = 32;  // of every type: k16 of 16 bits, k32 of 8
constexpr int kRowsOfWarp = 16;

}  // namespace

TensorWork tensor_work(const Instruction& instruction) {
  if (instruction.opcode == "tcgen05") {
    TensorWork work;
    work.type = kind_of(instruction);
    return work;
  }
  const bool is_wgmma = instruction.opcode == "wgmma";
  if (!is_wgmma && instruction.opcode != "mma" && instruction.opcode != "wmma") return {};
  TensorWork work;
  std::optional<Shape> shape;
  int num_types = 0;
  bool is_sparse = false;
  std::string_view only_type;
  for (const std::string_view modifier : instruction.modifiers) {
    if (modifier == "load" || modifier == "store") return {};
    is_sparse |= modifier.starts_with("sp");
    if (const auto parsed = parse_shape(modifier)) shape = parsed;
    if (!is_type(modifier)) continue;
    // d, then a; wmma of halves names d and c only.
    if (num_types++ == 1) work.type = modifier;
    only_type = modifier;
  }
  if (!shape) return {};
  if (work.type.empty()) work.type = only_type;
  if (instruction.opcode == "wmma" && num_types == 2) work.type = "f16";
  work.flop_per_warp = 2.0 * shape->m * shape->n * shape->k;
  if (is_sparse) work.flop_per_warp /= 2;
  if (is_wgmma) {
    work.flop_per_warp /= 4;
    work.shared_bytes = static_cast<std::uint64_t>(shape->n) * kBytesOfWgmmaK / 4;
    const bool is_a_shared =
        instruction.operands.size() < 2 || instruction.operands[1].kind != OperandKind::kVector;
    if (is_a_shared) work.shared_bytes += kRowsOfWarp * kBytesOfWgmmaK;
  }
  return work;
}

std::uint32_t tensor_rate(const TensorRates& rates, std::string_view type) {
  if (type == "f16" || type == "bf16") return rates.f16;
  if (type == "tf32") return rates.tf32;
  if (type == "f64") return rates.f64;
  if (type == "s8" || type == "u8" || type == "i8") return rates.i8;
  if (type == "f8f6f4" || type == "mxf8f6f4") return rates.f8;
  if (type.starts_with("mxf4")) return rates.f4;
  if (type == "e2m1") return rates.f4 != 0 ? rates.f4 : rates.f8;
  if (type.starts_with("e")) return rates.f8;
  return 0;
}

}  // namespace tilewright::sim
