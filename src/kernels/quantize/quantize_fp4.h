// Blocks of e2m1 codes: NVFP4 of 16 numbers and MXFP4 of 32. To the last bit as
// formats/block_scale.h.
#pragma once

#include "kernels/quantize/quantize_rows.h"
#include "ptx/convert_fp8.h"

namespace tilewright::tile {

inline constexpr float kOneSixth = 1.0f / 6;
inline constexpr float kLargestFloat = 3.402823466e+38f;

/// Eight numbers of a chunk from `Begin` on, times a factor, as e2m1 codes, the first in the lowest
/// bits; to nearest even, saturating. As encode_nearest() of formats/fast_encode.h, in 10
/// instructions a number: codes and signs are shifted into their words, the last number first, and
/// what the sums have in common with all others is subtracted once.
template <int Begin, class Load>
__device__ std::uint32_t e2m1_word(const Chunk<Load>& chunk, float factor) {
  constexpr std::uint32_t kOne = 0x3f800000u, kUnit = 22u << 23, kShift = 22;
  std::uint32_t codes = 0, signs = 0, common = 0;
#pragma unroll
  for (int i = 7; i >= 0; --i) {
    const float x = __fmul_rn(chunk[Begin + i], factor);
    const float magnitude = fminf(fabsf(x), 6.0f);
    const std::uint32_t binade = max(__float_as_uint(magnitude) & 0x7f800000u, kOne);
    const float sum = __fadd_rn(magnitude, __uint_as_float(binade + kUnit));
    codes = (codes << 4) + (__float_as_uint(sum) - binade + (binade >> kShift));
    signs = __funnelshift_l(__float_as_uint(x), signs, 4);
    common = (common << 4) + kUnit + (kOne >> kShift);
  }
  return (codes - common) | (signs & 0x88888888u);
}

template <class Load>
__device__ uint2 e2m1_codes(const Chunk<Load>& chunk, float factor) {
  return make_uint2(e2m1_word<0>(chunk, factor), e2m1_word<8>(chunk, factor));
}

/// What all NVFP4 blocks of a tensor share.
struct Nvfp4Tensor {
  float encode_scale, tensor_scale;
  ScaleChoice choice;

  __device__ Nvfp4Tensor(float g, ScaleChoice scale_choice)
      : encode_scale(g), choice(scale_choice) {
    tensor_scale = __frcp_rn(g);
  }
};

struct Fp4Block {
  uint2 codes;
  std::uint32_t scale;
};

template <class Load>
__device__ Fp4Block nvfp4_block_with(const Chunk<Load>& chunk, const Nvfp4Tensor& tensor,
                                     std::uint32_t scale) {
  const float step = __fmul_rn(ptx::cvt_f32_e4m3(scale), tensor.tensor_scale);
  const float factor = step > 0 ? fminf(__frcp_rn(step), kLargestFloat) : kLargestFloat;
  return {e2m1_codes(chunk, factor), scale};
}

/// Sum in fp64, element by element, as the rule says: it decides between two scales.
template <class Load>
__device__ double squared_error(const Chunk<Load>& chunk, const Nvfp4Tensor& tensor,
                                const Fp4Block& block) {
  const float scale = ptx::cvt_f32_e4m3(block.scale);
  double sum = 0;
#pragma unroll
  for (int i = 0; i < kernels::kQuantizeChunk; ++i) {
    const std::uint32_t code = (i < 8 ? block.codes.x : block.codes.y) >> 4 * (i % 8);
    // e2m1 to the top of fp32, times the power of two between the biases
    const std::uint32_t magnitude = (code & 7) << 22, sign = (code & 8) << 28;
    const float element = __uint_as_float(magnitude | sign) * 0x1p126f;
    const float decoded = __fmul_rn(__fmul_rn(element, scale), tensor.tensor_scale);
    const double error = __dsub_rn(static_cast<double>(chunk[i]), static_cast<double>(decoded));
    sum = __dadd_rn(sum, __dmul_rn(error, error));
  }
  return sum;
}

/// The largest exact scale not above an ideal one, as exact_scales() of formats/block_scale.h: the
/// rounded code, or the one before it, cut to an exact one.
__device__ inline std::uint32_t exact_scale_below(float ideal) {
  std::uint32_t code = ptx::cvt_rn_satfinite_e4m3_f32(ideal);
  if (ptx::cvt_f32_e4m3(code) > ideal) --code;
  return exact_scale_at_most(code);
}

/// A block as the choice of the tensor wants it: of kNearest and kExactNearest, or of the two that
/// compare errors.
template <bool ComparesErrors, class Load>
__device__ Fp4Block nvfp4_block(const Chunk<Load>& chunk, const Nvfp4Tensor& tensor) {
  const std::uint32_t amax = chunk.amax_bits();
  if (amax >= kInfinityBits) return {make_uint2(0, 0), 0x7f};
  const float ideal = __fmul_rn(__uint_as_float(amax), __fmul_rn(tensor.encode_scale, kOneSixth));
  std::uint32_t first = ptx::cvt_rn_satfinite_e4m3_f32(ideal);
  std::uint32_t second = ptx::cvt_rn_satfinite_e4m3_f32(__fmul_rn(ideal, 1.5f));
  if (is_exact(tensor.choice)) {
    second = exact_scale_below(ideal);
    const float low = ptx::cvt_f32_e4m3(second);
    first = low >= ideal ? second : exact_scale_after(second);
    if constexpr (!ComparesErrors) {
      const float middle = __fmul_rn(__fadd_rn(low, ptx::cvt_f32_e4m3(first)), 0.5f);
      first = ideal < middle ? second : first;
    }
  }
  const Fp4Block block = nvfp4_block_with(chunk, tensor, first);
  if constexpr (!ComparesErrors) return block;
  const Fp4Block other = nvfp4_block_with(chunk, tensor, second);
  const bool is_better = squared_error(chunk, tensor, other) < squared_error(chunk, tensor, block);
  return is_better ? other : block;
}

/// The scale of an MXFP4 block: as it is stored, and what its numbers are multiplied by.
struct Mxfp4Scale {
  std::uint32_t stored;
  float factor;

  __device__ Mxfp4Scale(const kernels::QuantizeParams& params, std::uint32_t amax_bits) {
    constexpr int kMaxExponent = 2;
    const float raised = fmaxf(__uint_as_float(amax_bits), params.min_amax);
    stored = ue8m0_code(raised, kOneSixth, kMaxExponent, params.is_floor != 0);
    factor = __frcp_rn(ue8m0_value(stored));
    if (amax_bits >= kInfinityBits) stored = 0xff;
  }
  template <class Load>
  __device__ uint2 codes(const Chunk<Load>& chunk) const {
    return stored == 0xff ? make_uint2(0, 0) : e2m1_codes(chunk, factor);
  }
};

}  // namespace tilewright::tile
