// Races between the lanes of one warp, a part of the race check: lanes that store different values
// to one place by one instruction, and lanes that diverged and touch the same shared memory without
// a bar.warp.sync in between.
//
// Code that a warp runs together is taken as ordered, and so is what comes after diverged lanes
// have met again, though the manual promises neither: compilers and kernels rely on both. `strict`
// demands a bar.warp.sync (or anything else that orders memory) there too.
#pragma once

#include "sim/event/finding.h"
#include "sim/event/observer.h"

#include <array>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

namespace tilewright::sim {

class LaneChecker final : public Observer {
 public:
  LaneChecker(Findings& findings, bool is_strict) : findings_(findings), is_strict_(is_strict) {}

  bool wants_instructions() const override { return false; }

  void launch_started(Grid& grid) override;
  void cta_started(Cta& cta) override;
  void cta_ended(Cta& cta) override;
  void shared_access(Warp& warp, const Insn& insn, const WarpAccess& access) override;
  void global_access(Warp& warp, const Insn& insn, const WarpAccess& access) override;
  void mbarrier(Warp& warp, const Insn& insn, const MbarrierEvent& event) override;
  void barrier(Warp& warp, const Insn& insn, std::uint32_t lanes,
               const BarrierEvent& event) override;
  void lanes_met(Warp& warp, const Insn& insn, std::uint32_t lanes) override;
  std::uint64_t async_issued(Warp& warp, const Insn& insn,
                             const AsyncOperation& operation) override;
  void group_committed(Warp& warp, const Insn& insn, GroupKind kind, std::uint32_t lanes) override;
  void group_waited(Warp& warp, const Insn& insn, GroupKind kind, std::uint32_t lanes,
                    std::uint32_t num_open) override;

 private:
  /// What a lane did to a word of four bytes.
  struct Record {
    std::uint8_t lane = 0;
    std::uint8_t bytes = 0;  ///< bit i: byte i of the word
    bool is_write = false, is_strong = false;
    const Insn* insn = nullptr;
    std::uint64_t moment = 0, access = 0;
  };
  /// The records of each word, in the order in which they came. It is emptied often: that costs
  /// nothing, and what it had allocated is used again.
  class Words {
   public:
    using List = std::vector<Record>;
    /// Of a word that may have none yet; valid until the next call.
    List& at(std::uint64_t word);
    void clear() noexcept;
    bool is_empty() const noexcept { return num_lists_ == 0; }

   private:
    struct Slot {
      std::uint64_t word = 0;
      std::uint32_t generation = 0;  ///< in use if it is the present one
      std::uint32_t list = 0;
    };
    Slot& slot_of(std::uint64_t word);
    void grow();

    std::vector<Slot> slots_;  ///< as many as a power of two, at least twice the lists
    std::vector<List> lists_;  ///< those behind num_lists_ are spare
    std::uint32_t num_lists_ = 0, generation_ = 1;
  };
  struct CopiedWord {
    std::uint64_t word = 0;
    std::uint32_t lane = 0;
  };
  using CopyGroup = std::vector<CopiedWord>;
  /// Groups of copies: of no group yet, and those that nobody has waited for.
  struct Copies {
    CopyGroup open;
    std::vector<CopyGroup> committed;  ///< the oldest first
    void commit();
  };
  /// The last few moments at which a lane released something.
  class Moments {
   public:
    void add(std::uint64_t moment) noexcept { moments_[count_++ % moments_.size()] = moment; }
    /// The first of them after `moment`; none: the greatest number.
    std::uint64_t first_after(std::uint64_t moment) const noexcept;

   private:
    std::array<std::uint64_t, 16> moments_{};
    std::uint64_t count_ = 0;
  };
  struct WarpState {
    std::uint64_t moment = 1;  ///< counts what orders lanes
    std::uint64_t num_accesses = 0, num_joins = 0;
    std::array<std::uint64_t, 32> acquired{};  ///< by lane the last moment
    std::array<Moments, 32> released;          ///< by lane
    Words words;
    Copies copies;                         ///< cp.async; strict only
    std::map<std::uint32_t, Copies> bulk;  ///< cp.async.bulk from shared memory, by lane; too
  };
  /// Of one access and an earlier instruction.
  struct Conflict {
    std::uint32_t lanes = 0, old_lanes = 0;
    std::uint64_t from = ~std::uint64_t{0}, to = 0;
    bool was_write = false;
  };

  WarpState& state_of(const Warp& warp);
  static void release(WarpState& state, std::uint32_t lanes);
  static void acquire(WarpState& state, std::uint32_t lanes);
  static bool is_ordered(const WarpState& state, const Record& old, std::uint32_t lane);
  static void bulk_issued(WarpState& state, const Insn& insn, const AsyncOperation& operation);
  static void wait(WarpState& state, Copies& copies, std::uint32_t num_open, bool are_writes);
  void check_divergence(Warp& warp, const Insn& insn, const WarpAccess& access);
  void check_same_place(Warp& warp, const Insn& insn, const WarpAccess& access, bool is_shared);
  void report(Warp& warp, const Insn& insn, const Insn& old, const Conflict& conflict,
              bool is_write);

  Findings& findings_;
  bool is_strict_;
  std::unordered_map<const Cta*, std::vector<WarpState>> ctas_;
  std::vector<std::vector<WarpState>> ended_;  ///< of CTAs that have: their memory is used again
  const Warp* last_warp_ = nullptr;
  WarpState* last_ = nullptr;
  std::vector<std::uint32_t> stretches_;
  std::map<std::pair<const Insn*, const Insn*>, Findings::Handle> said_;
};

}  // namespace tilewright::sim
