// Operand tiles in shared memory as layouts, and the matrix descriptors that describe them.
//
// A tile is made of atoms: 8 rows of one swizzle span each, (8, span) for K-major and (span, 8) for
// MN-major operands, repeated over the tile. Layout and descriptor come from the same value. The
// box of a tensor map is the host's, from the contract of the kernel; the simulator compares the
// two at every product. Source: PTX ISA, "Shared Memory Matrix Layout", "Canonical layouts"; CuTe's
// GMMA and UMMA layout atoms.
#pragma once

#include "arch/smem_descriptor.h"
#include "layout/recast.h"
#include "layout/slice.h"

namespace tilewright::arch {

/// The swizzle as a function on byte offsets (tiles start at multiples of their pattern, at most 1
/// KiB).
constexpr Swizzle byte_swizzle(SmemSwizzle swizzle) {
  switch (swizzle) {
    case SmemSwizzle::kNone:
      return {};
    case SmemSwizzle::k32B:
      return {1, 4, 3};
    case SmemSwizzle::k64B:
      return {2, 4, 3};
    case SmemSwizzle::k128B:
      return {3, 4, 3};
    case SmemSwizzle::k128B32BAtom:
      return {2, 5, 2};
  }
  return {};
}

/// Bytes to which a tile must be aligned: one period of the swizzle.
constexpr int smem_tile_alignment(SmemSwizzle swizzle) {
  return swizzle == SmemSwizzle::kNone ? 128 : 8 * swizzle_span_bytes(swizzle);
}

/// The smallest unit of an operand tile, (mn, k) -> element offset, not yet swizzled.
constexpr Layout smem_atom(Major major, SmemSwizzle swizzle, int element_bits) {
  const std::int64_t span = swizzle_span_bytes(swizzle) * 8 / element_bits;
  const std::int64_t rows = swizzle == SmemSwizzle::k128B32BAtom && major == Major::kMN ? 4 : 8;
  return major == Major::kK ? make_layout(make_shape(rows, span), make_stride(span, 1))
                            : make_layout(make_shape(span, rows), make_stride(1, span));
}

/// An operand tile (mn, k) -> element offset from a tile-aligned base. Atoms are laid along mn
/// first by default; along k first with `k_first`.
constexpr ComposedLayout make_smem_tile(Major major, SmemSwizzle swizzle, int element_bits,
                                        std::int64_t mn, std::int64_t k, bool k_first = false) {
  const Layout atom = smem_atom(major, swizzle, element_bits);
  if (mn % size(atom, 0) != 0 || k % size(atom, 1) != 0) {
    tilewright::law::tile_must_be_whole_atoms(make_shape(mn, k), shape(atom));
  }
  const IntTuple order = k_first ? make_shape(1, 0) : make_shape(0, 1);
  return composition(recast(byte_swizzle(swizzle), 8, element_bits),
                     tile_to_shape(atom, make_shape(mn, k), order));
}

/// Which index of an operand tile (mn, k) is contiguous. That is a property of its layout, and what
/// instruction and descriptor are told comes from it.
constexpr Major major_of(const ComposedLayout& tile) {
  if (rank(tile) == 2 && size(tile, 1) > 1 && tile.layout(0, 1) == 1) return Major::kK;
  if (rank(tile) != 2 || size(tile, 0) < 2 || tile.layout(1, 0) != 1)
    tilewright::law::an_operand_must_be_contiguous_along_mn_or_k(tile.layout);
  return Major::kMN;
}

/// The descriptor of an operand tile made of such atoms, for the instruction tile that starts at
/// its origin. LBO is 1 (16 bytes) where the hardware ignores it.
constexpr SmemDescriptor describe_smem_tile(const ComposedLayout& tile, Major major,
                                            SmemSwizzle swizzle, int element_bits,
                                            std::uint32_t base_address = 0) {
  const Layout& offsets = tile.layout;
  const Layout atom = smem_atom(major, swizzle, element_bits);
  const auto step = [&](int along) {  // bytes to the next atom along mn (0) or k (1)
    const std::int64_t at = size(atom, along);
    if (at >= size(offsets, along)) return std::uint32_t{0};
    const std::int64_t elements = along == 0 ? offsets(at, 0) : offsets(0, at);
    return static_cast<std::uint32_t>(elements * element_bits / 8);
  };
  SmemDescriptor out;
  out.start_address = base_address;
  out.swizzle = swizzle;
  // In K-major tiles the stride offset leads to the next 8 rows; in MN-major tiles without a
  // swizzle likewise to the next atom along mn, but with a swizzle the two offsets change places.
  const bool stride_is_mn = major == Major::kK || swizzle == SmemSwizzle::kNone;
  out.stride_bytes = step(stride_is_mn ? 0 : 1);
  out.leading_bytes = step(stride_is_mn ? 1 : 0);
  if (major == Major::kK && swizzle != SmemSwizzle::kNone) out.leading_bytes = 16;
  return out;
}
/// The same, its major mode derived from the layout.
constexpr SmemDescriptor describe_smem_tile(const ComposedLayout& tile, SmemSwizzle swizzle,
                                            int element_bits, std::uint32_t base_address = 0) {
  return describe_smem_tile(tile, major_of(tile), swizzle, element_bits, base_address);
}

}  // namespace tilewright::arch
