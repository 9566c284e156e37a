// Which values are defined: what is known of an instruction before it runs, and of a warp.
#pragma once

#include "sim/state/insn.h"

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace tilewright::sim {

/// How undefined lanes of the sources of an instruction spread.
enum class SpreadRule : std::uint8_t {
  kPlain,       ///< lane by lane into every destination
  kCopy,        ///< the same, of mov: what becomes of it is up to the register allocator
  kSink,        ///< none of the sources may be undefined
  kLoad,        ///< the address may not be; what is loaded is as the memory is
  kStore,       ///< the address may not be; the memory gets what the data is
  kMatrixLoad,  ///< ldmatrix
  kMatrixLoadTransposed,
  kMatrixStore,
  kMatrixStoreTransposed,
  kSelect,       ///< only the source that is chosen counts
  kShuffle,      ///< as the values go
  kAcrossLanes,  ///< one undefined lane makes all results so
  kMma,          ///< a row of A makes a row of D undefined, a column of B a column
  kWgmma,
};

/// Rows as numbers without gaps: a predicate each, then 64 bytes each.
struct RowUnits {
  std::uint32_t predicate_end = 0;
  std::uint32_t of(Row row) const noexcept {
    return row < predicate_end ? row / 4 : (predicate_end / 4) + (row - predicate_end) / 64;
  }
};

/// Of a warp.
struct WarpDefinedness {
  std::vector<std::uint32_t> lanes;  ///< by RowUnits: those with a defined value
  std::uint32_t num_partial = 0;     ///< rows in which some existing lane is not
  /// Of lanes without a defined value: the bytes of it that are defined, by row, if any are
  std::unordered_map<Row, std::array<std::uint16_t, kLanes>> partial;
  /// Of the load or store that is under way: by lane, whether each of its bytes is defined
  std::array<std::array<std::uint8_t, 32>, kLanes> bytes{};
  std::uint32_t load_bytes = 0;  ///< of each lane of the load
  const Insn* load = nullptr;    ///< the last one that found undefined bytes
  std::uint8_t load_mark = 0;    ///< of these in the shadow: the store of each
};

}  // namespace tilewright::sim
