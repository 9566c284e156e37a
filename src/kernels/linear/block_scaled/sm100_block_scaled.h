// Contract of Blackwell's block-scaled GEMMs: operands of 4 and 8 bits with a scale per block along
// K, multiplied out of shared memory and accumulated in Tensor Memory.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tilewright::kernels {

/// What is multiplied. One step of K is 128 bytes of a row of A either way.
enum class BlockScaledKind {
  kNvfp4,       ///< e2m1 by e2m1, ue4m3 scales of 16: kind::mxf4nvf4, steps of 256
  kMxfp8Mxfp4,  ///< e4m3 by e2m1, ue8m0 scales of 32: kind::mxf8f6f4, steps of 128
  kMxfp8,       ///< e4m3 by e4m3, ue8m0 scales of 32: kind::mxf8f6f4, steps of 128
  kBf16,        ///< bf16 by bf16, no scales: kind::f16, steps of 64 (sm100_bf16_gemm.h)
  kE4m3,        ///< e4m3 by e4m3, fp32 scales: kind::f8f6f4, steps of 128 (sm100_e4m3_gemm.h)
};

/// d[i,j] = alpha * sum_l a[i,l] sa[i,l/v] b[j,l] sb[j,l/v], v = 16 or 32, accumulated in f32 by
/// the tensor core; m and n may be anything, k is a multiple of 32 (0 gives zeros).
///
/// Scales are stored as formats/scale_layout.h says; their padding may hold anything. Maps, zeros
/// outside of the tensors; where m, n or k is 0 they are ignored:
///   a_map        [m, 128-byte steps] of 8-bit elements: kNvfp4 [m, k/2] bytes of packed pairs,
///                kBf16 [m, 2 k] bytes, else [m, k]; boxes of 128 elements x 128 rows, swizzle 128B
///   b_map        kNvfp4, kMxfp8, kBf16 as a_map with boxes of b_box_rows(); kMxfp8Mxfp4 [n, k] of
///                type 16U4_ALIGN16B, boxes of 128 elements x b_box_rows(), swizzle 128B. That type
///                wants rows padded to a multiple of 128 elements; what the padding holds is not
///                looked at
///   a_scale_map  [m atoms, k atoms, 128] of 32 bits: whole 512-byte tiles of scales; boxes of
///                1 x scale_atoms_k() x 128
///   b_scale_map  likewise for n; boxes of scale_box_atoms_n() x scale_atoms_k() x 128
///   d_map        bf16 [m, n] in boxes of 64 columns x 32 rows, swizzle 128B; nvfp4 [m, n/2] bytes
///                in boxes of 32 x 32, swizzle 32B; mxfp8 [m, n] bytes in boxes of 64 x 32, swizzle
///                64B. Only where the rows of d begin at multiples of 16 bytes: else has_d_map = 0,
///                and results are written element by element. n is that of d, half of the
///                product's columns where a step makes SwiGLU
struct BlockScaledGemmParams {
  alignas(64) std::uint8_t a_map[128];  ///< the driver's opaque CUtensorMap
  alignas(64) std::uint8_t b_map[128];
  alignas(64) std::uint8_t a_scale_map[128];
  alignas(64) std::uint8_t b_scale_map[128];
  alignas(64) std::uint8_t d_map[128];
  std::uint8_t* d;           ///< rows of d_row_bytes
  std::int64_t d_row_bytes;  ///< bf16: multiple of 2
  /// nvfp4: ue4m3 [m, ceil(n/16)]; mxfp8: ue8m0 [m, ceil(n/32)]; swizzled order, padding zeroed
  std::uint8_t* d_scales;
  std::int32_t m, n, k;
  std::int32_t tiles_m, tiles_n;  ///< ceil(m / tile_m()), ceil(n / tile.n)
  std::int32_t has_d_map;
  float alpha;         ///< product of the operands' tensor scales
  float encode_scale;  ///< nvfp4: G of the result (formats/block_scale.h), above 0
  float swiglu_limit;  ///< of steps that make SwiGLU: as in swiglu.h; infinity: none
  // kBf16 alone:
  const float* bias;          ///< by columns (few tokens: rows) of the product; nullptr: none
  std::int32_t is_d_f32;      ///< else bf16
  std::int32_t tile_columns;  ///< few tokens: columns of a tile, 16, 32, 48 or 64
};

