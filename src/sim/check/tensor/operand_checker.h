// Lineage of shared memory: which tensor copies have written the operands of wgmma and
// tcgen05.mma, part of the mma and tmem checks.
//
// Each 16 bytes know the copy that has written them, until something else writes there: what comes
// by st.shared, cp.async or a bulk copy may lie in any order. A descriptor must read what a copy
// wrote in the order in which it wrote it: with its swizzle, line after line, each from where it
// begins. One with another swizzle, stride or major index reads other elements than it means to.
#pragma once

#include "sim/async/tensor_map.h"
#include "sim/event/finding.h"
#include "sim/event/observer.h"

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tilewright::sim {

/// What the layouts of operands keep together.
inline constexpr std::uint32_t kOperandChunkBytes = 16;

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
  /// A tensor copy into shared memory. Addresses are those of its CTA, before swizzling.
  struct Copy {
    Execution execution;
    TensorSwizzle swizzle = TensorSwizzle::kNone;
    std::uint32_t address = 0;     ///< of its first byte
    std::uint32_t line_bytes = 0;  ///< a line is a row of the box, at this distance from the next
    std::uint32_t num_lines = 0;   ///< along the second dimension of the box; then others follow
    std::uint64_t mbarrier = 0;    ///< that it completes on
  };
  /// An instruction, a place and a barrier: those that follow are the same copy.
  using CopyName = std::tuple<const Insn*, TensorSwizzle, std::uint32_t, std::uint64_t>;
  struct CtaState {
    std::vector<Copy> copies{1};
    std::map<CopyName, std::uint16_t> numbers;
    std::vector<std::uint16_t> chunks;  ///< by 16 bytes: number of a copy, or 0
    const Copy* copy_at(std::uint32_t address) const;
  };
  /// What was found of one operand.
  struct Tally {
    std::uint32_t num_chunks = 0, num_wrong = 0;
    const Copy* copy = nullptr;  ///< of the first that is wrong
    std::uint32_t address = 0;   ///< of that
  };
  /// Chunks that are not where the line that the operand began says.
  struct LineTally {
    std::uint32_t num_chunks = 0;
    Tally moved;                   ///< the copy goes on elsewhere
    Tally wrapped;                 ///< a row goes on in the next line
    Tally crossed;                 ///< behind a box of which the operand had only the end
    std::uint32_t expected = 0;    ///< of the first that moved
    const Copy* behind = nullptr;  ///< of the first that crossed: what is there
  };

  CtaState* state_at(const Warp& warp, std::uint64_t shared_address);
  static std::uint16_t number_of(CtaState& state, const Copy& copy);
  void write(Warp& warp, std::uint64_t address, std::uint64_t bytes, const Copy* copy);
  void check(Warp& warp, const Insn& insn, const AsyncOperation& operation,
             const SharedOperand& operand);
  static Tally read_swizzles(const CtaState& state, const SharedOperand& operand);
  static LineTally read_lines(const CtaState& state, const SharedOperand& operand);
  static void read_block(const CtaState& state, const SharedOperand& operand, std::uint32_t first,
                         LineTally& tally);
  void check_lines(Warp& warp, const Insn& insn, const AsyncOperation& operation,
                   const SharedOperand& operand, const CtaState& state);
  void report(Warp& warp, const Insn& insn, const AsyncOperation& operation, const Copy& copy,
              std::string what, std::vector<std::string> notes, std::string missing);

  Findings& findings_;
  bool checks_wgmma_, checks_tensor_;
  std::unordered_map<const Cta*, std::unique_ptr<CtaState>> ctas_;
  std::set<std::pair<const Insn*, const Insn*>> said_;
};

}  // namespace tilewright::sim
