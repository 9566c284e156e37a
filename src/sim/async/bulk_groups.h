// What one thread knows of its own asynchronous copies: groups, and mbarriers to arrive on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tilewright::sim {

/// The copies of one thread and of one kind: bulk stores and reductions
/// (cp.async.bulk.commit_group, wait_group[.read]), or cp.async (commit_group, wait_group,
/// wait_all, mbarrier.arrive). Groups complete in order, an empty one at once. Costs nothing while
/// no copy is under way.
class CopyGroups {
 public:
  using CopyId = std::uint64_t;

  /// How far a copy is: its source has been read (and may be written again), or it is done.
  enum class Stage : std::uint8_t { kRead, kDone };

  /// A copy that belongs to the next group to be committed.
  CopyId issue();
  /// Copies may get on in any order. kDone includes kRead.
  void advance(CopyId copy, Stage stage);

  void commit() noexcept { ++num_committed_; }

  /// wait_group N: all groups but the newest max_pending ones have reached the stage. Copies that
  /// are not in a committed group do not matter.
  bool has_at_most(std::uint32_t max_pending, Stage stage = Stage::kDone) const;
  /// cp.async.wait_all: committed or not.
  bool is_all_done() const noexcept { return copies_.empty(); }
  /// Committed groups that are not done.
  std::uint32_t num_pending() const;

  /// cp.async.mbarrier.arrive at this mbarrier, when all copies issued so far are done. Without
  /// .noinc the caller first calls mbarrier_add_pending(). When no copy is under way it is due at
  /// once: call take_arrivals() after this and after every advance().
  void arrive_when_done(std::uint64_t mbarrier_address);
  /// The mbarriers whose turn has come, each one mbarrier_arrive(), in the order of the calls.
  std::vector<std::uint64_t> take_arrivals();
  bool has_deferred_arrivals() const noexcept { return !arrivals_.empty(); }

 private:
  struct Copy {
    CopyId id;
    std::uint64_t group;  // number of groups committed before it
    bool is_read, is_done;
  };
  struct Arrival {
    CopyId end;  // copies before this one have to be done
    std::uint64_t address;
  };

  CopyId next_id_ = 0;
  std::uint64_t num_committed_ = 0;
  std::vector<Copy> copies_;  // in the order of issue, the first one not done
  std::vector<Arrival> arrivals_;
};

}  // namespace tilewright::sim
