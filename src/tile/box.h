// A tile of an operand in shared memory: what the tensor copy writes and what the MMA reads come
// from one value.
//
//   row r   | chunk 0 | chunk 1 | ... | 7 |    a line of 128 bytes, its chunks exchanged by r % 8
//   Box 0: Rows lines; Box 1, the next 128 bytes of each row: Rows lines behind them; ...
#pragma once

#include "arch/smem_descriptor.h"
#include "ptx/address.h"
#include "ptx/bulk_tensor_copy.h"

#include <cstdint>

namespace tilewright::tile {

inline constexpr int kBoxRowBytes = 128;  ///< of a row in a box: one span of the 128-byte swizzle
inline constexpr int kBoxColumns = 64;    ///< the same, of 16 bits

/// Offset of 16-byte chunk `chunk` within its line of 128 bytes; line is 0 to 7, the number of the
/// line modulo 8.
constexpr std::uint32_t chunk_in_line(std::uint32_t line, std::uint32_t chunk) {
  return (chunk ^ line) << 4;
}

/// The descriptor of what lies `units` of 16 bytes further. That nothing is carried into its upper
/// half is said here: a 64-bit addition is four dependent instructions of the uniform unit per MMA.
__device__ inline std::uint64_t advance_descriptor(std::uint64_t descriptor, std::uint32_t units) {
  return descriptor >> 32 << 32 | (static_cast<std::uint32_t>(descriptor) + units);
}

/// `Rows` rows of `RowBytes` bytes, as boxes of one span of the swizzle each (arch::SmemBox).
template <int Rows, int RowBytes, arch::SmemSwizzle Swizzle = arch::SmemSwizzle::k128B>
struct Box {
  static constexpr arch::SmemBox kBox = {Rows, RowBytes, Swizzle};
  static constexpr int kSpan = kBox.span(), kBoxes = kBox.boxes(), kBytes = kBox.bytes();
  static_assert(RowBytes % kSpan == 0, "a row is a whole number of spans of the swizzle");

  // No function here says where a chunk of a row lies: chunk_in_line() does. For kBox is a variable
  // of the host. nvcc says nothing of device code that calls a member of it with a row that is not
  // constant: it leaves the code out, and every store that depends on it.

  /// Descriptors for wgmma of the tile at a shared-memory address: rows are mn and columns the
  /// reduction index, or the other way round.
  static __device__ std::uint64_t k_major(std::uint32_t address) {
    return at<arch::encode_wgmma_descriptor(kBox.describe(arch::Major::kK))>(address);
  }
  static __device__ std::uint64_t mn_major(std::uint32_t address) {
    return at<arch::encode_wgmma_descriptor(kBox.describe(arch::Major::kMN))>(address);
  }

  /// Copies the tile from row `row` on, a box at a time. The map is of elements of ElemBytes, in
  /// boxes of Rows rows of one span.
  template <int ElemBytes>
  static __device__ void load(std::uint8_t* to, const void* map, std::int32_t row,
                              std::int32_t head, std::int32_t batch, std::uint32_t barrier) {
#pragma unroll
    for (int box = 0; box < kBoxes; ++box) {
      ptx::cp_async_bulk_tensor_4d_shared_global(ptx::shared_address(to) + box * kBox.box_bytes(),
                                                 map, box * (kSpan / ElemBytes), row, head, batch,
                                                 barrier);
    }
  }

 private:
  template <std::uint64_t AtZero>
  static __device__ std::uint64_t at(std::uint32_t address) {
    return AtZero | address >> 4;
  }
};

}  // namespace tilewright::tile
