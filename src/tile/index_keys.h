// Keys of the lightning indexer on their way from pages to the A operand of an m64nNk32 product of
// e4m3. Each warp fetches 16 keys for itself by bulk copies, some tiles ahead, and waits for
// nobody.
//
// A product over 128 dims does not care about their order, as long as keys and queries have the
// same: lane t of a quad takes from a row what lies together, and queries are put into shared
// memory so that they fit.
//
//   e4m3    lane t has bytes 16t.. and 64 + 16t.. of the row; product s of four takes word s of
//           either: in place 32s + 16h + 4t + j stands dim 64h + 16t + 4s + j
//   e2m1    lane t has the 16 bytes of block t; product s takes the eight numbers of word s: in
//           place 32s + 16h + 4t + j stands dim 32t + 8s + 4h + j
#pragma once

#include "kernels/sparse_attention/indexer_logits.h"
#include "ptx/bulk_copy.h"
#include "ptx/byte_permute.h"
#include "ptx/cp_async.h"
#include "ptx/fence.h"
#include "ptx/load_store.h"
#include "ptx/mbarrier.h"
#include "tile/quantize.h"

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
  return __fmul_rn(ue8m0_value(largest), 1.0f / (1 << E2m1ToE4m3::kTop));
}

/// Where a key lies.
struct KeyPlace {
  const std::uint8_t* data;
  const std::uint8_t* scales;

  __device__ KeyPlace(const kernels::IndexPages& keys, std::int32_t page, std::int32_t slot) {
    const IndexPageLayout layout = {keys.format, keys.page_size, keys.page_stride};
    data = keys.pages + layout.data_offset(page, slot);
    scales = keys.pages + layout.scale_offset(page, slot);
  }
};

/// Page of a key of a sequence whose block table is given; -1 if there is none.
__device__ inline std::int32_t key_page(const kernels::IndexerLogitsParams& params,
                                        const std::int32_t* table, std::int32_t key,
                                        std::int32_t num_keys) {
  const auto block =
      static_cast<std::int32_t>(params.keys.page_divisor.divide(static_cast<std::uint32_t>(key)));
  if (key >= num_keys || block >= params.num_blocks) return -1;
  return static_cast<std::int32_t>(ptx::ld_global_nc_u32(table + block));
}
__device__ inline bool has_page(const kernels::IndexPages& keys, std::int32_t page) {
  const std::uint32_t rows = static_cast<std::uint32_t>(keys.num_rows);
  return static_cast<std::uint32_t>(page) < keys.page_divisor.divide(rows);
}

inline constexpr int kTileKeys = 16;  ///< of a warp

/// A warp's tiles of keys in shared memory, and the barriers that say when one is there.
template <IndexFormat Format>
struct KeyTiles {
  static constexpr int kRowBytes = index_data_bytes(Format);
  static constexpr int kBytes = kernels::indexer_stage_bytes(Format);
  static constexpr std::uint32_t kNoKeyBits =
      Format == IndexFormat::kFp8 ? 0xbf800000u : 0xfefefefeu;

  std::uint32_t base, barriers;  ///< shared addresses of this warp's first

  __device__ std::uint32_t tile(int stage) const {
    return base + static_cast<std::uint32_t>(stage * kBytes);
  }
  __device__ std::uint32_t barrier(int stage) const {
    return barriers + static_cast<std::uint32_t>(stage * 8);
  }

  /// Starts to fetch a tile; `page` is that of this lane's key, number lane / 2. The first key of
  /// each run in a page copies the run. Nothing is copied for keys that are not there; their scale
  /// says so. Scales belong to the cp.async group that is committed here.
  __device__ void fetch(int stage, const kernels::IndexPages& keys, std::int32_t page,
                        std::int32_t key) const {
    const auto lane = static_cast<int>(threadIdx.x % 32);
    const int row = lane / 2;
    const bool is_there = has_page(keys, page);
    const auto block =
        static_cast<std::int32_t>(keys.page_divisor.divide(static_cast<std::uint32_t>(key)));
    const std::int32_t slot = key - block * keys.page_size;
    const std::uint32_t there = __ballot_sync(~0u, is_there);
    const KeyPlace place(keys, is_there ? page : 0, is_there ? slot : 0);
    const std::uint32_t to = tile(stage);
    if (lane == 0) ptx::mbarrier_arrive_expect_tx(barrier(stage), __popc(there) / 2 * kRowBytes);
    __syncwarp();
    if (lane % 2 == 0) {
      const std::uint32_t scale = to + static_cast<std::uint32_t>(kTileKeys * kRowBytes + 4 * row);
      if (is_there) {
        ptx::cp_async_ca_shared_global_4(scale, place.scales, 4);
      } else {
        ptx::st_shared_u32(scale, kNoKeyBits);
      }
    } else if (is_there && (row == 0 || slot == 0)) {
      // Keys of a page are all there up to the sequence's last.
      const int last = 16 - __clz(static_cast<int>(there)) / 2;
      const int run = min(min(kTileKeys - row, keys.page_size - slot), last - row);
      ptx::cp_async_bulk_shared_global(to + static_cast<std::uint32_t>(row * kRowBytes), place.data,
                                       static_cast<std::uint32_t>(run * kRowBytes), barrier(stage));
    } else if (!is_there && Format == IndexFormat::kMxfp4) {
      // Codes decide whether a tile is exact. Later copies come behind these stores.
      for (std::uint32_t i = 0; i < kRowBytes; i += 4)
        ptx::st_shared_u32(to + static_cast<std::uint32_t>(row * kRowBytes) + i, 0);
      ptx::fence_proxy_async_shared_cta();
    }
    ptx::cp_async_commit_group();
  }

  __device__ std::uint32_t scale_word(int stage, int row) const {
    return ptx::ld_shared_u32(tile(stage) +
                              static_cast<std::uint32_t>(kTileKeys * kRowBytes + 4 * row));
  }
  __device__ uint4 chunk(int stage, int row, int idx) const {
    return ptx::ld_shared_v4_u32(tile(stage) +
                                 static_cast<std::uint32_t>(row * kRowBytes + 16 * idx));
  }

  /// The A operand of four products, in lane 4g + t of rows g and g + 8; false if it is not exact.
  __device__ bool operand(std::uint32_t (&a)[4][4], int stage) const {
    const int g = static_cast<int>(threadIdx.x % 32 / 4), t = static_cast<int>(threadIdx.x % 4);
    bool is_exact = true;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = g + 8 * r;
      const uint4 low = chunk(stage, row, t);
      if constexpr (Format == IndexFormat::kFp8) {
        const uint4 high = chunk(stage, row, 4 + t);
        a[0][r] = low.x, a[1][r] = low.y, a[2][r] = low.z, a[3][r] = low.w;
        a[0][2 + r] = high.x, a[1][2 + r] = high.y, a[2][2 + r] = high.z, a[3][2 + r] = high.w;
      } else {
        const E2m1ToE4m3 convert(scale_word(stage, row), t, low, is_exact);
        const std::uint32_t words[4] = {low.x, low.y, low.z, low.w};
#pragma unroll
        for (int s = 0; s < 4; ++s) convert(a[s][r], a[s][2 + r], words[s]);
      }
    }
    return is_exact;
  }

  /// What sums of a row are multiplied by; kNoKey if there is no key.
  __device__ float row_scale(int stage, int row) const {
    const std::uint32_t word = scale_word(stage, row);
    if constexpr (Format == IndexFormat::kFp8) return __uint_as_float(word);
    return word == kNoKeyBits ? kNoKey : mxfp4_row_scale(largest_byte(word));
  }
};

}  // namespace tilewright::tile
