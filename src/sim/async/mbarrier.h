// The mbarrier object: 64 bits in shared memory, and what the instructions do to them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tilewright::sim {

inline constexpr std::uint32_t kMaxMbarrierCount = (1u << 20) - 1;
inline constexpr std::int32_t kMaxMbarrierTxBytes = (1 << 20) - 1;

/// What an object says.
///
/// Layout   bits 0-19 expected arrivals, 20-39 pending arrivals, 40-60 bytes outstanding (two's
///          complement), 61 phase parity, 62-63 tag: 2 live, 1 invalidated, else no mbarrier (which
///          zeros and memory filled with 0xcd are not). It is our own: PTX calls it opaque.
struct Mbarrier {
  std::uint32_t expected = 0;  ///< arrivals of the next phases
  std::uint32_t pending = 0;   ///< arrivals that this phase still needs
  std::int32_t tx_bytes = 0;   ///< expected less completed; negative while bytes are early
  bool parity = false;         ///< of the current phase; the first has 0

  bool operator==(const Mbarrier&) const = default;
};

enum class MbarrierError : std::uint8_t {
  kNone,
  kNotInitialized,
  kInvalidated,
  kCountRange,     ///< init or arrive with a count of 0 or above kMaxMbarrierCount
  kUnderflow,      ///< more arrivals than the phase has pending
  kOverflow,       ///< more pending arrivals than can be counted (cp.async.mbarrier.arrive)
  kTxRange,        ///< bytes outstanding beyond +-kMaxMbarrierTxBytes
  kWouldComplete,  ///< arrive.noComplete that would complete the phase
};

/// "arrives more often than the phase expects": what went wrong, to follow the instruction's name.
const char* to_string(MbarrierError error) noexcept;

/// After an error the object is as it was.
struct MbarrierResult {
  MbarrierError error = MbarrierError::kNone;
  bool is_phase_complete = false;  ///< by this operation: wake the warps that wait for it
  std::uint64_t token = 0;         ///< arrivals: the state before, for test_wait and pending_count
};

// `object` points at 8 bytes of shared memory, aligned to 8 by rule but not by need.
//
// A phase completes when no arrivals are pending and no bytes outstanding; the next one begins with
// the expected arrivals pending. Source: PTX ISA, "Phase completion of the mbarrier object".

/// Any memory will do. `was_live` is for a warning: a live object must be invalidated first.
MbarrierResult mbarrier_init(std::byte* object, std::uint32_t count, bool* was_live = nullptr);
MbarrierResult mbarrier_inval(std::byte* object);
MbarrierResult mbarrier_expect_tx(std::byte* object, std::uint32_t bytes);
MbarrierResult mbarrier_complete_tx(std::byte* object, std::uint32_t bytes);
MbarrierResult mbarrier_arrive(std::byte* object, std::uint32_t count = 1);
/// expect_tx, then arrive, as one.
MbarrierResult mbarrier_arrive_expect_tx(std::byte* object, std::uint32_t bytes,
                                         std::uint32_t count = 1);
/// Arrives and lowers what later phases expect. `bytes` as expect_tx.
MbarrierResult mbarrier_arrive_drop(std::byte* object, std::uint32_t count = 1,
                                    std::uint32_t bytes = 0);
MbarrierResult mbarrier_arrive_no_complete(std::byte* object, std::uint32_t count);
MbarrierResult mbarrier_arrive_drop_no_complete(std::byte* object, std::uint32_t count);
/// cp.async.mbarrier.arrive without .noinc, when it is issued: makes room for its own arrival.
MbarrierResult mbarrier_add_pending(std::byte* object, std::uint32_t count = 1);

/// Arrivals pending before the arrive that gave the token.
std::uint32_t mbarrier_pending_count(std::uint64_t token) noexcept;

struct MbarrierWait {
  MbarrierError error = MbarrierError::kNone;
  bool is_complete = false;
};

/// Whether the token's phase is over. A token from an older phase than the last gives nonsense.
MbarrierWait mbarrier_test_wait(const std::byte* object, std::uint64_t token);
/// Whether the phase of this parity is over: the current one has the other. True for 1 at first.
MbarrierWait mbarrier_test_wait_parity(const std::byte* object, std::uint32_t parity);

/// The state, if it is a live mbarrier.
MbarrierError mbarrier_read(const std::byte* object, Mbarrier& state);

/// "phase parity 0, 1 of 4 arrivals pending, 16384 bytes outstanding" or why there is no state.
std::string mbarrier_describe(const std::byte* object);

}  // namespace tilewright::sim
