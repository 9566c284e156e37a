#include "sim/tensor/scaled_multiply.h"

#include "base/error.h"
#include "sim/tensor/scaled_kernel.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <vector>

namespace tilewright::sim {

namespace {

std::uint32_t code_at(const TileOperand& operand, std::size_t index) {
  const auto bytes = static_cast<std::size_t>(code_bytes(*operand.format));
  std::uint32_t code = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    code |= std::to_integer<std::uint32_t>(operand.codes[index * bytes + i]) << (8 * i);
  }
  return code;
}

/// The rows of an operand, each decoded when it is first asked for. Elements that vectors leave
/// come many to a row: those of rows that only fill a tile, whose scales are zeros.
class DecodedRows {
 public:
  DecodedRows(const TileOperand& operand, int rows, int k)
      : operand_(operand), rows_(static_cast<std::size_t>(rows)), k_(static_cast<std::size_t>(k)) {}

  std::span<const TensorNumber> operator[](int index) {
    if (numbers_.empty()) {
      numbers_.resize(rows_ * k_);
      is_decoded_.resize(rows_);
    }
    const auto row = static_cast<std::size_t>(index);
    const std::span<TensorNumber> numbers = std::span(numbers_).subspan(row * k_, k_);
    if (is_decoded_[row]) return numbers;
    is_decoded_[row] = true;
    for (std::size_t i = 0; i < k_; ++i) {
      numbers[i] =
          decode_number(*operand_.format, code_at(operand_, row * k_ + i), operand_.is_negated);
    }
    return numbers;
  }

