// Shared-memory bank conflicts of an access, counted.
#pragma once

#include "layout/swizzle.h"

#include <cstdint>

namespace tilewright {

inline constexpr int kSharedBanks = 32;  ///< banks of shared memory
inline constexpr int kBankBytes = 4;     ///< width of a bank
inline constexpr int kWarpLanes = 32;

/// What one warp-wide shared-memory instruction costs.
struct BankReport {
  int wavefronts = 0;  ///< passes the memory needs
  int ideal = 0;       ///< passes of a conflict-free access of that width: 1, 2 or 4
  /// Largest number of different words that one bank had to deliver in one pass group.
  int worst_bank = 0;
  /// Different words per bank, summed over the pass groups.
  int words[kSharedBanks] = {};

  constexpr int conflicts() const { return wavefronts - ideal; }
};

namespace detail {

struct WordSet {
  std::int64_t word[kWarpLanes * 4] = {};
  int count = 0;

  constexpr bool insert(std::int64_t added) {
    for (int i = 0; i < count; ++i) {
      if (word[i] == added) return false;
    }
    word[count++] = added;
    return true;
  }
};

constexpr void add_pass_group(const std::int64_t* address, int lanes, int bytes,
                              BankReport& report) {
  WordSet seen;
  int per_bank[kSharedBanks] = {};
  for (int lane = 0; lane < lanes; ++lane) {
    for (int byte = 0; byte < bytes; byte += kBankBytes) {
      const std::int64_t word = (address[lane] + byte) / kBankBytes;
      if (seen.insert(word)) ++per_bank[word % kSharedBanks];
    }
  }
  int worst = 1;
  for (int bank = 0; bank < kSharedBanks; ++bank) {
    if (per_bank[bank] > worst) worst = per_bank[bank];
    report.words[bank] += per_bank[bank];
  }
  report.wavefronts += worst;
  ++report.ideal;
  if (worst > report.worst_bank) report.worst_bank = worst;
}

}  // namespace detail

/// Cost of 32 lanes each touching `bytes` bytes (1, 2, 4, 8 or 16) at the given byte addresses.
/// Lanes are served 32, 16 or 8 at a time for accesses of up to 4, 8 and 16 bytes; within such a
/// group a word asked for twice is delivered once, and each bank delivers one word a pass.
constexpr BankReport count_bank_conflicts(const std::int64_t (&address)[kWarpLanes], int bytes) {
  if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8 && bytes != 16) {
    law::an_access_is_1_2_4_8_or_16_bytes(bytes);
  }
  const int lanes = bytes <= kBankBytes ? kWarpLanes : kWarpLanes * kBankBytes / bytes;
  BankReport report;
  for (int first = 0; first < kWarpLanes; first += lanes) {
    detail::add_pass_group(address + first, lanes, bytes, report);
  }
  return report;
}

/// Cost of one step of a (thread, value) access: lane t of warp `warp` touches the `vector` values
/// from `first_value` on. The layout maps (thread, value) to offsets in elements of `element_bits`;
/// the values of a vector must be contiguous.
constexpr BankReport count_bank_conflicts(const ComposedLayout& thread_value, int element_bits,
                                          int vector = 1, int first_value = 0, int warp = 0) {
  std::int64_t address[kWarpLanes] = {};
  for (int lane = 0; lane < kWarpLanes; ++lane) {
    const int thread = (warp * kWarpLanes + lane) % static_cast<int>(size(thread_value, 0));
    const std::int64_t first = thread_value(thread, first_value);
    for (int i = 1; i < vector; ++i) {
      if (thread_value(thread, first_value + i) != first + i) {
        law::values_of_a_vector_must_be_contiguous(thread_value.layout);
      }
    }
    address[lane] = first * element_bits / 8;
  }
  return count_bank_conflicts(address, element_bits * vector / 8);
}

}  // namespace tilewright
