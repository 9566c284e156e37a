// targets: sm_100f
//
// As moe_scatter_e4m3: a thread has pieces of 16 neighbours of a token, reads and quantises them
// once and stores them for each expert. Four scales that stand together in a tile of scales are
// joined by shuffles and stored as a word.
//
// Rows that are grouped already are quantised where they are; a CTA takes one after the other.
//
// Limit: HBM, writes. 8192 tokens of 4096 to 6 experts: MXFP8 201 MB + 6 of scales, 26 us.
#include "formats/grouped_scales.h"
#include "kernels/moe/scatter_blocks.h"
#include "kernels/quantize/quantize_fp4.h"
#include "ptx/grid_dependency.h"
#include "tile/cta_max.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

using Chunk = tile::Chunk<tile::LoadBf16>;

// Where the row of an expert is, and its scales.
struct Place {
  std::int32_t row;
  std::int64_t scale_tile;
  std::int32_t in_tile;  // bytes
};

__device__ Place place_of(std::int32_t row, std::int32_t offset, std::int32_t expert) {
  const std::int32_t inside = row - offset;
  return {row, grouped_scale_tile(offset, expert) + inside / 128,
          inside % 32 * 16 + inside % 128 / 32 * 4};
}

// All rows of the CTA's token.
struct PlacesOfToken {
  const MoeScatterBlocksParams& params;

  template <class Store>
  __device__ void for_each(Store&& store) const {
    const auto token = static_cast<std::int32_t>(blockIdx.x);
    const std::int64_t first = static_cast<std::int64_t>(token) * params.topk;
#pragma unroll 4
    for (int i = 0; i < params.topk; ++i) {
      const std::int32_t row = params.slot_row[first + i];
      if (row < 0) continue;
      const std::int32_t expert = params.ids[first + i];
      store(place_of(row, params.offsets[expert], expert));
    }
    if (params.shared_first == nullptr) return;
    const std::int32_t offset = *params.shared_first;
    store(place_of(offset + token, offset, params.experts));
  }
};

struct OnePlace {
  Place place;

  template <class Store>
  __device__ void for_each(Store&& store) const {
    store(place);
  }
};

// 16 elements: codes, and the scale of their block in its byte of a word.
struct Quantised {
  uint4 codes;
  std::uint32_t scale;
};

// MXFP8: two lanes share a scale, eight a word.
struct ToMxfp8 {
  static constexpr int kWordColumns = 128;
  static constexpr bool kHasRowScale = false;

  template <class Places>
  __device__ ToMxfp8(float*, const Places&, std::uint32_t) {}

  static __device__ Quantised quantise(const Chunk& chunk) {
    QuantizeParams rule = {};
    rule.min_amax = kFp8MinAmax;
    rule.is_pow2 = 1;
    const std::uint32_t own = chunk.amax_bits();
    const tile::Fp8Scale scale(rule, max(own, __shfl_xor_sync(~0u, own, 1)));
    return {tile::fp8_codes(chunk, scale, false), scale.stored << threadIdx.x / 2 % 4 * 8};
  }
  static __device__ std::uint32_t join(std::uint32_t word) {
    word |= __shfl_xor_sync(~0u, word, 2);
    return word | __shfl_xor_sync(~0u, word, 4);
  }
  static __device__ void store(std::uint8_t* row, std::int32_t column, const uint4& codes) {
    *reinterpret_cast<uint4*>(row + column) = codes;
  }
};

// NVFP4: a lane has a scale, four a word.
struct ToNvfp4 {
  static constexpr int kWordColumns = 64;
  static constexpr bool kHasRowScale = true;

  float encode_scale = 1;

  template <class Places>
  __device__ ToNvfp4(float* row_scales, const Places& places, std::uint32_t amax_bits) {
    constexpr float kTop = 448 * 6;
    const std::uint32_t amax = tile::max_of_cta<kMoeScatterMaxThreads>(amax_bits);
    if (amax > 0 && amax < tile::kInfinityBits)
      encode_scale = fminf(__fdiv_rn(kTop, __uint_as_float(amax)), tile::kLargestFloat);
    if (threadIdx.x != 0) return;
    const float scale = __frcp_rn(encode_scale);
    places.for_each([&](const Place& place) { row_scales[place.row] = scale; });
  }

  __device__ Quantised quantise(const Chunk& chunk) const {
    const tile::Nvfp4Tensor tensor(encode_scale, ScaleChoice::kNearest);
    const tile::Fp4Block block = tile::nvfp4_block<false>(chunk, tensor);
    return {make_uint4(block.codes.x, block.codes.y, 0, 0), block.scale << threadIdx.x % 4 * 8};
  }
  static __device__ std::uint32_t join(std::uint32_t word) {
    word |= __shfl_xor_sync(~0u, word, 1);
    return word | __shfl_xor_sync(~0u, word, 2);
  }
  static __device__ void store(std::uint8_t* row, std::int32_t column, const uint4& codes) {
    *reinterpret_cast<uint2*>(row + column / 2) = make_uint2(codes.x, codes.y);
  }
};