 private:
  const TileOperand& operand_;
  std::size_t rows_, k_;
  std::vector<TensorNumber> numbers_;
  std::vector<bool> is_decoded_;
};

void check_sizes(const TileExtents& e, const TileOperand& a, const TileOperand& b,
                 const TileScales& scales, std::size_t num_c, std::size_t num_d) {
  const auto bytes_of = [&e](const TileOperand& operand, int rows) {
    return elems(rows, e.k) * static_cast<std::size_t>(code_bytes(*operand.format));
  };
  require(scales.a.size() == elems(e.m, scales.per_row) &&
              scales.b.size() == elems(e.n, scales.per_row),
          ErrorKind::kInvalidArgument,
          "block-scaled tile of {} x {}: {} and {} scales; expected {} in each row", e.m, e.n,
          scales.a.size(), scales.b.size(), scales.per_row);
  require(a.codes.size() == bytes_of(a, e.m) && b.codes.size() == bytes_of(b, e.n) &&
              num_d == elems(e.m, e.n) && (num_c == 0 || num_c == num_d),
          ErrorKind::kInvalidArgument,
          "block-scaled tile of {} x {} x {}: operands of {} and {} bytes, c and d of {} and {} "
          "elements do not fit",
          e.m, e.n, e.k, a.codes.size(), b.codes.size(), num_c, num_d);
}

// -------------------------------------------------------------------------------------- mxf8f6f4

/// Exponents of ue8m0 scales.
std::vector<std::int32_t> exponents_of(std::span<const std::uint8_t> codes) {
  std::vector<std::int32_t> exponents(codes.size());
  for (std::size_t i = 0; i < codes.size(); ++i) {
    exponents[i] = codes[i] == 0xFF ? kNoScale : codes[i] - 127;
  }
  return exponents;
}

struct ScaledContext {
  const TensorArithmetic& arithmetic;
  const TileExtents& extents;
  const TileOperand& a;
  const TileOperand& b;
  std::vector<std::int32_t> a_exponents, b_exponents;
  DecodedRows a_rows, b_rows;
};

std::uint32_t scaled_element(void* context, int row, int col, std::uint32_t c) {
  auto& x = *static_cast<ScaledContext*>(context);
  const FormatSpec& format = code_format(x.arithmetic.output);
  const int shift =
      x.a_exponents[static_cast<std::size_t>(row)] + x.b_exponents[static_cast<std::size_t>(col)];
  if (shift > kNoScale / 2) return nan_code(format);
  return dot_add(x.arithmetic, x.a_rows[row], x.b_rows[col], decode_number(format, c), shift);
}

struct ScaleKernels {
  void (*divide)(const ScaleKernelCall&);
  void (*multiply)(const ScaleKernelCall&);
};

ScaleKernels scale_kernels_of(KernelVariant variant) {
  switch (variant) {
#ifdef __x86_64__
    case KernelVariant::kAvx512:
      return {divide_by_scales_avx512, multiply_by_scales_avx512};
    case KernelVariant::kAvx2:
      return {divide_by_scales_avx2, multiply_by_scales_avx2};
#endif
    default:
      return {divide_by_scales_generic, multiply_by_scales_generic};
  }
}

/// The accumulator divided by the scales, which do what they do to products just as well; and the
/// result times the scales.
void run_scaled(ScaledContext& context, std::span<const std::uint32_t> c,
                std::span<std::uint32_t> d, KernelVariant variant) {
  thread_local std::vector<std::uint32_t> products;
  products.resize(d.size());
  ScaleKernelCall call{};
  call.m = context.extents.m;
  call.n = context.extents.n;
  call.a_exponents = context.a_exponents.data();
  call.b_exponents = context.b_exponents.data();
  call.c = c.empty() ? nullptr : c.data();
  call.products = products.data();
  call.d = d.data();
  call.context = &context;
  call.element = &scaled_element;
  const ScaleKernels kernels = scale_kernels_of(variant);
  if (!c.empty()) kernels.divide(call);
  multiply_tile(context.arithmetic, context.extents, context.a, context.b,
                c.empty() ? std::span<const std::uint32_t>() : products, products, variant);
  kernels.multiply(call);
}

// ------------------------------------------------------------------------------ mxf4 and mxf4nvf4

/// Twice the value of an e2m1 code.
constexpr std::array<std::int8_t, 16> kTwiceE2m1 = {0, 1,  2,  3,  4,  6,  8,  12,
                                                    0, -1, -2, -3, -4, -6, -8, -12};

/// Scales of an operand, by 16 elements of k, as the kernel wants them.
struct Fp4Scales {
  std::vector<double> values;           ///< [row][group]
  std::vector<std::int32_t> exponents;  ///< likewise
  std::vector<std::int32_t> specials;   ///< [row]
};

Fp4Scales scales_of(std::span<const std::uint8_t> codes, const TileScales& scales, int rows,
                    int num_groups) {
  Fp4Scales out;
  out.values.reserve(elems(rows, num_groups));
  out.exponents.reserve(elems(rows, num_groups));
  out.specials.assign(static_cast<std::size_t>(rows), 0);
  for (int row = 0; row < rows; ++row) {
    for (int group = 0; group < num_groups; ++group) {
      const std::size_t at = elems(row, scales.per_row) +
                             static_cast<std::size_t>(group * scales.per_row / num_groups);
      const TensorNumber scale = decode_number(*scales.format, codes[at]);
      if (scale.kind != TensorNumber::Kind::kFinite)
        out.specials[static_cast<std::size_t>(row)] = -1;
      const int exponent = scale.exponent - scale.fraction_bits - 1;
      const double unit = std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
      out.values.push_back(std::abs(scale.significand) * unit);
      out.exponents.push_back(scale.exponent);
    }
  }
  return out;
}

/// [rows][cols] to [cols][padded].
template <class T>
std::vector<T> transposed(const std::vector<T>& from, int rows, int cols, int padded) {
  std::vector<T> to(elems(cols, padded));
  for (int row = 0; row < rows; ++row) {
    for (int col = 0; col < cols; ++col) {
      to[elems(col, padded) + static_cast<std::size_t>(row)] =
          from[elems(row, cols) + static_cast<std::size_t>(col)];
    }
  }
  return to;
}

/// Values times 2 plus `bias`, four to a word.
std::vector<std::uint32_t> words_of(const TileOperand& operand, int bias) {
  std::array<std::uint8_t, 16> table{};
  for (std::size_t i = 0; i < table.size(); ++i) {
    const int value = operand.is_negated ? -kTwiceE2m1[i] : kTwiceE2m1[i];
    table[i] = static_cast<std::uint8_t>(value + bias);
  }
  std::vector<std::uint32_t> words(operand.codes.size() / 4);
  const std::byte* from = operand.codes.data();
  for (std::uint32_t& word : words) {
    for (int part = 0; part < 4; ++part) {
      word |= std::uint32_t{table[std::to_integer<std::size_t>(*from++ & std::byte{15})]}
              << (8 * part);
    }
  }
  return words;
}

std::int32_t sum_of_bytes(std::uint32_t word) {
  std::int32_t sum = 0;
  for (int part = 0; part < 4; ++part) sum += static_cast<std::int8_t>(word >> (8 * part));
  return sum;
}

/// kFp4Bias times the sums of groups: [groups][padded].
std::vector<std::int32_t> corrections_of(const std::vector<std::uint32_t>& words, int num_groups,
                                         int padded) {
  std::vector<std::int32_t> sums(elems(num_groups, padded));
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t row = i / static_cast<std::size_t>(padded);
    const std::size_t group = row / (kFp4Group / 4);
    sums[group * static_cast<std::size_t>(padded) + i % static_cast<std::size_t>(padded)] +=
        kFp4Bias * sum_of_bytes(words[i]);
  }
  return sums;
}

