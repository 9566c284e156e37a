#include "sim/insn/tensor/wgmma_product.h"

#include "sim/insn/tensor/tensor_operands.h"

namespace tilewright::sim {
namespace {

constexpr std::size_t kMaxWarps = 4;
constexpr std::size_t kWordsOfK = kBytesOfWgmmaK / 4;

void multiply(const WgmmaForm& form, int rows, bool is_exact, std::span<const std::byte> a,
              std::span<const std::byte> b, std::span<std::uint32_t> d, bool keeps_d) {
  const TileExtents extents{rows, form.n, form.k};
  const IntegerOperands integers = integer_operands(form.a_type, form.b_type);
  if (integers.is_integer) {
    const std::span sums(reinterpret_cast<std::int32_t*>(d.data()), d.size());
    const auto old =
        keeps_d ? std::span<const std::int32_t>(sums) : std::span<const std::int32_t>();
    if (integers.is_bits) {
      multiply_bit_tile(extents, a, b, form.bits, old, sums);
    } else {
      multiply_integer_tile(extents, {a, integers.a}, {b, integers.b}, form.is_saturating, old,
                            sums);
    }
    return;
  }
  const FormatSpec& a_format = *tensor_format_of(form.a_type);
  TensorArithmetic arithmetic =
      tensor_arithmetic(TensorUnit::kWgmma, a_format, form.d_type == Type::kF16);
  arithmetic.is_exact = is_exact;
  const auto old = keeps_d ? std::span<const std::uint32_t>(d) : std::span<const std::uint32_t>();
  multiply_tile(arithmetic, extents, {a, &a_format, form.is_a_negated},
                {b, tensor_format_of(form.b_type), form.is_b_negated}, old, d);
}

}  // namespace

OperandTile wgmma_tile(const WgmmaForm& form, bool is_a) {
  OperandTile tile;
  tile.major = is_a ? form.a_major : form.b_major;
  tile.rows = is_a ? kWgmmaRows : form.n;
  const int bits = bits_of(form.a_type);
  tile.element_bytes = bits < 8 ? 1 : bits / 8;
  tile.k = kBytesOfWgmmaK / tile.element_bytes;
  return tile;
}

void perform_wgmma(std::span<Warp* const> warps, const WgmmaCall& call) {
  const WgmmaForm& form = *call.form;
  const auto n = static_cast<std::size_t>(form.n);
  alignas(64) std::uint32_t d[kMaxWarps * kWgmmaRows * kMaxWgmmaN];
  alignas(64) std::uint32_t a[kMaxWarps * kWgmmaRows * kWordsOfK];
  alignas(64) std::uint32_t b[kMaxWgmmaN * kWordsOfK];
  const std::size_t rows = warps.size() * kWgmmaRows;
  const auto a_codes = std::as_writable_bytes(std::span(a)).first(rows * kBytesOfWgmmaK);
  const auto b_codes = std::as_writable_bytes(std::span(b)).first(n * kBytesOfWgmmaK);
  const bool is_half = form.d_type == Type::kF16;
  gather_wgmma_operand(*warps[0], "B", call.b_descriptor, wgmma_tile(form, false), 0, b_codes);
  for (std::size_t w = 0; w < warps.size(); ++w) {
    Warp& warp = *warps[w];
    if (form.a.empty()) {
      constexpr std::size_t kBytes = kWgmmaRows * kBytesOfWgmmaK;
      gather_wgmma_operand(warp, "A", call.a_descriptor, wgmma_tile(form, true),
                           static_cast<int>(warp.index % 4) * kWgmmaRows,
                           a_codes.subspan(w * kBytes, kBytes));
    } else {
      gather_a(warp, form.a, kWordsOfK, a + w * kWgmmaRows * kWordsOfK);
    }
    if (!call.keeps_d) continue;
    (is_half ? gather_d16 : gather_d32)(warp, form.d, form.n, kWgmmaRows, d + w * kWgmmaRows * n);
  }
  const bool is_exact = warps[0]->grid->options.is_exact_mma;
  multiply(form, static_cast<int>(rows), is_exact, a_codes, b_codes, std::span(d).first(rows * n),
           call.keeps_d);
  for (std::size_t w = 0; w < warps.size(); ++w) {
    (is_half ? scatter_d16 : scatter_d32)(*warps[w], form.d, form.n, kWgmmaRows,
                                          d + w * kWgmmaRows * n);
  }
}

}  // namespace tilewright::sim
