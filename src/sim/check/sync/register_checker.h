// The sync check of setmaxnreg: .dec gives registers back and .inc takes them, and the four warps
// of a warpgroup do the same. (If the pool of a CTA has too few, that is a deadlock: exec/stop.h.)
#pragma once

#include "sim/event/finding.h"
#include "sim/event/observer.h"

#include <array>
#include <cstddef>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace tilewright::sim {

class RegisterChecker final : public Observer {
 public:
  RegisterChecker(Findings& findings, bool is_strict)
      : findings_(findings), is_strict_(is_strict) {}

  bool wants_instructions() const override { return false; }
  bool is_thread_safe() const override { return true; }

  void cta_ended(Cta& cta) override;
  void registers_set(Warp& warp, const Insn& insn, const RegisterEvent& event) override;

 private:
  static constexpr std::size_t kWarps = 4;  ///< of a warpgroup
  struct Change {
    Execution by;
    bool is_inc = false;
    std::uint32_t count = 0;
  };
  /// What the warps of a warpgroup have executed.
  using Warpgroup = std::array<std::vector<Change>, kWarps>;

  void check_change(const Change& now, std::uint32_t before);
  void check_whole(const Warp& warp, const Change& now);
  void check_same(const Warpgroup& group, std::size_t warp);
  void check_ended(const Warpgroup& group);
  void report(std::string what, std::vector<FindingPlace> places, std::string missing,
              const Change& by, bool is_strict = false);

  Findings& findings_;
  bool is_strict_;
  std::mutex mutex_;
  std::unordered_map<const Cta*, std::vector<Warpgroup>> ctas_;
};

}  // namespace tilewright::sim
