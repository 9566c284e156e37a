#include "sim/tensor/matrix_descriptor.h"

#include "base/error.h"

#include <algorithm>
#include <cstring>

namespace tilewright::sim {

namespace {

constexpr std::uint32_t kChunkBytes = 16;

/// The tile as chunks: runs along the contiguous index that swizzling leaves together.
struct ChunkWalk {
  std::uint32_t outer;             ///< extent of the other index
  std::uint32_t contiguous_bytes;  ///< extent of the contiguous index
};

ChunkWalk walk_of(const OperandTile& tile) {
  const auto rows = static_cast<std::uint32_t>(tile.rows);
  const auto k = static_cast<std::uint32_t>(tile.k);
  const auto bytes = static_cast<std::uint32_t>(tile.element_bytes);
  if (tile.major == OperandMajor::kK) return {rows, k * bytes};
  return {k, rows * bytes};
}

std::uint32_t chunk_address(const MatrixDescriptor& d, const OperandTile& tile, std::uint32_t outer,
                            std::uint32_t byte) {
  // With elements of 1 byte, a contiguous index is a byte offset.
  if (tile.major == OperandMajor::kK) return operand_address(d, tile.major, outer, byte, 1);
  return operand_address(d, tile.major, byte, outer, 1);
}

/// No byte of the tile lies at this address or beyond; cheap, and often too careful. Swizzling
/// stays inside a line of 128 bytes.
std::uint64_t end_of_lines(const MatrixDescriptor& d, const OperandTile& tile) {
  const auto span = static_cast<std::uint64_t>(d.swizzle);
  const ChunkWalk walk = walk_of(tile);
  const std::uint64_t rows = std::max<std::uint64_t>(span, kChunkBytes);
  const std::uint64_t strides =
      std::uint64_t{walk.outer / 8} * std::max(d.stride_bytes, d.leading_bytes) +
      std::uint64_t{walk.contiguous_bytes} / rows * std::max(d.stride_bytes, d.leading_bytes);
  const std::uint64_t last = d.start_address + strides + 8 * rows + walk.contiguous_bytes;
  return (last + 127) / 128 * 128;
}

/// The exact check, in the order of rows and k.
GatherResult find_out_of_bounds(std::size_t shared_bytes, const MatrixDescriptor& d,
                                const OperandTile& tile) {
  const auto bytes = static_cast<std::uint32_t>(tile.element_bytes);
  for (std::uint32_t row = 0; row < static_cast<std::uint32_t>(tile.rows); ++row) {
    for (std::uint32_t k = 0; k < static_cast<std::uint32_t>(tile.k); ++k) {
      const std::uint32_t address = operand_address(d, tile.major, row, k, bytes);
      if (std::size_t{address} + bytes > shared_bytes) {
        return {GatherStatus::kOutOfBounds, address};
      }
    }
  }
  return {};
}

void gather_k_major(const std::byte* shared, const MatrixDescriptor& d, const OperandTile& tile,
                    std::byte* codes) {
  const ChunkWalk walk = walk_of(tile);
  const auto span = static_cast<std::uint32_t>(d.swizzle);
  const bool is_usual = span != 0 && walk.contiguous_bytes % kChunkBytes == 0;
  for (std::uint32_t row = 0; row < walk.outer; ++row, codes += walk.contiguous_bytes) {
    if (is_usual) {
      const std::uint32_t line = d.start_address + row / 8 * d.stride_bytes + row % 8 * span;
      for (std::uint32_t byte = 0; byte < walk.contiguous_bytes; byte += kChunkBytes) {
        std::memcpy(codes + byte, shared + swizzled(d.swizzle, line + byte), kChunkBytes);
      }
      continue;
    }
    for (std::uint32_t byte = 0; byte < walk.contiguous_bytes; byte += kChunkBytes) {
      const std::uint32_t size = std::min(kChunkBytes, walk.contiguous_bytes - byte);
      std::memcpy(codes + byte, shared + chunk_address(d, tile, row, byte), size);
    }
  }
}

template <class Code>
void gather_mn_major(const std::byte* shared, const MatrixDescriptor& d, const OperandTile& tile,
                     std::byte* codes) {
  const ChunkWalk walk = walk_of(tile);
  const std::size_t row_bytes = sizeof(Code) * walk.outer;
  for (std::uint32_t byte = 0; byte < walk.contiguous_bytes; byte += kChunkBytes) {
    const std::uint32_t size = std::min(kChunkBytes, walk.contiguous_bytes - byte);
    std::byte* const first_row = codes + byte / sizeof(Code) * row_bytes;
    for (std::uint32_t k = 0; k < walk.outer; ++k) {
      const std::byte* const from = shared + chunk_address(d, tile, k, byte);
      std::byte* to = first_row + k * sizeof(Code);
      for (std::uint32_t i = 0; i < size; i += sizeof(Code), to += row_bytes) {
        std::memcpy(to, from + i, sizeof(Code));
      }
    }
  }
}

void check(const OperandTile& tile, std::span<std::byte> codes) {
  const bool is_element =
      tile.element_bytes == 1 || tile.element_bytes == 2 || tile.element_bytes == 4;
  require(is_element && 0 < tile.rows && tile.rows <= 256 && 0 < tile.k && tile.k <= 256,
          ErrorKind::kInvalidArgument,
          "gather_tile: {} rows x {} elements of {} bytes; expected 1..256 rows and elements of 1, "
          "2 or 4 bytes",
          tile.rows, tile.k, tile.element_bytes);
  require(codes.size() == tile.size_bytes(), ErrorKind::kInvalidArgument,
          "gather_tile: room for {} bytes; the tile has {}", codes.size(), tile.size_bytes());
}

}  // namespace

GatherResult gather_tile(std::span<const std::byte> shared, const MatrixDescriptor& descriptor,
                         const OperandTile& tile, std::span<std::byte> codes) {
  check(tile, codes);
  if (descriptor.base_offset != 0) return {GatherStatus::kBaseOffsetUnsupported, 0};
  if (end_of_lines(descriptor, tile) > shared.size()) {
    const GatherResult result = find_out_of_bounds(shared.size(), descriptor, tile);
    if (!result.is_done()) return result;
  }
  if (tile.major == OperandMajor::kK) {
    gather_k_major(shared.data(), descriptor, tile, codes.data());
  } else if (tile.element_bytes == 1) {
    gather_mn_major<std::uint8_t>(shared.data(), descriptor, tile, codes.data());
  } else if (tile.element_bytes == 2) {
    gather_mn_major<std::uint16_t>(shared.data(), descriptor, tile, codes.data());
  } else {
    gather_mn_major<std::uint32_t>(shared.data(), descriptor, tile, codes.data());
  }
  return {};
}

}  // namespace tilewright::sim
