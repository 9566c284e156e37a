#include "sim/compile/code_builder.h"

#include "sim/compile/contract.h"
#include "sim/compile/definedness_plan.h"
#include "sim/compile/insn_lookup.h"
#include "sim/exec/control.h"
#include "sim/parse/diagnostic.h"
#include "sim/state/warp.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace tilewright::sim {

namespace {

// Of a kernel: "Kernel Function Parameter Attributes" of the PTX manual; ptxas refuses more.
constexpr std::uint64_t kMaxParamBytes = 32764;
constexpr std::uint64_t kMaxOldParamBytes = 4352;

std::uint64_t align_up(std::uint64_t value, std::uint64_t align) {
  align = std::max<std::uint64_t>(align, 1);
  return (value + align - 1) / align * align;
}

bool is_dynamic(SpecialRegister which) {
  return which >= SpecialRegister::kClock && which <= SpecialRegister::kGlobaltimerHi &&
         which != SpecialRegister::kEnvreg;
}

/// What ptxas keeps to: .maxnreg, and registers for all threads of as many CTAs as the kernel says.
/// Their warps go to four parts of an SM, and all four must have room for as many.
std::uint32_t register_limit(const LaunchBounds& bounds) {
  constexpr std::uint64_t kPerThread = 255, kPerSm = 65536, kUnit = 8, kEnough = 1 << 20;
  const std::uint64_t most = bounds.max_registers != 0 ? bounds.max_registers : kPerThread;
  const auto& extents =
      bounds.required_threads[0] != 0 ? bounds.required_threads : bounds.max_threads;
  std::uint64_t threads = std::max(1U, bounds.min_ctas_per_sm);
  for (const std::uint32_t extent : extents)
    threads = std::min(threads, kEnough) * std::max(1U, extent);
  const std::uint64_t fitting = kPerSm / align_up(threads, 4 * kLanes) / kUnit * kUnit;
  return static_cast<std::uint32_t>(std::min(most, std::max(fitting, 2 * kUnit)));
}

/// What ptxas 13.0 gives each thread of a kernel with setmaxnreg, by trials: the most that an .inc
/// asks for, but no more than .maxnreg and .minnctapersm with .maxntid allow. One of the two must
/// be there, else it does not know ("unable to determine register count at entry") and drops them.
std::uint32_t entry_registers(const KernelCode& code) {
  constexpr std::uint32_t kFewest = 24;
  std::uint32_t most_asked = 0;
  bool is_any = false;
  for (const Insn& insn : code.insns) {
    const Instruction* const syntax = code.place(insn).syntax;
    if (syntax == nullptr || syntax->opcode != "setmaxnreg") continue;
    is_any = true;
    if (insn.small != 0) most_asked = std::max(most_asked, static_cast<std::uint32_t>(insn.imm));
  }
  const LaunchBounds& bounds = code.info.bounds;
  const bool has_threads = bounds.max_threads[0] != 0 || bounds.required_threads[0] != 0;
  const bool counts_ctas = bounds.min_ctas_per_sm != 0 && has_threads;
  if (!is_any || (bounds.max_registers == 0 && !counts_ctas)) return 0;
  LaunchBounds known = bounds;
  if (bounds.max_registers != 0) known.max_registers = std::max(kFewest, bounds.max_registers);
  if (!counts_ctas) {
    std::ranges::fill(known.max_threads, 0);
    std::ranges::fill(known.required_threads, 0);
  }
  const std::uint32_t limit = register_limit(known);
  if (limit < kFewest) return 0;
  return most_asked == 0 ? limit : std::min(limit, most_asked);
}

/// Whether all that CTAs tell each other is integers that they add up, or the like.
bool is_mere_counting(const KernelCode& code) {
  const Insn* first = nullptr;
  for (const Insn& insn : code.insns) {
    if ((insn.flags & kCrossCta) == 0) continue;
    if ((insn.flags & kCommutes) == 0) return false;
    if (first == nullptr) first = &insn;
    if (insn.small != first->small) return false;
  }
  return first != nullptr;
}

}  // namespace

CodeBuilder::CodeBuilder(const Module& module, const VariableAddresses& addresses,
                         int device_target, bool fuses)
    : module_(module), addresses_(addresses), device_target_(device_target), fuses_(fuses) {}

