// tcgen05.mma: one thread has the tensor cores of its SM, or of two, multiply matrices
// in shared memory and Tensor Memory. Asynchronous; tcgen05.commit signals when it is done.
#include "sim/insn/tensor/tcgen05_mma.h"

#include "sim/compile/lowering.h"
#include "sim/event/finding.h"
#include "sim/insn/lower_forms.h"
#include "sim/insn/sections.h"
#include "sim/state/code.h"

#include <algorithm>
#include <bit>
#include <utility>

#include <fmt/format.h>

namespace tilewright::sim {

void refuse_mma(const MmaCall& call, const std::string& problem) {
  fault(FaultKind::kIllegalInstruction, 1u << call.lane,
        fmt::format("tcgen05.mma by lane {}: {}", call.lane, problem));
}

namespace {

/// What only a careful reading demands.
void report_strict(Warp& warp, const Insn& insn, const MmaCall& call, const std::string& what) {
  if (!warp.grid->options.checks.strict || what.empty() || warp.grid->findings == nullptr) return;
  Finding finding;
  finding.check = "strict";
  finding.kernel = warp.grid->code->info.name;
  finding.what = "descriptor of tcgen05.mma: " + what;
  finding.cause = finding.what;
  finding.places.push_back(place_of(warp, insn, 1u << call.lane, "executed"));
  finding.missing = "set the bits to 0";
  warp.grid->findings->add(std::move(finding));
}

void check_shared(Warp& warp, const Insn& insn, const MmaCall& call, bool is_a) {
  const std::uint64_t bits = is_a ? call.a_descriptor : call.b_descriptor;
  const MmaMode& mode = call.form->mode;
  const char* const name = is_a ? "A" : "B";
  std::string problem = check_shared_descriptor(bits, mode.target);
  const SharedDescriptor d = decode_shared_descriptor(bits);
  const OperandMajor major = is_a ? call.fields.a_major : call.fields.b_major;
  if (problem.empty() && major == OperandMajor::kMn) {
    const bool has_atoms = d.swizzle == SharedSwizzle::k128B32BAtom;
    if (has_atoms != (mode.kind == MmaKind::kTf32)) {
      problem = has_atoms
                    ? "the swizzle with atoms of 32 bytes is for MN-major tf32 only; take another"
                    : "MN-major tf32 needs the swizzle of 128 bytes with atoms of 32 (bits 63..61 "
                      "= 1)";
    }
  }
  if (problem.empty() && d.is_leading_absolute &&
      (call.fields.k != 96 || major != OperandMajor::kK)) {
    problem = "bit 52 (the leading offset is an address) is for K-major operands of k96";
  }
  if (!problem.empty()) {
    refuse_mma(call, fmt::format("descriptor of {} = {}; {}", name,
                                 describe_shared_descriptor(bits), problem));
  }
  report_strict(warp, insn, call, check_unused_bits(bits));
}

void check_places(const MmaCall& call) {
  const MmaShape& s = call.shape;
  const auto check = [&call](const char* name, const TensorAddress& address, int columns) {
    if (address.column + static_cast<std::uint32_t>(columns) > kTensorColumns) {
      refuse_mma(call, fmt::format("{} has {} columns from column {} on; Tensor Memory ends at {}",
                                   name, columns, address.column, kTensorColumns));
    }
  };
  check("D", call.d, s.n / column_parts(s));
  const std::uint32_t last = lane_of_row(call, rows_per_cta(s) - 1, column_parts(s) - 1);
  const bool is_half = has_half_lanes(s);
  if (last >= kTensorLanes || (call.d.lane != 0 && !(is_half && call.d.lane == 16))) {
    refuse_mma(call, fmt::format("D begins in lane {}; with M = {} it begins in lane 0{}",
                                 call.d.lane, s.m, is_half ? " or 16" : ""));
  }
  if (call.form->mode.is_a_in_tmem) {
    check("A", call.a, tensor_cells(operand_of(call, true)));
    if (call.a.lane != call.d.lane) {
      refuse_mma(call, fmt::format("A begins in lane {} and D in lane {}: rows of both lie in the "
                                   "same lanes",
                                   call.a.lane, call.d.lane));
    }
  }
  if (const int per_row = scales_per_row(call); per_row != 0) {
    const auto columns = [&](int rows, int id) {
      return scale_columns(rows) * ((id + per_row + 3) / 4);
    };
    check("SFA", call.a_scales, columns(rows_per_cta(s), call.fields.a_scale_id));
    check("SFB", call.b_scales, columns(s.n / column_parts(s), call.fields.b_scale_id));
  }
}

void read_lane_masks(Warp& warp, const MmaForm& form, MmaCall& call) {
  for (std::size_t i = 0; i < form.disabled_lanes.size(); ++i) {
    call.disabled[i / 4][i % 4] = warp.row<std::uint32_t>(form.disabled_lanes[i])[call.lane];
  }
}

void find_ctas(Warp& warp, MmaCall& call) {
  Cta& own = *warp.cta;
  if (call.form->mode.cta_group == 1) {
    call.ctas[0] = &own;
    return;
  }
  Cta& peer = peer_of(warp, 1u << call.lane);
  call.ctas[own.rank & 1] = &own;
  call.ctas[peer.rank & 1] = &peer;
}

MmaCall read_call(Warp& warp, const Insn& insn, const MmaForm& form, std::uint32_t lane) {
  const auto address_of = [&warp, lane](const TensorAddressForm& address) {
    return decode_tensor_address(tensor_address_bits(warp, address, static_cast<int>(lane)));
  };
  MmaCall call;
  call.form = &form;
  call.lane = lane;
  const auto bits = warp.row<std::uint32_t>(form.descriptor)[lane];
  const std::string problem = check_mma_descriptor(bits, form.mode);
  if (!problem.empty()) {
    refuse_mma(call, fmt::format("instruction descriptor {}; {}",
                                 describe_mma_descriptor(bits, form.mode), problem));
  }
  call.fields = decode_mma_descriptor(bits, form.mode);
  call.shape = {call.fields.m, call.fields.n, form.mode.cta_group, form.mode.is_ws};
  call.d = address_of(form.d);
  if (form.mode.is_a_in_tmem) {
    call.a = address_of(form.a);
  } else {
    call.a_descriptor = warp.row<std::uint64_t>(form.a_descriptor)[lane];
    check_shared(warp, insn, call, true);
  }
  call.b_descriptor = warp.row<std::uint64_t>(form.b_descriptor)[lane];
  check_shared(warp, insn, call, false);
  if (form.mode.scale_block != 0) {
    call.a_scales = address_of(form.a_scales);
    call.b_scales = address_of(form.b_scales);
  }
  if (form.zero_columns != kNoRow && warp.row<std::uint64_t>(form.zero_columns)[lane] != 0) {
    refuse_mma(call, "a zero-column mask other than 0 is not simulated: pass 0");
  }
  read_lane_masks(warp, form, call);
  call.keeps_d = ((warp.predicate(form.enable) ^ form.enable_flip) >> lane & 1) != 0;
  check_places(call);
  find_ctas(warp, call);
  report_strict(warp, insn, call, check_mma_later_bits(bits, form.mode));
  return call;
}

Step mma(Warp& warp, const Insn& insn, std::uint32_t active) {
  const MmaForm& form = *static_cast<const MmaForm*>(insn.extra);
  for (std::uint32_t rest = active; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
    const MmaCall call = read_call(warp, insn, form, lane);
    MmaFootprint footprint;
    if (warp.observer != nullptr) footprint = footprint_of(call);
    TensorOperation operation;
    operation.kind = TensorKind::kMma;
    operation.cta_group = static_cast<std::uint32_t>(form.mode.cta_group);
    operation.lane = lane;
    operation.regions = footprint.regions;
    operation.shared = footprint.shared;
    operation.operands = footprint.operands;
    issue_tensor(warp, insn, operation, [call] { perform_mma(call); });
  }
  return Step::kNext;
}

// ------------------------------------------------------------------------------------------- text

void take_kind(Lowering& l, MmaMode& mode) {
  const std::string_view text = l.take_prefix("kind::");
  bool is_known = false;
  for (int i = 0; i <= static_cast<int>(MmaKind::kMxf4nvf4); ++i) {
    const auto kind = static_cast<MmaKind>(i);
    if (text.substr(std::min<std::size_t>(6, text.size())) != name_of(kind)) continue;
    mode.kind = kind;
    is_known = true;
  }
  if (!is_known) l.fail("expected .kind::f16, tf32, f8f6f4, i8, mxf8f6f4, mxf4 or mxf4nvf4");
  if (mode.kind == MmaKind::kI8) {
    if (mode.target == 103) l.fail(".kind::i8 is of sm_100a; sm_103a does not have it");
    need_specific_target(l, 100, ".kind::i8");
  }
  if (mode.is_ws && is_block_scaled(mode.kind)) l.fail("block scales are not for .ws");
}

/// 1X is a scale for 32 elements of k32; 2X and 4X two and four for k64.
void take_scales(Lowering& l, MmaMode& mode) {
  if (l.take("block_scale") != is_block_scaled(mode.kind)) {
    l.fail(fmt::format(".block_scale {} with .kind::{}",
                       is_block_scaled(mode.kind) ? "is missing" : "cannot stand",
                       name_of(mode.kind)));
  }
  const int choice =
      l.take_one_of({"scale_vec::1X", "scale_vec::2X", "scale_vec::4X", "block16", "block32"});
  if (!is_block_scaled(mode.kind)) return;
  if (choice >= 0 && choice <= 2) {
    need_specific_target(l, 100, ".scale_vec::NX (.block16 and .block32 do not)");
  }
  const bool is_first = mode.kind == MmaKind::kMxf8f6f4, is_both = mode.kind == MmaKind::kMxf4nvf4;
  const bool is_legal = choice == 4 || (choice == -1 && !is_both) || (choice == 0 && is_first) ||
                        (choice == 1 && !is_first) || ((choice == 2 || choice == 3) && is_both);
  if (!is_legal) {
    l.fail(fmt::format(".kind::{} has {}", name_of(mode.kind),
                       is_first  ? ".scale_vec::1X or .block32"
                       : is_both ? ".scale_vec::2X, .scale_vec::4X, .block16 or .block32"
                                 : ".scale_vec::2X or .block32"));
  }
  mode.scale_block = choice == 2 || choice == 3 ? 16 : 32;
}

/// Hints for what stays in the buffers of the tensor cores: without effect.
void take_collectors(Lowering& l, const MmaForm& form) {
  for (;;) {
    const std::string_view hint = l.take_prefix("collector::");
    if (hint.empty()) return;
    const auto at = hint.rfind("::");
    const std::string_view buffer = hint.substr(11, at < 11 ? 0 : at - 11);
    const std::string_view use = at == hint.npos ? "" : hint.substr(at + 2);
    const bool is_buffer = form.mode.is_ws ? buffer.size() == 2 && buffer[0] == 'b' &&
                                                 '0' <= buffer[1] && buffer[1] <= '3'
                                           : buffer == "a";
    const bool is_use = use == "fill" || use == "use" || use == "lastuse" || use == "discard";
    if (!is_buffer || !is_use) l.fail(fmt::format("unknown modifier .{}", hint));
    if (form.is_shifting_a && (use == "fill" || use == "use")) {
      l.fail(fmt::format(".ashift cannot stand with .{}", hint));
    }
  }
}

void bind_operands(Lowering& l, MmaForm& form) {
  form.d = tensor_address_form(l, 0);
  form.mode.is_a_in_tmem = l.operand(1).kind == OperandKind::kMemory;
  if (form.mode.is_a_in_tmem) {
    form.a = tensor_address_form(l, 1);
  } else {
    form.a_descriptor = l.source(1, Type::kB64);
    if (form.is_shifting_a) l.fail(".ashift needs A in Tensor Memory");
  }
  form.b_descriptor = l.source(2, Type::kB64);
  form.descriptor = l.source(3, Type::kB32);
  int next = 4;
  if (form.mode.scale_block != 0) {
    form.a_scales = tensor_address_form(l, next++);
    form.b_scales = tensor_address_form(l, next++);
  } else if (l.operand(next).kind == OperandKind::kVector && !form.mode.is_ws) {
    const auto words = l.elements(next);
    const std::size_t expected = form.mode.cta_group == 1 ? 4 : 8;
    if (words.size() != expected) {
      l.fail_at(l.operand(next),
                fmt::format("expected {} words of lanes, found {}", expected, words.size()));
    }
    for (const Operand& word : words) form.disabled_lanes.push_back(l.source(word, Type::kB32));
    ++next;
  }
  bool is_negated = false;
  std::tie(form.enable, is_negated) = l.source_predicate(next++);
  form.enable_flip = is_negated ? kAllLanes : 0;
  if (!l.has_operand(next)) return;
  if (form.mode.is_ws) {
    form.zero_columns = l.source(next, Type::kB64);
    return;
  }
  if (form.mode.kind != MmaKind::kF16 && form.mode.kind != MmaKind::kTf32) {
    l.fail_at(l.operand(next), "scale-input-d is for .kind::f16 and .kind::tf32");
  }
  const std::int64_t shift = l.immediate(next);
  if (shift < 0 || shift > 15) l.fail_at(l.operand(next), "expected 0 to 15");
  form.input_shift = static_cast<int>(shift);
}

void emit_mma(Lowering& l, MmaForm form) {
  const MmaForm* kept = l.keep(std::move(form));
  Insn& insn = l.emit(mma, {kept->d.base, kept->b_descriptor, kept->descriptor, kept->enable}, 0);
  insn.extra = kept;
  insn.flags |= kAsync | kTensor | kUsesUndefined;
  for (const Row row : {kept->a.base, kept->a_descriptor, kept->a_scales.base, kept->b_scales.base,
                        kept->zero_columns}) {
    if (row != kNoRow) l.also_reads(row);
  }
  for (const Row row : kept->disabled_lanes) l.also_reads(row);
}

void lower(Lowering& l, bool is_ws) {
  if (l.take("sp")) {
    l.refuse(
        "sparse tcgen05.mma is not simulated: the manual states the order of its metadata by "
        "figures only");
  }
  MmaForm form;
  form.mode.is_ws = is_ws;
  form.mode.target = l.module().target == 103 ? 103 : 100;
  form.mode.cta_group = static_cast<int>(take_cta_group(l));
  if (is_ws && form.mode.cta_group == 2) l.fail(".ws has .cta_group::1 only");
  take_kind(l, form.mode);
  take_scales(l, form.mode);
  form.is_shifting_a = !is_ws && !is_block_scaled(form.mode.kind) && l.take("ashift");
  take_collectors(l, form);
  l.finish_modifiers();
  bind_operands(l, form);
  emit_mma(l, std::move(form));
}

const InsnRow kTcgen05MmaRows[] = {
    {"tcgen05.mma",
     "tcgen05.mma.cta_group.kind{.block_scale{.scale_vec::NX|.blockN}}{.ashift}{.collector::a::use}"
     " "
     "[d], a-desc|[a], b-desc, idesc{, [scale-A], [scale-B]}{, {disable-output-lane}}, "
     "enable-input-d{, scale-input-d};",
     100, InsnClass::kTensor, [](Lowering& l) { lower(l, false); }, true},
    {"tcgen05.mma.ws",
     "tcgen05.mma.ws.cta_group::1.kind{.collector::bN::use} [d], a-desc|[a], b-desc, idesc, "
     "enable-input-d{, zero-column-mask};",
     100, InsnClass::kTensor, [](Lowering& l) { lower(l, true); }, true},
};

}  // namespace

const MmaForm* mma_form_of(const Insn& insn) noexcept {
  return insn.exec == mma ? static_cast<const MmaForm*>(insn.extra) : nullptr;
}

const InsnSection& tcgen05_mma_section() {
  static const InsnSection section{"Tensor cores and Tensor Memory: mma", kTcgen05MmaRows};
  return section;
}

}  // namespace tilewright::sim
