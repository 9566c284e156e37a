#include "sim/event/observer_list.h"

#include <algorithm>

namespace tilewright::sim {

std::uint64_t ObserverList::async_issued(Warp& warp, const Insn& insn,
                                         const AsyncOperation& operation) {
  std::uint64_t first = 0;
  std::vector<std::uint64_t> tokens;
  for (Observer* observer : observers_) {
    tokens.push_back(observer->async_issued(warp, insn, operation));
  }
  const std::lock_guard lock(mutex_);
  if (!free_.empty()) {
    first = free_.back();
    free_.pop_back();
  } else {
    first = tokens_.size() / observers_.size();
    tokens_.resize(tokens_.size() + observers_.size());
  }
  std::copy(tokens.begin(), tokens.end(),
            tokens_.begin() + static_cast<std::ptrdiff_t>(first * observers_.size()));
  return first;
}

void ObserverList::async_done(Warp& warp, const Insn& insn, std::uint64_t token) {
  std::vector<std::uint64_t> tokens;
  {
    const std::lock_guard lock(mutex_);
    const auto begin = tokens_.begin() + static_cast<std::ptrdiff_t>(token * observers_.size());
    tokens.assign(begin, begin + static_cast<std::ptrdiff_t>(observers_.size()));
    free_.push_back(token);
  }
  for (std::size_t i = 0; i < observers_.size(); ++i) {
    observers_[i]->async_done(warp, insn, tokens[i]);
  }
}

}  // namespace tilewright::sim
