// Tensor copies between global and shared memory: which bytes go where, and the going.
#pragma once

#include "sim/async/reduction.h"
#include "sim/async/tensor_map.h"
#include "sim/async/tensor_swizzle.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace tilewright::sim {

enum class TensorCopyShape : std::uint8_t {
  kBox,    ///< .tile or .im2col, as the map's mode says
  kRows4,  ///< .tile::gather4, .tile::scatter4: four rows of a matrix, coordinates {column, 4 rows}
};

/// The operands of one cp.async.bulk.tensor or cp.reduce.async.bulk.tensor.
struct TensorCopy {
  const TensorMapFields* map = nullptr;  ///< must obey validate()
  TensorCopyShape shape = TensorCopyShape::kBox;
  std::array<std::int32_t, 5> coordinates{};      ///< innermost first
  std::array<std::uint16_t, 3> im2col_offsets{};  ///< added to the spatial coordinates of a pixel
  std::uint32_t shared_address = 0;               ///< absolute: the swizzle depends on it
};

/// Why the instruction is illegal; "" if it is not: the start (check_start()), a shared address
/// that is no multiple of 128, four rows of a map that is no matrix in boxes of one row. Also for
/// what is not simulated: interleaved maps, whose order in memory no document states.
std::string check(const TensorCopy& copy);

/// Bytes that one row (box[0] elements, or the channels of a pixel) has in global memory, in shared
/// memory, and from row to row in shared memory. A swizzled row takes the whole span of the
/// swizzle, even if it is shorter.
struct TensorRowBytes {
  std::uint32_t global = 0, shared = 0, pitch = 0;
};
TensorRowBytes row_bytes(const TensorMapFields& map);

/// Rows that the copy moves: box dimensions above the innermost, each ceil(box / element stride).
std::uint32_t num_rows(const TensorCopy& copy);

/// What complete_tx is given: bytes in global memory, those outside of the tensor counted.
std::uint32_t transaction_bytes(const TensorCopy& copy);

/// The copy touches shared memory in [shared_address, shared_address + shared_bytes) only.
std::uint32_t shared_bytes(const TensorCopy& copy);

/// One row. Its bytes in global memory order are: before (outside of the tensor), inside, after
/// (outside).
struct TensorRow {
  std::uint64_t global_address = 0;  ///< of the first byte inside
  std::uint32_t before = 0, inside = 0, after = 0;
  std::uint32_t shared_offset =
      0;  ///< of the row before swizzling, from TensorCopy::shared_address
};

/// A run of bytes that is contiguous in both memories.
struct TensorPiece {
  bool is_inside = false;            ///< false: filled by loads, skipped by stores
  std::uint64_t global_address = 0;  ///< if inside
  std::uint32_t shared_address = 0;  ///< absolute, swizzled
  std::uint32_t bytes = 0;
};

namespace tensor_copy_detail {
/// Odometer over the rows of a copy.
class RowWalk {
 public:
  explicit RowWalk(const TensorCopy& copy);
  TensorRow row() const;  ///< the current one
  void advance();

 private:
  void advance_box();
  void advance_im2col();

  const TensorCopy& copy_;
  TensorRowBytes bytes_;
  std::uint32_t row_idx_ = 0;
  std::array<std::uint32_t, 5> count_{};    // rows along each dimension
  std::array<std::uint32_t, 5> idx_{};      // of this row
  std::array<std::int64_t, 5> position_{};  // of this row in the tensor, [0] of its first element
};

void load_row(const TensorCopy& copy, const TensorRow& row, const std::byte* global,
              std::byte* shared);
/// The inside bytes of the row, in a buffer or in place.
const std::byte* collect_row(const TensorCopy& copy, const TensorRow& row, const std::byte* shared,
                             std::byte* buffer);

inline constexpr std::size_t kMaxRowBytes = 256 * 8;
}  // namespace tensor_copy_detail

/// Calls visit(const TensorRow&) for every row, in the order of shared memory.
template <class Visit>
void for_each_row(const TensorCopy& copy, Visit&& visit) {
  tensor_copy_detail::RowWalk walk(copy);
  for (std::uint32_t left = num_rows(copy); left != 0; --left) {
    visit(walk.row());
    if (left != 1) walk.advance();
  }
}

