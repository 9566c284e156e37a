// The last accesses to each 16 bytes of memory.
#pragma once

#include "sim/check/clock.h"
#include "sim/check/observer.h"

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

/// Accesses that a later one may have to be ordered after.
class AccessCell {
 public:
  static constexpr std::uint32_t kBytes = 16;

  /// Calls conflict(record) for each access that meets `now` in a byte and is of another agent, and
  /// forgets those that need not be known any more. conflict() returns whether it is ordered.
  template <class Conflict>
  void add(const AccessRecord& now, Conflict&& conflict) {
    std::size_t kept = 0;
    bool is_merged = false;
    for (std::size_t i = 0; i < records_.size(); ++i) {
      AccessRecord& old = records_[i];
      if ((old.bytes & now.bytes) != 0) {
        const bool is_ordered = old.agent == now.agent || conflict(old);
        const bool covers = now.kind != AccessKind::kRead || old.kind == AccessKind::kRead;
        if (is_ordered && covers) old.bytes &= static_cast<std::uint16_t>(~now.bytes);
      }
      if (old.bytes == 0) continue;
      if (!is_merged && old.agent == now.agent && old.time == now.time && old.insn == now.insn &&
          old.kind == now.kind) {
        old.bytes |= now.bytes;
        old.lanes |= now.lanes;
        is_merged = true;
      }
      if (kept != i) records_[kept] = old;
      ++kept;
    }
    records_.resize(kept);
    if (!is_merged) records_.push_back(now);
  }
  const std::vector<AccessRecord>& records() const noexcept { return records_; }

 private:
  std::vector<AccessRecord> records_;
};

/// Of global memory: pages of cells that come to be when they are used.
class GlobalHistory {
 public:
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
  static constexpr std::uint64_t kPageBytes = 4096;
  using Page = std::array<AccessCell, kPageBytes / AccessCell::kBytes>;
  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
  std::uint64_t last_page_ = 0;
  Page* last_ = nullptr;
};

}  // namespace tilewright::sim
