// Keys of the lightning indexer on their way from pages to the A operand of an m64nNk32 product of
// e4m3: a warp fetches tiles of 64 for a warpgroup, some tiles ahead.
//
//   e4m3    tensor copies of up to 64 rows in the 128-byte swizzle: the operand as it is
//   e2m1    bulk copies of rows of 64 bytes; lane t of a quad takes block t of a row, 16 bytes,
//           and makes e4m3 of it in registers. A product over 128 dims does not care about their
//           order: in place 32s + 16h + 4t + j of keys and queries stands dim 32t + 8s + 4h + j
#pragma once

#include "kernels/sparse_attention/indexer/places.h"
#include "ptx/bulk_copy.h"
#include "ptx/bulk_tensor_copy.h"
#include "ptx/byte_permute.h"
#include "ptx/cp_async.h"
#include "ptx/fence.h"
#include "ptx/load_store.h"
#include "ptx/mbarrier.h"
#include "tile/ring.h"
#include "tile/unpack_e4m3.h"

#include <cstdint>

namespace tilewright::tile {

inline constexpr float kNoKey =
    -1;  ///< a key's scale where there is no key; others are >= 0 or NaN

/// The largest of the four bytes of a word.
__device__ inline std::uint32_t largest_byte(std::uint32_t word) {
  const std::uint32_t pair = __vmaxu4(word, word >> 16);
  return max(pair & 0xff, pair >> 8 & 0xff);
}

/// Eight e2m1 codes of a block as e4m3: the low four, the high four. e4m3 has 1.0 * 2^s at
/// (s + 7) << 3, and the seven magnitudes above 0 around it.
class E2m1ToE4m3 {
 public:
  /// The block with the largest scale of its row gets s = kTop; down to kTop - kMaxBelow all
  /// magnitudes are normal and exact.
  static constexpr std::uint32_t kTop = 6, kMaxBelow = 11;

  /// For block `block` of a row with these scale bytes, whose codes are given: is_exact becomes
  /// false if they are not zeros and too far below.
  __device__ E2m1ToE4m3(std::uint32_t scales, int block, const uint4& codes, bool& is_exact) {
    const std::uint32_t below = largest_byte(scales) - (scales >> 8 * block & 0xff);
    const std::uint32_t any = (codes.x | codes.y | codes.z | codes.w) & 0x77777777u;
    if (below > kMaxBelow && any != 0) is_exact = false;
    const std::uint32_t one = (kTop + 7 - min(below, kMaxBelow)) << 3;
    low_ = one * 0x01010100u + 0x03fff800u;   // 0, 0.5, 1, 1.5
    high_ = one * 0x01010101u + 0x14100c08u;  // 2, 3, 4, 6
  }
  __device__ void operator()(std::uint32_t& low, std::uint32_t& high, std::uint32_t codes) const {
    const std::uint32_t magnitudes = codes & 0x77777777u;
    low = four(magnitudes, codes);
    high = four(magnitudes >> 16, codes >> 16);
  }

 private:
  // A selector with its highest bit set repeats the sign of the byte it selects.
  __device__ std::uint32_t four(std::uint32_t magnitudes, std::uint32_t codes) const {
    const std::uint32_t signs = ptx::prmt_b32(0x80808080u, 0x80808080u, codes);  // 80 or ff
    return ptx::prmt_b32(low_, high_, magnitudes) | (signs << 7 & 0x80808080u);
  }

  std::uint32_t low_, high_;
};

/// What a row of blocks with these scale bytes is multiplied with, its codes being e4m3 of
/// E2m1ToE4m3.
__device__ inline float mxfp4_row_scale(std::uint32_t largest) {
  if (largest == 0xff) return __uint_as_float(0x7fffffffu);
  return __fmul_rn(unpack_e8m0(largest), 1.0f / (1 << E2m1ToE4m3::kTop));
}

/// Tiles of keys in shared memory, and the barriers that say when one is there and when its place
/// is free.
template <IndexFormat Format>
struct KeyTiles {
  static constexpr int kRowBytes = index_data_bytes(Format);
  static constexpr int kBytes = kernels::indexer_stage_bytes(Format);
  static constexpr int kKeys = kernels::kIndexerTileKeys, kStages = kernels::kIndexerStages;
  static constexpr std::uint32_t kNoKeyBits =
      Format == IndexFormat::kFp8 ? 0xbf800000u : 0xfefefefeu;

  std::uint32_t base;  ///< shared address of this warpgroup's first tile
  Ring<kStages> ring;

  __device__ std::uint32_t tile(std::uint32_t stage) const { return base + stage * kBytes; }
  __device__ std::uint32_t scale(std::uint32_t stage, int row) const {
    return tile(stage) + static_cast<std::uint32_t>(kKeys * kRowBytes + 4 * row);
  }

