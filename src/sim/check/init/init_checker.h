// The init check: values that were never given one and reach an address, a branch, a guard, a
// barrier, a tensor operation (strict) or global memory.
#pragma once

#include "sim/event/definedness_observer.h"
#include "sim/event/finding.h"
#include "sim/event/observer.h"
#include "sim/state/byte_shadow.h"
#include "sim/state/code.h"
#include "sim/state/definedness.h"

#include <mutex>
#include <string>
#include <vector>

namespace tilewright::sim {

/// Instructions whose sources are all known to be defined never get here: the engine asks
/// Warp::undefined_flags first.
class InitChecker final : public Observer, public DefinednessObserver {
 public:
  InitChecker(Findings& findings, ByteShadow* global, bool is_strict)
      : findings_(findings), global_(global), is_strict_(is_strict) {}

  bool wants_instructions() const override { return false; }
  bool is_thread_safe() const override { return true; }

  void before(Warp& warp, const Insn& insn, std::uint32_t lanes, std::uint32_t active) override;
  void after_load(Warp& warp, const Insn& insn, std::uint32_t active) override;
  void loaded(Warp& warp, const Insn& insn, Row row, std::uint32_t lanes) override;
  std::uint32_t defined_lanes(const Warp& warp, Row row) const override {
    return defined(warp, row);
  }

  void cta_started(Cta& cta) override;
  void shared_access(Warp& warp, const Insn& insn, const WarpAccess& access) override;
  void global_access(Warp& warp, const Insn& insn, const WarpAccess& access) override;
  void local_access(Warp& warp, const Insn& insn, const WarpAccess& access) override;
  std::uint64_t async_issued(Warp& warp, const Insn& insn,
                             const AsyncOperation& operation) override;

 private:
  struct Use;  // of one instruction, with its rows

  struct LaneBytes;  // of an instruction, in one lane

  /// Of a copy out of shared memory.
  struct UndefinedBytes {
    std::uint64_t count = 0, first = 0, last = 0;  ///< from the start of the copy
    std::uint64_t address = 0;                     ///< of that start
    std::uint8_t mark = 0;                         ///< of the first of them

    /// Counts those of a shadow that lies so far from the start.
    void add(const std::uint8_t* shadow, std::uint64_t bytes, std::uint64_t offset);
  };
  /// An instruction that has stored undefined values.
  struct Store {
    Execution first;
    std::string origin;  ///< of the value, as far as it is known
  };

  void set(Warp& warp, Row row, std::uint32_t lanes, std::uint32_t defined);
  std::uint16_t defined_bytes(const Warp& warp, Row row, std::size_t lane) const;
  void set_bytes(Warp& warp, Row row, std::uint32_t active, std::uint32_t bytes,
                 const std::array<std::uint16_t, kLanes>& masks);
  bool spread_bytes(Warp& warp, const Insn& insn, std::uint32_t active);
  bool spread_mov(Warp& warp, const Insn& insn, std::uint32_t bytes, std::uint32_t active);
  void select_bytes(Warp& warp, const Insn& insn, std::uint32_t chosen, std::uint32_t active);
  bool narrow(Warp& warp, const Insn& insn, std::uint32_t active);
  std::uint32_t defined(const Warp& warp, Row row) const;
  void report(Warp& warp, const Insn& insn, std::uint32_t lanes, const char* what,
              bool is_strict = false);
  std::string missing_value(const Warp& warp);
  void add(Finding finding);
  void report_copy(Warp& warp, const Insn& insn, std::uint32_t lanes, const char* what,
                   const UndefinedBytes& undefined);
  std::uint8_t mark_of(Warp& warp, const Insn& insn, std::uint32_t lanes);
  void report_row(Warp& warp, const Insn& insn, Row row, std::uint32_t active, const char* what,
                  bool is_strict = false);

  void check_guard(Warp& warp, const Insn& insn, std::uint32_t lanes);
  void shuffle(Warp& warp, const Insn& insn, std::uint32_t active);
  void select(Warp& warp, const Insn& insn, const Use& use, std::uint32_t active);
  void multiply(Warp& warp, const Insn& insn, const Use& use);
  void warpgroup_multiply(Warp& warp, const Insn& insn, const Use& use, std::uint32_t active);

  template <class ShadowOf>
  void access(Warp& warp, const Insn& insn, const WarpAccess& access, bool is_global,
              ShadowOf&& shadow_of);
  template <class ShadowOf>
  void write(Warp& warp, const Insn& insn, const WarpAccess& access, bool is_global,
             ShadowOf&& shadow_of);
  std::uint8_t* shadow_of(const Warp& warp, const AsyncRange& range) const;
  bool stored_bytes(Warp& warp, const Insn& insn, const WarpAccess& access);
  void copy_shadow(Warp& warp, const Insn& insn, const AsyncOperation& operation);
  void load_tensor(Warp& warp, const TensorCopy& copy, const AsyncRange& box);
  UndefinedBytes undefined_stored(Warp& warp, const TensorCopy& copy, const AsyncRange& box) const;
  void copy_tensor(Warp& warp, const Insn& insn, const AsyncOperation& operation);
  void read_operands(Warp& warp, const Insn& insn, const AsyncOperation& operation);
  void read_lines(Warp& warp, const Insn& insn, const AsyncOperation& operation);
  static bool has_half_results(const Warp& warp, const Insn& insn);
  /// This wgmma has made undefined results.
  static void forget_results(Warp& warp, const Insn& insn);

  Findings& findings_;
  ByteShadow* global_;
  bool is_strict_;
  std::mutex mutex_;
  std::vector<Store> stores_;  ///< by half of their mark - 1
};

}  // namespace tilewright::sim
