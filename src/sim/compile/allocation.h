// Which registers of a kernel share a row.
#pragma once

#include "sim/compile/flatten.h"
#include "sim/state/insn.h"

#include <vector>

namespace tilewright::sim {

struct RegisterRows {
  std::vector<Row> row_of;               ///< by number of the register in the kernel
  std::vector<bool> is_maybe_undefined;  ///< may be read before it is written on some path
  std::uint32_t predicate_end = 0;
  std::uint32_t end = 0;       ///< first free offset
  std::uint32_t num_live = 0;  ///< most 32-bit registers alive at once: what a thread needs
};

/// Bytes of a register's row.
std::uint32_t row_bytes(Type type);

/// Registers that are never alive at the same time share rows. One that may be read before it is
/// written keeps a row of its own, so that what it held at first stays known to be undefined.
RegisterRows allocate_rows(const FlatKernel& kernel);

}  // namespace tilewright::sim
