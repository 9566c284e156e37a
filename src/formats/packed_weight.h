// How the weights of a linear layer lie in memory after prepare(): one layout for all Hopper
// kernels, made once from the checkpoint's order.
//
// A brick is 16 rows x 64 of K. Rows are padded to 16 and K to 64 with zero weights. Bricks stand
// in the order [k / 64][row / 16]: all rows of one K block are contiguous, so that any number of
// them is one bulk copy without a tensor map. Matrices of experts follow one another.
//
// In a brick, a group is 16 elements along K; lane (g = 0..7, s = 0..3) stands for the rows g and
// g + 8 and the group s. What a group's rows hold is stored as granules of 16 bytes, granule (g, s)
// at granule_position(g, s), a word d = 0..3 of it for the elements element_of_word(d, 0..3) =
// {2d, 2d+1, 2d+8, 2d+9}:
//   kNvfp4   32 granules, then 64 bytes of scales [g][h][s], of row g + 8h and group s: 576 bytes.
//            A word is eight codes, of row g and of row g + 8, in one of two orders (WordOrder)
//   kMxfp4   the same granules, then 32 bytes of scales [g][h][s / 2]: 544 bytes
//   kFp8     64 granules [h][granule], words of four e4m3 bytes: 1024 bytes. The f32 scales of
//            128 x 128 blocks are a matrix of their own, [k / 128][row / 128]
//   kBf16    128 granules [h][q][granule], word d is the pair {2d, 2d+1} + 8q: 2048 bytes
//
// Why. mma.m16n8k16 wants of thread (g, t) two neighbours at 2t and two at 2t+8, of rows g and g+8.
//   - Thread (g, t) reads granule (g, s = t), 16 bytes without bank conflicts, and has one group of
//     two rows: two scales for 32 weights. The j-th product takes word j of every lane; its K slots
//     (2t, 2t+1, 2t+8, 2t+9) are k = 16 t + element_of_word(j, 0..3), so B is read as the 32
//     contiguous bytes of group t. (Tokens' order of K is natural in memory.)
//   - Thread (g, t) reads word t of granule (g, s = j): the natural order of K inside a product,
//     for wgmma with A from registers and B from a swizzled tile. Free of bank conflicts as well,
//     by the exclusive-or in granule_position().
//   - FP8 products of 32: thread t owns group t; product i = 0, 1 takes words 2i (slots 4t..4t+3)
//     and 2i+1 (slots 16+4t..). Tokens are stored in that order: operand_order().
//
// packed_matrix.h is for those who pack: the place of every element, the bits of FP4 weights.
#pragma once

#include <cstdint>

namespace tilewright::kernels {

enum class WeightFormat : std::int32_t { kNvfp4, kMxfp4, kFp8, kBf16 };

/// Order of the eight codes of a word of FP4, by what the tokens are.
enum class WordOrder : std::int32_t {
  kBf16,  ///< "twiddled": four pairs of bf16 by shifts and masks, 11 instructions
  kE4m3,  ///< "braided": eight e4m3 by two table look-ups, 12 instructions; four pairs of bf16 by
          ///< four, 9, each of every other element: {2d, 2d+8} and {2d+1, 2d+9}; of neighbours 11
};

inline constexpr int kBrickRows = 16, kBrickK = 64, kGroupK = 16;
inline constexpr int kGranuleBytes = 16, kGranules = 32;
inline constexpr int kFp8BlockRows = 128, kFp8BlockK = 128;

constexpr bool is_fp4(WeightFormat format) {
  return format == WeightFormat::kNvfp4 || format == WeightFormat::kMxfp4;
}
/// Bytes of a brick before its scales, and of the scales.
constexpr int brick_code_bytes(WeightFormat format) {
  return is_fp4(format) ? 512 : format == WeightFormat::kFp8 ? 1024 : 2048;
}
constexpr int brick_scale_bytes(WeightFormat format) {
  return format == WeightFormat::kNvfp4 ? 64 : format == WeightFormat::kMxfp4 ? 32 : 0;
}
constexpr int brick_bytes(WeightFormat format) {
  return brick_code_bytes(format) + brick_scale_bytes(format);
}

/// Where granule (g, s) of 32 stands, in granules.
constexpr int granule_position(int g, int s) {
  return g * 4 + (s ^ ((g >> 1) & 3));
}

}  // namespace tilewright::kernels
