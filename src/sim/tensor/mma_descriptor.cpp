#include "sim/tensor/mma_descriptor.h"

#include <array>

#include <fmt/format.h>

namespace tilewright::sim {

namespace {

constexpr std::uint32_t field_of(std::uint32_t bits, int high, int low) {
  return bits >> low & ((std::uint32_t{1} << (high - low + 1)) - 1);
}

/// Formats by the number in the descriptor.
const FormatSpec* format_of(MmaKind kind, std::uint32_t type) {
  switch (kind) {
    case MmaKind::kF16:
      return type == 0 ? &kFp16 : type == 1 ? &kBf16 : nullptr;
    case MmaKind::kTf32:
      return type == 2 ? &kTf32 : nullptr;
    case MmaKind::kI8:
      return nullptr;
    case MmaKind::kMxf4:
    case MmaKind::kMxf4nvf4:
      return type == 1 ? &kE2m1 : nullptr;
    case MmaKind::kF8f6f4:
    case MmaKind::kMxf8f6f4:
      break;
  }
  static constexpr std::array<const FormatSpec*, 8> kFormats8 = {&kE4m3, &kE5m2, nullptr, &kE2m3,
                                                                 &kE3m2, &kE2m1, nullptr, nullptr};
  return kFormats8[type];
}

std::string_view types_of(MmaKind kind) {
  switch (kind) {
    case MmaKind::kF16:
      return "0 f16, 1 bf16";
    case MmaKind::kTf32:
      return "2 tf32";
    case MmaKind::kI8:
      return "0 u8, 1 s8";
    case MmaKind::kMxf4:
    case MmaKind::kMxf4nvf4:
      return "1 e2m1";
    default:
      return "0 e4m3, 1 e5m2, 3 e2m3, 4 e3m2, 5 e2m1";
  }
}

struct Types {
  std::uint32_t a, b;
};

Types types_in(std::uint32_t bits, MmaKind kind) {
  return {field_of(bits, 9, 7), field_of(bits, is_fp4(kind) ? 11 : 12, 10)};
}

int k_of(std::uint32_t bits, MmaKind kind) {
  if (is_fp4(kind)) return bits >> 31 != 0 ? 96 : 64;
  return kind == MmaKind::kF16 ? 16 : kind == MmaKind::kTf32 ? 8 : 32;
}

/// A field that must be 0, and why.
struct ZeroField {
  int high, low;
  const char* why;
};

std::string check_zero(std::uint32_t bits, const ZeroField& field) {
  const std::uint32_t value = field_of(bits, field.high, field.low);
  if (value == 0) return {};
  const std::string place = field.high == field.low
                                ? fmt::format("bit {}", field.low)
                                : fmt::format("bits {}..{}", field.high, field.low);
  return fmt::format("{} = {}, must be 0: {}", place, value, field.why);
}

template <std::size_t kCount>
std::string check_zeros(std::uint32_t bits, const std::array<ZeroField, kCount>& fields) {
  for (const ZeroField& field : fields) {
    if (std::string problem = check_zero(bits, field); !problem.empty()) return problem;
  }
  return {};
}

constexpr ZeroField kNoSparsity = {2, 2, "it says sparse, which is for tcgen05.mma.sp"};
constexpr const char* kReserved = "it is reserved";

std::string check_reserved(std::uint32_t bits, const MmaMode& mode) {
  if (std::string problem = check_zero(bits, kNoSparsity); !problem.empty()) return problem;
  switch (mode.kind) {
    case MmaKind::kI8:
      return check_zeros(bits, std::array<ZeroField, 3>{{
                                   {13, 13, "integers cannot be negated (negate A)"},
                                   {14, 14, "integers cannot be negated (negate B)"},
                                   {23, 23, kReserved},
                               }});
    case MmaKind::kMxf8f6f4:
      return check_zeros(bits, std::array<ZeroField, 4>{{
                                   {1, 0, kReserved},
                                   {3, 3, kReserved},
                                   {25, 25, kReserved},
                                   {31, 31, kReserved},
                               }});
    case MmaKind::kMxf4:
    case MmaKind::kMxf4nvf4:
      return check_zeros(bits,
                         std::array<ZeroField, 5>{{
                             {1, 0, kReserved},
                             {15, 15, "4-bit operands of this kind are K-major (transpose A)"},
                             {16, 16, "4-bit operands of this kind are K-major (transpose B)"},
                             {25, 25, kReserved},
                             {31, 31, mode.target == 103 ? "" : "k96 needs .target sm_103a"},
                         }});
    default:
      return check_zeros(bits, std::array<ZeroField, 2>{{
                                   {3, 3, "only integers saturate"},
                                   {23, 23, kReserved},
                               }});
  }
}

std::string check_types(std::uint32_t bits, const MmaMode& mode) {
  const Types types = types_in(bits, mode.kind);
  for (const auto& [name, high, type] :
       {std::tuple{"A", "9..7", types.a},
        std::tuple{"B", is_fp4(mode.kind) ? "11..10" : "12..10", types.b}}) {
    const bool is_known =
        mode.kind == MmaKind::kI8 ? type <= 1 : format_of(mode.kind, type) != nullptr;
    if (!is_known) {
      return fmt::format("the type of {} (bits {}) is {}; kind {} has {}", name, high, type,
                         name_of(mode.kind), types_of(mode.kind));
    }
  }
  if (is_block_scaled(mode.kind)) return {};
  const std::uint32_t sum = field_of(bits, 5, 4);
  const bool can_be_half =
      mode.kind == MmaKind::kF8f6f4 || (mode.kind == MmaKind::kF16 && types.a == 0 && types.b == 0);
  const bool is_legal =
      mode.kind == MmaKind::kI8 ? sum == 2 : sum == 1 || (sum == 0 && can_be_half);
  if (is_legal) return {};
  return fmt::format("the type of D (bits 5..4) is {}; there are {}", sum,
                     mode.kind == MmaKind::kI8 ? "2 s32 for integers"
                     : can_be_half             ? "0 f16 and 1 f32"
                                               : "1 f32 for these types");
}

std::string check_m(int m, const MmaMode& mode) {
  const bool is_pair = mode.cta_group == 2;
  const bool is_scaled = is_block_scaled(mode.kind);
  const bool is_legal = mode.is_ws ? m == 32 || m == 64 || m == 128
                        : is_pair  ? m == 128 || m == 256
                                   : m == 128 || (m == 64 && !is_scaled);
  if (is_legal) return {};
  return fmt::format("M (bits 28..24, times 16) is {}; with {} kind {} has {}", m,
                     mode.is_ws ? ".ws"
                     : is_pair  ? "two CTAs"
                                : "one CTA",
                     name_of(mode.kind),
                     mode.is_ws  ? "32, 64 and 128"
                     : is_pair   ? "128 and 256"
                     : is_scaled ? "128"
                                 : "64 and 128");
}

std::string check_n(int n, bool is_b_mn_major, const MmaMode& mode) {
  const bool is_pair = mode.cta_group == 2;
  const auto refuse = [n](std::string_view expected) {
    return fmt::format("N (bits 22..17, times 8) is {}; expected {}", n, expected);
  };
  if (mode.is_ws) {
    return n == 64 || n == 128 || n == 256 ? std::string() : refuse("64, 128 or 256 with .ws");
  }
  if (mode.kind == MmaKind::kI8) {
    if (is_pair) {
      return n >= 32 && n <= 256 && n % 32 == 0 ? std::string()
                                                : refuse("a multiple of 32 up to 256");
    }
    return n >= 8 && n <= 256 && (n % 16 == 0 || n == 8 || n == 24)
               ? std::string()
               : refuse("8, 24, or a multiple of 16 up to 256, for integers");
  }
  const int step = is_pair ? 16 : 8;
  if (n < step || n > 256 || n % step != 0) {
    return refuse(fmt::format("a multiple of {} up to 256", step));
  }
  if (is_b_mn_major && container_bits(mode) == 8 && n % (2 * step) != 0) {
    return refuse(fmt::format("a multiple of {} when B is N-major and has 8 bits", 2 * step));
  }
  return {};
}

std::string check_scales(const MmaDescriptor& d, const MmaMode& mode) {
  if (mode.kind != MmaKind::kMxf4nvf4 && d.scale != &kUe8m0) {
    return fmt::format("the type of the scales (bit 23) is 0, ue4m3; kind {} has 1, ue8m0",
                       name_of(mode.kind));
  }
  if (mode.kind == MmaKind::kMxf4nvf4 && mode.scale_block == 32 && d.scale != &kUe8m0) {
    return "the type of the scales (bit 23) is 0, ue4m3; with a scale for 32 elements it is 1, "
           "ue8m0";
  }
  // Of k96, three scales of 32 elements begin anywhere in a cell, six of 16 at its halves.
  if (d.k == 96 && mode.scale_block == 32) return {};
  const int num_scales = d.k == 96 ? 2 : d.k / mode.scale_block;
  for (const auto& [name, bits, id] :
       {std::tuple{"SFA", "30..29", d.a_scale_id}, std::tuple{"SFB", "5..4", d.b_scale_id}}) {
    if (id % num_scales != 0) {
      return fmt::format("the id of {} (bits {}) is {}; with {} scales of 4 in a cell it is {}",
                         name, bits, id, d.k / mode.scale_block, num_scales == 4 ? "0" : "0 or 2");
    }
  }
  return {};
}

}  // namespace

std::string_view name_of(MmaKind kind) noexcept {
  constexpr std::array<std::string_view, 7> kNames = {"f16",      "tf32", "f8f6f4",  "i8",
                                                      "mxf8f6f4", "mxf4", "mxf4nvf4"};
  return kNames[static_cast<std::size_t>(kind)];
}

MmaDescriptor decode_mma_descriptor(std::uint32_t bits, const MmaMode& mode) {
  MmaDescriptor d;
  const Types types = types_in(bits, mode.kind);
  d.m = static_cast<int>(field_of(bits, 28, 24)) * 16;
  d.n = static_cast<int>(field_of(bits, 22, 17)) * 8;
  d.k = k_of(bits, mode.kind);
  d.a = format_of(mode.kind, types.a);
  d.b = format_of(mode.kind, types.b);
  d.is_a_negated = field_of(bits, 13, 13) != 0;
  d.is_b_negated = field_of(bits, 14, 14) != 0;
  d.a_major = field_of(bits, 15, 15) != 0 ? OperandMajor::kMn : OperandMajor::kK;
  d.b_major = field_of(bits, 16, 16) != 0 ? OperandMajor::kMn : OperandMajor::kK;
  if (is_block_scaled(mode.kind)) {
    // Bits 26..24 are no part of M here.
    d.m = static_cast<int>(field_of(bits, 28, 27)) * 128;
    d.scale = field_of(bits, 23, 23) != 0 ? &kUe8m0 : &kUe4m3;
    d.a_scale_id = static_cast<int>(field_of(bits, 30, 29));
    d.b_scale_id = static_cast<int>(field_of(bits, 5, 4));
    return d;
  }
  if (mode.kind == MmaKind::kI8) {
    d.a_integer = types.a == 0 ? IntegerType::kU8 : IntegerType::kS8;
    d.b_integer = types.b == 0 ? IntegerType::kU8 : IntegerType::kS8;
    d.is_saturating = field_of(bits, 3, 3) != 0;
    d.sum = MmaSum::kS32;
  } else {
    d.sum = field_of(bits, 5, 4) == 0 ? MmaSum::kF16 : MmaSum::kF32;
  }
  return d;
}

std::string check_mma_descriptor(std::uint32_t bits, const MmaMode& mode) {
  const MmaDescriptor d = decode_mma_descriptor(bits, mode);
  if (is_fp4(mode.kind) && mode.target == 103) bits &= 0x7FFFFFFF;  // k96
  std::string problem = check_reserved(bits, mode);
  if (problem.empty()) problem = check_types(bits, mode);
  if (problem.empty()) problem = check_m(d.m, mode);
  if (problem.empty()) problem = check_n(d.n, d.b_major == OperandMajor::kMn, mode);
  if (problem.empty() && mode.is_a_in_tmem && d.a_major == OperandMajor::kMn) {
    problem = "bit 15 (transpose A) is 1; A in Tensor Memory is K-major: it must be 0";
  }
  if (problem.empty() && is_block_scaled(mode.kind)) problem = check_scales(d, mode);
  return problem;
}

std::string check_mma_later_bits(std::uint32_t bits, const MmaMode& mode) {
  constexpr const char* kLater = "it means something on later devices only";
  if (is_fp4(mode.kind)) {
    return check_zeros(bits, std::array<ZeroField, 5>{{{3, 3, kLater},
                                                       {6, 6, kLater},
                                                       {12, 12, kLater},
                                                       {24, 24, kLater},
                                                       {26, 26, kLater}}});
  }
  if (is_block_scaled(mode.kind)) {
    return check_zeros(
        bits, std::array<ZeroField, 3>{{{6, 6, kLater}, {24, 24, kLater}, {26, 26, kLater}}});
  }
  std::string problem = check_zeros(
      bits, std::array<ZeroField, 3>{
                {{1, 0, "it selects for sparse operands only"}, {6, 6, kLater}, {29, 29, kLater}}});
  if (problem.empty() && !mode.is_ws) {
    problem = check_zero(bits, {31, 30, "the largest shift of B is for .ws only"});
  }
  return problem;
}

std::string describe_mma_descriptor(std::uint32_t bits, const MmaMode& mode) {
  const MmaDescriptor d = decode_mma_descriptor(bits, mode);
  const auto operand = [](const FormatSpec* format, IntegerType integer, bool is_negated) {
    const std::string_view name = format != nullptr             ? std::string_view(format->name)
                                  : integer == IntegerType::kS8 ? std::string_view("s8")
                                                                : std::string_view("u8");
    return fmt::format("{}{}", is_negated ? "-" : "", name == "fp16" ? "f16" : name);
  };
  const bool is_integer = mode.kind == MmaKind::kI8;
  std::string text =
      fmt::format("{:#x}: m{}n{}k{}, {} += {} * {}", bits, d.m, d.n, d.k,
                  d.sum == MmaSum::kF16   ? "f16"
                  : d.sum == MmaSum::kF32 ? "f32"
                                          : "s32",
                  d.a == nullptr && !is_integer ? "?" : operand(d.a, d.a_integer, d.is_a_negated),
                  d.b == nullptr && !is_integer ? "?" : operand(d.b, d.b_integer, d.is_b_negated));
  if (d.a_major == OperandMajor::kMn) text += ", A M-major";
  if (d.b_major == OperandMajor::kMn) text += ", B N-major";
  if (d.is_saturating) text += ", saturating";
  if (d.scale != nullptr) {
    text += fmt::format(", scales {} of {} elements, SFA id {}, SFB id {}", d.scale->name,
                        mode.scale_block, d.a_scale_id, d.b_scale_id);
  }
  return text;
}

}  // namespace tilewright::sim
