// An MMA instruction as layouts, and a tile of such instructions: which thread holds which element.
//
// An atom says, for each operand, which element of its tile a (thread, value) pair holds, as an
// offset into the column-major tile: m + M*k for A, n + N*k for B, m + M*n for C. A tiled MMA
// repeats the atom over threads and values. Everything else follows from the algebra: partitions,
// fragments, TV layouts.
#pragma once

#include "layout/slice.h"

#include <cstdint>

namespace tilewright {

struct MmaAtom {
  IntTuple shape_mnk;              ///< extent of one instruction, e.g. (64,64,16)
  Layout thr_id = make_layout(1);  ///< logical thread -> hardware thread
  Layout a_tv, b_tv, c_tv;         ///< (thread, value) -> element

  constexpr std::int64_t m() const { return shape_mnk.value[0]; }
  constexpr std::int64_t n() const { return shape_mnk.value[1]; }
  constexpr std::int64_t k() const { return shape_mnk.value[2]; }
  constexpr bool operator==(const MmaAtom&) const = default;
};

enum class Operand { kA, kB, kC };

/// An atom laid out over warps or warpgroups: atom_layout (2,1,1) stacks two of them along M. The
/// permutation re-orders or widens the tile per mode; free modes take the tile as it comes.
struct TiledMma {
  MmaAtom atom;
  Layout atom_layout = make_layout(make_shape(1, 1, 1));
  Tiler permutation = make_shape(kFree, kFree, kFree);

  constexpr bool operator==(const TiledMma&) const = default;

  /// (thread within an atom, M, N, K) -> thread index.
  constexpr Layout thr_layout_vmnk() const { return tiled_product(atom.thr_id, atom_layout); }
  constexpr std::int64_t num_threads() const { return size(thr_layout_vmnk()); }

