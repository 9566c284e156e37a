// The tmem check: the words for values that were stored with one layout and are read with another.
#include "sim/check/tensor/tmem_checker.h"

#include <fmt/format.h>

namespace tilewright::sim {

namespace {

/// The layout library's name of a form: "m128", "m64ws", "m256pair".
std::string form_name(const TensorRegion& region, std::uint32_t cta_group) {
  return fmt::format("m{}{}", region.m,
                     cta_group == 2                   ? "pair"
                     : region.is_ws && region.m < 128 ? "ws"
                                                      : "");
}

/// What draws a picture of the map.
std::string drawing(const TensorRegion& region, std::uint32_t cta_group) {
  const std::string form = form_name(region, cta_group);
  if (region.role == TensorRole::kA) {
    return fmt::format("tilewright layout draw tmem.A.{}.k64.{}bit", form, region.element_bits);
  }
  const int n = region.n <= 64 ? 64 : region.n <= 128 ? 128 : 256;
  return fmt::format("tilewright layout draw tmem.C.{}.n{}", form, n);
}

/// "column n is Tensor Memory's column 32 + n"
std::string map_of(const TensorRegion& region) {
  if (region.role != TensorRole::kA) {
    const std::uint32_t parts = region.n / region.num_columns;
    return parts == 1 ? fmt::format("D: column n is in column {} + n", region.column)
                      : fmt::format("D: column n is in column {} + n % {}", region.column,
                                    region.num_columns);
  }
  const std::uint32_t per_cell = 32 / region.element_bits;
  if (per_cell == 1) return fmt::format("A: k is in column {} + k", region.column);
  return fmt::format("A: k is in column {} + k / {}, from bit {} (k % {}) on", region.column,
                     per_cell, region.element_bits, per_cell);
}

}  // namespace

/// What most products find: the accumulator that the one before left there.
bool TmemChecker::is_same_accumulator(const CtaState& state, const TensorRegion& region,
                                      std::uint32_t cta_group) const {
  if (region.role != TensorRole::kAccumulator) return false;
  const std::uint32_t first = region.column * kHalves;
  const std::uint16_t tile = state.units[first + region.lane_base / kHalfLanes].tile;
  const TensorRegion& other = tile_at(tile).region;
  if (tile == 0 || tile_at(tile).cta_group != cta_group || other.column != region.column ||
      other.num_columns != region.num_columns || other.lane_base != region.lane_base ||
      other.m != region.m || other.n != region.n || other.is_ws != region.is_ws) {
    return false;
  }
  for (std::uint32_t i = 0; i < region.num_columns * kHalves; ++i) {
    const std::uint32_t lane = i % kHalves * kHalfLanes;
    const bool is_read = (region.lanes[lane / 32] >> lane % 32 & 0xffff) != 0;
    const Unit& unit = state.units[first + i];
    if (is_read && (unit.origin != Origin::kAccumulator || unit.tile != tile)) return false;
  }
  return true;
}

void TmemChecker::check_layout(const Warp& warp, const Insn& insn, const TensorRegion& region,
                               const TensorOperation& operation) {
  const std::uint32_t cta_group = operation.cta_group;
  const CtaState& state = state_of(*warp.cta->cluster->ctas[region.rank]);
  if (is_same_accumulator(state, region, cta_group)) return;
  const std::optional<Mismatch> wrong = find_mismatch(state, region, cta_group);
  if (!wrong) return;
  const Reading& at = wrong->read;
  const TagParts was = parts_of(at.tag);
  const Tile& tile = tile_at(was.tile);
  const bool is_a = region.role == TensorRole::kA;
  const std::uint32_t last_bit = 8 * at.byte + (is_a ? region.element_bits : 32) - 1;
  std::vector<std::string> notes;
  notes.push_back(fmt::format("written as {}", map_of(tile.region)));
  notes.push_back(fmt::format("read as    {}", map_of(region)));
  notes.push_back(fmt::format(
      "lane {}, column {}, bits {} to {}: {}", at.lane, at.column, 8 * at.byte, last_bit,
      at.is_too_wide ? fmt::format("part of one value of 32 bits")
                     : fmt::format("by most others column {} of row {} belongs there",
                                   static_cast<std::int32_t>(at.index) + wrong->expected.column,
                                   static_cast<std::int32_t>(at.row) + wrong->expected.row)));
  notes.push_back("see        " + drawing(tile.region, tile.cta_group));
  notes.push_back("and        " + drawing(region, cta_group));
  const Unit& unit = state.units[at.column * kHalves + at.lane / kHalfLanes];
  Record other = unit.write;
  if (other.by != By::kStore) {
    other.insn = tile.insn;
    other.warp = &warp;
  }
  const std::uint32_t per_cell = 32 / region.element_bits;
  report(
      warp, insn, 1u << operation.lane, Hazard::kLayout, &other,
      other.by == By::kStore ? "stored" : "computed",
      fmt::format("written as accumulator column {} of row {}, read as {} {} of row {}", was.column,
                  was.row, is_a ? "A element k =" : "accumulator column", at.index, at.row),
      is_a && per_cell > 1
          ? fmt::format(
                "pack {} columns of a row into each cell before tcgen05.st, rounded to {} bits, "
                "the first in the lowest bits",
                per_cell, region.element_bits)
          : "store with the shape and columns that were loaded with",
      std::move(notes), false);
}

}  // namespace tilewright::sim
