#include "sim/insn/tensor/wgmma_operand.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string>

#include <fmt/format.h>

namespace tilewright::sim {
namespace {

std::string describe(const char* name, std::uint64_t bits, const MatrixDescriptor& d) {
  return fmt::format(
      "wgmma descriptor of {} = {:#018x}: start address {:#x}, leading offset {} bytes, stride "
      "offset {} bytes, base offset {}, swizzle of {} bytes",
      name, bits, d.start_address, d.leading_bytes, d.stride_bytes, d.base_offset,
      static_cast<std::uint32_t>(d.swizzle));
}

/// The descriptor of the part that begins at first_row. The shift is made on the linear address,
/// before the swizzle, so it is exact.
MatrixDescriptor advanced(const MatrixDescriptor& descriptor, const OperandTile& tile,
                          int first_row) {
  if (first_row == 0) return descriptor;
  MatrixDescriptor result = descriptor;
  const auto rows = static_cast<std::uint32_t>(first_row);
  const auto bytes = rows * static_cast<std::uint32_t>(tile.element_bytes);
  const auto span = static_cast<std::uint32_t>(descriptor.swizzle);
  if (tile.major == OperandMajor::kK) {
    result.start_address += rows / 8 * descriptor.stride_bytes;
  } else if (span == 0) {
    result.start_address += bytes / 16 * descriptor.stride_bytes;
  } else {
    result.start_address += bytes / span * descriptor.leading_bytes + bytes % span;
  }
  return result;
}

SharedSwizzle shared_swizzle_of(OperandSwizzle swizzle) {
  switch (swizzle) {
    case OperandSwizzle::k32B:
      return SharedSwizzle::k32B;
    case OperandSwizzle::k64B:
      return SharedSwizzle::k64B;
    case OperandSwizzle::k128B:
      return SharedSwizzle::k128B;
    default:
      return SharedSwizzle::kNone;
  }
}

/// What gather_tile() does, for rows of 32 contiguous bytes (two chunks of 16) inside the memory:
/// the usual case. False, with codes in any state, if it is none or not all inside.
bool gather_rows(const Warp& warp, const MatrixDescriptor& d, const OperandTile& tile,
                 std::span<std::byte> codes) {
  if (tile.major != OperandMajor::kK || d.base_offset != 0 || tile.k * tile.element_bytes != 32) {
    return false;
  }
  const auto span = static_cast<std::uint32_t>(d.swizzle);
  const std::uint32_t pitch = span == 0 ? 16 : span;
  const std::uint32_t second = span == 0 ? d.leading_bytes : 16;
  const std::uint32_t end = warp.shared_bytes - 16;
  const auto rows = static_cast<std::uint32_t>(tile.rows);
  std::byte* to = codes.data();
  // With rows of 32 bytes at multiples of 32, both halves are in one line: they differ in one bit
  // of the address, swizzled or not.
  const std::uint64_t last =
      d.start_address + std::uint64_t{(rows - 1) / 8} * d.stride_bytes + std::uint64_t{8} * span;
  if (span != 0 && (d.start_address | d.stride_bytes) % 32 == 0 && last + 128 <= end) {
    const std::uint32_t chunks = span / 16 - 1;
    for (std::uint32_t row = 0; row < rows; ++row, to += 32) {
      const std::uint32_t linear = d.start_address + row / 8 * d.stride_bytes + row % 8 * span;
      const std::uint32_t a = linear ^ (linear / 128 & chunks) * 16;
      std::memcpy(to, warp.shared + a, 16);
      std::memcpy(to + 16, warp.shared + (a ^ 16), 16);
    }
    return true;
  }
  for (std::uint32_t row = 0; row < rows; ++row, to += 32) {
    const std::uint32_t linear = d.start_address + row / 8 * d.stride_bytes + row % 8 * pitch;
    const std::uint32_t a = swizzled(d.swizzle, linear), b = swizzled(d.swizzle, linear + second);
    if (a > end || b > end) return false;
    std::memcpy(to, warp.shared + a, 16);
    std::memcpy(to + 16, warp.shared + b, 16);
  }
  return true;
}

/// Chunks of 16 bytes of a CTA's shared memory, a bit each. Nothing lies beyond 256 KiB.
class SharedChunks {
 public:
  void add(std::uint32_t address) {
    const std::uint32_t chunk = address / kChunkBytes;
    if (chunk >= 64 * kWords) return;
    const std::uint32_t word = chunk / 64;
    words_[word] |= std::uint64_t{1} << chunk % 64;
    first_ = std::min(first_, word);
    last_ = std::max(last_, word);
  }
  /// run(address, bytes) for those that lie side by side, in their order.
  template <class Run>
  void for_each_run(const Run& run) const {
    std::uint32_t begin = 0, end = 0;  // of the run that may go on, in chunks
    for (std::uint32_t word = first_; word <= last_; ++word) {
      for (std::uint64_t bits = words_[word]; bits != 0;) {
        const auto from = static_cast<std::uint32_t>(std::countr_zero(bits));
        const auto count = static_cast<std::uint32_t>(std::countr_one(bits >> from));
        const std::uint32_t chunk = 64 * word + from;
        if (chunk != end || begin == end) {
          if (begin != end) run(begin * kChunkBytes, (end - begin) * kChunkBytes);
          begin = chunk;
        }
        end = chunk + count;
        if (from + count == 64) break;
        bits &= ~std::uint64_t{0} << (from + count);
      }
    }
    if (begin != end) run(begin * kChunkBytes, (end - begin) * kChunkBytes);
  }

