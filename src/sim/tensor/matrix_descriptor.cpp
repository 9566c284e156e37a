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

/// No byte of the tile lies at this address or beyond: the line of 128 bytes, in which swizzling
/// stays, behind the largest linear address or one a little larger.
std::uint64_t end_of_lines(const MatrixDescriptor& d, const OperandTile& tile) {
  const auto span = static_cast<std::uint32_t>(d.swizzle);
  const ChunkWalk walk = walk_of(tile);
  const std::uint64_t stride = d.stride_bytes, leading = d.leading_bytes;
  const std::uint32_t last_byte = walk.contiguous_bytes - 1, last = walk.outer - 1;
  std::uint64_t address = d.start_address + std::uint64_t{7} * std::max(span, kChunkBytes);
  if (tile.major == OperandMajor::kK) {
    address += last / 8 * stride + (span == 0 ? last_byte / 16 * leading + 15 : last_byte);
  } else if (span == 0) {
    address += last / 8 * leading + last_byte / 16 * stride + 15;
  } else {
    address += last / 8 * stride + last_byte / span * leading + std::min(last_byte, span - 1);
  }
  return (address / 128 + 1) * 128;
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

using Halves = std::uint16_t __attribute__((vector_size(16)));

Halves interleave_low(Halves a, Halves b) {
  return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
}
Halves interleave_high(Halves a, Halves b) {
  return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
}

/// Transposes 8 x 8: interleaving the first half with the second, three times.
void transpose(Halves (&v)[8]) {
  for (int round = 0; round < 3; ++round) {
    Halves next[8];
    for (int i = 0; i < 4; ++i) {
      next[2 * i] = interleave_low(v[i], v[i + 4]);
      next[2 * i + 1] = interleave_high(v[i], v[i + 4]);
    }
    std::copy_n(next, 8, v);
  }
}

/// gather_mn_major() for codes of 16 bits in whole chunks, eight k at a time: the usual case.
void gather_mn_halves(const std::byte* shared, const MatrixDescriptor& d, const OperandTile& tile,
                      std::byte* codes) {
  constexpr std::uint32_t kMostK = 256;
  const ChunkWalk walk = walk_of(tile);
  const std::size_t row_bytes = sizeof(std::uint16_t) * walk.outer;
  std::uint32_t lines[kMostK];  // linear addresses
  for (std::uint32_t k = 0; k < walk.outer; ++k) lines[k] = linear_address(d, tile.major, 0, k, 2);
  for (std::uint32_t byte = 0; byte < walk.contiguous_bytes; byte += kChunkBytes) {
    const std::uint32_t offset = linear_address(d, tile.major, byte / 2, 0, 2) - d.start_address;
    std::byte* const first_row = codes + byte / 2 * row_bytes;
    for (std::uint32_t k = 0; k < walk.outer; k += 8) {
      Halves chunks[8];
      for (std::uint32_t i = 0; i < 8; ++i) {
        std::memcpy(&chunks[i], shared + swizzled(d.swizzle, lines[k + i] + offset), kChunkBytes);
      }
      transpose(chunks);
      for (std::uint32_t i = 0; i < 8; ++i) {
        std::memcpy(first_row + i * row_bytes + k * 2, &chunks[i], kChunkBytes);
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
  } else if (tile.element_bytes == 2 && tile.rows % 8 == 0 && tile.k % 8 == 0) {
    gather_mn_halves(shared.data(), descriptor, tile, codes.data());
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
