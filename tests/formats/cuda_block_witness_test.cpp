// The block formats as a kernel would write them with CUDA's conversions. Built where the CUDA
// headers are found; cuda_witness_test.cpp says so when they are not.
#include "formats/block_scale.h"
#include "formats/pack.h"
#include "tests/formats/block_data.h"

#include <gtest/gtest.h>

#if __has_include(<cuda_fp4.h>)

#include <cuda_fp4.h>
#include <cuda_fp8.h>

namespace tilewright {
namespace {

float amax_of(std::span<const float> values) {
  float amax = 0;
  for (const float x : values) amax = std::fmax(amax, std::fabs(x));
  return amax;
}

TEST(CudaBlocks, Fp8KvCache) {
  const std::vector<float> values = rough_values(512, 512, -20, 12, 51);
  const QuantizedTensor tensor = quantize(kFp8Block64Pow2, values, 512, 512);
  for (size_t i = 0; i < values.size(); ++i) {
    const float amax = amax_of({values.data() + i / 64 * 64, 64});
    const uint8_t scale = __nv_cvt_float_to_e8m0(std::max(amax, 1e-4f) * (1.0f / 448.0f),
                                                 __NV_SATFINITE, cudaRoundPosInf);
    ASSERT_EQ(tensor.scales[i / 64], scale);
    ASSERT_EQ(tensor.codes[i],
              __nv_cvt_float_to_fp8(std::ldexp(values[i], 127 - scale), __NV_SATFINITE, __NV_E4M3));
  }
}

TEST(CudaBlocks, Nvfp4) {
  const std::vector<float> values = rough_values(512, 512, -20, 12, 52);
  const QuantizedTensor tensor = quantize(kNvfp4, values, 512, 512);
  const float encode_scale = 448.0f * 6.0f / amax_of(values);
  for (size_t i = 0; i < values.size(); ++i) {
    const float amax = amax_of({values.data() + i / 16 * 16, 16});
    const __nv_fp8_e4m3 scale(amax * (encode_scale * (1.0f / 6.0f)));
    ASSERT_EQ(tensor.scales[i / 16], scale.__x);
    const float step = static_cast<float>(scale) * (1.0f / encode_scale);
    const float factor = std::fmin(1.0f / step, std::numeric_limits<float>::max());
    ASSERT_EQ(load_code(tensor.codes.data(), Packing::kDense, 4, static_cast<int64_t>(i)),
              __nv_cvt_float_to_fp4(values[i] * factor, __NV_E2M1, cudaRoundNearest));
  }
}

}  // namespace
}  // namespace tilewright

#endif
