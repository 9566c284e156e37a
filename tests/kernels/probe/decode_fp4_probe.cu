// targets: sm_90a
//
// Decodes words of FP4 as the linear kernels do, for a test of every code under every scale.
// Entries decode_fp4_FORMAT_ORDER. And where those kernels look for the words: at compile time.
#include "arch/fragments/wgmma.h"
#include "formats/packed_matrix.h"
#include "kernels/linear/unpack_fp4.h"
#include "kernels/linear/wide/fold_e4m3.h"
#include "kernels/linear/wide/weights.h"
#include "kernels/probe/decode_fp4_probe.h"

namespace tilewright::kernels {
namespace {

// Value `value` of a lane's A fragment, by the layout of the instruction, is the element of the
// brick that stands where WideWords looks for it.
template <WeightFormat Format>
constexpr bool finds_fragments() {
  using Words = tile::WideWords<Format, WordOrder::kBf16>;
  for (int at = 0; at < 4 * 32 * 8; ++at) {
    const int step = at / 256, lane = at / 8 % 32, value = at % 8, r = value / 2;
    const auto of_fragment = static_cast<int>(arch::kWgmmaA16(lane, value));
    const int row = of_fragment % 64, k = 16 * step + of_fragment / 64;
    const BrickPlace place = brick_place(Format, row, k);
    const typename Words::Places places(static_cast<std::uint32_t>(lane));
    int word = static_cast<int>(places.step[step]);
    int inside = r / 2 * 2 + value % 2;  // of the four elements of a word
    if (is_fp4(Format)) inside += r % 2 * 4;
    if (Format == WeightFormat::kFp8) word += Words::part_place(r % 2);
    if (Format == WeightFormat::kBf16) {
      word += Words::part_place(r % 2, r / 2);
      inside = value % 2;
    }
    if (place.word * 4 != word || place.place != inside) return false;
    // Of FP4: the scale bytes of row g, then those of row g + 8.
    const int scale = Format == WeightFormat::kNvfp4 ? r % 2 * 4 + step : r % 2 * 2 + step / 2;
    const int scale_at = static_cast<int>(places.scales) + scale;
    if (is_fp4(Format) && brick_scale_offset(Format, row, k) != scale_at) return false;
  }
  return true;
}
static_assert(finds_fragments<WeightFormat::kNvfp4>() && finds_fragments<WeightFormat::kMxfp4>());
static_assert(finds_fragments<WeightFormat::kFp8>() && finds_fragments<WeightFormat::kBf16>());

template <WeightFormat Format, WordOrder Order, bool InNeighbours>
__device__ void decode(const DecodeFp4ProbeParams& params) {
  __shared__ std::uint64_t table[256];
  for (std::uint32_t i = threadIdx.x; i < 256; i += blockDim.x)
    table[i] = tile::kE4m3Table<Format>.magnitudes[i];
  __syncthreads();
  const std::uint32_t at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= static_cast<std::uint32_t>(params.count)) return;
  const std::uint32_t word = params.words[at], scales = params.scales[at];
  const std::uint32_t factors[2] = {tile::bf16_factors<Format>(scales, tile::scale_selector(0)),
                                    tile::bf16_factors<Format>(scales, tile::scale_selector(3))};
  std::uint32_t a[4];
  if constexpr (InNeighbours) {
    tile::decode_fp4_bf16_neighbours<Order>(a, word, factors);
  } else {
    tile::decode_fp4_bf16<Order>(a, word, factors);
  }
  for (int i = 0; i < 4; ++i) params.bf16[at * 4 + i] = a[i];
  if constexpr (Order == WordOrder::kE4m3) {
    const std::uint64_t low = table[scales & 255], high = table[scales >> 24];
    const uint2 magnitudes[2] = {
        make_uint2(static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32)),
        make_uint2(static_cast<std::uint32_t>(high), static_cast<std::uint32_t>(high >> 32))};
    std::uint32_t b[2];
    tile::decode_fp4_e4m3(b, word, magnitudes);
    for (int i = 0; i < 2; ++i) params.e4m3[at * 2 + i] = b[i];
  }
}

}  // namespace
}  // namespace tilewright::kernels

#define TILEWRIGHT_DECODE_FP4(NAME, FORMAT, ORDER, IN_NEIGHBOURS)                              \
  extern "C" __global__ void decode_fp4_##NAME(                                                \
      const __grid_constant__ tilewright::kernels::DecodeFp4ProbeParams params) {              \
    tilewright::kernels::decode<tilewright::kernels::WeightFormat::FORMAT,                     \
                                tilewright::kernels::WordOrder::ORDER, IN_NEIGHBOURS>(params); \
  }

TILEWRIGHT_DECODE_FP4(nvfp4_twiddled, kNvfp4, kBf16, true)
TILEWRIGHT_DECODE_FP4(nvfp4_braided, kNvfp4, kE4m3, false)
TILEWRIGHT_DECODE_FP4(nvfp4_braided_neighbours, kNvfp4, kE4m3, true)
TILEWRIGHT_DECODE_FP4(mxfp4_twiddled, kMxfp4, kBf16, true)
TILEWRIGHT_DECODE_FP4(mxfp4_braided, kMxfp4, kE4m3, false)
TILEWRIGHT_DECODE_FP4(mxfp4_braided_neighbours, kMxfp4, kE4m3, true)
