// The tmem check: what cells hold and what they are read as.
#include "sim/check/tensor/tmem_checker.h"
#include "sim/tensor/mma_layout.h"

#include <algorithm>
#include <array>
#include <bit>

#include <fmt/format.h>

namespace tilewright::sim {

namespace {

constexpr std::uint32_t kCellBytes = 4;

MmaShape shape_of(const TensorRegion& region, std::uint32_t cta_group) {
  return {static_cast<int>(region.m), static_cast<int>(region.n), static_cast<int>(cta_group),
          region.is_ws};
}

/// An element of D, or of A with its first k, in a cell of an operand.
struct Element {
  std::uint32_t row = 0, index = 0;
};

/// place_of_d and place_of_a the other way. The lane holds a row.
Element element_at(const TensorRegion& region, std::uint32_t cta_group, std::uint32_t cta,
                   std::uint32_t lane, std::uint32_t column) {
  const MmaShape shape = shape_of(region, cta_group);
  const auto rows = static_cast<std::uint32_t>(rows_per_cta(shape));
  const std::uint32_t at = lane - region.lane_base;
  std::uint32_t local = at, part = 0;
  if (has_half_lanes(shape)) {
    local = at / 32 * 16 + at % 32;
  } else {
    local = at % rows;
    part = at / rows;
  }
  const std::uint32_t row = cta * rows + local;
  const std::uint32_t offset = column - region.column;
  if (region.role == TensorRole::kA) return {row, offset * 32 / region.element_bits};
  const auto width = region.n / static_cast<std::uint32_t>(column_parts(shape));
  return {row, part * width + offset};
}

template <class F>
void for_each_datapath(const TensorLanes& lanes, F&& f) {
  for (std::uint32_t p = 0; p < lanes.size(); ++p) {
    for (std::uint32_t rest = lanes[p]; rest != 0; rest &= rest - 1) {
      f(32 * p + static_cast<std::uint32_t>(std::countr_zero(rest)));
    }
  }
}

}  // namespace

std::uint16_t TmemChecker::tile_of(CtaState& state, const TensorRegion& region,
                                   std::uint32_t cta_group, const Insn& insn) {
  constexpr std::size_t kMostTiles = 0x7fff / kGenerations;
  const auto is_same = [&](const Tile& tile) {
    const TensorRegion& other = tile.region;
    return tile.insn != nullptr && other.column == region.column &&
           other.lane_base == region.lane_base && other.m == region.m && other.n == region.n &&
           other.is_ws == region.is_ws && tile.cta_group == cta_group;
  };
  const auto index =
      static_cast<std::size_t>(std::ranges::find_if(tiles_, is_same) - tiles_.begin());
  if (index == tiles_.size()) {
    if (index > kMostTiles) return 0;
    tiles_.push_back({region, cta_group, &insn});
  }
  if (state.generations.size() < tiles_.size()) state.generations.resize(tiles_.size());
  if (region.kind == AccessKind::kWrite) ++state.generations[index];
  return static_cast<std::uint16_t>(index * kGenerations + state.generations[index] % kGenerations);
}

TmemChecker::TagMap& TmemChecker::cell_tags(CtaState& state) {
  if (state.cell_tags.empty()) {
    state.cell_tags.resize(std::size_t{kTensorLanes} * kTensorColumns * kCellBytes);
  }
  return state.cell_tags;
}

Tag TmemChecker::accumulator_tag(std::uint16_t tile, std::uint32_t cta, std::uint32_t lane,
                                 std::uint32_t column) const {
  if (tile == 0) return 0;
  const Tile& from = tile_at(tile);
  const Element element = element_at(from.region, from.cta_group, cta, lane, column);
  if (element.row > 255 || element.index > 255) return 0;
  return make_tag({tile, element.row, element.index});
}

namespace {

std::size_t tag_index(std::uint32_t lane, std::uint32_t column) {
  return (std::size_t{lane} * kTensorColumns + column) * kCellBytes;
}

}  // namespace

void TmemChecker::load_tags(Warp& warp, const TensorAccess& access) {
  CtaState& state = state_of(*warp.cta);
  WarpState& own = state.warps[warp.index];
  if (own.tags == nullptr) {
    own.tags = std::make_unique<RegisterTags>(*warp.grid->code);
    own.load_of.resize(warp.grid->code->register_bytes / 64 + 1);
  }
  own.has_loads = true;
  const std::uint32_t time = order_.tensor_moments(warp).loads_time;
  const std::size_t per_register = access.is_packed ? 2 : 1;
  const std::uint32_t taken = access.is_packed ? 2 : kCellBytes;
  for (std::size_t r = 0; r < access.rows.size(); ++r) {
    const Row row = access.rows[r];
    own.load_of[row / 64] = time;
    own.tags->clear(row);
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      for (std::size_t i = 0; i < per_register; ++i) {
        const TensorAddress& cell = access.cells[lane * access.num_cells + r * per_register + i];
        const Unit& unit = state.units[cell.column * kHalves + cell.lane / kHalfLanes];
        const auto first = static_cast<std::uint32_t>(i) * taken;
        if (unit.origin == Origin::kAccumulator) {
          const std::uint32_t cta = tile_at(unit.tile).cta_group == 2 ? warp.cta->rank % 2 : 0;
          const Tag tag = accumulator_tag(unit.tile, cta, cell.lane, cell.column);
          for (std::uint32_t b = 0; b < taken; ++b)
            own.tags->set(row, kCellBytes, lane, first + b, tag);
        } else if (unit.origin == Origin::kStored && !state.cell_tags.empty()) {
          const Tag* const tags = &state.cell_tags[tag_index(cell.lane, cell.column)];
          for (std::uint32_t b = 0; b < taken; ++b) {
            own.tags->set(row, kCellBytes, lane, first + b, tags[b]);
          }
        }
      }
    }
  }
}

