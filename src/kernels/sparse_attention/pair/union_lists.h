// Contract of the kernel that makes one list of the lists of two neighbouring queries.
#pragma once

#include "kernels/sparse_attention/decode.h"

namespace tilewright::kernels {

/// A list of the union, and which of the two queries see an entry.
struct SparseUnion {
  std::int32_t* indices;  ///< [pair, 2 * topk]
  std::uint8_t* masks;    ///< likewise; bit i: the entry is one of query i of the pair
  std::int32_t* lengths;  ///< [pair]
};

/// For queries 2 i and 2 i + 1 of each sequence (pair = b * ceil(q_len / 2) + i): the entries of
/// the first in their order, then those of the second that the first does not have, in theirs. A
/// row that one query lists n times and the other m times is there max(n, m) times. The last of an
/// odd number of queries is alone.
struct SparseUnionParams {
  SparseKeys keys[2];
  std::int32_t batch, q_len;
  SparseUnion unions[2];
};

/// Entry sparse_union_lists: grid (pairs, 2), a CTA a list.
inline constexpr int kSparseUnionThreads = 256;
inline constexpr std::int64_t kSparseUnionMaxTopk = 4096;

/// Places of the table in which the rows of the first query are looked up, a power of two.
constexpr int sparse_union_places(std::int64_t topk) {
  int places = 64;
  while (places < 2 * topk) places *= 2;
  return places;
}
/// The table, the first query's rows, and who has them.
constexpr int sparse_union_shared_bytes(std::int64_t topk) {
  return static_cast<int>(4 * (sparse_union_places(topk) + 2 * topk));
}

}  // namespace tilewright::kernels
