// Handing an accumulator to the next MMA through Tensor Memory: is it read where it was written?
#pragma once

#include "layout/layout.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tilewright {

enum class TmemVerdict {
  kSame,   ///< every element is read where it was written
  kPack,   ///< same lane, other column: the thread that owns the lane packs its values and stores
           ///< again
  kLanes,  ///< some elements must change lanes
};
const char* to_string(TmemVerdict verdict);

/// Where an element was written and as what the reader takes that place.
struct TmemMismatch {
  int row = 0, column = 0;  ///< of the accumulator
  int lane = 0, cell = 0;   ///< where it was written: lane and 32-bit column
  int read_row = -1,
      read_k = -1;  ///< the operand element read there (-1: none); the next ones share the cell
};

struct TmemHandoff {
  TmemVerdict verdict = TmemVerdict::kSame;
  int per_cell = 1;            ///< operand elements in one 32-bit cell
  std::int64_t elements = 0;   ///< elements handed over
  std::int64_t misplaced = 0;  ///< of these, read from another place than they were written to
  int columns_written = 0;     ///< columns the accumulator occupies
  int columns_read = 0;        ///< columns the operand occupies
  std::vector<TmemMismatch> examples;

  std::string explain() const;
};

/// Accumulator (row, column) -> cell address against operand A (row, k) -> address in elements of
/// `operand_bits`, both relative to the same base, as arch/fragments/tmem.h writes them. Tells what
/// happens when values stay in the accumulator's places, one a cell, and the MMA reads them as its
/// A operand.
TmemHandoff analyze_tmem_handoff(const Layout& accumulator, const Layout& operand,
                                 int operand_bits);

}  // namespace tilewright
