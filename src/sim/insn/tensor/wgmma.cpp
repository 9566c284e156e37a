// wgmma: a warpgroup multiplies matrices in shared memory, asynchronously. A warp has 16 of its
// 64 rows. They are computed when all four have come to it, for all of them by the last, or, if
// asynchronous work is late, by each at the wait. On an H200 the warps wait for each other at every
// product, not at wgmma.fence (docs/notes/2026-11-23-tensor-core-numbers.md).
#include "sim/exec/random_timing.h"
#include "sim/insn/async/async_work.h"
#include "sim/insn/memory_operand.h"
#include "sim/insn/sections.h"
#include "sim/insn/tensor/tensor_operands.h"
#include "sim/insn/tensor/wgmma_product.h"
#include "sim/state/waits.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace tilewright::sim {
namespace {

std::uint64_t notify(Warp& warp, const Insn& insn, const WgmmaCall& call) {
  const WgmmaForm& form = *call.form;
  WgmmaEvent event;
  event.accumulators = form.d;
  event.a_registers = form.a;
  event.a_descriptor = call.a_descriptor;
  event.b_descriptor = call.b_descriptor;
  event.shape_n = static_cast<std::uint32_t>(form.n);
  event.shape_k = static_cast<std::uint32_t>(form.k);
  event.reads_accumulators = call.keeps_d;
  warp.observer->wgmma_issued(warp, insn, event);
  std::vector<AsyncRange> ranges;
  std::vector<SharedOperand> operands, own;
  const auto add = [&](char name, std::uint64_t descriptor, int first_row) {
    OperandTile tile = wgmma_tile(form, name == 'A');
    append_wgmma_ranges(warp, descriptor, tile, first_row, ranges);
    own.push_back(wgmma_operand(warp, name, descriptor, tile, first_row));
    if (warp.index % 4 != 0) return;
    if (name == 'A') tile.rows *= 4;
    operands.push_back(wgmma_operand(warp, name, descriptor, tile, 0));
  };
  if (form.a.empty()) {
    add('A', call.a_descriptor, static_cast<int>(warp.index % 4) * kWgmmaRows);
  }
  add('B', call.b_descriptor, 0);
  // What lies beyond shared memory stops the instruction when it reads; observers see the rest.
  for (AsyncRange& range : ranges) {
    const std::uint64_t offset = range.address & ((1u << kSharedRankShift) - 1);
    const std::uint64_t room = offset < warp.shared_bytes ? warp.shared_bytes - offset : 0;
    range.bytes = std::min(range.bytes, room);
  }
  std::erase_if(ranges, [](const AsyncRange& range) { return range.bytes == 0; });
  AsyncOperation operation;
  operation.kind = AsyncKind::kWgmma;
  operation.completion = AsyncCompletion::kWgmmaGroup;
  operation.lanes = warp.live;
  operation.ranges = ranges;
  operation.operands = operands;
  operation.warp_operands = own;
  return warp.observer->async_issued(warp, insn, operation);
}

std::vector<PendingTensor>& open_group(Warp& warp) {
  if (warp.tensor_groups.empty()) warp.tensor_groups.emplace_back();
  return warp.tensor_groups.back();
}

/// False for a warp that has to wait for the others.
bool meet(Warp& warp, const Insn& insn) {
  if (!warp.is_resumed) ++warp.num_wgmmas;
  if (!has_warpgroup_come(warp, warp.num_wgmmas)) {
    warp.wait = {WaitKind::kWgmma, 0, warp.num_wgmmas};
    return false;
  }
  Warp& first = warp.cta->warps[warp.index / 4 * 4];
  if (first.num_wgmma_meetings < warp.num_wgmmas) {
    first.num_wgmma_meetings = warp.num_wgmmas;
    if (warp.observer != nullptr) warp.observer->warpgroup_met(warp, insn);
  }
  return true;
}

WgmmaCall call_of(Warp& warp, const Insn& insn, std::uint32_t active) {
  const WgmmaForm& form = *static_cast<const WgmmaForm*>(insn.extra);
  const int lane = std::countr_zero(active);
  WgmmaCall call;
  call.form = &form;
  if (form.a_descriptor != kNoRow) {
    call.a_descriptor = warp.row<std::uint64_t>(form.a_descriptor)[lane];
  }
  call.b_descriptor = warp.row<std::uint64_t>(form.b_descriptor)[lane];
  call.keeps_d = ((warp.predicate(form.scale_d) ^ form.scale_d_flip) >> lane & 1) != 0;
  return call;
}

void perform_alone(Warp& warp, const WgmmaCall& call) {
  Warp* const alone = &warp;
  perform_wgmma(std::span(&alone, 1), call);
}

/// Whether D of the warp's last wgmma has been computed, perhaps by another warp.
bool is_computed(const Warp& warp) {
  return warp.last_done_wgmma == warp.num_wgmmas;
}

/// The four warps, if all of them stand at this instruction and were given the same: the last to
/// come then computes the product for all, and what B is made of is decoded once. Empty if not.
std::span<Warp* const> warpgroup_at(Warp& warp, const Insn& insn, const WgmmaCall& call,
                                    std::array<Warp*, 4>& warps) {
  for (std::size_t w = 0; w < warps.size(); ++w) {
    Warp& other = warp.cta->warps[warp.index / 4 * 4 + w];
    warps[w] = &other;
    const std::uint32_t active = other.live & (other.predicate(insn.guard) ^ insn.guard_flip);
    const bool is_here = active != 0 && other.pc == warp.pc &&
                         other.num_wgmmas == warp.num_wgmmas && !is_computed(other);
    if (!is_here || call_of(other, insn, active) != call) return {};
  }
  return warps;
}

/// Eager timing: the product of the whole warpgroup or of this warp, unless another warp has
/// computed it.
void perform_now(Warp& warp, const Insn& insn, const WgmmaCall& call) {
  if (is_computed(warp)) return;
  std::array<Warp*, 4> four{};
  const std::span<Warp* const> warps = warpgroup_at(warp, insn, call, four);
  if (!warps.empty()) {
    try {
      perform_wgmma(warps, call);
      for (Warp* const done : warps) done->last_done_wgmma = done->num_wgmmas;
      return;
    } catch (const FaultError&) {
      // Perhaps of another warp's part of A: that warp says so itself.
    }
  }
  perform_alone(warp, call);
  warp.last_done_wgmma = warp.num_wgmmas;
}

Step wgmma(Warp& warp, const Insn& insn, std::uint32_t active) {
  if (warp.cta->warps.size() % 4 != 0 && warp.index / 4 == warp.cta->warps.size() / 4) {
    fault(FaultKind::kIllegalInstruction, active,
          "wgmma needs four whole warps; the last warpgroup of this CTA is not complete");
  }
  if (!meet(warp, insn)) return Step::kRetry;
  const WgmmaCall call = call_of(warp, insn, active);
  const std::uint64_t token = warp.observer != nullptr ? notify(warp, insn, call) : 0;
  if (is_eager(warp)) {
    perform_now(warp, insn, call);
    finish_async(warp, insn, token);
    return Step::kNext;
  }
  open_group(warp).push_back({[&warp, &insn, call, token] {
                                perform_alone(warp, call);
                                finish_async(warp, insn, token);
                              },
                              &insn});
  if (is_random(*warp.grid)) run_some_wgmmas(warp);
  return Step::kNext;
}

Step fence(Warp& warp, const Insn& insn, std::uint32_t active) {
  if (warp.observer != nullptr) {
    FenceEvent event;
    event.kind = FenceKind::kWgmma;
    warp.observer->fence(warp, insn, active, event);
  }
  return Step::kNext;
}

Step commit_group(Warp& warp, const Insn& insn, std::uint32_t active) {
  if (warp.observer != nullptr) {
    warp.observer->group_committed(warp, insn, GroupKind::kWgmma, active);
  }
  if (!is_eager(warp)) {
    open_group(warp);
    warp.tensor_groups.emplace_back();
    if (is_random(*warp.grid)) run_some_wgmmas(warp);
  }
  ++warp.num_tensor_commits;
  return Step::kNext;
}

/// The warp's groups take effect until only those behind the first `num_groups` are pending.
void complete_groups(Warp& warp, std::uint64_t num_groups) {
  while (warp.tensor_groups.size() > 1 &&
         warp.num_tensor_commits - (warp.tensor_groups.size() - 1) < num_groups) {
    // The group stays in its place while it runs: it may fault, and then shows in the report.
    for (PendingTensor& pending : warp.tensor_groups.front()) pending.apply();
    warp.tensor_groups.pop_front();
  }
}

// imm: groups that may stay open. A group is the warpgroup's: it is complete for one warp when it
// is for all four. Programs rely on it, one of whose threads then says that an operand may be
// overwritten.
Step wait_group(Warp& warp, const Insn& insn, std::uint32_t active) {
  const auto open = static_cast<std::uint64_t>(insn.imm);
  const std::uint64_t num_groups =
      warp.num_tensor_commits > open ? warp.num_tensor_commits - open : 0;
  if (!has_warpgroup_committed(warp, num_groups)) {
    warp.wait = {WaitKind::kWarpgroup, 0, num_groups};
    return Step::kRetry;
  }
  const std::size_t first = warp.index / 4 * 4;
  for (std::size_t w = first; w < std::min(first + 4, warp.cta->warps.size()); ++w) {
    complete_groups(warp.cta->warps[w], num_groups);
  }
  if (warp.observer != nullptr) {
    warp.observer->group_waited(warp, insn, GroupKind::kWgmma, active,
                                static_cast<std::uint32_t>(insn.imm));
  }
  return Step::kNext;
}

void take_sync(Lowering& l) {
  if (!l.take("sync") || !l.take("aligned")) l.fail("expected .sync.aligned");
}

void lower_simple(Lowering& l, ExecFn exec, bool has_count) {
  take_sync(l);
  l.finish_modifiers();
  const std::int64_t count = has_count ? l.immediate(0) : 0;
  if (count < 0) l.fail_at(l.operand(0), "expected a count of groups");
  Insn& insn = l.emit(exec, {}, 0);
  insn.imm = count;
  insn.flags |= kAligned | kAsync;
}

void take_shape(Lowering& l, WgmmaForm& form) {
  const std::string_view shape = l.take_prefix("m64n");
  if (shape.empty()) l.fail("expected a shape such as .m64n128k16");
  const char* const end = shape.data() + shape.size();
  const auto after_n = std::from_chars(shape.data() + 4, end, form.n);
  if (after_n.ptr != end && *after_n.ptr == 'k') std::from_chars(after_n.ptr + 1, end, form.k);
}

void check_types(Lowering& l, const WgmmaForm& form) {
  const bool is_integer = integer_operands(form.a_type, form.b_type).is_integer;
  const FormatSpec* a = tensor_format_of(form.a_type);
  const FormatSpec* b = tensor_format_of(form.b_type);
  const bool is_float = a != nullptr && b != nullptr &&
                        (form.a_type == form.b_type || (a->bits() == 8 && b->bits() == 8));
  const bool can_be_half = is_float && (form.a_type == Type::kF16 || a->bits() == 8);
  const bool is_sum_legal =
      is_integer ? form.d_type == Type::kS32
                 : form.d_type == Type::kF32 || (form.d_type == Type::kF16 && can_be_half);
  if ((!is_integer && !is_float) || !is_sum_legal || bits_of(form.a_type) == 4) {
    l.fail("wgmma has no such combination of types");
  }
  const int k = kBytesOfWgmmaK * 8 / bits_of(form.a_type);
  if (form.k != k) l.fail(fmt::format("k is {} for these types, not {}", k, form.k));
  const bool is_step16 = is_integer && form.n > 32;
  if (form.n < 8 || form.n > kMaxWgmmaN || form.n % 8 != 0 || (is_step16 && form.n % 16 != 0)) {
    l.fail(fmt::format("n = {} is not a multiple of {} up to 256", form.n, is_step16 ? 16 : 8));
  }
}

std::vector<Row> bind_registers(Lowering& l, int operand_idx, int count, bool is_destination) {
  const auto elements = l.elements(operand_idx);
  if (static_cast<int>(elements.size()) != count) {
    l.fail_at(l.operand(operand_idx),
              fmt::format("expected {} registers, found {}", count, elements.size()));
  }
  std::vector<Row> rows;
  for (const Operand& element : elements) {
    rows.push_back(is_destination ? l.destination(element, Type::kB32)
                                  : l.source(element, Type::kB32));
  }
  return rows;
}

bool take_sign(Lowering& l, int operand_idx) {
  const std::int64_t sign = l.immediate(operand_idx);
  if (sign != 1 && sign != -1) l.fail_at(l.operand(operand_idx), "expected 1 or -1");
  return sign < 0;
}

OperandMajor take_major(Lowering& l, int operand_idx) {
  const std::int64_t major = l.immediate(operand_idx);
  if (major != 0 && major != 1) l.fail_at(l.operand(operand_idx), "expected 0 or 1");
  return major == 0 ? OperandMajor::kK : OperandMajor::kMn;
}

/// Operands after scale-d.
void bind_immediates(Lowering& l, WgmmaForm& form) {
  int next = 4;
  if (integer_operands(form.a_type, form.b_type).is_integer) return;
  if (!l.has_operand(next)) return;
  form.is_a_negated = take_sign(l, next++);
  form.is_b_negated = take_sign(l, next++);
  if (bits_of(form.a_type) != 16) return;
  if (form.a.empty()) form.a_major = take_major(l, next++);
  form.b_major = take_major(l, next);
}

void emit_mma(Lowering& l, WgmmaForm form) {
  const WgmmaForm* kept = l.keep(std::move(form));
  Insn& insn = l.emit(wgmma, {kept->a_descriptor, kept->b_descriptor, kept->scale_d}, 0);
  insn.extra = kept;
  insn.flags |= kAligned | kAsync | kTensor;
  for (const Row row : kept->d) {
    l.also_writes(row);
    l.keeps_old(row);
  }
  for (const Row row : kept->a) l.also_reads(row);
}

void lower_mma_async(Lowering& l) {
  WgmmaForm form;
  if (l.take("sp")) l.refuse("sparse wgmma is not simulated");
  take_sync(l);
  take_shape(l, form);
  form.is_saturating = l.take("satfinite");
  l.take("and"), l.take("popc");
  form.d_type = l.type();
  form.a_type = l.type();
  form.b_type = l.type();
  l.finish_modifiers();
  check_types(l, form);
  form.d = bind_registers(l, 0, form.n / (form.d_type == Type::kF16 ? 4 : 2), true);
  if (l.operand(1).kind == OperandKind::kVector) {
    form.a = bind_registers(l, 1, 4, false);
  } else {
    form.a_descriptor = l.source(1, Type::kB64);
  }
  form.b_descriptor = l.source(2, Type::kB64);
  bool is_negated = false;
  std::tie(form.scale_d, is_negated) = l.source_predicate(3);
  form.scale_d_flip = is_negated ? kAllLanes : 0;
  bind_immediates(l, form);
  emit_mma(l, std::move(form));
}

const InsnRow kWgmmaInsnRows[] = {
    {"wgmma.mma_async",
     "wgmma.mma_async.sync.aligned.shape{.satfinite}{.op.popc}.dtype.atype.btype d, a-desc|a, "
     "b-desc, scale-d{, imm-scale-a, imm-scale-b}{, imm-trans-a}{, imm-trans-b};",
     90, InsnClass::kTensor, lower_mma_async, true},
    {"wgmma.fence", "wgmma.fence.sync.aligned;", 90, InsnClass::kAsync,
     [](Lowering& l) { lower_simple(l, fence, false); }, true},
    {"wgmma.commit_group", "wgmma.commit_group.sync.aligned;", 90, InsnClass::kAsync,
     [](Lowering& l) { lower_simple(l, commit_group, false); }, true},
    {"wgmma.wait_group", "wgmma.wait_group.sync.aligned N;", 90, InsnClass::kAsync,
     [](Lowering& l) { lower_simple(l, wait_group, true); }, true},
};

}  // namespace

const InsnSection& wgmma_section() {
  static const InsnSection section{"Warpgroup matrix multiply", kWgmmaInsnRows};
  return section;
}

}  // namespace tilewright::sim
