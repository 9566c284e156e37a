// The steps of a team, which both ways of loading keys share.
#pragma once

#include "kernels/attention/decode/agenda.h"
#include "kernels/attention/decode/shape.h"

#include <cstdint>

namespace tilewright::tile {

/// The steps of a team over all segments of an agenda.
template <kernels::DecodeShape Shape>
class DecodeSteps {
  static constexpr int kPieces = Shape.step_keys / kernels::kDecodePieceKeys;
  using Agenda = DecodeAgenda<kernels::DecodeParamsOf<Shape>>;

 public:
  __device__ DecodeSteps(const Agenda& agenda, std::uint32_t team)
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
  const Agenda& agenda_;
  std::int32_t team_;
  std::int32_t index_ = -1;           ///< of the segment
  std::int32_t piece_ = 0, end_ = 0;  ///< where the step begins, and the segment ends
  bool is_more_ = true;
};

}  // namespace tilewright::tile
