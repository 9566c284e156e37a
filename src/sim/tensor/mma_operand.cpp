#include "sim/tensor/mma_operand.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace tilewright::sim {

namespace {

constexpr std::uint32_t kChunkBytes = 16;

/// The codes of `count` elements that begin at a byte: two to a byte, or 16 to a chunk.
void unpack(const std::byte* from, const MmaOperand& operand, std::uint32_t count,
            std::byte* codes) {
  if (operand.container_bits == 4) {
    for (std::uint32_t i = 0; i < count; i += 2) {
      codes[i] = from[i / 2] & std::byte{15};
      codes[i + 1] = from[i / 2] >> 4;
    }
    return;
  }
  const auto bits = static_cast<std::uint32_t>(operand.format->bits());
  const auto mask = std::byte((1U << bits) - 1);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t bit = i % 16 * bits;
    const std::byte* const at = from + i / 16 * kChunkBytes + bit / 8;
    const auto low = std::to_integer<std::uint32_t>(at[0]) >> bit % 8;
    const bool crosses = bit % 8 + bits > 8;
    const auto high = crosses ? std::to_integer<std::uint32_t>(at[1]) << (8 - bit % 8) : 0U;
    codes[i] = std::byte(low | high) & mask;
  }
}

/// Codes [k][rows] to [rows][k].
template <class Code>
void transpose(const std::byte* from, int k, int rows, std::byte* to) {
  for (int row = 0; row < rows; ++row) {
    for (int i = 0; i < k; ++i, to += sizeof(Code)) {
      std::memcpy(to,
                  from + (static_cast<std::size_t>(i) * static_cast<std::size_t>(rows) +
                          static_cast<std::size_t>(row)) *
                             sizeof(Code),
                  sizeof(Code));
    }
  }
}

/// The bytes as they lie in memory, line by line of the other index.
GatherResult gather_bytes(std::span<const std::byte> shared, const SharedDescriptor& d,
                          OperandMajor major, const OperandExtent& extent, std::byte* to) {
  for (std::uint32_t other = 0; other < extent.outer; ++other) {
    for (std::uint32_t byte = 0; byte < extent.contiguous_bytes; byte += kChunkBytes) {
      const std::uint32_t size = std::min(kChunkBytes, extent.contiguous_bytes - byte);
      const std::uint32_t address = shared_operand_address(d, major, byte, other);
      if (std::size_t{address} + size > shared.size()) {
        return {GatherStatus::kOutOfBounds, address};
      }
      std::memcpy(to, shared.data() + address, size);
      to += size;
    }
  }
  return {};
}

}  // namespace

OperandExtent extent_of(const MmaOperand& operand) {
  const auto rows = static_cast<std::uint32_t>(operand.rows);
  const auto k = static_cast<std::uint32_t>(operand.k);
  const auto bits = static_cast<std::uint32_t>(operand.container_bits);
  if (operand.major == OperandMajor::kK) return {rows, k * bits / 8};
  return {k, rows * bits / 8};
}

GatherResult gather_shared(std::span<const std::byte> shared, const SharedDescriptor& descriptor,
                           const MmaOperand& operand, std::span<std::byte> codes) {
  const OperandExtent extent = extent_of(operand);
  const bool is_k_major = operand.major == OperandMajor::kK;
  const bool is_packed = operand.container_bits == 4 || operand.is_padded();
  if (is_k_major && !is_packed) {
    return gather_bytes(shared, descriptor, operand.major, extent, codes.data());
  }
  std::array<std::byte, kMaxOperandBytes> raw, expanded;
  const GatherResult result = gather_bytes(shared, descriptor, operand.major, extent, raw.data());
  if (!result.is_done()) return result;
  const std::byte* lines = raw.data();
  if (is_packed) {
    const auto count = static_cast<std::uint32_t>(is_k_major ? operand.k : operand.rows);
    std::byte* const to = is_k_major ? codes.data() : expanded.data();
    for (std::uint32_t other = 0; other < extent.outer; ++other) {
      unpack(raw.data() + other * extent.contiguous_bytes, operand, count, to + other * count);
    }
    lines = expanded.data();
  }
  if (is_k_major) return result;
  switch (operand.code_bytes()) {
    case 1:
      transpose<std::uint8_t>(lines, operand.k, operand.rows, codes.data());
      break;
    case 2:
      transpose<std::uint16_t>(lines, operand.k, operand.rows, codes.data());
      break;
    default:
      transpose<std::uint32_t>(lines, operand.k, operand.rows, codes.data());
      break;
  }
  return result;
}

