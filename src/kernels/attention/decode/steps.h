// What both ways of loading keys share: the steps of a team, and where a key is.
#pragma once

#include "kernels/attention/decode/agenda.h"
#include "kernels/attention/decode/decode.h"

#include <cstdint>

namespace tilewright::tile {

/// A key of a sequence: entry of the sequence's block table, and its place in that page.
struct DecodePlace {
  std::int32_t entry, slot;

  __device__ DecodePlace(const kernels::DecodeCache& cache, std::int32_t key)
      : entry(
            static_cast<std::int32_t>(cache.page_divisor.divide(static_cast<std::uint32_t>(key)))),
        slot(key - entry * cache.page_size) {}

  /// The page of it, as `load` finds it at its place in the table, if there is one.
  template <class Load>
  __device__ std::int32_t page(const kernels::DecodeCache& cache, std::int32_t batch_idx,
                               const Load& load) const {
    if (cache.block_table == nullptr) return batch_idx;
    return load(cache.block_table + batch_idx * cache.table_stride + entry);
  }
  /// Of the row of a head, in bytes.
  __device__ std::int64_t offset(const kernels::DecodeCache& cache, std::int32_t page,
                                 std::int32_t head) const {
    return page * cache.page_stride + slot * cache.row_stride + head * cache.head_stride;
  }
  __device__ static bool is_page(const kernels::DecodeCache& cache, std::int32_t page) {
    return static_cast<std::uint32_t>(page) < static_cast<std::uint32_t>(cache.num_pages);
  }
};

__device__ inline std::int32_t read_entry(const std::int32_t* from) {
  return *from;
}

/// The steps of a team over all segments of an agenda.
template <kernels::DecodeShape Shape>
class DecodeSteps {
  static constexpr int kPieces = Shape.step_keys / kernels::kDecodePieceKeys;

 public:
  __device__ DecodeSteps(const DecodeAgenda& agenda, std::uint32_t team)
      : agenda_(agenda), team_(static_cast<std::int32_t>(team)) {}

  /// Before the first step of the agenda as it is.
  __device__ void restart() { index_ = -1, piece_ = end_ = 0, is_more_ = true; }
  /// To the next one. False if there is none.
  __device__ bool next() {
    piece_ += Shape.teams * kPieces;
    while (piece_ >= end_) {
      is_more_ = ++index_ < agenda_.count();
      if (!is_more_) return false;
      piece_ = agenda_[index_].begin + team_ * kPieces;
      end_ = agenda_[index_].end;
    }
    return true;
  }
  __device__ bool is_more() const { return is_more_; }
  __device__ const DecodeSegment& segment() const { return agenda_[index_]; }
  __device__ std::int32_t piece() const { return piece_; }
  /// Pieces from here to the segment's end.
  __device__ std::int32_t left() const { return end_ - piece_; }

 private:
  const DecodeAgenda& agenda_;
  std::int32_t team_;
  std::int32_t index_ = -1;           ///< of the segment
  std::int32_t piece_ = 0, end_ = 0;  ///< where the step begins, and the segment ends
  bool is_more_ = true;
};

}  // namespace tilewright::tile