void TmemChecker::store_tags(Warp& warp, const TensorAccess& access) {
  CtaState& state = state_of(*warp.cta);
  const WarpState& own = state.warps[warp.index];
  const std::size_t per_register = access.is_packed ? 2 : 1;
  const std::uint32_t given = access.is_packed ? 2 : kCellBytes;
  for (std::size_t r = 0; r < access.rows.size(); ++r) {
    const bool has_tags = own.tags != nullptr && own.tags->has_tags(access.rows[r]);
    if (!has_tags && state.cell_tags.empty()) continue;
    TagMap& tags = cell_tags(state);
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      for (std::size_t i = 0; i < per_register; ++i) {
        const TensorAddress& cell = access.cells[lane * access.num_cells + r * per_register + i];
        Tag* const out = &tags[tag_index(cell.lane, cell.column)];
        const auto first = static_cast<std::uint32_t>(i) * given;
        for (std::uint32_t b = 0; b < kCellBytes; ++b) {
          out[b] =
              has_tags && b < given ? own.tags->at(access.rows[r], kCellBytes, lane, first + b) : 0;
        }
      }
    }
  }
}

Tag TmemChecker::tag_of_element(const CtaState& state, const TensorRegion& region,
                                std::uint32_t lane, std::uint32_t column, std::uint32_t byte,
                                std::uint32_t bytes) const {
  const Unit& unit = state.units[column * kHalves + lane / kHalfLanes];
  if (unit.origin == Origin::kAccumulator) {
    return accumulator_tag(unit.tile, region.cta, lane, column);
  }
  if (unit.origin != Origin::kStored || state.cell_tags.empty()) return 0;
  const Tag* const tags = &state.cell_tags[tag_index(lane, column) + byte];
  for (std::uint32_t b = 1; b < bytes; ++b) {
    if (tags[b] != tags[0]) return 0;
  }
  return tags[0];
}

