// Functions that are called with a frame (call_frame.h), as the builder of code sees them.
#include "sim/compile/code_builder.h"
#include "sim/exec/control.h"

#include <algorithm>

namespace tilewright::sim {

namespace {

constexpr std::uint32_t align16(std::uint32_t bytes) {
  return (bytes + 15) / 16 * 16;
}

}  // namespace

FrameFunction* CodeBuilder::frame_of(std::uint32_t copy) const {
  const auto at = frames_.find(flat_.copies[copy].root);
  return at == frames_.end() ? nullptr : at->second.get();
}

/// The registers of a function and of what is inlined in it are saved when it is called.
void CodeBuilder::place_frames() {
  for (std::uint32_t c = 1; c < flat_.copies.size(); ++c) {
    const FunctionCopy& copy = flat_.copies[c];
    if (copy.root == 0) continue;
    if (stack_ == nullptr) {
      stack_ = std::make_shared<CallStack>();
      stack_->base = new_row(128);
      code_->owned.push_back(stack_);
    }
    std::shared_ptr<FrameFunction>& frame = frames_[copy.root];
    if (frame == nullptr) {
      frame = std::make_shared<FrameFunction>();
      frame->stack = stack_.get();
      code_->owned.push_back(frame);
    }
    for (std::size_t r = 0; r < copy.function->registers.size(); ++r) {
      const RegisterDecl& decl = copy.function->registers[r];
      const Row row = registers_.row_of[copy.register_base + r];
      if (row == kNoRow) continue;
      const std::uint32_t bytes = row_bytes(decl.type);
      for (std::uint32_t i = 0; i < decl.num_components; ++i) {
        const std::uint32_t lane_bytes = decl.type == Type::kPred ? 0 : bytes / kLanes;
        frame->saved.push_back({row + i * bytes, lane_bytes});
        frame->saved_bytes += std::max(lane_bytes, 1U);
      }
    }
  }
  for (auto& [root, frame] : frames_) {
    frame->frame_bytes = align16(8 + frame->saved_bytes);
  }
}

Row CodeBuilder::frame_address(const Address& address, Type type) {
  const Row out = scratch(type);
  Lowering lowering(*this, *flat_.copies[copy_].function, *code_->places[place_].syntax);
  Insn& insn =
      lowering.emit(bits_of(type) == 64 ? add_to_base64 : add_to_base32, {out, address.base});
  insn.imm = address.offset;
  return out;
}

/// Caller's and callee's memory of what a call passes, or of what it gives back.
std::vector<PassedVariable> CodeBuilder::passed(const FlatInsn& flat, bool is_result) {
  const Call call = split_call(*flat.syntax);
  const Operand* actual = is_result ? call.results : call.arguments;
  const Function& callee = *flat.function;
  const std::vector<std::uint32_t>& formal = is_result ? callee.returns : callee.params;
  std::vector<PassedVariable> out;
  for (std::size_t i = 0; i < formal.size(); ++i) {
    const std::uint32_t index = actual->parts[i].index;
    const Variable& variable = flat_.copies[flat.copy].function->variables.at(index);
    const std::uint64_t bytes =
        std::min(variable.size_bytes, callee.variables.at(formal[i]).size_bytes);
    out.push_back({static_cast<std::uint32_t>(local_offset(flat.copy, index)),
                   static_cast<std::uint32_t>(local_offset(flat.callee, formal[i])),
                   static_cast<std::uint32_t>(bytes)});
  }
  return out;
}

void CodeBuilder::translate_frame(const FlatInsn& flat) {
  Lowering lowering(*this, *flat_.copies[flat.copy].function, *flat.syntax);
  const auto emit = [&](ExecFn exec) -> Insn& {
    Insn& insn = lowering.emit(exec, {}, 0);
    insn.guard = kTrueRow;  // a guarded call or return is jumped over
    insn.guard_flip = 0;
    return insn;
  };
  if (flat.kind == FlatKind::kExit) {
    emit(end_lanes).flags |= kControl;
  } else if (flat.kind == FlatKind::kFrameReturn) {
    Insn& insn = emit(return_from_frame);
    insn.flags |= kControl;
    const FrameFunction* frame = frame_of(flat.copy);
    insn.extra = frame;
    for (const SavedRow& saved : frame->saved) lowering.also_writes(saved.row);
    // Lanes that return elsewhere come to the next instruction and try again.
    Insn& again = emit(jump);
    again.flags |= kControl;
    again.imm = static_cast<std::int64_t>(code_->insns.size()) - 2;
  } else {
    const bool is_call = flat.kind == FlatKind::kFrameCall;
    FrameCall call{frame_of(flat.callee), frame_of(flat.copy), passed(flat, !is_call)};
    Insn& insn = emit(is_call ? call_with_frame : fetch_results);
    insn.extra = lowering.keep(std::move(call));
    if (!is_call) return;
    insn.flags |= kControl;
    jumps_.emplace_back(code_->insns.size() - 1, flat.label);
  }
}

}  // namespace tilewright::sim
