#include "sim/tensor/tensor_memory.h"

#include <algorithm>

namespace tilewright::sim {

TensorMemory::TensorMemory(std::uint32_t first_column, bool keeps_defined,
                           std::shared_ptr<TensorColumns> columns)
    : first_column_(first_column),
      columns_(columns ? std::move(columns) : std::make_shared<TensorColumns>()),
      cells_(kTensorLanes * kTensorColumns, kTensorPoison) {
  if (keeps_defined) defined_.assign(cells_.size(), 0);
}

bool TensorMemory::is_free(std::uint32_t column, std::uint32_t num_columns) const {
  if (column + num_columns > kTensorColumns) return false;
  return std::ranges::none_of(columns_->held, [&](const TensorColumns::Held& a) {
    return column < a.column + a.num_columns && a.column < column + num_columns;
  });
}

bool TensorMemory::may_allocate() const noexcept {
  return columns_->is_open || columns_->permit == nullptr || columns_->permit == this;
}

void TensorMemory::relinquish() noexcept {
  has_relinquished_ = true;
  if (columns_->permit != this) return;
  columns_->permit = nullptr;
  changed();
}

void TensorMemory::end() {
  std::erase_if(columns_->held, [&](const TensorColumns::Held& a) { return a.holder == this; });
  if (columns_->permit == this) columns_->permit = nullptr;
  changed();
}

std::optional<std::uint32_t> TensorMemory::find_free(std::uint32_t num_columns) const {
  for (const std::uint32_t first : {first_column_, 0U}) {
    for (std::uint32_t at = first; at < kTensorColumns; at += kTensorLeastColumns) {
      if (is_free(at, num_columns)) return at;
    }
  }
  return std::nullopt;
}

void TensorMemory::take(const TensorAllocation& allocation) {
  const auto after =
      std::ranges::upper_bound(allocations_, allocation.column, {}, &TensorAllocation::column);
  allocations_.insert(after, allocation);
  columns_->held.push_back({this, allocation.column, allocation.num_columns});
  for (std::uint32_t lane = 0; lane < kTensorLanes; ++lane) {
    std::fill_n(row(lane) + allocation.column, allocation.num_columns, kTensorPoison);
    if (keeps_defined()) {
      std::fill_n(defined_row(lane) + allocation.column, allocation.num_columns, std::uint8_t{0});
    }
  }
}

bool TensorMemory::give_back(std::uint32_t column, std::uint32_t num_columns) {
  const auto at = std::ranges::find(allocations_, column, &TensorAllocation::column);
  if (at == allocations_.end() || at->num_columns != num_columns) return false;
  allocations_.erase(at);
  std::erase_if(columns_->held, [&](const TensorColumns::Held& a) {
    return a.holder == this && a.column == column;
  });
  changed();
  return true;
}

const TensorAllocation* TensorMemory::holder(std::uint32_t column) const {
  const auto at = std::ranges::find_if(allocations_, [&](const TensorAllocation& a) {
    return column >= a.column && column < a.column + a.num_columns;
  });
  return at == allocations_.end() ? nullptr : &*at;
}

}  // namespace tilewright::sim
