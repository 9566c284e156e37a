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

/// That with which a tensor copy writes what a descriptor reads.
TensorSwizzle copy_swizzle_of(SharedSwizzle swizzle) {
  switch (swizzle) {
    case SharedSwizzle::kNone:
      return TensorSwizzle::kNone;
    case SharedSwizzle::k32B:
      return TensorSwizzle::k32B;
    case SharedSwizzle::k64B:
      return TensorSwizzle::k64B;
    case SharedSwizzle::k128B:
      return TensorSwizzle::k128B;
    case SharedSwizzle::k128B32BAtom:
      return TensorSwizzle::k128BAtom32B;
  }
  return TensorSwizzle::kNone;
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

const OperandChecker::Copy* OperandChecker::CtaState::copy_at(std::uint32_t address) const {
  const std::size_t chunk = address / kOperandChunkBytes;
  const std::uint16_t number = chunk < chunks.size() ? chunks[chunk] : std::uint16_t{0};
  return number == 0 ? nullptr : &copies[number];
}

/// 0 if there are too many.
std::uint16_t OperandChecker::number_of(CtaState& state, const Copy& copy) {
  constexpr std::size_t kMostCopies = 0xffff;
  const CopyName name{copy.execution.insn, copy.swizzle, copy.address, copy.mbarrier};
  const auto at = state.numbers.find(name);
  if (at != state.numbers.end()) {
    state.copies[at->second] = copy;
    return at->second;
  }
  if (state.copies.size() > kMostCopies) return 0;
  const auto number = static_cast<std::uint16_t>(state.copies.size());
  state.copies.push_back(copy);
  state.numbers.emplace(name, number);
  return number;
}

void OperandChecker::write(Warp& warp, std::uint64_t address, std::uint64_t bytes,
                           const Copy* copy) {
  CtaState* const state = state_at(warp, address);
  if (state == nullptr || bytes == 0 || (copy == nullptr && state->chunks.empty())) return;
  if (state->chunks.empty()) state->chunks.resize(warp.cta->shared_bytes / kOperandChunkBytes + 1);
  const std::uint16_t number = copy == nullptr ? std::uint16_t{0} : number_of(*state, *copy);
  const std::uint64_t from = (address & kSharedOffsetMask) / kOperandChunkBytes;
  const std::uint64_t to = ((address & kSharedOffsetMask) + bytes - 1) / kOperandChunkBytes;
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
    for (const SharedOperand& operand : operation.operands) {
      check(warp, insn, operation, operand);
    }
    return 0;
  }
  const bool is_copy = operation.kind == AsyncKind::kTensorCopy && operation.tensor != nullptr &&
                       is_tile(*operation.tensor);
  Copy copy;
  if (is_copy) {
    const TensorCopy& tensor = *operation.tensor;
    const TensorMapFields& map = *tensor.map;
    copy = {execution_of(warp, insn, operation.lanes), map.swizzle};
    copy.address = static_cast<std::uint32_t>(tensor.shared_address & kSharedOffsetMask);
    copy.line_bytes = row_bytes(map).pitch;
    const bool is_box = tensor.shape == TensorCopyShape::kBox && map.mode == TensorMode::kTiled;
    copy.num_lines = num_rows(tensor);
    if (is_box && map.rank > 1) {
      copy.num_lines = (map.box[1] + map.element_strides[1] - 1) / map.element_strides[1];
    }
    copy.mbarrier = operation.mbarrier;
  }
  for (const AsyncRange& range : operation.ranges) {
    if (!range.is_shared || range.kind == AccessKind::kRead) continue;
    write(warp, range.address, range.bytes, is_copy ? &copy : nullptr);
  }
  return 0;
}

OperandChecker::Tally OperandChecker::read_swizzles(const CtaState& state,
                                                    const SharedOperand& operand) {
  Tally tally;
  const SharedDescriptor& d = operand.descriptor;
  for (std::uint32_t other = 0; other < operand.outer; ++other) {
    for (std::uint32_t byte = 0; byte < operand.contiguous_bytes; byte += kOperandChunkBytes) {
      ++tally.num_chunks;
      const std::uint32_t address = shared_operand_address(d, operand.major, byte, other);
      const Copy* const copy = state.copy_at(address);
      if (copy == nullptr || are_alike(copy->swizzle, copy_swizzle_of(d.swizzle))) continue;
      if (tally.num_wrong++ == 0) tally.copy = copy, tally.address = address;
    }
  }
  return tally;
}

// Unused parts of a tile keep what was there before: a quarter must be wrong.
void OperandChecker::check(Warp& warp, const Insn& insn, const AsyncOperation& operation,
                           const SharedOperand& operand) {
  const CtaState* const state = state_at(warp, std::uint64_t{operand.rank} << kSharedRankShift);
  if (state == nullptr || state->chunks.empty() || operand.descriptor.base_offset != 0) return;
  const Tally tally = read_swizzles(*state, operand);
  if (tally.num_wrong == 0 || 4 * tally.num_wrong < tally.num_chunks) {
    return check_lines(warp, insn, operation, operand, *state);
  }
  const Copy& copy = *tally.copy;
  const bool is_wgmma = operation.kind == AsyncKind::kWgmma;
  report(warp, insn, operation, copy,
         fmt::format("{} in shared memory was written with {} and is read with {}", operand.name,
                     words_of(copy.swizzle), words_of(copy_swizzle_of(operand.descriptor.swizzle))),
         {fmt::format("first at shared[{:#x}..{:#x}], {} of {} bytes in all", tally.address,
                      tally.address + kOperandChunkBytes - 1, tally.num_wrong * kOperandChunkBytes,
                      tally.num_chunks * kOperandChunkBytes)},
         fmt::format(
             "the swizzle of the tensor map must be that of the descriptor of {} (bits 63..{} of "
             "it)",
             operand.name, is_wgmma ? 62 : 61));
}

void OperandChecker::report(Warp& warp, const Insn& insn, const AsyncOperation& operation,
                            const Copy& copy, std::string what, std::vector<std::string> notes,
                            std::string missing) {
  if (!said_.emplace(&insn, copy.execution.insn).second) return;
  Finding finding;
  finding.check = operation.kind == AsyncKind::kWgmma ? "mma" : "tmem";
  finding.kernel = warp.grid->code->info.name;
  finding.cause = fmt::format("{} {}", what, missing);
  finding.what = std::move(what);
  finding.places = {place_of(warp, insn, operation.lanes, "executed"),
                    place_of(copy.execution, "copied before it")};
  finding.notes = std::move(notes);
  finding.missing = std::move(missing);
  findings_.add(std::move(finding));
}

}  // namespace tilewright::sim
