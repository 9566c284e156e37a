// targets: sm_90a
//
// Proofs, no kernel: index formulas of kernels against the layout algebra, for all their arguments.
// Kernels state them in closed form, so that one can be read without the algebra; here the compiler
// computes both. Formulas of registers are proved in tests/arch/register_index_test.cpp.
#include "arch/byte_operand.h"
#include "arch/fragments/smem_tiles.h"
#include "kernels/attention/decode/loader.h"
#include "kernels/attention/k7/mma.h"
#include "kernels/attention/k7/transpose.h"
#include "tile/box.h"

namespace tilewright::kernels {
namespace {

using arch::Major;
using arch::SmemSwizzle;

// Offsets of 16-byte chunks by a formula, against a K-major tile of bytes.
template <class Formula>
constexpr bool places_chunks(const ComposedLayout& tile, Formula&& formula) {
  for (std::uint32_t row = 0; row < size(tile, 0); ++row) {
    for (std::uint32_t chunk = 0; chunk < size(tile, 1) / 16; ++chunk) {
      if (formula(row, chunk) != tile(row, chunk * 16)) return false;
    }
  }
  return true;
}

// A line of 128 bytes: all that writes chunk by chunk into boxes of that swizzle.
static_assert(places_chunks(arch::make_smem_tile(Major::kK, SmemSwizzle::k128B, 8, 64, 128),
                            [](std::uint32_t row, std::uint32_t chunk) {
                              return row * tile::kBoxRowBytes + tile::chunk_in_line(row % 8, chunk);
                            }));
// Rows of 64 bytes, two to a line (linear layers' staging of gated results).
static_assert(places_chunks(arch::make_smem_tile(Major::kK, SmemSwizzle::k64B, 8, 64, 64),
                            [](std::uint32_t row, std::uint32_t chunk) {
                              return row * 64 + tile::chunk_in_line(row / 2 & 3, chunk);
                            }));

// Boxes refuse to say where a chunk lies: in device code that would be wrong in silence.
template <class Box>
constexpr bool says_where_chunks_lie = requires {
  Box::chunk(0u, 0u);
};
static_assert(!says_where_chunks_lie<tile::Box<64, 128>>);

// Decode attention: a piece of keys as boxes of 128 bytes or 64.
template <int RowBytes>
constexpr bool places_decode_chunks() {
  constexpr SmemSwizzle kSwizzle = RowBytes == 64 ? SmemSwizzle::k64B : SmemSwizzle::k128B;
  return places_chunks(arch::make_smem_tile(Major::kK, kSwizzle, 8, kDecodePieceKeys, RowBytes),
                       [](std::uint32_t key, std::uint32_t chunk) {
                         return tile::decode_chunk<RowBytes>(key, chunk);
                       });
}
static_assert(places_decode_chunks<64>() && places_decode_chunks<128>() &&
              places_decode_chunks<256>() && places_decode_chunks<512>());

// K7: where column k of a tile of bytes begins, in units of a descriptor.
template <int Rows, int Span>
constexpr bool steps_along_bytes() {
  const ComposedLayout tile =
      arch::make_smem_tile(Major::kK, tile::swizzle_of_span(Span), 8, Rows, 2 * Span);
  for (int k = 0; k < 2 * Span; k += 32) {
    if (tile::byte_box_units<Rows, Span>(k) * 16 != tile.layout(0, k)) return false;
  }
  return true;
}
static_assert(steps_along_bytes<64, 64>() && steps_along_bytes<64, 128>() &&
              steps_along_bytes<128, 64>() && steps_along_bytes<192, 32>() &&
              steps_along_bytes<192, 128>());

// K7: keys of transposed values come to stand in the order in which weights are operands.
// ldmatrix.trans gives a lane in word i, of dimensions 2g and 2g + 1, key 8i + 2q and the next
// (g = lane / 4, q = lane % 4); stmatrix writes its word m to bytes 4q to 4q + 3 of row g of
// matrix m.
constexpr bool transposes_to_operand_order() {
  for (std::uint32_t at = 0; at < 4 * 32 * 4; ++at) {
    const std::uint32_t matrix = at / 128, lane = at / 4 % 32, byte = at % 4;
    const std::uint32_t from = tile::transposing_selector(lane, matrix) >> 4 * byte & 7;
    const std::uint32_t key = 8 * (matrix / 2 * 2 + from / 4) + 2 * (lane % 4) + from % 4 / 2;
    const std::uint32_t dim = 2 * (lane / 4) + from % 2, k = matrix / 2 * 16 + lane % 4 * 4 + byte;
    if (static_cast<int>(key) != arch::byte_operand_column(static_cast<int>(k))) return false;
    if (dim != tile::transposed_dim(lane / 4, matrix)) return false;
  }
  return true;
}
static_assert(transposes_to_operand_order());

}  // namespace
}  // namespace tilewright::kernels
