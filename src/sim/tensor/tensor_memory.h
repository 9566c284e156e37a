// Tensor Memory: 128 lanes by 512 columns of 32 bits, and which CTA has which columns of it.
//
// CTAs that are resident on one SM at the same time share its columns and wait for each
// other's. Those that cannot talk to each other run one after the other here, each as if alone.
#pragma once

#include "sim/host/reused_memory.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tilewright::sim {

inline constexpr std::uint32_t kTensorLanes = 128;
inline constexpr std::uint32_t kTensorColumns = 512;
/// A warp reaches the 32 lanes of its number modulo 4.
inline constexpr std::uint32_t kTensorPartitionLanes = 32;
/// Fewest columns of an allocation.
inline constexpr std::uint32_t kTensorLeastColumns = 32;
/// What a fresh cell holds: no number in any floating-point format, scales included.
inline constexpr std::uint32_t kTensorPoison = 0xffffffff;
/// All four bytes of a cell.
inline constexpr std::uint8_t kTensorDefined = 0xf;

/// Bit l of word p: lane 32 p + l.
using TensorLanes = std::array<std::uint32_t, 4>;

struct TensorAddress {
  std::uint32_t lane = 0, column = 0;
};

/// Bits 22..16 the lane, 8..0 the column. The others mean nothing: kernels keep numbers there.
constexpr TensorAddress decode_tensor_address(std::uint32_t bits) {
  return {bits >> 16 & 127, bits & 511};
}

/// Columns that tcgen05.alloc has given out.
struct TensorAllocation {
  std::uint32_t column = 0, num_columns = 0;
  std::uint32_t cta_group = 1;
};

class TensorMemory;

/// The columns of one SM. One CTA at a time may allocate: the first to ask has the
/// permit until it relinquishes it or ends. No manual says in so many words that others wait for
/// that, so that they stop waiting if none could go on otherwise.
struct TensorColumns {
  struct Held {
    const TensorMemory* holder = nullptr;
    std::uint32_t column = 0, num_columns = 0;
  };
  std::vector<Held> held;
  const TensorMemory* permit = nullptr;
  bool is_open = false;       ///< the permit is not asked for any more
  std::uint64_t version = 0;  ///< counts what may end a wait
};

/// What a CTA has of its SM's.
class TensorMemory {
 public:
  /// `first_column`: where the search for free columns begins. `keeps_defined`: whether a
  /// check asks which bytes are defined. `columns`: of the SM; its own without.
  TensorMemory(std::uint32_t first_column, bool keeps_defined,
               std::shared_ptr<TensorColumns> columns = nullptr);

  std::uint32_t& cell(std::uint32_t lane, std::uint32_t column) noexcept {
    return cells_[lane * kTensorColumns + column];
  }
  /// 512 cells side by side.
  std::uint32_t* row(std::uint32_t lane) noexcept { return &cells_[lane * kTensorColumns]; }

  /// The 512 cells' bytes that are defined: bit i of a number is byte i. nullptr: not kept.
  std::uint8_t* defined_row(std::uint32_t lane) noexcept {
    return defined_.empty() ? nullptr : &defined_[lane * kTensorColumns];
  }
  bool keeps_defined() const noexcept { return !defined_.empty(); }

  /// Where `num_columns` free ones are side by side, by first fit.
  std::optional<std::uint32_t> find_free(std::uint32_t num_columns) const;
  bool is_free(std::uint32_t column, std::uint32_t num_columns) const;
  /// The columns get poison. They must be free.
  void take(const TensorAllocation& allocation);
  /// False if there is no such allocation.
  bool give_back(std::uint32_t column, std::uint32_t num_columns);
  const std::vector<TensorAllocation>& allocations() const noexcept { return allocations_; }
  /// The allocation that a column belongs to; nullptr if it is free.
  const TensorAllocation* holder(std::uint32_t column) const;

  /// Whether no other CTA of the SM has the permit to allocate.
  bool may_allocate() const noexcept;
  void take_permit() noexcept { columns_->permit = this; }
  void relinquish() noexcept;
  bool has_relinquished() const noexcept { return has_relinquished_; }
  /// The CTA has ended: what it has left is free for others.
  void end();
  const TensorColumns& columns() const noexcept { return *columns_; }

  /// Counts what may end a wait for columns.
  std::uint64_t version() const noexcept { return columns_->version; }
  void changed() noexcept { ++columns_->version; }
  // For messages: the name of the CTA, and what a warp waits for.
  std::string owner;
  std::uint32_t wanted_columns = 0;

  /// tcgen05.alloc or dealloc of two CTAs, for which the peer's warp has not come.
  struct PairRequest {
    bool is_waiting = false;
    bool is_granted = false;  ///< the peer's warp has done it for both
    bool is_dealloc = false;
    std::uint32_t num_columns = 0;
    std::uint32_t column = 0;
  };
  PairRequest request;

 private:
  std::uint32_t first_column_;
  bool has_relinquished_ = false;
  std::shared_ptr<TensorColumns> columns_;
  std::vector<std::uint32_t, Reused<std::uint32_t>> cells_;
  std::vector<std::uint8_t, Reused<std::uint8_t>> defined_;
  std::vector<TensorAllocation> allocations_;  // by column
};

}  // namespace tilewright::sim
