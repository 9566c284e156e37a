// Contract of the kernel that makes one list of the lists of neighbouring queries.
#pragma once

#include "kernels/sparse_attention/decode.h"

namespace tilewright::kernels {

/// A list of the union, and which queries see an entry.
struct SparseUnion {
  std::int32_t* indices;  ///< [tile, queries * topk]
  std::uint16_t* masks;   ///< likewise; bit i: the entry is one of query i of the tile
  std::int32_t* lengths;  ///< [tile]
};

/// A tile is `queries` neighbours of a sequence (tile = b * ceil(q_len / queries) + i; of the last
/// some may not exist). Its list: the entries of the first in their order, then those of the second
/// that the first does not have, in theirs, and so on. A row that a query lists n times is there n
/// times at least. Rows that are none may be left out.
struct SparseUnionParams {
  SparseKeys keys[2];
  std::int32_t batch, q_len, queries;
  SparseUnion unions[2];
};

/// Entry sparse_union_lists: grid (tiles, 2), a CTA a list.
inline constexpr int kSparseUnionThreads = 256;
inline constexpr std::int64_t kSparseUnionMaxEntries = 8192;  ///< queries * topk

/// Places of the table in which rows are looked up, a power of two.
constexpr int sparse_union_places(std::int64_t entries) {
  int places = 64;
  while (places < 2 * entries) places *= 2;
  return places;
}
/// The table, the rows of the union, and which lists have them.
constexpr int sparse_union_shared_bytes(std::int64_t entries) {
  return static_cast<int>(4 * (sparse_union_places(entries) + 2 * entries));
}

}  // namespace tilewright::kernels
