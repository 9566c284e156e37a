// Layouts of block scale factors: one scale per 16 or 32 elements along K, in the order that
// tcgen05 wants.
//
// The atom covers 128 rows and 4 scale blocks in 512 bytes; atoms are laid over the tensor, K
// first. The stride of 0 says that all elements of a block share a scale, so size() counts elements
// and cosize() bytes. Sources: PTX ISA, "Scale Factor A Layout"; CUTLASS BlockScaledBasicChunk and
// tile_atom_to_shape_SF.
#pragma once

#include "arch/smem_descriptor.h"
#include "layout/divide_product.h"

#include <cstdint>

namespace tilewright::arch {

/// The scale-factor atom. K-major: ((32,4),(v,4)):((16,4),(0,1)), rows by elements of k, v = block
/// size. MN-major exchanges the two modes.
struct BlockScaledBasicChunk {
  std::int64_t sf_vec_size = 16;
  Major major = Major::kK;

  constexpr Layout layout() const {
    const Layout rows = make_layout(make_shape(32, 4), make_stride(16, 4));
    const Layout k = make_layout(make_shape(sf_vec_size, 4), make_stride(0, 1));
    return major == Major::kK ? make_layout(rows, k) : make_layout(k, rows);
  }
};

/// Layout of the scale factors of a tensor of shape (MN, K) or (MN, K, batch): atoms repeated along
/// K first, then MN, then the batch. Extents that the atom does not divide are rounded up (the
/// padding is stored).
/// Post  R(m, k, l) is the byte of the scale of element (m, k) in batch l
constexpr Layout tile_atom_to_shape_sf(const IntTuple& shape, std::int64_t sf_vec_size,
                                       Major major = Major::kK) {
  const IntTuple order = rank(shape) == 2 ? make_shape(2, 1) : make_shape(2, 1, 3);
  return tile_to_shape(BlockScaledBasicChunk{sf_vec_size, major}.layout(), shape, order);
}

/// Scale factors in Tensor Memory: (row, scale within a group of 4) -> byte, in units of bytes of a
/// cell. Row i is lane i % 32, column i / 32; the same content stands in all four groups of 32
/// lanes (third mode).
constexpr Layout tmem_scales(std::int64_t rows) {
  const std::int64_t lane = (std::int64_t{1} << 16) * 4;
  return make_layout(make_shape(make_shape(32, ceil_div(rows, 32)), 4, 4),
                     make_stride(make_stride(lane, 4), 1, 32 * lane));
}

}  // namespace tilewright::arch