std::unique_ptr<KernelCode> CodeBuilder::build(const Function& entry) {
  flat_ = flatten(module_, entry);
  if (fuses_) contract_products(flat_);
  registers_ = allocate_rows(flat_);
  code_ = std::make_unique<KernelCode>();
  code_->register_rows = registers_.row_of;
  code_->module = &module_;
  code_->made = flat_.made;
  code_->info.name = entry.name;
  code_->info.bounds = entry.bounds;
  code_->predicate_end = registers_.predicate_end;
  code_->constants_begin = next_row_ = registers_.end;
  place_params(entry);
  place_shared();
  place_frames();
  for (const FlatInsn& flat : flat_.body) {
    code_index_.push_back(static_cast<std::uint32_t>(code_->insns.size()));
    translate(flat);
  }
  code_index_.push_back(static_cast<std::uint32_t>(code_->insns.size()));
  finish_uses();
  Insn last;
  last.exec = end_lanes;
  last.flags = kControl;
  last.syntax = place_;
  if (code_->places.empty()) code_->places.push_back({&entry, nullptr, 0});
  code_->insns.push_back(last);
  finish_uses();
  patch_jumps();
  if (stack_ != nullptr) {
    stack_->begin = static_cast<std::uint32_t>(align_up(code_->info.local_bytes, 16));
    stack_->end = stack_->begin + kCallStackBytes;
    code_->info.local_bytes = stack_->end;
  }
  code_->register_bytes = static_cast<std::uint32_t>(align_up(next_row_, 64));
  code_->is_ordered = !is_mere_counting(*code_);
  plan_definedness(*code_, registers_);
  code_->constants.resize(code_->register_bytes - code_->constants_begin);
  code_->info.num_registers =
      std::clamp(registers_.num_live + 8, 16U, std::max(16U, register_limit(entry.bounds)));
  code_->info.entry_registers = entry_registers(*code_);
  if (code_->info.entry_registers != 0) code_->info.num_registers = code_->info.entry_registers;
  return std::move(code_);
}

void CodeBuilder::place_params(const Function& entry) {
  std::uint64_t offset = 0;
  for (const std::uint32_t index : entry.params) {
    const Variable& param = entry.variables.at(index);
    offset = align_up(offset, std::max<std::uint64_t>(param.align_bytes, bits_of(param.type) / 8));
    code_->info.params.push_back(
        {static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(param.size_bytes)});
    offset += param.size_bytes;
  }
  const bool is_large = module_.version >= 81 && module_.target >= 70;
  const std::uint64_t limit = is_large ? kMaxParamBytes : kMaxOldParamBytes;
  if (offset > limit) {
    fail_at(module_, entry.pos,
            fmt::format("kernel {} has {} bytes of parameters; at most {} fit{}", entry.name,
                        offset, limit, is_large ? "" : " before PTX 8.1 or sm_70"));
  }
  code_->info.param_bytes = static_cast<std::uint32_t>(offset);
}

// All static variables first: the dynamic part begins behind them.
void CodeBuilder::place_shared() {
  code_->dynamic_shared_offset = kSharedReservedBytes;
  for (const FlatInsn& flat : flat_.body) {
    if (flat.syntax == nullptr) continue;
    copy_ = flat.copy;
    for (const Operand& operand : flat.syntax->operands) place_shared_in(operand, flat.copy);
  }
  std::uint64_t dynamic_align = 16;
  for (const Variable* variable : dynamic_shared_) {
    dynamic_align = std::max<std::uint64_t>(dynamic_align, variable->align_bytes);
  }
  code_->info.static_shared_bytes = code_->dynamic_shared_offset - kSharedReservedBytes;
  if (!dynamic_shared_.empty()) {
    code_->dynamic_shared_offset =
        static_cast<std::uint32_t>(align_up(code_->dynamic_shared_offset, dynamic_align));
  }
  for (const Variable* variable : dynamic_shared_) {
    shared_offsets_[variable] = code_->dynamic_shared_offset;
  }
}

