// Lineage of shared memory: with which swizzle a tensor copy has written the operands of wgmma and
// tcgen05.mma, part of the mma and tmem checks.
//
// Each 16 bytes know the copy that has written them, until something else writes there: what comes
// by st.shared, cp.async or a bulk copy may lie in any order. A descriptor with another swizzle has
// rows of another length or puts their chunks elsewhere, and reads other elements than it means to.
#pragma once

#include "sim/async/tensor_map.h"
#include "sim/event/finding.h"
#include "sim/event/observer.h"

#include <memory>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tilewright::sim {

class OperandChecker final : public Observer {
 public:
  /// `checks_wgmma`, `checks_tensor`: whose operands are looked at.
  OperandChecker(Findings& findings, bool checks_wgmma, bool checks_tensor)
      : findings_(findings), checks_wgmma_(checks_wgmma), checks_tensor_(checks_tensor) {}

  bool wants_instructions() const override { return false; }

  void cta_started(Cta& cta) override;
  void cta_ended(Cta& cta) override;
  void shared_access(Warp& warp, const Insn& insn, const WarpAccess& access) override;
  std::uint64_t async_issued(Warp& warp, const Insn& insn,
                             const AsyncOperation& operation) override;

 private:
  /// A tensor copy into shared memory.
  struct Copy {
    Execution execution;
    TensorSwizzle swizzle = TensorSwizzle::kNone;
  };
  struct CtaState {
    std::vector<Copy> copies{1};        ///< one for each instruction and swizzle
    std::vector<std::uint16_t> chunks;  ///< by 16 bytes: number of a copy, or 0
  };
  /// What was found of one operand.
  struct Tally {
    std::uint32_t num_chunks = 0, num_wrong = 0;
    const Copy* copy = nullptr;  ///< of the first that is wrong
    std::uint32_t address = 0;   ///< of that
  };

  CtaState* state_at(const Warp& warp, std::uint64_t shared_address);
  static std::uint16_t number_of(CtaState& state, const Copy& copy);
  void write(Warp& warp, std::uint64_t address, std::uint64_t bytes, const Copy* copy);
  void read(Warp& warp, const AsyncRange& range, Tally& tally);
  void check(Warp& warp, const Insn& insn, const AsyncOperation& operation, char operand);
  void report(Warp& warp, const Insn& insn, const AsyncOperation& operation, char operand,
              TensorSwizzle swizzle, const Tally& tally);

  Findings& findings_;
  bool checks_wgmma_, checks_tensor_;
  std::unordered_map<const Cta*, std::unique_ptr<CtaState>> ctas_;
  std::set<std::pair<const Insn*, const Insn*>> said_;
};

}  // namespace tilewright::sim
