#include "sim/report/access_cost.h"

#include <algorithm>
#include <array>
#include <bit>

namespace tilewright::sim {

namespace {

/// Words that lanes of one phase want, at most four of each lane.
class Phase {
 public:
  void add(std::uint64_t address, std::uint32_t bytes, bool is_atomic) {
    const std::uint64_t end = (address + bytes + kBankBytes - 1) / kBankBytes;
    for (std::uint64_t word = address / kBankBytes; word < end; ++word) {
      if (num_words_ == words_.size()) return;
      const auto known = words_.begin() + static_cast<std::ptrdiff_t>(num_words_);
      if (!is_atomic && std::find(words_.begin(), known, word) != known) continue;
      words_[num_words_++] = word;
      ++num_in_bank_[word % kBanks];
    }
  }
  std::uint32_t wavefronts() const {
    return *std::max_element(num_in_bank_.begin(), num_in_bank_.end());
  }

 private:
  std::array<std::uint64_t, 4 * kLanes> words_;
  std::array<std::uint32_t, kBanks> num_in_bank_{};
  std::size_t num_words_ = 0;
};

/// Lane i's bytes follow those of lane i - 1, all lanes are there.
bool is_dense(const WarpAccess& access) {
  if (access.lanes != kAllLanes) return false;
  std::uint64_t difference = 0;
  for (std::uint64_t lane = 0; lane < kLanes; ++lane) {
    difference |= (access.addresses[lane] - access.addresses[0]) ^ (lane * access.bytes);
  }
  return difference == 0;
}

}  // namespace

SharedCost shared_cost(const WarpAccess& access) {
  const int phases = access.bytes <= 4 ? 1 : access.bytes <= 8 ? 2 : 4;
  const bool is_atomic = access.kind == AccessKind::kAtomic;
  if (access.bytes >= 4 && is_dense(access) && access.addresses[0] % kBankBytes == 0) {
    return {static_cast<std::uint32_t>(phases), static_cast<std::uint32_t>(phases)};
  }
  SharedCost cost;
  const int lanes = kLanes / phases;
  for (int first = 0; first < kLanes; first += lanes) {
    Phase phase;
    for (int lane = first; lane < first + lanes; ++lane) {
      if ((access.lanes >> lane & 1) == 0) continue;
      phase.add(access.addresses[lane], access.bytes, is_atomic);
    }
    cost.wavefronts += phase.wavefronts();
    cost.ideal += phase.wavefronts() != 0;
  }
  return cost;
}

GlobalCost global_cost(const WarpAccess& access) {
  if (is_dense(access)) {
    const std::uint64_t begin = access.addresses[0];
    const std::uint64_t end = begin + std::uint64_t{kLanes} * access.bytes;
    return {
        static_cast<std::uint32_t>((end + kSectorBytes - 1) / kSectorBytes - begin / kSectorBytes),
        kLanes * access.bytes};
  }
  std::array<std::uint64_t, kLanes> begins;
  std::size_t count = 0;
  for (std::uint32_t rest = access.lanes; rest != 0; rest &= rest - 1) {
    begins[count++] = access.addresses[std::countr_zero(rest)];
  }
  std::sort(begins.begin(), begins.begin() + static_cast<std::ptrdiff_t>(count));
  GlobalCost cost;
  std::uint64_t end = 0, next_sector = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t lane_end = begins[i] + access.bytes;
    const std::uint64_t last = (lane_end + kSectorBytes - 1) / kSectorBytes;
    const std::uint64_t first = std::max(begins[i] / kSectorBytes, next_sector);
    if (last > first) cost.sectors += static_cast<std::uint32_t>(last - first);
    next_sector = std::max(next_sector, last);
    if (lane_end > end) {
      cost.bytes += static_cast<std::uint32_t>(lane_end - std::max(begins[i], end));
    }
    end = std::max(end, lane_end);
  }
  return cost;
}

}  // namespace tilewright::sim