void CodeBuilder::place_shared_in(const Operand& operand, std::uint32_t copy) {
  for (const Operand& part : operand.parts) place_shared_in(part, copy);
  if (operand.kind != OperandKind::kVariable) return;
  const Variable& shared = variable(operand);
  if (shared.space != Space::kShared || shared_offsets_.contains(&shared)) return;
  if (shared.is_unsized_array) {
    dynamic_shared_.push_back(&shared);
    shared_offsets_[&shared] = 0;
    return;
  }
  const std::uint64_t begin = align_up(code_->dynamic_shared_offset, shared.align_bytes);
  const std::uint64_t end = begin + shared.size_bytes;
  if (end > (1U << kSharedRankShift)) {
    fail_at(module_, shared.pos, fmt::format("{} bytes of static shared memory", end));
  }
  shared_offsets_[&shared] = static_cast<std::uint32_t>(begin);
  code_->dynamic_shared_offset = static_cast<std::uint32_t>(end);
}

void CodeBuilder::translate(const FlatInsn& flat) {
  finish_uses();
  copy_ = flat.copy;
  scratch_used_.clear();
  place_ = static_cast<std::uint32_t>(code_->places.size());
  code_->places.push_back(
      {flat_.copies[flat.copy].function, flat.syntax, flat_.copies[flat.copy].register_base});
  row_ = nullptr;
  Lowering lowering(*this, *flat_.copies[flat.copy].function, *flat.syntax);
  const Instruction& syntax = *flat.syntax;
  switch (flat.kind) {
    case FlatKind::kSyntax:
      translate_syntax(flat);
      return;
    case FlatKind::kBuiltin:
      translate_builtin(flat);
      return;
    case FlatKind::kFrameCall:
    case FlatKind::kResults:
    case FlatKind::kFrameReturn:
    case FlatKind::kExit:
      translate_frame(flat);
      return;
    case FlatKind::kReturn: {
      Insn& insn = lowering.emit(jump, {}, 0);
      if (syntax.opcode == "call") insn.guard = kTrueRow, insn.guard_flip = 0;
      break;
    }
    case FlatKind::kSkip: {
      Insn& insn = lowering.emit(jump, {}, 0);
      insn.guard_flip ^= kAllLanes;
      break;
    }
    case FlatKind::kSkipTarget: {
      const auto index = static_cast<std::uint32_t>(flat.function - module_.functions.data());
      const Row wanted = constant(Type::kB64, function_address(index));
      const Row address = lowering.source(*split_call(syntax).target, Type::kB64);
      Insn& insn = lowering.emit(jump_if_different, {address, wanted}, 0);
      insn.guard = kTrueRow;
      insn.guard_flip = 0;
      break;
    }
    case FlatKind::kBadCall: {
      const Row address = lowering.source(*split_call(syntax).target, Type::kB64);
      Insn& insn = lowering.emit(bad_call, {address}, 0);
      insn.guard = kTrueRow;
      insn.guard_flip = 0;
      return;
    }
  }
  code_->insns.back().flags |= kControl;
  jumps_.emplace_back(code_->insns.size() - 1, flat.label);
}

void CodeBuilder::translate_syntax(const FlatInsn& flat) {
  std::size_t num_leading = 0;
  row_ = find_row(*flat.syntax, num_leading);
  if (row_ == nullptr) {
    fail_at(module_, flat.syntax->pos, unknown_instruction(*flat.syntax, module_));
  }
  check_target(*row_, *flat.syntax);
  if (flat.syntax->opcode == "tcgen05") code_->has_tensor_memory = true;
  Lowering lowering(*this, *flat_.copies[flat.copy].function, *flat.syntax);
  lowering.modifiers_.erase(lowering.modifiers_.begin(),
                            lowering.modifiers_.begin() + static_cast<std::ptrdiff_t>(num_leading));
  row_->lower(lowering);
  for (std::size_t i = code_index_.back(); i < code_->insns.size(); ++i) {
    if ((code_->insns[i].flags & kCrossCta) != 0) code_->is_cross_cta = true;
    if ((code_->insns[i].flags & kClaimsCluster) != 0) code_->claims_clusters = true;
  }
}

