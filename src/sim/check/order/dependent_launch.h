// The race check between launches: a kernel launched with programmatic serialization may begin
// before the kernels before it have ended, and has to ask for that (griddepcontrol.wait) before it
// touches what they write, or writes what they read.
#pragma once

#include "sim/event/finding.h"
#include "sim/event/observer.h"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace tilewright::sim {

class PhaseChecker;

/// Global memory that a launch has read, written, and used with atomics or strong accesses, which
/// may be meant to meet.
class TouchedBytes {
 public:
  enum Use : std::uint8_t { kRead, kWritten, kShared };

  void add(Use use, std::uint64_t address, std::uint64_t bytes);
  bool has(Use use, std::uint64_t address, std::uint64_t bytes) const;

 private:
  /// A bit for each so many bytes, and each use.
  class Units {
   public:
    explicit Units(std::uint64_t unit_bytes) : unit_bytes_(unit_bytes) {}
    void add(Use use, std::uint64_t address, std::uint64_t bytes);
    bool has(Use use, std::uint64_t address, std::uint64_t bytes) const;

   private:
    static constexpr std::uint64_t kUnitsOfPage = 1024, kBits = 64;
    using Page = std::array<std::array<std::uint64_t, kUnitsOfPage / kBits>, 3>;

    /// Calls f(page, index, mask) for each 64 units.
    template <class F>
    void for_each_part(std::uint64_t address, std::uint64_t bytes, F&& f) const;

    std::uint64_t unit_bytes_;
    std::unordered_map<std::uint64_t, Page> pages_;
    std::uint64_t last_number_ = ~std::uint64_t{0};
    Page* last_ = nullptr;
  };
  static constexpr std::uint64_t kWordBytes = 4;

  /// Most accesses are of whole words; neighbours in one word may belong to different kernels.
  Units words_{kWordBytes}, bytes_{1};
};

/// What is kept of a launch for those after it.
struct PastLaunch {
  std::string kernel;
  TouchedBytes footprint;
};

/// Launches in the order of a stream, as far as they may still be under way.
class LaunchHistory {
 public:
  using Launches = std::vector<std::shared_ptr<const PastLaunch>>;

  /// The host knows that all has ended.
  void clear();

  Launches at_start;    ///< may be under way while the next one begins
  Launches after_wait;  ///< and also after its griddepcontrol.wait: its predecessor had none
};

/// Of one launch. Follows which warps know that the launches before have ended.
class LaunchChecker final : public Observer {
 public:
  /// `phases` knows what orders the warps; nullptr if the kernel has no griddepcontrol.
  LaunchChecker(Findings& findings, LaunchHistory& history, PhaseChecker* phases,
                bool is_dependent);

  bool wants_instructions() const override { return false; }

  void launch_started(Grid& grid) override;
  void launch_ended(Grid& grid) override;
  void global_access(Warp& warp, const Insn& insn, const WarpAccess& access) override;
  std::uint64_t async_issued(Warp& warp, const Insn& insn,
                             const AsyncOperation& operation) override;
  void fence(Warp& warp, const Insn& insn, std::uint32_t lanes, const FenceEvent& event) override;

 private:
  void touch(Warp& warp, const Insn& insn, std::uint32_t lanes, TouchedBytes::Use use, bool writes,
             std::uint64_t address, std::uint64_t bytes);
  void report(Warp& warp, const Insn& insn, std::uint32_t lanes, const PastLaunch& past,
              bool writes, bool was_written, bool is_waited);

  Findings& findings_;
  LaunchHistory& history_;
  PhaseChecker* phases_;
  bool is_dependent_;
  std::shared_ptr<PastLaunch> own_;
  bool has_waited_ = false, waits_before_it_triggers_ = false;
  std::unordered_map<std::uint64_t, bool> has_triggered_;  ///< by CTA
};

}  // namespace tilewright::sim