/// Calls visit(const TensorPiece&) for every piece of a row, for checkers that need each byte.
template <class Visit>
void for_each_piece(const TensorCopy& copy, const TensorRow& row, Visit&& visit) {
  const TensorMapFields& map = *copy.map;
  const bool is_gapped = is_padded(map.element);
  const std::uint32_t group = map.element == TensorElement::k16U6Align16B ? 12 : 8;
  const std::uint32_t atom = swizzle_atom_bytes(map.swizzle);
  const std::uint32_t end = row.before + row.inside + row.after;
  for (std::uint32_t at = 0; at < end;) {
    const std::uint32_t linear =
        copy.shared_address + row.shared_offset + (is_gapped ? at / group * 16 + at % group : at);
    std::uint32_t stop = std::min(end, is_gapped ? (at / group + 1) * group : end);
    if (map.swizzle != TensorSwizzle::kNone) stop = std::min(stop, at + atom - linear % atom);
    for (const std::uint32_t edge : {row.before, row.before + row.inside}) {
      if (at < edge) stop = std::min(stop, edge);
    }
    const bool is_inside = at >= row.before && at < row.before + row.inside;
    visit(TensorPiece{is_inside, is_inside ? row.global_address + (at - row.before) : 0,
                      swizzled(map.swizzle, linear), stop - at});
    at = stop;
  }
}

// The three that move bytes ask for global memory once per row:
//     std::byte* memory.global(std::uint64_t address, std::size_t bytes)
// A row for which it returns nullptr is left out; the caller reports why. `shared` points
// at the byte of TensorCopy::shared_address and is good for shared_bytes(). All return
// transaction_bytes().

/// Global to shared. Outside of the tensor zeros, or with TensorFill::kNan the NaN with all bits
/// but the sign set (0x7fff, 0x7fffffff, ...; f16: 0x7ff7). Gaps of the padded types are left
/// as they are.
/// f32.ftz and tf32.ftz flush subnormals to zeros of their sign; tf32 types round to nearest even.
/// NVIDIA documents neither the NaN nor the rounding.
template <class Memory>
std::uint32_t load(const TensorCopy& copy, Memory& memory, std::byte* shared) {
  for_each_row(copy, [&](const TensorRow& row) {
    const std::byte* global = nullptr;
    if (row.inside != 0) {
      global = memory.global(row.global_address, row.inside);
      if (global == nullptr) return;
    }
    tensor_copy_detail::load_row(copy, row, global, shared);
  });
  return transaction_bytes(copy);
}

/// Why a store with this start is illegal, "" if it is not. Seen on an H200, in no document: a
/// store may begin past the end of the tensor, but not before its start, in any dimension.
std::string check_store_start(const TensorCopy& copy);

/// Shared to global; what is outside of the tensor is not written, but for the innermost dimension:
/// that ends at the next multiple of 16 bytes, as seen on an H200 for elements of 1, 2 and 4 bytes.
/// A tensor whose rows are no multiples of 16 bytes gets whatever the box holds there into its
/// padding. The bytes are copied as they are.
template <class Memory>
std::uint32_t store(const TensorCopy& copy, Memory& memory, const std::byte* shared) {
  constexpr std::uint32_t kChunkBytes = 16;
  std::array<std::byte, tensor_copy_detail::kMaxRowBytes> buffer;
  for_each_row(copy, [&](const TensorRow& row) {
    if (row.inside == 0) return;
    const auto inside = static_cast<std::uint32_t>(row.inside);
    const std::uint32_t written = std::min((inside + kChunkBytes - 1) / kChunkBytes * kChunkBytes,
                                           inside + static_cast<std::uint32_t>(row.after));
    std::byte* global = memory.global(row.global_address, written);
    if (global == nullptr) return;
    const std::byte* from = tensor_copy_detail::collect_row(copy, row, shared, buffer.data());
    std::copy_n(from, written, global);
  });
  return transaction_bytes(copy);
}

/// What elements of this map reduce as, or why they cannot. S64 adds as U64.
std::string check_tensor_reduction(const TensorMapFields& map, ReduceOp op);
ReduceType reduce_type_of(TensorElement element);

/// As store(), but each element is combined with what is there. Only after
/// check_tensor_reduction().
template <class Memory>
std::uint32_t reduce(const TensorCopy& copy, ReduceOp op, Memory& memory, const std::byte* shared) {
  std::array<std::byte, tensor_copy_detail::kMaxRowBytes> buffer;
  const ReduceType type = reduce_type_of(copy.map->element);
  for_each_row(copy, [&](const TensorRow& row) {
    if (row.inside == 0) return;
    std::byte* global = memory.global(row.global_address, row.inside);
    if (global == nullptr) return;
    const std::byte* from = tensor_copy_detail::collect_row(copy, row, shared, buffer.data());
    reduce_into(op, type, global, from, row.inside);
  });
  return transaction_bytes(copy);
}

}  // namespace tilewright::sim