void CodeBuilder::translate_builtin(const FlatInsn& flat) {
  const Call call = split_call(*flat.syntax);
  BuiltinCall where;
  const auto offset_of = [&](const Operand& operand) {
    return operand.kind == OperandKind::kVariable ? local_offset(flat.copy, operand.index) : 0;
  };
  if (call.arguments != nullptr) {
    for (const Operand& operand : call.arguments->parts)
      where.arguments.push_back(offset_of(operand));
  }
  if (call.results != nullptr && !call.results->parts.empty()) {
    where.result = offset_of(call.results->parts[0]);
  }
  const std::string_view name = flat.function->name;
  const ExecFn exec = name == "vprintf"        ? call_vprintf
                      : name == "__assertfail" ? call_assertfail
                      : name == "malloc"       ? call_malloc
                                               : call_free;
  where.arguments.resize(std::max<std::size_t>(where.arguments.size(), 5));
  Lowering lowering(*this, *flat_.copies[flat.copy].function, *flat.syntax);
  Insn& insn = lowering.emit(exec, {}, 0);
  insn.guard = kTrueRow;  // a guarded call is jumped over
  insn.guard_flip = 0;
  insn.extra = lowering.keep(std::move(where));
}

void CodeBuilder::check_target(const InsnRow& row, const Instruction& syntax) const {
  if (module_.target < row.min_target ||
      (row.is_arch_specific && !module_.is_arch_specific && !module_.is_family_specific)) {
    fail_at(module_, syntax.pos,
            fmt::format("{} needs .target sm_{}{}, the module says sm_{}", row.opcode,
                        row.min_target, row.is_arch_specific ? "a" : "", module_.target));
  }
  if (module_.target >= 100 && row.opcode.starts_with("wgmma")) {
    fail_at(module_, syntax.pos,
            fmt::format("{} is Hopper's, of .target sm_90a alone; the module says sm_{}, which has "
                        "tcgen05.mma",
                        row.opcode, module_.target));
  }
}

void CodeBuilder::finish_uses() {
  if (code_->uses.size() == code_->insns.size()) {
    written_.clear();
    read_.clear();
    return;
  }
  RowUse use;
  use.begin = static_cast<std::uint32_t>(code_->rows.size());
  use.num_written = static_cast<std::uint16_t>(written_.size());
  use.num_read = static_cast<std::uint16_t>(read_.size());
  code_->rows.insert(code_->rows.end(), written_.begin(), written_.end());
  code_->rows.insert(code_->rows.end(), read_.begin(), read_.end());
  code_->uses.push_back(use);
  written_.clear();
  read_.clear();
}

void CodeBuilder::patch_jumps() {
  for (const auto& [insn, label] : jumps_) {
    code_->insns[insn].imm = code_index_[flat_.labels[label]];
  }
}

Row CodeBuilder::new_row(std::uint32_t bytes) {
  const Row row = next_row_;
  next_row_ += static_cast<std::uint32_t>(align_up(bytes, 64));
  return row;
}

const RegisterDecl& CodeBuilder::register_decl(std::uint32_t index) const {
  return flat_.copies[copy_].function->registers.at(index);
}

Row CodeBuilder::register_row(std::uint32_t index, std::uint8_t component) const {
  const RegisterDecl& decl = register_decl(index);
  return registers_.row_of[flat_.copies[copy_].register_base + index] +
         component * row_bytes(decl.type);
}

Row CodeBuilder::constant(Type type, std::uint64_t bits) {
  const std::uint32_t bytes = row_bytes(type);
  const std::uint32_t width = type == Type::kPred ? 4 : bytes / kLanes;
  if (type == Type::kPred) bits = bits != 0 ? kAllLanes : 0;
  if (width < 8) bits &= (std::uint64_t{1} << (8 * width)) - 1;
  const auto [at, is_new] = constants_.try_emplace({bytes, bits}, kNoRow);
  if (!is_new) return at->second;
  const Row row = at->second = new_row(bytes);
  code_->constants.resize(next_row_ - code_->constants_begin);
  std::byte* out = code_->constants.data() + (row - code_->constants_begin);
  for (std::uint32_t i = 0; i < bytes; i += width) {
    std::memcpy(out + i, &bits, std::min<std::uint32_t>(width, 8));
  }
  return row;
}

Row CodeBuilder::scratch(Type type) {
  const std::uint32_t bytes = row_bytes(type);
  std::vector<Row>& rows = scratch_rows_[bytes];
  std::size_t& used = scratch_used_[bytes];
  if (used == rows.size()) rows.push_back(new_row(bytes));
  return rows[used++];
}

