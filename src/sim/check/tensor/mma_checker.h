// The mma check, as far as it is about registers and the four warps of a warpgroup. What is about
// shared memory is in order_checker.h.
#pragma once

#include "sim/event/finding.h"
#include "sim/event/observer.h"
#include "sim/host/reused_memory.h"

#include <array>
#include <deque>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

namespace tilewright::sim {

class MmaChecker final : public Observer {
 public:
  MmaChecker(Findings& findings, bool is_strict) : findings_(findings), is_strict_(is_strict) {}

  void launch_started(Grid& grid) override;
  void cta_started(Cta& cta) override;
  void cta_ended(Cta& cta) override;
  void executing(Warp& warp, const Insn& insn, std::uint32_t active) override;
  void wgmma_issued(Warp& warp, const Insn& insn, const WgmmaEvent& event) override;
  void fence(Warp& warp, const Insn& insn, std::uint32_t lanes, const FenceEvent& event) override;
  void group_committed(Warp& warp, const Insn& insn, GroupKind kind, std::uint32_t lanes) override;
  void group_waited(Warp& warp, const Insn& insn, GroupKind kind, std::uint32_t lanes,
                    std::uint32_t num_open) override;

 private:
  /// Of a register.
  struct Register {
    std::uint32_t accumulates = 0;  ///< the group, from 1, whose wgmma writes it; 0: none
    std::uint32_t feeds = 0;        ///< ... reads it as A
    std::uint32_t shape_n = 0;      ///< of the wgmma that writes it
    const Insn* wgmma = nullptr;    ///< the last one that uses it
    std::uint64_t written = 0;      ///< when another instruction wrote it last
    const Insn* writer = nullptr;
  };
  struct WarpState {
    std::vector<Register, Reused<Register>> registers;  ///< by RowUnits
    std::uint64_t now = 1;
    std::uint64_t fenced = 0;
    std::uint32_t group = 1;  ///< that the next wgmma belongs to
    std::uint32_t done = 0;   ///< groups up to this one are over
  };
  /// What all four warps must issue alike.
  struct Issue {
    const Insn* insn = nullptr;
    std::uint64_t a = 0, b = 0;
    bool reads_accumulators = false;
    std::uint32_t warp = 0;
  };
  struct Warpgroup {
    std::deque<Issue> issues;  ///< not yet issued by all
    std::uint64_t first = 0;   ///< number of the first of them
    std::array<std::uint64_t, 4> count{};
  };
  struct CtaState {
    std::vector<WarpState> warps;
    std::vector<Warpgroup> groups;
  };

  WarpState& state_of(const Warp& warp);
  void check_access(Warp& warp, const Insn& insn, WarpState& state, Row row, bool is_write,
                    std::uint32_t active, bool is_copy);
  void copy(Warp& warp, WarpState& state, Row to, Row from);
  void check_fence(Warp& warp, const Insn& insn, WarpState& state, Row row);
  void compare(Warp& warp, const Insn& insn, const WgmmaEvent& event);
  void report(Warp& warp, const Insn& insn, std::uint32_t lanes, std::string what,
              const Insn* other, const char* role, std::string missing, bool is_strict = false);

  Findings& findings_;
  bool is_strict_;
  std::unordered_map<const Cta*, std::unique_ptr<CtaState>> ctas_;
  const Warp* last_warp_ = nullptr;
  WarpState* last_ = nullptr;
  std::vector<std::uint32_t> stretches_;
  std::set<std::pair<const Insn*, const Insn*>> reported_;  ///< one register is enough
};

}  // namespace tilewright::sim
