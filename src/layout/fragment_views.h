// Views of an accumulator fragment: by rows and columns, and as the A operand of the next MMA.
//
// Attention keeps scores in registers between its two matrix products: the softmax wants (row,
// column), the second product wants its A operand. Both are the same registers under another
// layout. The names are those of CUTLASS's Hopper attention example, from which the idea comes.
#pragma once

#include "layout/tiled_mma.h"

#include <cstdint>

namespace tilewright {

/// The leaves of a layout, parted by a reference stride.
struct Separated {
  Layout below;  ///< leaves with reference < threshold: they walk along M of a column-major tile
  Layout rest;   ///< the others: they walk along N
};

/// Splits the leaves of `source` by the strides that the same leaves have in `reference`. In a
/// column-major M x N tile a stride below M stays within a column, so threshold M parts rows from
/// columns.
constexpr Separated layout_separate(std::int64_t threshold, const Layout& source,
                                    const Layout& reference) {
  const Layout leaves = as_tuple(flatten(source)), keys = as_tuple(flatten(reference));
  if (rank(leaves) != rank(keys))
    law::a_must_have_as_many_modes_as_b("layout_separate", rank(leaves), rank(keys));
  Separated out;
  for (int i = 0; i < rank(leaves); ++i) {
    push_mode(keys.stride[i] < threshold ? out.below : out.rest, mode(leaves, i));
  }
  return out;
}

/// A fragment (values, rest M, rest N) as ((rows), (columns)): mode 0 walks the rows a thread owns,
/// mode 1 its columns.
constexpr Layout layout_acc_mn(const TiledMma& mma, const Layout& fragment) {
  const Separated values = layout_separate(mma.atom.m(), mode(fragment, 0), mode(mma.atom.c_tv, 1));
  return make_layout(append(values.below, mode(fragment, 1)),
                     append(values.rest, mode(fragment, 2)));
}

/// The part of the thread index that walks along N: threads that differ only there share their
/// rows, and a row-wise reduction runs over them. Strides count threads: (4):(1) for wgmma, the
/// four neighbours of a quad.
constexpr Layout reduction_target_n(const TiledMma& mma) {
  const Layout threads = mode(mma.atom.c_tv, 0);
  return layout_separate(mma.atom.m(), make_layout(shape(threads)), threads).rest;
}

/// An accumulator fragment ((2,2,N/8), rest M, rest N) re-read as the A operand with `a_values`
/// values a thread and k-step, ((2,2,2), rest M, (rest N, k-steps)): the same registers, none
/// moved. Valid where the hand-off analysis (handoff.h) says "as they are": 16-bit operands of
/// wgmma and of m16n8k16.
constexpr Layout convert_c_layout_to_a_layout(const Layout& c, const IntTuple& a_values) {
  const Layout values = mode(c, 0);
  if (rank(values) != rank(a_values) || product(a_values) == 0 ||
      size(values) % product(a_values) != 0) {
    law::operand_values_must_divide_the_accumulators(a_values, shape(values));
  }
  Layout taken = values;
  for (int i = 0; i < values.profile.num_leaves; ++i) taken.shape[i] = a_values.value[i];
  const int last = values.profile.num_leaves - 1;
  const Layout steps = make_layout(IntTuple(size(values) / product(a_values)),
                                   IntTuple(a_values.value[last] * values.stride[last]));
  return make_layout(taken, mode(c, 1), make_layout(mode(c, 2), steps));
}

}  // namespace tilewright