Row CodeBuilder::special(SpecialRegister which, std::uint8_t component, bool is_wide) {
  if (is_dynamic(which)) {
    const Row row = scratch(is_wide ? Type::kB64 : Type::kB32);
    const FunctionCopy& copy = flat_.copies[copy_];
    Lowering lowering(*this, *copy.function, *code_->places[place_].syntax);
    Insn& insn = lowering.emit(read_clock, {row});
    insn.small = static_cast<std::uint8_t>(which);
    insn.imm = is_wide;
    return row;
  }
  const auto [at, is_new] = specials_.try_emplace({which, component, is_wide}, kNoRow);
  if (is_new) {
    at->second = new_row(is_wide ? 256 : 128);
    code_->specials.push_back({which, component, is_wide, at->second});
  }
  return at->second;
}

Row CodeBuilder::shared_address(const Variable& shared, std::int64_t addend, bool is_wide) {
  const auto offset = static_cast<std::uint32_t>(shared_offsets_.at(&shared) + addend);
  for (const SharedAddressRow& known : code_->shared_addresses) {
    if (known.offset == offset && known.is_wide == is_wide) return known.row;
  }
  const Row row = new_row(is_wide ? 256 : 128);
  code_->shared_addresses.push_back({row, is_wide, false, offset});
  return row;
}

const Variable& CodeBuilder::variable(const Operand& operand) const {
  return operand.is_local ? flat_.copies[copy_].function->variables.at(operand.index)
                          : module_.variables.at(operand.index);
}

std::uint64_t CodeBuilder::local_offset(std::uint32_t copy, std::uint32_t index) {
  for (;;) {
    const auto alias = flat_.copies[copy].param_alias.find(index);
    if (alias == flat_.copies[copy].param_alias.end()) break;
    index = alias->second;
    copy = flat_.copies[copy].caller;
  }
  const auto [at, is_new] = local_offsets_.try_emplace({copy, index}, 0);
  if (is_new) {
    const Variable& local = flat_.copies[copy].function->variables.at(index);
    FrameFunction* const frame = frame_of(copy);
    std::uint32_t& used = frame == nullptr ? code_->info.local_bytes : frame->frame_bytes;
    const std::uint64_t begin = align_up(used, std::max<std::uint64_t>(local.align_bytes, 8));
    at->second = begin;
    const std::uint64_t end = align_up(begin + local.size_bytes, 16);
    if (end > (1U << 24)) fail_at(module_, local.pos, "more than 16 MiB of local memory a thread");
    used = static_cast<std::uint32_t>(end);
  }
  return at->second;
}

Address CodeBuilder::address_of(const Operand& base, std::int64_t offset) {
  Address out;
  out.offset = offset;
  if (base.kind == OperandKind::kRegister) {
    const Type type = register_decl(base.index).type;
    out.base = register_row(base.index, base.component);
    out.is_wide = bits_of(type) == 64;
    if (bits_of(type) != 32 && bits_of(type) != 64) {
      fail_at(module_, base.pos, "an address needs a 32-bit or 64-bit register");
    }
    return out;
  }
  if (base.kind == OperandKind::kInteger) {
    out.offset += base.value;
    return out;
  }
  if (base.kind != OperandKind::kVariable) fail_at(module_, base.pos, "no address");
  const Variable& named = variable(base);
  out.space = named.space;
  if (named.space == Space::kShared) {
    out.base = shared_address(named, 0, false);
    out.is_wide = false;
  } else if (named.space == Space::kParam && copy_ == 0) {
    const std::vector<std::uint32_t>& params = flat_.copies[0].function->params;
    const auto at = std::ranges::find(params, base.index);
    if (base.is_local && at != params.end()) {
      out.is_kernel_param = true;
      out.offset += code_->info.params[static_cast<std::size_t>(at - params.begin())].offset_bytes;
      return out;
    }
    out.space = Space::kLocal;
    out.offset += static_cast<std::int64_t>(local_offset(copy_, base.index));
  } else if (named.space == Space::kParam || (named.space == Space::kLocal && base.is_local)) {
    out.space = Space::kLocal;
    out.offset += static_cast<std::int64_t>(local_offset(copy_, base.index));
    if (frame_of(copy_) != nullptr) {
      out.base = stack_->base;
      out.is_wide = false;
    }
  } else {
    if (base.is_local || named.space == Space::kLocal) {
      fail_at(module_, base.pos,
              fmt::format("{}: .global and .const variables belong outside of functions, "
                          ".local ones inside",
                          named.name));
    }
    out.offset += static_cast<std::int64_t>(addresses_.at(base.index));
  }
  return out;
}

}  // namespace tilewright::sim