std::vector<SharedRun> runs_of(const SharedDescriptor& descriptor, const MmaOperand& operand,
                               std::uint32_t shared_bytes) {
  constexpr std::uint32_t kMostBytes = 256 << 10;
  std::array<std::uint64_t, kMostBytes / kChunkBytes / 64> is_used{};
  const OperandExtent extent = extent_of(operand);
  const std::uint32_t end = std::min(shared_bytes, kMostBytes);
  for (std::uint32_t other = 0; other < extent.outer; ++other) {
    for (std::uint32_t byte = 0; byte < extent.contiguous_bytes; byte += kChunkBytes) {
      const std::uint32_t at = shared_operand_address(descriptor, operand.major, byte, other);
      if (at < end) is_used[at / kChunkBytes / 64] |= std::uint64_t{1} << at / kChunkBytes % 64;
    }
  }
  std::vector<SharedRun> runs;
  for (std::uint32_t word = 0; word < is_used.size(); ++word) {
    for (std::uint64_t rest = is_used[word]; rest != 0; rest &= rest - 1) {
      const auto bit = static_cast<std::uint32_t>(std::countr_zero(rest));
      const std::uint32_t address = (word * 64 + bit) * kChunkBytes;
      const std::uint32_t bytes = std::min(kChunkBytes, end - address);
      if (!runs.empty() && runs.back().address + runs.back().bytes == address) {
        runs.back().bytes += bytes;
      } else {
        runs.push_back({address, bytes});
      }
    }
  }
  return runs;
}

void find_undefined_rows(std::span<const std::uint8_t> shadow, const SharedDescriptor& descriptor,
                         const MmaOperand& operand, std::span<std::uint8_t> is_undefined) {
  const OperandExtent extent = extent_of(operand);
  const auto bits = static_cast<std::uint32_t>(operand.is_padded() ? operand.format->bits()
                                                                   : operand.container_bits);
  const std::uint32_t data_bytes = operand.is_padded() ? 2 * bits : kChunkBytes;
  const std::uint32_t per_chunk = data_bytes * 8 / bits;
  for (std::uint32_t other = 0; other < extent.outer; ++other) {
    for (std::uint32_t byte = 0; byte < extent.contiguous_bytes; ++byte) {
      if (byte % kChunkBytes >= data_bytes) continue;
      const std::uint32_t address = shared_operand_address(descriptor, operand.major, byte, other);
      if (address >= shadow.size() || (shadow[address] & 1) != 0) continue;
      if (operand.major == OperandMajor::kK) {
        is_undefined[other] = 1;
        continue;
      }
      const std::uint32_t bit = byte % kChunkBytes * 8;
      const std::uint32_t first = byte / kChunkBytes * per_chunk;
      is_undefined[first + bit / bits] = is_undefined[first + (bit + 7) / bits] = 1;
    }
  }
}

void unpack_tensor_row(const std::uint32_t* cells, const MmaOperand& operand, std::byte* codes) {
  const auto k = static_cast<std::uint32_t>(operand.k);
  if (operand.container_bits == 4) {
    std::array<std::byte, 64> bytes;
    std::memcpy(bytes.data(), cells, k / 2);
    unpack(bytes.data(), operand, k, codes);
    return;
  }
  std::memcpy(codes, cells, k * static_cast<std::uint32_t>(operand.code_bytes()));
  if (!operand.is_padded()) return;
  const int shift = operand.format->bits() == 4 ? 2 : 1;
  const auto mask = std::byte((1U << operand.format->bits()) - 1);
  for (std::uint32_t i = 0; i < k; ++i) codes[i] = codes[i] >> shift & mask;
}

}  // namespace tilewright::sim
