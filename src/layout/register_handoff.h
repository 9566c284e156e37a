// Handing an accumulator to the next MMA through registers: can they be read as its operand, and if
// not, what has to move?
#pragma once

#include "layout/layout.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tilewright {

/// From least to most work.
enum class RegisterVerdict {
  kAsIs,         ///< value v of the operand is value v of the accumulator, for every thread
  kReorder,      ///< every thread holds what it needs, in other registers: free, a matter of names
  kPermuteKeys,  ///< free as well, if the reduction index is renumbered (the other operand
                 ///< likewise)
  kExchange,     ///< some lanes must send values to others
};
const char* to_string(RegisterVerdict verdict);

/// One value that changes threads: consumer (thread, value) needs producer (from_thread,
/// from_value).
struct Move {
  int thread = 0, value = 0, from_thread = 0, from_value = 0;
};

struct RegisterHandoff {
  RegisterVerdict verdict = RegisterVerdict::kAsIs;
  int num_threads = 0;
  int producer_values = 0;  ///< per thread
  int consumer_values = 0;  ///< per thread, all k-steps together
  /// Operand value -> accumulator value of the same thread; empty if keys or lanes must change
  /// first.
  std::vector<int> source_value;
  /// Slot of the reduction index -> true index; the identity unless the verdict is kPermuteKeys.
  /// The same permutation, applied to the rows of the other operand, leaves the product unchanged.
  std::vector<int> key_of_slot;
  /// Shortest period of the permutation: within every `key_period` slots it looks the same.
  int key_period = 1;
  /// What would have to move without renumbering keys; empty for kAsIs and kReorder.
  std::vector<Move> moves;
  /// Lanes exchange within groups of this many neighbouring threads.
  int exchange_group = 1;

  /// The finding in words, a few lines.
  std::string explain() const;
};

/// Accumulator (thread, value) -> (m, n) against operand A (thread, value) -> (m, k), the operand's
/// k-steps running over n. Layouts are offsets into column-major tiles of m rows; n must be a
/// multiple of k.
/// Errors  InvalidArgument if thread counts, tiles or sizes do not fit together
RegisterHandoff analyze_register_handoff(const Layout& accumulator_tv, const Layout& operand_tv,
                                         std::int64_t m, std::int64_t n, std::int64_t k);

}  // namespace tilewright
