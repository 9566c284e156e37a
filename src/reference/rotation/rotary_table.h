// Float64 reference of rotary position embedding by a table of cosines and sines.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tilewright::reference {

struct RotaryTableParams {
  int64_t tokens = 0;
  int64_t heads = 0;
  int64_t head_dim = 0;
  int64_t rotary_dim = 0;       ///< the FIRST rotary_dim elements of a head are rotated; even
  bool is_interleaved = false;  ///< pairs (2 i, 2 i + 1); else (i, i + rotary_dim / 2)
};

/// A pair (x, y) of token t becomes (x c - y s, x s + y c), c = cos[positions[t], i], s likewise.
/// Shapes   x, out [tokens, heads, head_dim]; positions [tokens]; cos, sin [., rotary_dim / 2]
/// Layout   contiguous
/// Errors   InvalidArgument if an array does not have its shape, rotary_dim is odd or > head_dim,
///          or a position has no row in the tables
/// Source   RoFormer, arXiv 2104.09864; GPT-J (interleaved), GPT-NeoX (halves)
std::vector<double> rotary_table(const RotaryTableParams& params, std::span<const double> x,
                                 std::span<const int64_t> positions, std::span<const double> cos,
                                 std::span<const double> sin);

/// Bound on the errors of the same in fp32: each product is rounded, and their sum, 3 * 2^-24 of
/// |x c| + |y s|; 0 of elements that are not rotated.
std::vector<double> rotary_table_error(const RotaryTableParams& params, std::span<const double> x,
                                       std::span<const int64_t> positions,
                                       std::span<const double> cos, std::span<const double> sin);

}  // namespace tilewright::reference