// One row of x to its places.
template <class Format, class Params, class Places>
__device__ void quantise_row(const Params& params, const std::uint16_t* x, const Places& places) {
  const auto begin = static_cast<std::int32_t>(threadIdx.x * kQuantizeChunk);
  const auto step = static_cast<std::int32_t>(blockDim.x * kQuantizeChunk);
  Chunk held[kMoeScatterHeld];
  std::uint32_t most = 0;
#pragma unroll
  for (int i = 0; i < kMoeScatterHeld; ++i) {
    const int left = params.hidden - (begin + i * step);
    held[i].load(x, begin + i * step, left < 0 ? 0 : min(left, kQuantizeChunk), true);
    most = max(most, held[i].amax_bits());
  }
  const Format format(params.row_scales, places, most);
  const std::int64_t row_bytes = Format::kHasRowScale ? params.hidden / 2 : params.hidden;
  const std::int32_t tiles_k = (params.hidden + Format::kWordColumns - 1) / Format::kWordColumns;
#pragma unroll
  for (int i = 0; i < kMoeScatterHeld; ++i) {
    const std::int32_t column = begin + i * step;
    const Quantised q = format.quantise(held[i]);
    const std::uint32_t scales = Format::join(q.scale);
    if (column >= params.hidden) continue;
    places.for_each([&](const Place& place) {
      Format::store(params.codes + place.row * row_bytes, column, q.codes);
      if (column % Format::kWordColumns != 0) return;
      std::uint8_t* const to =
          params.scales + (place.scale_tile * tiles_k + column / Format::kWordColumns) * 512;
      *reinterpret_cast<std::uint32_t*>(to + place.in_tile) = scales;
    });
  }
}

template <class Format>
__device__ void scatter_blocks(const MoeScatterBlocksParams& params) {
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  quantise_row<Format>(params, params.x + blockIdx.x * params.x_stride, PlacesOfToken{params});
}

// One warp looks for counts that are out of range.
__device__ void report_counts(const MoeGroupedRowsParams& params) {
  MoeStatus status = {0, 0, kMoeNone, kMoeNone};
  for (auto expert = static_cast<std::int32_t>(threadIdx.x); expert < params.experts;
       expert += 32) {
    const std::int32_t count = params.counts[expert];
    if (count == rows_in_room(count, params.room)) continue;
    ++status.num_out_of_range;
    status.first_out_of_range = min(status.first_out_of_range, static_cast<std::uint32_t>(expert));
  }
  status.num_out_of_range = __reduce_add_sync(~0u, status.num_out_of_range);
  status.first_out_of_range = __reduce_min_sync(~0u, status.first_out_of_range);
  if (threadIdx.x == 0) *params.status = status;
}

template <class Format>
__device__ void quantise_grouped(const MoeGroupedRowsParams& params) {
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  const auto expert = static_cast<std::int32_t>(blockIdx.y);
  std::int32_t offset = expert * params.room, rows = params.room;
  if (params.offsets != nullptr) {
    offset = params.offsets[expert];
    rows = params.offsets[expert + 1] - offset;
  } else if (params.counts != nullptr) {
    if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x < 32) report_counts(params);
    rows = rows_in_room(params.counts[expert], params.room);
  }
  for (auto r = static_cast<std::int32_t>(blockIdx.x); r < rows;
       r += static_cast<std::int32_t>(gridDim.x)) {
    const std::int32_t row = offset + r;
    quantise_row<Format>(params, params.x + row * params.x_stride,
                         OnePlace{place_of(row, offset, expert)});
    __syncthreads();  // the next row's maximum takes the place of this one's
  }
}

}  // namespace
TILEWRIGHT_KERNEL(moe_scatter_mxfp8, MoeScatterBlocksParams,
                  __launch_bounds__(kMoeScatterMaxThreads), scatter_blocks<ToMxfp8>)

TILEWRIGHT_KERNEL(moe_scatter_nvfp4, MoeScatterBlocksParams,
                  __launch_bounds__(kMoeScatterMaxThreads), scatter_blocks<ToNvfp4>)

TILEWRIGHT_KERNEL(moe_grouped_mxfp8, MoeGroupedRowsParams, __launch_bounds__(kMoeScatterMaxThreads),
                  quantise_grouped<ToMxfp8>)

TILEWRIGHT_KERNEL(moe_grouped_nvfp4, MoeGroupedRowsParams, __launch_bounds__(kMoeScatterMaxThreads),
                  quantise_grouped<ToNvfp4>)

}  // namespace tilewright::kernels