  /// Tiler of mode i (0 = M, 1 = N, 2 = K) of the tile.
  constexpr Tiler tiler(int i) const {
    const Tiler given = mode(permutation, i);
    const bool as_it_comes = is_leaf(given) && given.is_free[0];
    return as_it_comes ? Tiler(atom.shape_mnk.value[i] * size(atom_layout, i)) : given;
  }
  /// Extent of mode i of the tile.
  constexpr std::int64_t tile_extent(int i) const {
    const Tiler t = tiler(i);
    std::int64_t extent = 1;
    for (int leaf = 0; leaf < t.profile.num_leaves; ++leaf) extent *= size(t.layout[leaf]);
    return extent;
  }
};

namespace detail {

// The two modes (0 = M, 1 = N, 2 = K) of an operand and its TV layout.
struct OperandModes {
  int first, second;
  const Layout& tv;
};
constexpr OperandModes modes_of(const MmaAtom& atom, Operand operand) {
  switch (operand) {
    case Operand::kA:
      return {0, 2, atom.a_tv};
    case Operand::kB:
      return {1, 2, atom.b_tv};
    default:
      return {0, 1, atom.c_tv};
  }
}

}  // namespace detail

/// A tile seen by threads and fragments: (M,N) -> ((ThrV,(ThrM,ThrN)),(FrgV,(RestM,RestN))), with
/// (M,K) and (N,K) for A and B.
constexpr Layout thrfrg(const TiledMma& mma, Operand operand, const Layout& tile) {
  const detail::OperandModes of = detail::modes_of(mma.atom, operand);
  const Layout permuted =
      logical_divide(tile, make_tiler(mma.tiler(of.first), mma.tiler(of.second)));
  const Layout atoms = zipped_divide(permuted, make_tiler(mma.atom.shape_mnk.value[of.first],
                                                          mma.atom.shape_mnk.value[of.second]));
  const Layout tv = composition(atoms, make_tiler(of.tv, kFree));
  const Layout vmnk = mma.thr_layout_vmnk();
  return zipped_divide(
      tv, make_tiler(kFree, make_tiler(size(vmnk, of.first + 1), size(vmnk, of.second + 1))));
}

/// One thread's view of a tiled MMA.
struct ThrMma {
  TiledMma mma;
  IntTuple thr_vmnk;  ///< (thread within the atom, M, N, K)
};
constexpr ThrMma get_slice(const TiledMma& mma, std::int64_t thread) {
  return {mma, get_flat_coord(mma.thr_layout_vmnk(), thread)};
}

/// The thread's part of a tile: (values of one instruction, instructions along M, along N), an
/// offset layout into the tile. Works on coordinate layouts as well: then it names the elements.
constexpr ComposedLayout partition(const ThrMma& thr, Operand operand, const ComposedLayout& tile) {
  const detail::OperandModes of = detail::modes_of(thr.mma.atom, operand);
  const Layout view = thrfrg(thr.mma, operand, tile.layout);
  const IntTuple thread =
      make_coord(thr.thr_vmnk.value[0],
                 make_coord(thr.thr_vmnk.value[of.first + 1], thr.thr_vmnk.value[of.second + 1]));
  IntTuple rest;
  const int num_rest = rank(mode(mode(view, 1), 1));
  for (int i = 0; i < num_rest; ++i) push_mode(rest, IntTuple(kFree));
  return slice(make_coord(thread, make_coord(kFree, rest)), {tile.swizzle, tile.offset, view});
}
constexpr ComposedLayout partition_A(const ThrMma& thr, const ComposedLayout& tile) {
  return partition(thr, Operand::kA, tile);
}
constexpr ComposedLayout partition_B(const ThrMma& thr, const ComposedLayout& tile) {
  return partition(thr, Operand::kB, tile);
}
constexpr ComposedLayout partition_C(const ThrMma& thr, const ComposedLayout& tile) {
  return partition(thr, Operand::kC, tile);
}

/// Shape of a thread's fragment of a tile, (values, rest, rest): the same for every thread.
constexpr IntTuple partition_shape(const TiledMma& mma, Operand operand, const IntTuple& tile) {
  return shape(partition(get_slice(mma, 0), operand, make_layout(tile)));
}
/// Registers of a thread's fragment, compact and in the order of the instruction's own values.
constexpr Layout make_fragment(const TiledMma& mma, Operand operand, const IntTuple& tile) {
  return make_layout(partition_shape(mma, operand, tile));
}

/// The parts of all threads in one layout, (thread, (values, (rest, rest))): as a constant it takes
/// threadIdx.x (offset_in, coordinate_in), which get_slice in device code does not.
/// Post  R(t, v) == partition(get_slice(mma, t), operand, tile)(v)
constexpr Layout partition(const TiledMma& mma, Operand operand, const Layout& tile) {
  const Layout vmnk = mma.thr_layout_vmnk();
  const std::int64_t m = size(vmnk, 1), n = size(vmnk, 2);
  // A is the same for all threads along N, B for all along M.
  Tiler repeat = make_tiler(kFree, make_tiler(kFree, kFree));
  if (operand == Operand::kA) {
    const Layout along_m = make_layout(make_shape(m, n), make_stride(1, 0));
    repeat = make_tiler(kFree, make_tiler(along_m, kFree));
  } else if (operand == Operand::kB) {
    const Layout along_n = make_layout(make_shape(m, n), make_stride(0, 1));
    repeat = make_tiler(kFree, make_tiler(along_n, kFree));
  }
  const Layout view = composition(thrfrg(mma, operand, tile), make_tiler(repeat, kFree));
  return composition(view, make_tiler(right_inverse(vmnk), kFree));
}
constexpr Layout partition_A(const TiledMma& mma, const Layout& tile) {
  return partition(mma, Operand::kA, tile);
}
constexpr Layout partition_B(const TiledMma& mma, const Layout& tile) {
  return partition(mma, Operand::kB, tile);
}
constexpr Layout partition_C(const TiledMma& mma, const Layout& tile) {
  return partition(mma, Operand::kC, tile);
}

/// (thread, (value, rest)) -> element of the tile, column-major: which thread holds what.
constexpr Layout tv_layout(const TiledMma& mma, Operand operand) {
  const detail::OperandModes of = detail::modes_of(mma.atom, operand);
  return partition(mma, operand,
                   make_layout(make_shape(mma.tile_extent(of.first), mma.tile_extent(of.second))));
}
constexpr Layout tv_layout_A(const TiledMma& mma) {
  return tv_layout(mma, Operand::kA);
}
constexpr Layout tv_layout_B(const TiledMma& mma) {
  return tv_layout(mma, Operand::kB);
}
constexpr Layout tv_layout_C(const TiledMma& mma) {
  return tv_layout(mma, Operand::kC);
}

}  // namespace tilewright
