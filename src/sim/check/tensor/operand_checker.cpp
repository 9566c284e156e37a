#include "sim/check/tensor/operand_checker.h"

#include "sim/async/tensor_copy.h"
#include "sim/state/code.h"
#include "sim/state/warp.h"

#include <algorithm>
#include <bit>
#include <string>

#include <fmt/format.h>

namespace tilewright::sim {

namespace {

constexpr std::uint64_t kOffsetMask = (std::uint64_t{1} << kSharedRankShift) - 1;
constexpr std::uint32_t kChunkBytes = 16;

/// Whether the map's order in shared memory says how the tile is meant to be read. Without a
/// swizzle a copy may also move bytes that have been put in order before; rows of one line at most
/// are a tile.
bool is_tile(const TensorCopy& copy) {
  if (copy.map->swizzle != TensorSwizzle::kNone) return true;
  constexpr std::uint32_t kLineBytes = 128;
  return num_rows(copy) > 1 && row_bytes(*copy.map).shared <= kLineBytes;
}

/// The atoms of 32 bytes lie alike whether their halves change places or not.
bool are_alike(TensorSwizzle copy, TensorSwizzle descriptor) {
  if (copy == TensorSwizzle::k128BAtom32BFlip8B) copy = TensorSwizzle::k128BAtom32B;
  return copy == descriptor;
}

std::string words_of(TensorSwizzle swizzle) {
  if (swizzle == TensorSwizzle::kNone) return "no swizzle";
  return fmt::format("the {} swizzle", name_of(swizzle));
}

}  // namespace

void OperandChecker::cta_started(Cta& cta) {
  ctas_[&cta] = std::make_unique<CtaState>();
}

void OperandChecker::cta_ended(Cta& cta) {
  // Copies of a peer may still arrive.
  const auto& ctas = cta.cluster->ctas;
  const bool is_last = std::ranges::all_of(
      ctas, [&](const auto& other) { return other.get() == &cta || other->is_done; });
  if (!is_last) return;
  for (const auto& other : ctas) ctas_.erase(other.get());
}

OperandChecker::CtaState* OperandChecker::state_at(const Warp& warp, std::uint64_t shared_address) {
  const std::uint64_t rank = shared_address >> kSharedRankShift & 0xff;
  const auto& ctas = warp.cta->cluster->ctas;
  const auto at = rank < ctas.size() ? ctas_.find(ctas[rank].get()) : ctas_.end();
  return at == ctas_.end() ? nullptr : at->second.get();
}

/// 0 if there are too many.
std::uint16_t OperandChecker::number_of(CtaState& state, const Copy& copy) {
  constexpr std::size_t kMostCopies = 0xffff;
  const auto is_same = [&](const Copy& known) {
    return known.execution.insn == copy.execution.insn && known.swizzle == copy.swizzle;
  };
  const auto index =
      static_cast<std::size_t>(std::ranges::find_if(state.copies, is_same) - state.copies.begin());
  if (index > kMostCopies) return 0;
  if (index == state.copies.size()) state.copies.emplace_back();
  state.copies[index] = copy;
  return static_cast<std::uint16_t>(index);
}

void OperandChecker::write(Warp& warp, std::uint64_t address, std::uint64_t bytes,
                           const Copy* copy) {
  CtaState* const state = state_at(warp, address);
  if (state == nullptr || bytes == 0 || (copy == nullptr && state->chunks.empty())) return;
  if (state->chunks.empty()) state->chunks.resize(warp.cta->shared_bytes / kChunkBytes + 1);
  const std::uint16_t number = copy == nullptr ? std::uint16_t{0} : number_of(*state, *copy);
  const std::uint64_t from = (address & kOffsetMask) / kChunkBytes;
  const std::uint64_t to = ((address & kOffsetMask) + bytes - 1) / kChunkBytes;
  for (std::uint64_t i = from; i <= to && i < state->chunks.size(); ++i) state->chunks[i] = number;
}

void OperandChecker::shared_access(Warp& warp, const Insn&, const WarpAccess& access) {
  if (access.kind == AccessKind::kRead) return;
  if (access.is_run) {
    return write(warp, access.addresses[0], std::uint64_t{kLanes} * access.bytes, nullptr);
  }
  for (std::uint32_t rest = access.lanes; rest != 0; rest &= rest - 1) {
    write(warp, access.addresses[std::countr_zero(rest)], access.bytes, nullptr);
  }
}

std::uint64_t OperandChecker::async_issued(Warp& warp, const Insn& insn,
                                           const AsyncOperation& operation) {
  const bool is_read = (operation.kind == AsyncKind::kWgmma && checks_wgmma_) ||
                       (operation.kind == AsyncKind::kTensorMma && checks_tensor_);
  if (is_read) {
    check(warp, insn, operation, 'A');
    check(warp, insn, operation, 'B');
    return 0;
  }
  const bool is_copy = operation.kind == AsyncKind::kTensorCopy && operation.tensor != nullptr &&
                       is_tile(*operation.tensor);
  Copy copy;
  if (is_copy) {
    copy = {execution_of(warp, insn, operation.lanes), operation.tensor->map->swizzle};
  }
  for (const AsyncRange& range : operation.ranges) {
    if (!range.is_shared || range.kind == AccessKind::kRead) continue;
    write(warp, range.address, range.bytes, is_copy ? &copy : nullptr);
  }
  return 0;
}

void OperandChecker::read(Warp& warp, const AsyncRange& range, Tally& tally) {
  const auto num_chunks = static_cast<std::uint32_t>((range.bytes + kChunkBytes - 1) / kChunkBytes);
  tally.num_chunks += num_chunks;
  const CtaState* const state = state_at(warp, range.address);
  if (state == nullptr || state->chunks.empty()) return;
  const auto first = static_cast<std::uint32_t>(range.address & kOffsetMask);
  for (std::uint32_t i = 0; i < num_chunks; ++i) {
    const std::uint32_t address = first + i * kChunkBytes;
    if (address / kChunkBytes >= state->chunks.size()) return;
    const std::uint16_t number = state->chunks[address / kChunkBytes];
    if (number == 0) continue;
    const Copy& copy = state->copies[number];
    if (are_alike(copy.swizzle, range.swizzle)) continue;
    if (tally.num_wrong++ == 0) tally.copy = &copy, tally.address = address;
  }
}

// Unused parts of a tile keep what was there before: a quarter must be wrong.
void OperandChecker::check(Warp& warp, const Insn& insn, const AsyncOperation& operation,
                           char operand) {
  Tally tally;
  TensorSwizzle swizzle = TensorSwizzle::kNone;
  for (const AsyncRange& range : operation.ranges) {
    if (range.operand != operand) continue;
    swizzle = range.swizzle;
    read(warp, range, tally);
  }
  if (tally.num_wrong == 0 || 4 * tally.num_wrong < tally.num_chunks) return;
  report(warp, insn, operation, operand, swizzle, tally);
}

void OperandChecker::report(Warp& warp, const Insn& insn, const AsyncOperation& operation,
                            char operand, TensorSwizzle swizzle, const Tally& tally) {
  const Copy& copy = *tally.copy;
  if (!said_.emplace(&insn, copy.execution.insn).second) return;
  const bool is_wgmma = operation.kind == AsyncKind::kWgmma;
  Finding finding;
  finding.check = is_wgmma ? "mma" : "tmem";
  finding.kernel = warp.grid->code->info.name;
  finding.what = fmt::format("{} in shared memory was written with {} and is read with {}", operand,
                             words_of(copy.swizzle), words_of(swizzle));
  finding.places = {place_of(warp, insn, operation.lanes, "executed"),
                    place_of(copy.execution, "copied before it")};
  finding.notes.push_back(fmt::format("first at shared[{:#x}..{:#x}], {} of {} bytes in all",
                                      tally.address, tally.address + kChunkBytes - 1,
                                      tally.num_wrong * kChunkBytes,
                                      tally.num_chunks * kChunkBytes));
  finding.missing = fmt::format(
      "the swizzle of the tensor map must be that of the descriptor of {} (bits 63..{} of it)",
      operand, is_wgmma ? 62 : 61);
  finding.cause = fmt::format("{} {}", finding.what, finding.missing);
  findings_.add(std::move(finding));
}

}  // namespace tilewright::sim
