#include "sim/async/mbarrier.h"

#include <cstring>

#include <fmt/format.h>

namespace tilewright::sim {

namespace {

constexpr int kPendingAt = 20;
constexpr int kTxAt = 40;
constexpr int kParityAt = 61;
constexpr int kTagAt = 62;
constexpr std::uint64_t kCountMask = kMaxMbarrierCount;
constexpr std::uint64_t kTxMask = (std::uint64_t{1} << 21) - 1;
constexpr std::uint64_t kInvalidatedTag = 1;
constexpr std::uint64_t kLiveTag = 2;

std::uint64_t load_word(const std::byte* object) {
  std::uint64_t word;
  std::memcpy(&word, object, sizeof word);
  return word;
}

void store_word(std::byte* object, std::uint64_t word) {
  std::memcpy(object, &word, sizeof word);
}

std::uint64_t pack(const Mbarrier& state) {
  return kLiveTag << kTagAt | std::uint64_t{state.parity} << kParityAt |
         (static_cast<std::uint64_t>(state.tx_bytes) & kTxMask) << kTxAt |
         std::uint64_t{state.pending} << kPendingAt | state.expected;
}

Mbarrier unpack(std::uint64_t word) {
  Mbarrier state;
  state.expected = static_cast<std::uint32_t>(word & kCountMask);
  state.pending = static_cast<std::uint32_t>(word >> kPendingAt & kCountMask);
  const auto tx = static_cast<std::int32_t>(word >> kTxAt & kTxMask);
  state.tx_bytes = tx > kMaxMbarrierTxBytes ? tx - (1 << 21) : tx;
  state.parity = (word >> kParityAt & 1) != 0;
  return state;
}

/// One instruction's changes in the order in which they take effect.
struct Change {
  std::int64_t tx_bytes = 0;
  std::uint32_t arrivals = 0;
  std::uint32_t drops = 0;
  bool may_complete = true;
};

MbarrierResult apply(std::byte* object, const Change& change) {
  MbarrierResult result;
  Mbarrier state;
  const auto refuse = [&](MbarrierError error) {
    result.error = error;
    return result;
  };
  if (const MbarrierError error = mbarrier_read(object, state); error != MbarrierError::kNone) {
    return refuse(error);
  }
  result.token = load_word(object);
  const std::int64_t tx_bytes = state.tx_bytes + change.tx_bytes;
  if (tx_bytes > kMaxMbarrierTxBytes || tx_bytes < -kMaxMbarrierTxBytes) {
    return refuse(MbarrierError::kTxRange);
  }
  if (change.arrivals > state.pending || change.drops > state.expected) {
    return refuse(MbarrierError::kUnderflow);
  }
  state.tx_bytes = static_cast<std::int32_t>(tx_bytes);
  state.pending -= change.arrivals;
  state.expected -= change.drops;
  if (state.pending == 0 && state.tx_bytes == 0) {
    if (!change.may_complete) return refuse(MbarrierError::kWouldComplete);
    state.parity = !state.parity;
    state.pending = state.expected;
    result.is_phase_complete = true;
  }
  store_word(object, pack(state));
  return result;
}

bool is_count(std::uint32_t count) {
  return count >= 1 && count <= kMaxMbarrierCount;
}

MbarrierResult arrive(std::byte* object, const Change& change) {
  if (!is_count(change.arrivals)) return {.error = MbarrierError::kCountRange};
  return apply(object, change);
}

}  // namespace

const char* to_string(MbarrierError error) noexcept {
  switch (error) {
    case MbarrierError::kNone:
      return "has no error";
    case MbarrierError::kNotInitialized:
      return "uses memory that is no mbarrier; initialise it first, and order that before this";
    case MbarrierError::kInvalidated:
      return "uses an invalidated mbarrier";
    case MbarrierError::kCountRange:
      return "has a count that is not 1 to 2^20 - 1";
    case MbarrierError::kUnderflow:
      return "arrives more often than the phase expects";
    case MbarrierError::kOverflow:
      return "leaves more than 2^20 - 1 arrivals pending";
    case MbarrierError::kTxRange:
      return "takes the bytes outstanding beyond +-(2^20 - 1)";
    case MbarrierError::kWouldComplete:
      return "would complete the phase, which .noComplete promises not to";
  }
  return "?";
}

MbarrierResult mbarrier_init(std::byte* object, std::uint32_t count, bool* was_live) {
  if (!is_count(count)) return {.error = MbarrierError::kCountRange};
  Mbarrier before;
  if (was_live != nullptr) *was_live = mbarrier_read(object, before) == MbarrierError::kNone;
  store_word(object, pack({.expected = count, .pending = count}));
  return {};
}

MbarrierResult mbarrier_inval(std::byte* object) {
  Mbarrier state;
  if (const MbarrierError error = mbarrier_read(object, state); error != MbarrierError::kNone) {
    return {.error = error};
  }
  store_word(object, kInvalidatedTag << kTagAt);
  return {};
}

MbarrierResult mbarrier_expect_tx(std::byte* object, std::uint32_t bytes) {
  return apply(object, {.tx_bytes = bytes});
}

MbarrierResult mbarrier_complete_tx(std::byte* object, std::uint32_t bytes) {
  return apply(object, {.tx_bytes = -std::int64_t{bytes}});
}

MbarrierResult mbarrier_arrive(std::byte* object, std::uint32_t count) {
  return arrive(object, {.arrivals = count});
}

MbarrierResult mbarrier_arrive_expect_tx(std::byte* object, std::uint32_t bytes,
                                         std::uint32_t count) {
  return arrive(object, {.tx_bytes = bytes, .arrivals = count});
}

MbarrierResult mbarrier_arrive_drop(std::byte* object, std::uint32_t count, std::uint32_t bytes) {
  return arrive(object, {.tx_bytes = bytes, .arrivals = count, .drops = count});
}

MbarrierResult mbarrier_arrive_no_complete(std::byte* object, std::uint32_t count) {
  return arrive(object, {.arrivals = count, .may_complete = false});
}

MbarrierResult mbarrier_arrive_drop_no_complete(std::byte* object, std::uint32_t count) {
  return arrive(object, {.arrivals = count, .drops = count, .may_complete = false});
}

MbarrierResult mbarrier_add_pending(std::byte* object, std::uint32_t count) {
  MbarrierResult result;
  Mbarrier state;
  result.error = mbarrier_read(object, state);
  if (result.error != MbarrierError::kNone) return result;
  if (count > kMaxMbarrierCount - state.pending) {
    result.error = MbarrierError::kOverflow;
    return result;
  }
  state.pending += count;
  store_word(object, pack(state));
  return result;
}

std::uint32_t mbarrier_pending_count(std::uint64_t token) noexcept {
  return unpack(token).pending;
}

MbarrierWait mbarrier_test_wait(const std::byte* object, std::uint64_t token) {
  return mbarrier_test_wait_parity(object, unpack(token).parity ? 1 : 0);
}

MbarrierWait mbarrier_test_wait_parity(const std::byte* object, std::uint32_t parity) {
  Mbarrier state;
  const MbarrierError error = mbarrier_read(object, state);
  return {error, error == MbarrierError::kNone && state.parity != ((parity & 1) != 0)};
}

MbarrierError mbarrier_read(const std::byte* object, Mbarrier& state) {
  const std::uint64_t word = load_word(object);
  if (word >> kTagAt == kLiveTag) {
    state = unpack(word);
    return MbarrierError::kNone;
  }
  const bool is_invalidated = word == kInvalidatedTag << kTagAt;
  return is_invalidated ? MbarrierError::kInvalidated : MbarrierError::kNotInitialized;
}

std::string mbarrier_describe(const std::byte* object) {
  Mbarrier state;
  switch (mbarrier_read(object, state)) {
    case MbarrierError::kNone:
      break;
    case MbarrierError::kInvalidated:
      return "invalidated";
    default:
      return "not an mbarrier";
  }
  std::string text = fmt::format("phase parity {}, {} of {} arrivals pending", state.parity ? 1 : 0,
                                 state.pending, state.expected);
  if (state.tx_bytes > 0) text += fmt::format(", {} bytes outstanding", state.tx_bytes);
  if (state.tx_bytes < 0) {
    text += fmt::format(", {} bytes more arrived than were expected", -state.tx_bytes);
  }
  return text;
}

}  // namespace tilewright::sim