/// A tile of results: 128 rows per CTA. The CTAs of a pair multiply together, each with half of the
/// columns' operand; pairs of one cluster are below each other and load that operand together.
struct BlockScaledTile {
  int ctas;   ///< that multiply together, 1 or 2
  int n;      ///< columns
  int pairs;  ///< 1 or, with two CTAs, 2

  constexpr int cluster() const { return ctas * pairs; }
};
inline constexpr BlockScaledTile kBlockScaledTiles[] = {
    {1, 64, 1}, {1, 128, 1}, {2, 192, 1}, {2, 256, 1}, {2, 256, 2}};

/// Those of SwiGLU, whose results are half as wide.
inline constexpr BlockScaledTile kBlockScaledSwigluTiles[] = {{1, 128, 1}, {2, 256, 1}};

inline constexpr int kBlockScaledThreads = 6 * 32;
inline constexpr int kBlockScaledStepBytes = 128;  ///< of a row of A
inline constexpr int kBlockScaledStoreColumns = 64, kBlockScaledStoreRows = 32;

/// What follows from the operands and the tile.
struct BlockScaledConfig {
  static constexpr int kLargestCtaBytes = 232448;
  static constexpr int kAlignment = 1024;
  static constexpr int kStagingBytes = 32 * 1024;  ///< results on their way out
  static constexpr int kBarrierBytes = 1024;
  static constexpr int kMaxStages = 8;

  BlockScaledKind kind;
  BlockScaledTile tile;
  /// K is divided among the CTAs of a cluster, and tiles may be narrower than they could be.
  bool is_split = false;
  /// Few rows: the weight is A and rows of x are B, up to tile.n of them.
  bool is_swapped = false;

  /// For the tensor core.
  constexpr bool has_scales() const { return kind != BlockScaledKind::kBf16 && !is_e4m3(); }
  constexpr bool is_e4m3() const { return kind == BlockScaledKind::kE4m3; }
  constexpr bool is_nvfp4() const { return kind == BlockScaledKind::kNvfp4; }
  /// Elements of the weight have 4 bits in global memory and 8 in shared memory.
  constexpr bool unpacks_weight() const { return kind == BlockScaledKind::kMxfp8Mxfp4; }
  /// Of the result: rows of a CTA and of a cluster, columns of a cluster.
  constexpr int rows() const { return is_swapped ? tile.n : 128; }
  constexpr int tile_m() const { return rows() * tile.cluster(); }
  constexpr int columns() const { return is_swapped ? 128 : tile.n; }
  /// M of an instruction.
  constexpr int instruction_m() const { return 128 * tile.ctas; }
  /// Rows of B that each CTA holds, and that it loads.
  constexpr int b_rows() const { return tile.n / tile.ctas; }
  constexpr int b_box_rows() const { return b_rows() / tile.pairs; }
  /// Rows of the weight that each CTA loads.
  constexpr int weight_box_rows() const { return is_swapped ? 128 : b_box_rows(); }
  /// Elements of K per step, that is, per stage of shared memory, and per instruction.
  constexpr int step_k() const { return is_nvfp4() ? 256 : has_scales() || is_e4m3() ? 128 : 64; }
  constexpr int instruction_k() const { return step_k() / 4; }
  /// Tiles of 128 x 4 scales: along K in a step, along the columns wherever a tile begins.
  constexpr int scale_atoms_k() const { return is_nvfp4() ? 4 : has_scales() ? 1 : 0; }
  constexpr int scale_atoms_n() const { return (tile.n + 127) / 128; }
  constexpr int scale_box_atoms_n() const { return scale_atoms_n() / tile.pairs; }
  /// A, B and their scales of one step in the memory of one CTA.
  constexpr int stage_bytes() const {
    const int bytes =
        (128 + b_rows()) * kBlockScaledStepBytes + (1 + scale_atoms_n()) * scale_atoms_k() * 512;
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  constexpr int stages() const {
    return std::min((kLargestCtaBytes - kStagingBytes - kBarrierBytes) / stage_bytes(), kMaxStages);
  }
  /// Warps that read accumulators, and threads of a CTA. kE4m3 keeps 128 sums a thread.
  constexpr int epilogue_warps() const { return is_e4m3() && tile.n > 128 ? 8 : 4; }
  constexpr int threads() const { return 32 * (epilogue_warps() + 2); }
  /// Dynamic shared memory to launch with.
  constexpr int shared_bytes() const {
    return stages() * stage_bytes() + kStagingBytes + kBarrierBytes;
  }
};

}  // namespace tilewright::kernels
