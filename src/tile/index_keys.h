// Keys of the lightning indexer from pages to registers, as the A operand of an m64nNk32 product of
// e4m3.
//
// A product over 128 dims does not care about their order, as long as keys and queries have the
// same: lane t of a quad takes from a row what lies together in memory, and queries are put into
// shared memory so that they fit.
//
//   e4m3    lane t has bytes 16t.. and 64 + 16t.. of the row; step s of four multiplies word s of
//           either: place 32s + 16h + 4t + j is dim 64h + 16t + 4s + j
//   e2m1    lane t has the 16 bytes of block t; step s multiplies the eight numbers of word s:
//           place 32s + 16h + 4t + j is dim 32t + 8s + 4h + j
#pragma once

#include "kernels/sparse_attention/index_pages.h"
#include "ptx/byte_permute.h"
#include "ptx/load_store.h"
#include "tile/quantize.h"

#include <cstdint>

namespace tilewright::tile {

inline constexpr float kNoKey =
    -1;  ///< a key's scale where there is no key; others are >= 0 or NaN

/// Eight e2m1 codes of a block as e4m3: the low four, the high four. e4m3 places 1.0 * 2^s at
/// (s + 7) << 3, and the seven magnitudes above 0 around it. Exact where 0.5 * 2^s is normal.
class E2m1ToE4m3 {
 public:
  /// `below` = by how much the block's exponent is below the row's largest, 0 to kMaxBelow; the row
  /// is multiplied by 2^-(largest exponent - kTop).
  static constexpr std::uint32_t kTop = 6, kMaxBelow = 11;

  __device__ explicit E2m1ToE4m3(std::uint32_t below) {
    const std::uint32_t one = (kTop + 7 - below) << 3;
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

/// The largest of the four bytes of a word.
__device__ inline std::uint32_t largest_byte(std::uint32_t word) {
  const std::uint32_t pair = __vmaxu4(word, word >> 16);
  return max(pair & 0xff, pair >> 8 & 0xff);
}

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

/// Pages of the two keys of a lane, 8 apart; -1 where there is no key.
struct KeyPages {
  std::int32_t page[2];

  __device__ KeyPages(const kernels::IndexPages& keys, const std::int32_t* table,
                      std::int32_t first_key, std::int32_t num_keys, std::int32_t num_blocks) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const std::int32_t key = first_key + 8 * r;
      const auto block =
          static_cast<std::int32_t>(keys.page_divisor.divide(static_cast<std::uint32_t>(key)));
      page[r] = -1;
      if (key < num_keys && block < num_blocks)
        page[r] = static_cast<std::int32_t>(ptx::ld_global_nc_u32(table + block));
    }
  }
  /// False also for pages that the cache does not have.
  __device__ bool has(const kernels::IndexPages& keys, int r) const {
    const std::uint32_t rows = static_cast<std::uint32_t>(keys.num_rows);
    return static_cast<std::uint32_t>(page[r]) < keys.page_divisor.divide(rows);
  }
  __device__ KeyPlace place(const kernels::IndexPages& keys, int r, std::int32_t key) const {
    const auto block =
        static_cast<std::int32_t>(keys.page_divisor.divide(static_cast<std::uint32_t>(key)));
    return KeyPlace(keys, page[r], key - block * keys.page_size);
  }
};

/// Rows g and g + 8 of a warp's 16 keys as lane t of the quad has them.
template <IndexFormat Format>
struct KeyTile;

template <>
struct KeyTile<IndexFormat::kFp8> {
  std::uint32_t words[2][8];
  float scale;  // of row g + 8 (t % 2)

  __device__ void load(const kernels::IndexPages& keys, const KeyPages& from,
                       std::int32_t first_key, int t) {
    scale = kNoKey;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      uint4 low = make_uint4(0, 0, 0, 0), high = low;
      if (from.has(keys, r)) {
        const KeyPlace place = from.place(keys, r, first_key + 8 * r);
        low = ptx::ld_global_nc_no_allocate_v4_u32(place.data + 16 * t);
        high = ptx::ld_global_nc_no_allocate_v4_u32(place.data + 64 + 16 * t);
        if (t % 2 == r) scale = __uint_as_float(ptx::ld_global_nc_u32(place.scales));
      }
      words[r][0] = low.x, words[r][1] = low.y, words[r][2] = low.z, words[r][3] = low.w;
      words[r][4] = high.x, words[r][5] = high.y, words[r][6] = high.z, words[r][7] = high.w;
    }
  }
  /// The A operand of four steps; false if it is not exact.
  __device__ bool operand(std::uint32_t (&a)[4][4], int /*t*/) const {
#pragma unroll
    for (int s = 0; s < 4; ++s) {
      a[s][0] = words[0][s], a[s][1] = words[1][s];
      a[s][2] = words[0][4 + s], a[s][3] = words[1][4 + s];
    }
    return true;
  }
  /// What sums of row g + 8 (t % 2) are multiplied by; kNoKey if it is not there.
  __device__ float row_scale(int /*t*/) const {
    return scale;
  }
};

template <>
struct KeyTile<IndexFormat::kMxfp4> {
  std::uint32_t words[2][4], scales[2];
  bool is_there;  // row g + 8 (t % 2)

  __device__ void load(const kernels::IndexPages& keys, const KeyPages& from,
                       std::int32_t first_key, int t) {
    is_there = t % 2 == 0 ? from.has(keys, 0) : from.has(keys, 1);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      uint4 codes = make_uint4(0, 0, 0, 0);
      scales[r] = 0;
      if (from.has(keys, r)) {
        const KeyPlace place = from.place(keys, r, first_key + 8 * r);
        codes = ptx::ld_global_nc_no_allocate_v4_u32(place.data + 16 * t);
        scales[r] = ptx::ld_global_nc_u32(place.scales);
      }
      words[r][0] = codes.x, words[r][1] = codes.y, words[r][2] = codes.z, words[r][3] = codes.w;
    }
  }
  __device__ bool operand(std::uint32_t (&a)[4][4], int t) const {
    bool is_exact = true;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const std::uint32_t below = largest_byte(scales[r]) - (scales[r] >> 8 * t & 0xff);
      const std::uint32_t any = (words[r][0] | words[r][1] | words[r][2] | words[r][3]);
      is_exact = is_exact && (below <= E2m1ToE4m3::kMaxBelow || (any & 0x77777777u) == 0);
      const E2m1ToE4m3 convert(min(below, E2m1ToE4m3::kMaxBelow));
#pragma unroll
      for (int s = 0; s < 4; ++s) convert(a[s][r], a[s][2 + r], words[r][s]);
    }
    return is_exact;
  }
  __device__ float row_scale(int t) const {
    const float scale = mxfp4_row_scale(largest_byte(t % 2 == 0 ? scales[0] : scales[1]));
    return is_there ? scale : kNoKey;
  }
};

}  // namespace tilewright::tile
