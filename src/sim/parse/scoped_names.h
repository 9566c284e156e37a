// Names with block scope.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tilewright::sim {

/// What names mean in nested scopes; a declaration hides those of outer scopes until its scope
/// closes. The names are views: what they point to must outlive their scope.
template <class Value>
class ScopedNames {
 public:
  struct Entry {
    std::string_view name;
    Value value;
    int depth = 0;
    std::uint32_t hidden = kNothing;  ///< the entry of an outer scope that this one hides
  };

  int depth() const noexcept { return depth_; }
  void open() { ++depth_; }

  void close() {
    forget_most();
    for (; !entries_.empty() && entries_.back().depth == depth_; entries_.pop_back()) {
      const Entry& entry = entries_.back();
      if (entry.hidden == kNothing) {
        innermost_.erase(entry.name);
      } else {
        innermost_[entry.name] = entry.hidden;
      }
    }
    --depth_;
  }

  /// Null if there is none. The pointer is good until the next declare() or close().
  Entry* find(std::string_view name) {
    const auto found = innermost_.find(name);
    return found == innermost_.end() ? nullptr : &entries_[found->second];
  }

  /// Null if the name is new in the scope, else the entry that is there already.
  Entry* declare(std::string_view name, Value value) {
    const auto entry_idx = static_cast<std::uint32_t>(entries_.size());
    const auto [place, is_new] = innermost_.try_emplace(name, entry_idx);
    Entry entry{name, std::move(value), depth_, kNothing};
    if (!is_new) {
      if (entries_[place->second].depth == depth_) return &entries_[place->second];
      entry.hidden = place->second;
      place->second = entry_idx;
    }
    entries_.push_back(std::move(entry));
    return nullptr;
  }

  const std::vector<Entry>& entries() const noexcept { return entries_; }

 private:
  /// A function declares thousands of registers beside a few names of the module: to look each up
  /// again takes longer than to begin anew with those that stay. They hide nothing then.
  void forget_most() {
    std::size_t num_left = entries_.size();
    while (num_left > 0 && entries_[num_left - 1].depth == depth_) --num_left;
    if (entries_.size() - num_left < 2 * num_left + 16) return;
    entries_.resize(num_left);
    innermost_.clear();
    for (std::size_t i = 0; i < num_left; ++i) {
      innermost_[entries_[i].name] = static_cast<std::uint32_t>(i);
    }
  }

  static constexpr std::uint32_t kNothing = ~std::uint32_t{0};

  std::unordered_map<std::string_view, std::uint32_t> innermost_;
  std::vector<Entry> entries_;
  int depth_ = 0;
};

}  // namespace tilewright::sim
