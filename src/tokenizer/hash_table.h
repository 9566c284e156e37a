// The two tables that encoding asks all the time: text to token, two tokens to their merge.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

namespace tilewright::tokenizer {

inline std::uint64_t mix(std::uint64_t word) {
  word *= 0x9e3779b97f4a7c15;
  return word ^ word >> 32;
}

inline std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = text.size(), word;
  const char* at = text.data();
  std::size_t left = text.size();
  for (; left >= sizeof word; at += sizeof word, left -= sizeof word) {
    std::memcpy(&word, at, sizeof word);
    hash = mix(hash ^ word);
  }
  word = 0;
  std::memcpy(&word, at, left);
  return mix(mix(hash ^ word));
}

/// Open addressing: a slot is free if its value is kFree. The table is at most half full.
class TokenTable {
 public:
  static constexpr std::int32_t kNone = -1;

  void reserve(std::size_t count) {
    slots_.assign(std::bit_ceil(2 * count + 2), Slot{0, kNone});
    mask_ = slots_.size() - 1;
  }

  /// The token whose text `text_of` gives as `text`, kNone if there is none.
  template <class TextOf>
  std::int32_t find(std::string_view text, TextOf&& text_of) const {
    const std::uint64_t hash = hash_of(text);
    for (std::size_t i = hash & mask_;; i = (i + 1) & mask_) {
      const Slot& slot = slots_[i];
      if (slot.id == kNone) return kNone;
      if (slot.tag == tag_of(hash) && text_of(slot.id) == text) return slot.id;
    }
  }

  /// Of a text that is not in the table yet.
  void insert(std::string_view text, std::int32_t id) {
    const std::uint64_t hash = hash_of(text);
    std::size_t i = hash & mask_;
    while (slots_[i].id != kNone) i = (i + 1) & mask_;
    slots_[i] = {tag_of(hash), id};
  }

 private:
  struct Slot {
    std::uint32_t tag;
    std::int32_t id;
  };
  static std::uint32_t tag_of(std::uint64_t hash) { return static_cast<std::uint32_t>(hash >> 32); }

  std::vector<Slot> slots_ = {{0, kNone}};
  std::size_t mask_ = 0;
};

struct Merge {
  std::uint32_t rank = UINT32_MAX;  ///< its place in the list; UINT32_MAX: there is no such merge
  std::int32_t id = 0;              ///< the token that the two become
};

/// From two tokens to their merge; at most half full.
class MergeTable {
 public:
  /// Of an empty table.
  void reserve(std::size_t count) {
    slots_.assign(std::bit_ceil(2 * count + 2), Slot{});
    mask_ = slots_.size() - 1;
  }

  Merge find(std::int32_t left, std::int32_t right) const {
    const std::uint64_t key = key_of(left, right);
    for (std::size_t i = mix(key) & mask_;; i = (i + 1) & mask_) {
      if (slots_[i].key == key) return slots_[i].merge;
      if (slots_[i].key == kFree) return {};
    }
  }

  /// False if the two had a merge already.
  bool insert(std::int32_t left, std::int32_t right, Merge merge) {
    const std::uint64_t key = key_of(left, right);
    std::size_t i = mix(key) & mask_;
    for (; slots_[i].key != kFree; i = (i + 1) & mask_)
      if (slots_[i].key == key) return false;
    slots_[i] = {key, merge};
    if (2 * ++count_ > slots_.size()) grow();
    return true;
  }

 private:
  static constexpr std::uint64_t kFree = UINT64_MAX;  // ids are not negative
  struct Slot {
    std::uint64_t key = kFree;
    Merge merge;
  };
  static std::uint64_t key_of(std::int32_t left, std::int32_t right) {
    return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
  }
  void grow() {
    const std::vector<Slot> old = std::move(slots_);
    reserve(old.size());
    for (const Slot& slot : old) {
      if (slot.key == kFree) continue;
      std::size_t i = mix(slot.key) & mask_;
      while (slots_[i].key != kFree) i = (i + 1) & mask_;
      slots_[i] = slot;
    }
  }

  std::vector<Slot> slots_ = std::vector<Slot>(2);
  std::size_t mask_ = 1, count_ = 0;
};

}  // namespace tilewright::tokenizer