struct Fp4Context {
  const TensorArithmetic& arithmetic;
  const TileExtents& extents;
  const TileOperand& a;
  const TileOperand& b;
  const TileScales& scales;
  DecodedRows a_rows, b_rows, a_scales, b_scales;
};

/// True if one of the scales of a row is NaN, which makes all sums of the row NaN.
bool has_nan_scale(std::span<const std::uint8_t> codes, const TileScales& scales, int row) {
  const auto per_row = static_cast<std::size_t>(scales.per_row);
  const auto own = codes.subspan(static_cast<std::size_t>(row) * per_row, per_row);
  return std::any_of(own.begin(), own.end(),
                     [&](std::uint8_t code) { return is_nan(*scales.format, code); });
}

std::uint32_t fp4_element(void* context, int row, int col, std::uint32_t c) {
  auto& x = *static_cast<Fp4Context*>(context);
  const FormatSpec& format = code_format(x.arithmetic.output);
  if (is_nan(format, c) || has_nan_scale(x.scales.a, x.scales, row) ||
      has_nan_scale(x.scales.b, x.scales, col)) {
    return nan_code(format);
  }
  return dot_add_block_scaled(x.arithmetic, x.a_rows[row], x.b_rows[col], decode_number(format, c),
                              x.a_scales[row], x.b_scales[col]);
}

void run_fp4(Fp4Context& context, std::span<const std::uint32_t> c, std::span<std::uint32_t> d,
             KernelVariant variant) {
  const TileExtents& e = context.extents;
  const int num_groups = e.k / kFp4Group;
  const int padded = (e.n + kFp4Padding - 1) / kFp4Padding * kFp4Padding;
  const std::vector<std::uint32_t> a = words_of(context.a, kFp4Bias);
  const std::vector<std::uint32_t> b = transposed(words_of(context.b, 0), e.n, e.k / 4, padded);
  const std::vector<std::int32_t> corrections = corrections_of(b, num_groups, padded);
  const Fp4Scales a_scales = scales_of(context.scales.a, context.scales, e.m, num_groups);
  Fp4Scales b_scales = scales_of(context.scales.b, context.scales, e.n, num_groups);
  b_scales.values = transposed(b_scales.values, e.n, num_groups, padded);
  b_scales.exponents = transposed(b_scales.exponents, e.n, num_groups, padded);
  b_scales.specials.resize(static_cast<std::size_t>(padded));
  Fp4KernelCall call{};
  call.m = e.m;
  call.n = e.n;
  call.padded_n = padded;
  call.num_groups = num_groups;
  call.a = a.data();
  call.b = b.data();
  call.b_corrections = corrections.data();
  call.a_scales = a_scales.values.data();
  call.b_scales = b_scales.values.data();
  call.a_exponents = a_scales.exponents.data();
  call.b_exponents = b_scales.exponents.data();
  call.a_specials = a_scales.specials.data();
  call.b_specials = b_scales.specials.data();
  call.fraction_bits = context.arithmetic.fraction_bits;
  call.c = c.empty() ? nullptr : c.data();
  call.d = d.data();
  call.context = &context;
  call.element = &fp4_element;
  switch (variant) {
#ifdef __x86_64__
    case KernelVariant::kAvx512:
      return multiply_fp4_avx512(call);
    case KernelVariant::kAvx2:
      return multiply_fp4_avx2(call);
#endif
    default:
      return multiply_fp4_generic(call);
  }
}

}  // namespace

