#include "verify/stored_rows.h"

#include "base/tensor.h"
#include "formats/minifloat.h"
#include "formats/scale_layout.h"

#include <algorithm>
#include <cstring>

namespace tilewright::cli {

namespace {

std::span<const std::uint8_t> bytes_of(const ConstTensorView& view, const char* name) {
  const std::span<const std::byte> bytes = contiguous_bytes(view, name);
  return {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
}

template <class T>
std::span<const T> line(std::span<const T> all, std::int64_t index, std::int64_t size) {
  return all.subspan(static_cast<std::size_t>(index * size), static_cast<std::size_t>(size));
}

}  // namespace

StoredRows::StoredRows(const LinearWeightSource& source)
    : format_(source.format),
      n_(source.values.shape.at(0)),
      values_(bytes_of(source.values, "values")) {
  const bool is_fp4 = format_ == NumberFormat::kMxfp4 || format_ == NumberFormat::kNvfp4;
  const bool is_packed = is_fp4 && source.values.dtype != DType::kF4;  // two in a byte
  k_ = source.values.shape.at(1) * (is_packed ? 2 : 1);
  if (is_fp4) read_narrow_scales(source);
  if (format_ == NumberFormat::kFp8) read_block_scales(source.scales);
  if (!source.global_scale) return;
  const float given = *source.global_scale;
  global_scale_ = static_cast<double>(source.is_global_scale_reciprocal ? 1 / given : given);
}

void StoredRows::read_narrow_scales(const LinearWeightSource& source) {
  const bool is_nvfp4 = format_ == NumberFormat::kNvfp4;
  scales_ = bytes_of(source.scales, "scales");
  if (source.scale_order == ScaleOrder::k128x4) {
    owned_scales_ = unswizzle_scales(scales_, n_, k_ / (is_nvfp4 ? 16 : 32));
    scales_ = owned_scales_;
  }
  std::uint32_t largest = 0;
  for (const std::uint8_t code : scales_)
    largest = std::max<std::uint32_t>(largest, is_nvfp4 ? code & 0x7f : code);  // 0x80: -0
  largest_scale_ = decode(is_nvfp4 ? kUe4m3 : kUe8m0, largest);
}

void StoredRows::read_block_scales(const ConstTensorView& scales) {
  const std::span<const std::uint8_t> bytes = bytes_of(scales, "scales");
  const bool is_fp32 = scales.dtype == DType::kF32;
  block_scales_.resize(is_fp32 ? bytes.size() / sizeof(float) : bytes.size());
  if (is_fp32) {
    std::memcpy(block_scales_.data(), bytes.data(), bytes.size());
    return;
  }
  std::ranges::transform(bytes, block_scales_.begin(), [](std::uint8_t code) {
    return static_cast<float>(decode(kUe8m0, code));
  });
}

reference::StoredWeight StoredRows::row(std::int64_t j) const {
  reference::StoredWeight row = {.format = to_string(format_), .n = 1, .k = k_};
  row.values = line(values_, j, static_cast<std::int64_t>(values_.size()) / n_);
  if (!scales_.empty())
    row.scales = line(scales_, j, static_cast<std::int64_t>(scales_.size()) / n_);
  if (!block_scales_.empty())
    row.block_scales = line(std::span<const float>(block_scales_), j / kStoredBlock,
                            (k_ + kStoredBlock - 1) / kStoredBlock);
  row.global_scale = global_scale_;
  row.largest_scale = largest_scale_;
  return row;
}

}  // namespace tilewright::cli
