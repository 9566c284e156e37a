// From a flat kernel to code: rows, constants, places of variables, instructions.
#pragma once

#include "sim/compile/allocation.h"
#include "sim/compile/flatten.h"
#include "sim/compile/lowering.h"
#include "sim/exec/call_frame.h"
#include "sim/state/code.h"

#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

namespace tilewright::sim {

/// Addresses of a module's variables in global memory, by index; 0 for those that are elsewhere.
using VariableAddresses = std::vector<std::uint64_t>;

class CodeBuilder {
 public:
  /// `device_target`: the compute capability that the code will run on. `fuses`:
  /// contract_products().
  CodeBuilder(const Module& module, const VariableAddresses& addresses, int device_target,
              bool fuses);

  /// Errors   ParseError, Unsupported: with the place in the text
  std::unique_ptr<KernelCode> build(const Function& entry);

 private:
  friend class Lowering;

  void place_params(const Function& entry);
  void place_shared();
  void place_shared_in(const Operand& operand, std::uint32_t copy);
  void translate(const FlatInsn& flat);
  void translate_syntax(const FlatInsn& flat);
  void translate_builtin(const FlatInsn& flat);
  void translate_frame(const FlatInsn& flat);
  void place_frames();
  FrameFunction* frame_of(std::uint32_t copy) const;     ///< nullptr: of the entry
  Row frame_address(const Address& address, Type type);  ///< of a variable in a frame
  std::vector<PassedVariable> passed(const FlatInsn& flat, bool is_result);
  void check_target(const InsnRow& row, const Instruction& syntax) const;
  void finish_uses();
  void patch_jumps();

  Row new_row(std::uint32_t bytes);
  Row register_row(std::uint32_t index, std::uint8_t component) const;
  const RegisterDecl& register_decl(std::uint32_t index) const;
  Row constant(Type type, std::uint64_t bits);
  Row scratch(Type type);
  Row special(SpecialRegister which, std::uint8_t component, bool is_wide);
  Row shared_address(const Variable& variable, std::int64_t addend, bool is_wide);
  const Variable& variable(const Operand& operand) const;
  /// Local memory of a variable of a function's copy; one of the caller's if it is a parameter. In
  /// a function that is called it counts from the frame.
  std::uint64_t local_offset(std::uint32_t copy, std::uint32_t index);
  /// `offset` counts from the start of a variable, or from the register's value.
  Address address_of(const Operand& base, std::int64_t offset);

  const Module& module_;
  const VariableAddresses& addresses_;
  int device_target_;
  bool fuses_;
  FlatKernel flat_;
  RegisterRows registers_;
  std::unique_ptr<KernelCode> code_;
  std::uint32_t copy_ = 0;   ///< the function copy that is translated
  std::uint32_t place_ = 0;  ///< index into KernelCode::places
  const InsnRow* row_ = nullptr;
  Row next_row_ = 0;
  std::map<std::pair<std::uint32_t, std::uint64_t>, Row> constants_;  // row bytes, bits
  std::map<std::tuple<SpecialRegister, std::uint8_t, bool>, Row> specials_;
  std::map<const Variable*, std::uint32_t> shared_offsets_;
  std::vector<const Variable*> dynamic_shared_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> local_offsets_;
  std::map<std::uint32_t, std::vector<Row>> scratch_rows_;  // by bytes
  std::map<std::uint32_t, std::size_t> scratch_used_;
  Row carry_ = kNoRow;
  std::shared_ptr<CallStack> stack_;                                // if anything is called
  std::map<std::uint32_t, std::shared_ptr<FrameFunction>> frames_;  // by root copy
  std::vector<std::uint32_t> code_index_;                           // of flat instructions
  std::vector<std::pair<std::size_t, std::uint32_t>> jumps_;        // instruction, label
  std::vector<Row> written_, read_;                                 // of the last emitted one
};

}  // namespace tilewright::sim
