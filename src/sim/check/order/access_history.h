// The last accesses to each 16 bytes of memory.
#pragma once

#include "sim/check/order/clock.h"
#include "sim/event/observer.h"

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace tilewright::sim {

/// Who did what to which bytes of a cell.
struct AccessRecord {
  Agent agent = 0;
  std::uint32_t time = 0;  ///< of the agent
  std::uint32_t insn = 0;  ///< index in KernelCode::insns
  std::uint32_t lanes = 0;
  Agent issuer = 0;         ///< the warp that ran the instruction
  std::uint16_t bytes = 0;  ///< bit i: byte i of the cell
  AccessKind kind = AccessKind::kRead;
  Proxy proxy = Proxy::kGeneric;
  MemoryScope scope = MemoryScope::kNone;  ///< of strong accesses; kNone: weak
};

class AccessCell;

/// Those of a cell from one on.
struct LaterAccesses {
  const AccessCell* cell = nullptr;
  std::uint32_t from = 0;
  template <class F>
  void for_each(F&& f) const;
};

/// Accesses that a later one may have to be ordered after. Mostly one or two: they lie in the cell.
/// Of many readers the latest 32 are kept in order, which each read looks through. Those before
/// them go to a table with a place for each of up to 128 agents, which only writes look at. Where
/// more agents than that read, a later one takes the place of an earlier one there.
class AccessCell {
 public:
  static constexpr std::uint32_t kBytes = 16;

  /// Calls conflict(record, later) for each access that meets `now` in a byte and is of another
  /// agent, and forgets those that need not be known any more. conflict() returns whether it is
  /// ordered; `later` are the accesses that came after it.
  template <class Conflict>
  void add(const AccessRecord& now, Conflict&& conflict) {
    // What was known before another agent wrote comes anew: it may have seen what was written.
    for (std::uint32_t i = size_; i-- > 0;) {
      if (is_known(at(i), now)) return;
      if (at(i).kind != AccessKind::kRead && (at(i).bytes & now.bytes) != 0) break;
    }
    std::uint32_t kept = 0;
    for (std::uint32_t i = 0; i < size_; ++i) {
      AccessRecord& old = at(i);
      if ((old.bytes & now.bytes) != 0) {
        const bool is_ordered = old.agent == now.agent || conflict(old, LaterAccesses{this, i + 1});
        const bool covers = now.kind != AccessKind::kRead || old.kind == AccessKind::kRead;
        if (is_ordered && covers) old.bytes &= static_cast<std::uint16_t>(~now.bytes);
      }
      if (old.bytes == 0) continue;
      if (kept != i) at(kept) = old;
      ++kept;
    }
    size_ = kept;
    if (older_ != nullptr && now.kind != AccessKind::kRead) add_to_older(now, conflict);
    if (size_ >= kMostWithReads && now.kind == AccessKind::kRead) forget_oldest_read();
    push(now);
  }
  template <class F>
  void for_each(F&& f, std::uint32_t from = 0) const {
    for (std::uint32_t i = from; i < size_; ++i) f(i < kInside ? inside_[i] : more_[i - kInside]);
  }

 private:
  static constexpr std::uint32_t kInside = 2;
  static constexpr std::size_t kFewestMore = 6;  // with them, two for each warp of a warpgroup
  static constexpr std::uint32_t kMostWithReads = 32;  // as many as warps in a CTA
  static constexpr std::size_t kFewestOlder = 16, kMostOlder = 128;

  void forget_oldest_read() {
    std::uint32_t i = 0;
    while (i < size_ && at(i).kind != AccessKind::kRead) ++i;
    if (i == size_) return;
    remember_older(at(i));
    for (--size_; i < size_; ++i) at(i) = at(i + 1);
  }
  void remember_older(const AccessRecord& read) {
    if (older_ == nullptr) older_ = std::make_unique<std::vector<AccessRecord>>(kFewestOlder);
    for (;;) {
      AccessRecord& place = (*older_)[read.agent % older_->size()];
      const bool is_free = place.bytes == 0 || place.agent == read.agent;
      if (is_free || older_->size() == kMostOlder) {
        const bool is_same = place.agent == read.agent && place.time == read.time &&
                             place.insn == read.insn && place.scope == read.scope;
        const std::uint16_t bytes = is_same ? place.bytes : std::uint16_t{0};
        place = read;
        place.bytes |= bytes;
        return;
      }
      // Who had different places has them in a larger table, too.
      std::vector<AccessRecord> larger(2 * older_->size());
      for (const AccessRecord& old : *older_) {
        if (old.bytes != 0) larger[old.agent % larger.size()] = old;
      }
      *older_ = std::move(larger);
    }
  }
  template <class Conflict>
  void add_to_older(const AccessRecord& now, Conflict&& conflict) {
    bool is_empty = true;
    for (AccessRecord& old : *older_) {
      const bool meets = (old.bytes & now.bytes) != 0;
      if (meets && (old.agent == now.agent || conflict(old, LaterAccesses{this, size_}))) {
        old.bytes &= static_cast<std::uint16_t>(~now.bytes);
      }
      is_empty &= old.bytes == 0;
    }
    if (is_empty) older_.reset();
  }
  /// The same agent did the same at the same moment.
  static bool is_known(const AccessRecord& old, const AccessRecord& now) {
    return old.agent == now.agent && old.time == now.time && old.kind == now.kind &&
           old.proxy == now.proxy && old.scope == now.scope && (now.bytes & ~old.bytes) == 0;
  }
  AccessRecord& at(std::uint32_t i) { return i < kInside ? inside_[i] : more_[i - kInside]; }
  void push(const AccessRecord& now) {
    if (size_ > 0) {
      AccessRecord& last = at(size_ - 1);
      if (last.agent == now.agent && last.time == now.time && last.insn == now.insn &&
          last.kind == now.kind) {
        last.bytes |= now.bytes;
        last.lanes |= now.lanes;
        return;
      }
    }
    if (size_ < kInside) {
      inside_[size_] = now;
    } else {
      if (more_.capacity() == 0) more_.reserve(kFewestMore);
      more_.resize(size_ - kInside);
      more_.push_back(now);
    }
    ++size_;
  }

  std::array<AccessRecord, kInside> inside_;
  std::uint32_t size_ = 0;
  std::vector<AccessRecord> more_;
  std::unique_ptr<std::vector<AccessRecord>> older_;  // by agent modulo the size
};

template <class F>
void LaterAccesses::for_each(F&& f) const {
  cell->for_each(f, from);
}

/// Of reads, whether earlier reads are ordered before them: a question of agents and moments, which
/// are mostly the same from cell to cell and from access to access.
class ReadsBefore {
 public:
  /// What comes now knows this much.
  void ask_for(const Knowledge& knows) {
    if (knows_ == &knows) return;
    knows_ = &knows;
    forget();
  }
  /// Someone may have learned something.
  void forget() {
    if (++generation_ != 0) return;
    answers_ = {};
    generation_ = 1;
  }
  template <class Find>
  bool of(const AccessRecord& old, const Find& find) {
    Answer& answer = answers_[old.agent % kAnswers];
    if (answer.generation != generation_ || answer.agent != old.agent || answer.time != old.time ||
        answer.issuer != old.issuer) {
      answer = {generation_, old.agent, old.issuer, old.time, find()};
    }
    return answer.is_before;
  }

 private:
  static constexpr std::size_t kAnswers = 64;  // a CTA of 32 warps has some 200 agents
  struct Answer {
    std::uint32_t generation = 0;
    Agent agent = 0, issuer = 0;
    std::uint32_t time = 0;
    bool is_before = false;
  };
  std::array<Answer, kAnswers> answers_{};
  std::uint32_t generation_ = 1;
  const Knowledge* knows_ = nullptr;
};

/// Of global memory: pages of cells that come to be when they are used.
class GlobalHistory {
 public:
  static constexpr std::uint64_t kPageBytes = 4096;

  AccessCell& at(std::uint64_t address) {
    const std::uint64_t page = address / kPageBytes;
    if (page != last_page_ || last_ == nullptr) {
      std::unique_ptr<Page>& found = pages_[page];
      if (!found) found = std::make_unique<Page>();
      last_ = found.get();
      last_page_ = page;
    }
    return (*last_)[address % kPageBytes / AccessCell::kBytes];
  }

 private:
  using Page = std::array<AccessCell, kPageBytes / AccessCell::kBytes>;
  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
  std::uint64_t last_page_ = 0;
  Page* last_ = nullptr;
};

}  // namespace tilewright::sim
