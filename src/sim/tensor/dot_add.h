// The arithmetic of a tensor core, one output element at a time, written to be obviously right: the
// reference that the fast tile kernels (tile_multiply.h) are tested against, bit for bit.
//
// The model is a fused dot-add with truncated alignment. With F the fraction bits of a unit:
//   1. An operand is s * 2^e: normal numbers 1 <= |s| < 2, subnormal numbers keep the smallest
//      exponent. A product is sa*sb * 2^(ea+eb); it is not normalised.
//   2. emax is the largest exponent of all products and of the accumulator that are not zero, but
//      not below a least one. Every term is truncated toward zero to a multiple of 2^(emax-F); then
//      they are added exactly.
//   3. The sum is rounded once, into the format of the output (OutputFormat).
// Sources: "MMA-Sim: bit-accurate reference model of tensor cores" (arXiv 2511.10909), "Accurate
// Models of NVIDIA Tensor Cores" (doi 10.1145/3830409); for what they leave open, recordings of an
// H200 (docs/notes/2026-11-23-tensor-core-numbers.md).
#pragma once

#include "formats/format_spec.h"

#include <cstdint>
#include <span>

namespace tilewright::sim {

/// Format of accumulator and result, and how the sum is rounded into it.
enum class OutputFormat {
  kF32,       ///< fp32, truncated toward zero
  kF32E8M13,  ///< fp32 of which only 13 fraction bits are kept, truncated toward zero
  kF16,       ///< fp16, to nearest even
};

/// What a unit does with the operands of one output element.
struct TensorArithmetic {
  int fraction_bits = 25;
  OutputFormat output = OutputFormat::kF32;
  /// Not a model of any hardware: the exact sum, rounded once to nearest even (into all 24 bits
  /// also for kF32E8M13). Tells what a result owes to the unit.
  bool is_exact = false;

  /// Least emax. fp16: an H200 drops what lies below 2^-46 also if all terms are as small. fp32:
  /// the least product of bf16; what it cuts off changes no recorded sum.
  constexpr int least_exponent() const { return output == OutputFormat::kF16 ? -21 : -133; }

  constexpr bool operator==(const TensorArithmetic&) const = default;
};

/// Units that differ in arithmetic.
enum class TensorUnit {
  kWgmma,            ///< wgmma.mma_async, sm_90a
  kMmaSync,          ///< mma.sync, sm_90a and sm_100a; for 8-bit types converted_multiply.h
  kTcgen05,          ///< tcgen05.mma kinds f16, tf32, f8f6f4 and mxf8f6f4
  kTcgen05BlockFp4,  ///< tcgen05.mma kinds mxf4 and mxf4nvf4: for dot_add_block_scaled
};

/// The arithmetic of a unit. `operand` is the format of A or B (of 8-bit ones any will do).
constexpr TensorArithmetic tensor_arithmetic(TensorUnit unit, const FormatSpec& operand,
                                             bool is_f16_output) {
  TensorArithmetic arithmetic;
  if (is_f16_output) arithmetic.output = OutputFormat::kF16;
  if (unit == TensorUnit::kTcgen05BlockFp4) arithmetic.fraction_bits = 35;
  if (unit == TensorUnit::kWgmma && operand.bits() == 8) {
    arithmetic.fraction_bits = 13;
    if (!is_f16_output) arithmetic.output = OutputFormat::kF32E8M13;
  }
  return arithmetic;
}

/// Format in which accumulator and result are coded.
constexpr const FormatSpec& code_format(OutputFormat output) {
  return output == OutputFormat::kF16 ? kFp16 : kFp32;
}

/// A decoded operand: significand * 2^(exponent - fraction_bits).
struct TensorNumber {
  enum class Kind : std::uint8_t { kFinite, kInfinity, kNan };

  std::int32_t significand = 0;  ///< with sign; kInfinity: its sign
  int exponent = kZeroExponent;
  int fraction_bits = 0;
  Kind kind = Kind::kFinite;

  /// Of zero: only the alignment by block scales ever asks for it.
  static constexpr int kZeroExponent = -126;
};

/// tf32, whose codes come as whole fp32 words. (Comparing specs would compare their names.)
constexpr bool is_tf32(const FormatSpec& format) {
  return format.exponent_bits == kTf32.exponent_bits && format.mantissa_bits == kTf32.mantissa_bits;
}

/// `code` is in the low bits, except tf32: the whole fp32 word, of which the low 13 bits are
/// dropped (an fp32 NaN whose upper fraction bits are 0 so becomes an infinity).
TensorNumber decode_number(const FormatSpec& format, std::uint32_t code, bool is_negated = false);

/// Code of a[0]*b[0] + a[1]*b[1] + ... + c in the output's format. Exact zero is +0. A NaN, inf * 0
/// or inf - inf gives the canonical NaN (0x7fffffff, 0x7fff). `scale_exponent` is added to the
/// exponent of every product (mxf8f6f4: the sum of the exponents of both scales).
std::uint32_t dot_add(const TensorArithmetic& arithmetic, std::span<const TensorNumber> a,
                      std::span<const TensorNumber> b, const TensorNumber& c,
                      int scale_exponent = 0);

/// As dot_add for mxf4 and mxf4nvf4: products of 16 consecutive k are summed exactly and take part
/// as one term, multiplied by the two scales of its block (scale.size() blocks over all of k; all
/// scales nonnegative, their sign bit being ignored). a and b must be finite (e2m1 is). The scales
/// alone align a term, also one that is zero, and an accumulator of zero counts as 0 * 2^-126.
std::uint32_t dot_add_block_scaled(const TensorArithmetic& arithmetic,
                                   std::span<const TensorNumber> a, std::span<const TensorNumber> b,
                                   const TensorNumber& c, std::span<const TensorNumber> a_scale,
                                   std::span<const TensorNumber> b_scale);

}  // namespace tilewright::sim