  /// Starts to fetch a tile, all lanes of a warp. Lane l has keys l and l + 32 of it, of which the
  /// pages are given; those that begin a box copy it. What is not there is not copied, and the
  /// scale says so.
  template <class Params>
  __device__ void fetch(RingPosition<kStages> at, const Params& params,
                        const std::int32_t (&pages)[2], std::int32_t first_key) const {
    // Boxes of a tensor copy may reach beyond the last key.
    constexpr bool kHasBoxes = Format == IndexFormat::kFp8 || kernels::kHasRanges<Params>;
    const auto lane = static_cast<int>(threadIdx.x % 32);
    const kernels::IndexPages& keys = params.keys;
    bool is_there[2], is_copied[2];
    std::uint32_t there[2];
    std::int32_t slots[2];
    std::uint32_t boxes = 0;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const std::int32_t key = first_key + lane + 32 * i;
      if constexpr (kernels::kHasRanges<Params>) {
        slots[i] = key;
        is_there[i] = pages[i] == 0;
      } else {
        const auto block =
            static_cast<std::int32_t>(keys.page_divisor.divide(static_cast<std::uint32_t>(key)));
        slots[i] = key - block * keys.page_size;
        is_there[i] = has_page(keys, pages[i]);
      }
      there[i] = __ballot_sync(~0u, is_there[i]);
      is_copied[i] = is_there[i] && (lane + 32 * i) % params.box_rows == 0;
      boxes += static_cast<std::uint32_t>(__popc(__ballot_sync(~0u, is_copied[i])));
    }
    ring.wait_empty(at);
    const auto bytes = static_cast<std::uint32_t>(params.box_rows * kRowBytes);
    if (lane == 0) ptx::mbarrier_arrive_expect_tx(ring.full(at), boxes * bytes);
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = lane + 32 * i;
      const std::uint32_t to = tile(at.stage) + static_cast<std::uint32_t>(row * kRowBytes);
      if (is_copied[i] && kHasBoxes) {
        ptx::cp_async_bulk_tensor_3d_shared_global(to, params.key_map, 0, slots[i], pages[i],
                                                   ring.full(at));
      } else if (is_copied[i]) {
        ptx::cp_async_bulk_shared_global(to, KeyPlace(keys, pages[i], slots[i]).data, bytes,
                                         ring.full(at));
      }
      if (is_there[i]) {
        const KeyPlace place = place_of(params, pages[i], slots[i]);
        ptx::cp_async_ca_shared_global_4(scale(at.stage, row), place.scales, 4);
      } else {
        ptx::st_shared_u32(scale(at.stage, row), kNoKeyBits);
        const int first = row - row % params.box_rows;  // of its box, which may be copied
        const bool is_written = ((first < 32 ? there[0] : there[1]) >> first % 32 & 1) != 0;
        if (Format == IndexFormat::kMxfp4 && !is_written) clear(at.stage, row);
      }
    }
    ptx::cp_async_mbarrier_arrive_noinc(ring.full(at));
    ptx::mbarrier_arrive(ring.full(at));
  }
  /// Arrivals of a phase of a full barrier: a lane's for what it stored, one for what it copied,
  /// and one for the bytes.
  static constexpr std::uint32_t kArrivals = 2 * 32 + 1;

  /// Zeros: codes decide whether a tile is exact.
  __device__ void clear(std::uint32_t stage, int row) const {
    for (int i = 0; i < kRowBytes; i += 4)
      ptx::st_shared_u32(tile(stage) + static_cast<std::uint32_t>(row * kRowBytes + i), 0);
    ptx::fence_proxy_async_shared_cta();  // later copies come behind these stores
  }

  /// MXFP4: the A operand of four products, in lane 4g + t of rows `row` and row + 8; false if it
  /// is not exact.
  __device__ bool operand(std::uint32_t (&a)[4][4], std::uint32_t stage, int row) const {
    const int t = static_cast<int>(threadIdx.x % 4);
    bool is_exact = true;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const uint4 there = ptx::ld_shared_v4_u32(
          tile(stage) + static_cast<std::uint32_t>((row + 8 * r) * kRowBytes + 16 * t));
      const std::uint32_t scales = ptx::ld_shared_u32(scale(stage, row + 8 * r));
      // A box may end in rows that were never written: they do not decide whether it is exact.
      const bool is_key = scales != kNoKeyBits;
      const uint4 codes = make_uint4(is_key ? there.x : 0, is_key ? there.y : 0,
                                     is_key ? there.z : 0, is_key ? there.w : 0);
      const E2m1ToE4m3 convert(scales, t, codes, is_exact);
      const std::uint32_t words[4] = {codes.x, codes.y, codes.z, codes.w};
#pragma unroll
      for (int s = 0; s < 4; ++s) convert(a[s][r], a[s][2 + r], words[s]);
    }
    return is_exact;
  }

  /// What sums of a row are multiplied by; kNoKey if there is no key.
  __device__ float row_scale(std::uint32_t stage, int row) const {
    const std::uint32_t word = ptx::ld_shared_u32(scale(stage, row));
    if constexpr (Format == IndexFormat::kFp8) return __uint_as_float(word);
    return word == kNoKeyBits ? kNoKey : mxfp4_row_scale(largest_byte(word));
  }
};

}  // namespace tilewright::tile
