#include "sim/async/bulk_groups.h"

#include "base/error.h"

#include <algorithm>

namespace tilewright::sim {

CopyGroups::CopyId CopyGroups::issue() {
  copies_.push_back({next_id_, num_committed_, false, false});
  return next_id_++;
}

void CopyGroups::advance(CopyId copy, Stage stage) {
  const auto found = std::ranges::lower_bound(copies_, copy, {}, &Copy::id);
  require(found != copies_.end() && found->id == copy && !found->is_done, ErrorKind::kInternal,
          "CopyGroups: copy {} is not under way", copy);
  found->is_read = true;
  if (stage == Stage::kDone) found->is_done = true;
  copies_.erase(copies_.begin(), std::ranges::find(copies_, false, &Copy::is_done));
}

bool CopyGroups::has_at_most(std::uint32_t max_pending, Stage stage) const {
  if (max_pending >= num_committed_) return true;
  const std::uint64_t end = num_committed_ - max_pending;
  for (const Copy& copy : copies_) {
    if (copy.group >= end) return true;
    if (!(stage == Stage::kRead ? copy.is_read : copy.is_done)) return false;
  }
  return true;
}

std::uint32_t CopyGroups::num_pending() const {
  // The first copy is not done, and neither are the groups after its own.
  if (copies_.empty()) return 0;
  return static_cast<std::uint32_t>(num_committed_ - copies_.front().group);
}

void CopyGroups::arrive_when_done(std::uint64_t mbarrier_address) {
  arrivals_.push_back({next_id_, mbarrier_address});
}

std::vector<std::uint64_t> CopyGroups::take_arrivals() {
  const CopyId end = copies_.empty() ? next_id_ : copies_.front().id;
  std::vector<std::uint64_t> addresses;
  auto next = arrivals_.begin();
  for (; next != arrivals_.end() && next->end <= end; ++next) addresses.push_back(next->address);
  arrivals_.erase(arrivals_.begin(), next);
  return addresses;
}

}  // namespace tilewright::sim