void TmemChecker::read_lane(const CtaState& state, const TensorRegion& region,
                            std::uint32_t cta_group, std::uint32_t lane,
                            std::vector<Reading>& out) const {
  const std::uint32_t bytes = region.element_bits / 8;
  const std::uint32_t cta = cta_group == 2 ? region.cta : 0;
  out.clear();
  for (std::uint32_t i = 0; i < region.num_columns; ++i) {
    const std::uint32_t column = region.column + i;
    const Element element = element_at(region, cta_group, cta, lane, column);
    const Tag whole = tag_of_element(state, region, lane, column, 0, kCellBytes);
    for (std::uint32_t byte = 0; byte < kCellBytes; byte += bytes) {
      const Tag tag = tag_of_element(state, region, lane, column, byte, bytes);
      if (tag == 0) continue;
      Reading reading{tag, lane, column, byte, element.row, element.index + byte / bytes,
                      {},  false};
      const TagParts parts = parts_of(tag);
      reading.distance = {
          static_cast<std::int32_t>(parts.row) - static_cast<std::int32_t>(reading.row),
          static_cast<std::int32_t>(parts.column) - static_cast<std::int32_t>(reading.index)};
      // One value of 32 bits where there should be several: its second part is out of place.
      reading.is_too_wide = bytes < kCellBytes && whole != 0 && (whole & kNarrowTag) == 0;
      if (reading.is_too_wide && byte != bytes) continue;
      reading.is_left =
          reading.is_too_wide &&
          state.units[column * kHalves + lane / kHalfLanes].origin == Origin::kAccumulator;
      out.push_back(reading);
    }
  }
  // What stands in several places was spread there: a maximum or a sum of a row, of one column.
  std::vector<Tag> tags;
  for (const Reading& reading : out) tags.push_back(reading.tag);
  std::ranges::sort(tags);
  std::erase_if(out, [&](const Reading& reading) {
    const auto [first, last] = std::equal_range(tags.begin(), tags.end(), reading.tag);
    return !reading.is_too_wide && last - first > 1;
  });
}

bool TmemChecker::has_stored_cells(const CtaState& state, const TensorRegion& region) {
  for (std::uint32_t i = 0; i < region.num_columns; ++i) {
    const Unit* const units = &state.units[(region.column + i) * kHalves];
    if (std::any_of(units, units + kHalves,
                    [](const Unit& unit) { return unit.origin == Origin::kStored; })) {
      return true;
    }
  }
  return false;
}

/// Elements of one accumulator must be as far from each other in the operand as they were there.
/// Where most are is taken for right; if a quarter of the lanes has elements elsewhere, the first
/// of those is the mismatch.
std::optional<TmemChecker::Mismatch> TmemChecker::find_mismatch(const CtaState& state,
                                                                const TensorRegion& region,
                                                                std::uint32_t cta_group) const {
  if (region.element_bits < 8) return std::nullopt;  // two values in a byte are not told apart
  std::vector<Place> places;
  std::vector<Reading> readings;
  // Rows without a store keep what an accumulator left there, and their results are not used.
  const bool has_stored = has_stored_cells(state, region);
  const auto read = [&](std::uint32_t lane) {
    read_lane(state, region, cta_group, lane, readings);
    if (has_stored) std::erase_if(readings, [](const Reading& reading) { return reading.is_left; });
  };
  for_each_datapath(region.lanes, [&](std::uint32_t lane) {
    read(lane);
    for (const Reading& reading : readings) {
      const std::uint32_t tile = parts_of(reading.tag).tile;
      const auto same = [&](const Place& known) {
        return known.tile == tile && known.distance == reading.distance;
      };
      const auto known = std::ranges::find_if(places, same);
      if (known == places.end()) {
        places.push_back({tile, reading.distance, 1});
      } else {
        ++known->count;
      }
    }
  });
  if (places.empty()) return std::nullopt;
  std::uint32_t num_lanes = 0, num_wrong = 0;
  std::optional<Mismatch> out;
  for_each_datapath(region.lanes, [&](std::uint32_t lane) {
    read(lane);
    num_lanes += !readings.empty();
    for (const Reading& reading : readings) {
      const std::uint32_t tile = parts_of(reading.tag).tile;
      const Place* best = nullptr;
      for (const Place& known : places) {
        if (known.tile == tile && (best == nullptr || known.count > best->count)) best = &known;
      }
      if (best->distance == reading.distance && !reading.is_too_wide) continue;
      if (!out) out = Mismatch{reading, best->distance};
      ++num_wrong;
      return;
    }
  });
  if (4 * num_wrong < num_lanes) return std::nullopt;
  return out;
}

}  // namespace tilewright::sim
