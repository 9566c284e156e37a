// Vector clocks: what an agent knows to have happened.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tilewright::sim {

/// A warp, or a stream of asynchronous work that can be waited for.
using Agent = std::uint32_t;

/// By agent the last moment of its own count that is known; 0 for agents never heard of.
class Clock {
 public:
  std::uint32_t of(Agent agent) const noexcept {
    const auto at = find(agent);
    return at != entries_.end() && at->agent == agent ? at->time : 0;
  }
  void raise(Agent agent, std::uint32_t time) {
    const auto at = find(agent);
    if (at != entries_.end() && at->agent == agent) {
      const auto index = static_cast<std::size_t>(at - entries_.begin());
      entries_[index].time = std::max(entries_[index].time, time);
    } else {
      entries_.insert(at, {agent, time});
    }
  }
  void join(const Clock& other) {
    if (other.entries_.empty() || this == &other) return;
    if (has_same_agents(other)) {
      for (std::size_t i = 0; i < entries_.size(); ++i) {
        entries_[i].time = std::max(entries_[i].time, other.entries_[i].time);
      }
      return;
    }
    std::vector<Entry> merged;
    merged.reserve(entries_.size() + other.entries_.size());
    auto a = entries_.begin();
    auto b = other.entries_.begin();
    while (a != entries_.end() || b != other.entries_.end()) {
      if (b == other.entries_.end() || (a != entries_.end() && a->agent < b->agent)) {
        merged.push_back(*a++);
      } else if (a == entries_.end() || b->agent < a->agent) {
        merged.push_back(*b++);
      } else {
        merged.push_back({a->agent, std::max(a->time, b->time)});
        ++a, ++b;
      }
    }
    entries_ = std::move(merged);
  }
  void clear() noexcept { entries_.clear(); }
  bool is_empty() const noexcept { return entries_.empty(); }

 private:
  struct Entry {
    Agent agent;
    std::uint32_t time;
  };
  std::vector<Entry>::const_iterator find(Agent agent) const noexcept {
    return std::lower_bound(entries_.begin(), entries_.end(), agent,
                            [](const Entry& entry, Agent wanted) { return entry.agent < wanted; });
  }
  bool has_same_agents(const Clock& other) const noexcept {
    return std::equal(entries_.begin(), entries_.end(), other.entries_.begin(),
                      other.entries_.end(),
                      [](const Entry& a, const Entry& b) { return a.agent == b.agent; });
  }

  std::vector<Entry> entries_;  // sorted by agent
};

/// What has happened; how much of it the async proxy sees as well, in shared and in global memory,
/// because a thread fenced; how much because the thread that did it fenced (only told in strict);
/// how much of it a fence of gpu scope or wider has come after, so that a relaxed access may pass
/// it on; how much of it copies may read as tensor maps, once they acquire it; what came before
/// a cluster barrier that was arrived at .relaxed; what another CTA handed over by an mbarrier at a
/// scope that does not hold both, and how much of that had been fenced for copies; and up to where
/// all lanes of a warp are meant, not just one that arrived for it (only told in strict).
struct Knowledge {
  Clock seen, fenced_shared, fenced_global, released, released_maps, met;
  Clock fenced_shared_by_writer, fenced_global_by_writer;
  Clock narrow, narrow_fenced, converged;

  void join(const Knowledge& other) {
    seen.join(other.seen);
    join_fenced(other);
    released.join(other.released);
    met.join(other.met);
    narrow.join(other.narrow);
    narrow_fenced.join(other.narrow_fenced);
    converged.join(other.converged);
  }
  void join_narrow(const Knowledge& other) {
    narrow.join(other.seen);
    narrow.join(other.narrow);
    narrow_fenced.join(other.fenced_shared);
    narrow_fenced.join(other.narrow_fenced);
    converged.join(other.converged);
  }
  void join_fenced(const Knowledge& other) {
    fenced_shared.join(other.fenced_shared);
    fenced_global.join(other.fenced_global);
    fenced_shared_by_writer.join(other.fenced_shared_by_writer);
    fenced_global_by_writer.join(other.fenced_global_by_writer);
    released_maps.join(other.released_maps);
  }
  /// The async proxy sees this much of an agent without a fence: it did it itself.
  void raise_fenced(Agent agent, std::uint32_t time) {
    fenced_shared.raise(agent, time);
    fenced_global.raise(agent, time);
  }
  void clear() noexcept {
    for (Clock* clock : {&seen, &fenced_shared, &fenced_global, &released, &released_maps, &met,
                         &fenced_shared_by_writer, &fenced_global_by_writer, &narrow,
                         &narrow_fenced, &converged}) {
      clock->clear();
    }
  }
};

}  // namespace tilewright::sim
