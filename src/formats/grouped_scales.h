// Where the block scales of grouped rows lie: rows of experts follow each other, but each expert
// begins a tile of scales (scale_layout.h), because tensor cores read whole tiles.
#pragma once

#include <cstdint>

namespace tilewright {

/// Down the rows, the first tile of expert number `expert`, whose rows begin at `offset`. However
/// many rows the experts before have, their tiles end there:
/// ceil(c / 128) <= floor((o + c) / 128) - floor(o / 128) + 1.
constexpr std::int64_t grouped_scale_tile(std::int64_t offset, std::int64_t expert) {
  return offset / 128 + expert;
}

/// Of `count` rows that somebody has counted for an expert, those that it has room for.
constexpr std::int32_t rows_in_room(std::int32_t count, std::int32_t room) {
  return count < 0 ? 0 : count < room ? count : room;
}

/// So many tiles there may be down the rows.
constexpr std::int64_t grouped_scale_tiles(std::int64_t rows, std::int64_t experts) {
  return rows / 128 + experts;
}

}  // namespace tilewright