 private:
  static constexpr std::uint32_t kChunkBytes = 16, kWords = 256;
  std::array<std::uint64_t, kWords> words_{};
  std::uint32_t first_ = kWords, last_ = 0;
};

}  // namespace

void gather_wgmma_operand(Warp& warp, const char* name, std::uint64_t descriptor,
                          const OperandTile& tile, int first_row, std::span<std::byte> codes) {
  const MatrixDescriptor fields = decode_matrix_descriptor(descriptor);
  if (gather_rows(warp, advanced(fields, tile, first_row), tile, codes)) return;
  const GatherResult result = gather_tile(std::span(warp.shared, warp.shared_bytes),
                                          advanced(fields, tile, first_row), tile, codes);
  switch (result.status) {
    case GatherStatus::kDone:
      return;
    case GatherStatus::kOutOfBounds:
      fault(FaultKind::kIllegalAddress, kAllLanes,
            fmt::format("{}; it reaches shared address {:#x}, but the CTA's shared memory ends at "
                        "{:#x}",
                        describe(name, descriptor, fields), result.address, warp.shared_bytes));
    case GatherStatus::kBaseOffsetUnsupported:
      fault(FaultKind::kIllegalInstruction, kAllLanes,
            describe(name, descriptor, fields) +
                "; a base offset other than 0 is not simulated: align the tile to its swizzle "
                "pattern");
  }
}

SharedOperand wgmma_operand(const Warp& warp, char operand, std::uint64_t descriptor,
                            const OperandTile& tile, int first_row) {
  const MatrixDescriptor d = advanced(decode_matrix_descriptor(descriptor), tile, first_row);
  const auto bytes = static_cast<std::uint32_t>(tile.element_bytes);
  const auto rows = static_cast<std::uint32_t>(tile.rows), k = static_cast<std::uint32_t>(tile.k);
  const bool is_k = tile.major == OperandMajor::kK;
  SharedOperand out;
  out.name = operand;
  out.rank = warp.cta->rank;
  out.descriptor = {d.start_address, d.leading_bytes, d.stride_bytes, d.base_offset,
                    shared_swizzle_of(d.swizzle)};
  out.major = tile.major;
  out.contiguous_bytes = (is_k ? k : rows) * bytes;
  out.outer = is_k ? rows : k;
  return out;
}

void append_wgmma_ranges(const Warp& warp, std::uint64_t descriptor, const OperandTile& tile,
                         int first_row, std::vector<AsyncRange>& ranges) {
  const MatrixDescriptor d = advanced(decode_matrix_descriptor(descriptor), tile, first_row);
  const auto bytes = static_cast<std::uint32_t>(tile.element_bytes);
  const bool is_k = tile.major == OperandMajor::kK;
  // Chunks of 16 bytes stay together.
  const auto rows = static_cast<std::uint32_t>(tile.rows), k = static_cast<std::uint32_t>(tile.k);
  const std::uint32_t row_step = is_k ? 1 : std::min(rows, 16 / bytes);
  const std::uint32_t k_step = is_k ? std::min(k, 16 / bytes) : 1;
  SharedChunks chunks;
  for (std::uint32_t row = 0; row < rows; row += row_step) {
    for (std::uint32_t at = 0; at < k; at += k_step) {
      chunks.add(operand_address(d, tile.major, row, at, bytes));
    }
  }
  const std::uint64_t own = std::uint64_t{warp.cta->rank} << kSharedRankShift;
  chunks.for_each_run([&](std::uint32_t address, std::uint32_t size) {
    ranges.push_back({AccessKind::kRead, Proxy::kAsync, true, own | address, size});
  });
}

}  // namespace tilewright::sim