void multiply_scaled_tile(const TensorArithmetic& arithmetic, const TileExtents& extents,
                          const TileOperand& a, const TileOperand& b, const TileScales& scales,
                          std::span<const std::uint32_t> c, std::span<std::uint32_t> d,
                          KernelVariant variant) {
  require(scales.per_row == 1 && scales.format->mantissa_bits == 0 &&
              arithmetic.output == OutputFormat::kF32,
          ErrorKind::kInvalidArgument,
          "multiply_scaled_tile: {} scales of {} in a row; expected one of ue8m0, and f32 sums",
          scales.per_row, scales.format->name);
  check_sizes(extents, a, b, scales, c.size(), d.size());
  ScaledContext context{arithmetic,
                        extents,
                        a,
                        b,
                        exponents_of(scales.a),
                        exponents_of(scales.b),
                        {a, extents.m, extents.k},
                        {b, extents.n, extents.k}};
  if (!arithmetic.is_exact) return run_scaled(context, c, d, variant);
  std::size_t at = 0;
  for (int row = 0; row < extents.m; ++row) {
    for (int col = 0; col < extents.n; ++col, ++at) {
      d[at] = scaled_element(&context, row, col, c.empty() ? 0 : c[at]);
    }
  }
}

void multiply_fp4_tile(const TensorArithmetic& arithmetic, const TileExtents& extents,
                       const TileOperand& a, const TileOperand& b, const TileScales& scales,
                       std::span<const std::uint32_t> c, std::span<std::uint32_t> d,
                       KernelVariant variant) {
  constexpr int kMostK = 256;
  require(a.format->bits() == 4 && b.format->bits() == 4 && extents.k % kFp4Group == 0 &&
              extents.k <= kMostK && extents.k % scales.per_row == 0,
          ErrorKind::kInvalidArgument,
          "multiply_fp4_tile: {} by {}, k = {} with {} scales; expected e2m1 and a multiple of {}",
          a.format->name, b.format->name, extents.k, scales.per_row, kFp4Group);
  require(is_supported(variant), ErrorKind::kInvalidArgument,
          "multiply_fp4_tile: this processor or build has no {} kernels", name_of(variant));
  check_sizes(extents, a, b, scales, c.size(), d.size());
  const auto scale_operand = [&](std::span<const std::uint8_t> codes) {
    return TileOperand{std::as_bytes(codes), scales.format};
  };
  const TileOperand a_scales = scale_operand(scales.a), b_scales = scale_operand(scales.b);
  Fp4Context context{arithmetic,
                     extents,
                     a,
                     b,
                     scales,
                     {a, extents.m, extents.k},
                     {b, extents.n, extents.k},
                     {a_scales, extents.m, scales.per_row},
                     {b_scales, extents.n, scales.per_row}};
  if (!arithmetic.is_exact) return run_fp4(context, c, d, variant);
  std::size_t at = 0;
  for (int row = 0; row < extents.m; ++row) {
    for (int col = 0; col < extents.n; ++col, ++at) {
      d[at] = fp4_element(&context, row, col, c.empty() ? 0 : c[at]);
    }
  }
}

void multiply_tile_onto_scaled(const TensorArithmetic& arithmetic, const TileExtents& extents,
                               const TileOperand& a, const TileOperand& b, int shift,
                               std::span<const std::uint32_t> c, std::span<std::uint32_t> d) {
  if (c.empty() || shift == 0) return multiply_tile(arithmetic, extents, a, b, c, d);
  const FormatSpec& format = code_format(arithmetic.output);
  std::vector<std::uint32_t> divided(c.begin(), c.end());
  std::vector<std::size_t> left;
  for (std::size_t i = 0; i < divided.size(); ++i) {
    const auto field = static_cast<int>((c[i] & format.magnitude_mask()) >> format.mantissa_bits);
    const bool is_special = field == (1 << format.exponent_bits) - 1;
    if (is_special || (c[i] & format.magnitude_mask()) == 0) continue;
    if (field > shift) {
      divided[i] -= static_cast<std::uint32_t>(shift) << format.mantissa_bits;
    } else {
      left.push_back(i);
    }
  }
  std::vector<std::uint32_t> kept;
  for (const std::size_t i : left) kept.push_back(c[i]);
  multiply_tile(arithmetic, extents, a, b, divided, d);
  DecodedRows a_rows(a, extents.m, extents.k), b_rows(b, extents.n, extents.k);
  for (std::size_t i = 0; i < left.size(); ++i) {
    TensorNumber number = decode_number(format, kept[i]);
    number.exponent -= shift;
    const auto row = static_cast<int>(left[i] / static_cast<std::size_t>(extents.n));
    const auto col = static_cast<int>(left[i] % static_cast<std::size_t>(extents.n));
    d[left[i]] = dot_add(arithmetic, a_rows[row], b_rows[col], number);
  }
}

}  // namespace tilewright::sim
