#include "ops/linear/source.h"

#include "base/error.h"
#include "base/tensor.h"
#include "base/thread_pool.h"
#include "device/memory.h"
#include "formats/minifloat.h"
#include "formats/scale_layout.h"
#include "ops/operator/ceil_div.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>

namespace tilewright::ops {

namespace {

constexpr std::int64_t kMaxDim = std::int64_t{1} << 24;
constexpr double kLargestPlausible = 1e4, kSmallestPlausible = 1e-8;

template <class... Args>
void check(bool condition, fmt::format_string<Args...> format, Args&&... args) {
  if (condition) return;
  fail(ErrorKind::kInvalidArgument, "linear: {}", fmt::format(format, std::forward<Args>(args)...));
}

bool is_fp4(NumberFormat format) {
  return format == NumberFormat::kMxfp4 || format == NumberFormat::kNvfp4;
}

bool is_one_of(DType type, std::initializer_list<DType> types) {
  return std::ranges::find(types, type) != types.end();
}

// The bytes of a view in host memory; `owned` keeps them if they had to be fetched.
std::span<const std::uint8_t> fetch(const ConstTensorView& view, const char* name,
                                    const device::Device* device,
                                    std::vector<std::uint8_t>& owned) {
  check(view.data != nullptr, "the address of {} is null; its shape is {}", name,
        shape_text(view.shape));
  check(view.strides.size() == view.shape.size() && is_contiguous(view),
        "{} has shape {} and strides {}; expected rows one after the other. Make it contiguous.",
        name, shape_text(view.shape), shape_text(view.strides));
  const auto bytes = static_cast<std::size_t>(checked_num_bytes(view.dtype, view.shape, name));
  const auto* const data = static_cast<const std::uint8_t*>(view.data);
  if (device == nullptr) return {data, bytes};
  const auto address = reinterpret_cast<device::abi::CUdeviceptr>(view.data);
  if (device::query_pointer(*device, address).kind != device::PointerInfo::Kind::kDevice)
    return {data, bytes};
  owned.resize(bytes);
  const device::CurrentContext current = device->make_current();
  device->check(device->cu().memcpy_dtoh(owned.data(), address, bytes), "cuMemcpyDtoH",
                "{} bytes of {}", bytes, name);
  return owned;
}

void check_values(const LinearWeightSource& source, HostWeight& weight) {
  const ConstTensorView& view = source.values;
  const bool is_packed = is_fp4(source.format) && view.dtype != DType::kF4;
  switch (source.format) {
    case NumberFormat::kBf16:
      check(view.dtype == DType::kBF16, "values of a bf16 weight have type {}; expected BF16",
            to_string(view.dtype));
      break;
    case NumberFormat::kFp8:
      check(view.dtype == DType::kF8_E4M3, "values of an fp8 weight have type {}; expected F8_E4M3",
            to_string(view.dtype));
      break;
    default:
      check(is_one_of(view.dtype, {DType::kF4, DType::kU8, DType::kI8}),
            "values of an {} weight have type {}; expected F4, or U8 or I8 with two e2m1 in a byte",
            to_string(source.format), to_string(view.dtype));
  }
  check(view.shape.size() == 2, "values have shape {}; expected {}", shape_text(view.shape),
        is_packed ? "[n, k / 2] bytes" : "[n, k]");
  weight.n = view.shape[0];
  weight.k = is_packed ? 2 * view.shape[1] : view.shape[1];
  const std::int64_t k_step = source.format == NumberFormat::kMxfp4 ? 32 : 16;
  check(weight.n > 0 && weight.n % 16 == 0 && weight.n <= kMaxDim,
        "values have shape {}, so n = {}; expected a multiple of 16 from 16 to 2^24. Pad with "
        "rows of zeros.",
        shape_text(view.shape), weight.n);
  check(weight.k > 0 && weight.k % k_step == 0 && weight.k <= kMaxDim,
        "values have shape {}{}, so k = {}; expected a multiple of {} from {} to 2^24. Pad with "
        "zeros.",
        shape_text(view.shape), is_packed ? " with two in a byte" : "", weight.k, k_step, k_step);
}

void check_scale_shape(const ConstTensorView& view, std::int64_t rows, std::int64_t cols,
                       ScaleOrder order, const char* rule) {
  const auto is_shape = [&](std::int64_t r, std::int64_t c) {
    return view.shape.size() == 2 && view.shape[0] == r && view.shape[1] == c;
  };
  const std::int64_t padded_rows = ceil_div(rows, kScaleTileRows) * kScaleTileRows;
  const std::int64_t padded_cols = scale_tiles_along_k(cols) * kScaleTileCols;
  if (order == ScaleOrder::k128x4) {
    const std::int64_t bytes = swizzled_scale_bytes(rows, cols);
    const bool is_flat = view.shape.size() == 1 && view.shape[0] == bytes;
    check(is_flat || is_shape(padded_rows, padded_cols),
          "scales in 128x4 order have shape {}; expected [{}, {}] or [{}]: rows padded to 128, "
          "columns to 4",
          shape_text(view.shape), padded_rows, padded_cols, bytes);
    return;
  }
  if (is_shape(rows, cols)) return;
  const char* hint = "";
  if (is_shape(padded_rows, padded_cols))
    hint = " This is the padded shape of 128x4 order: set scale_order.";
  else if (is_shape(cols, rows))
    hint = " They are transposed.";
  fail(ErrorKind::kInvalidArgument, "linear: scales have shape {}; expected [{}, {}]: {}.{}",
       shape_text(view.shape), rows, cols, rule, hint);
}

// The first code that `is_bad` finds, as a message; the codes in between are tallied.
template <class IsBad>
void check_scale_codes(HostWeight& weight, const FormatSpec& format, IsBad is_bad) {
  const std::int64_t cols = weight.scale_row_bytes();
  const std::int64_t value_bytes = scale_group(weight.format) / 2;
  std::atomic<std::uint32_t> largest{0}, smallest{255};
  ThreadPool pool;
  pool.parallel_for(0, weight.n, 64, [&](std::int64_t first, std::int64_t last) {
    std::uint32_t high = 0, low = 255;
    for (std::int64_t i = first * cols; i < last * cols; ++i) {
      std::uint8_t code = weight.scales[static_cast<std::size_t>(i)];
      if (is_bad(code)) {
        fail(ErrorKind::kInvalidArgument,
             "linear: scale ({}, {}) is {} (code {:#04x} of {}); expected a finite number >= 0. "
             "Quantise again, or repair the tensor.",
             i / cols, i % cols, decode(format, code), code, format.name);
      }
      if (format == kE4m3) code &= 0x7f;  // -0
      high = std::max<std::uint32_t>(high, code);
      if (code >= low) continue;
      const auto* const block = &weight.values[static_cast<std::size_t>(i * value_bytes)];
      const bool has_value =
          std::any_of(block, block + value_bytes, [](std::uint8_t b) { return (b & 0x77) != 0; });
      if (has_value) low = code;
    }
    for (std::uint32_t seen = largest; high > seen && !largest.compare_exchange_weak(seen, high);) {
    }
    for (std::uint32_t seen = smallest; low < seen && !smallest.compare_exchange_weak(seen, low);) {
    }
  });
  weight.largest_scale = static_cast<std::uint8_t>(largest.load());
  weight.smallest_scale = static_cast<std::uint8_t>(std::min(smallest.load(), largest.load()));
}

void check_narrow_scales(const LinearWeightSource& source, HostWeight& weight,
                         const device::Device* device) {
  const bool is_nvfp4 = source.format == NumberFormat::kNvfp4;
  const ConstTensorView& view = source.scales;
  const DType wanted = is_nvfp4 ? DType::kF8_E4M3 : DType::kF8_E8M0;
  check(view.data != nullptr || !view.shape.empty(), "an {} weight needs scales: {} [n, k / {}]",
        to_string(source.format), to_string(wanted), scale_group(source.format));
  check(is_one_of(view.dtype, {wanted, DType::kU8}),
        "scales of an {} weight have type {}; expected {}, or U8 with its codes",
        to_string(source.format), to_string(view.dtype), to_string(wanted));
  const std::int64_t cols = weight.scale_row_bytes();
  check_scale_shape(view, weight.n, cols, source.scale_order,
                    is_nvfp4 ? "one for 16 along k" : "one for 32 along k");
  weight.scales = fetch(view, "scales", device, weight.owned_scales);
  if (source.scale_order == ScaleOrder::k128x4) {
    weight.owned_scales = unswizzle_scales(weight.scales, weight.n, cols);
    weight.scales = weight.owned_scales;
  }
  if (is_nvfp4) {
    // The codes 0x80 and 0 are both zero.
    check_scale_codes(weight, kE4m3, [](std::uint8_t c) { return c > 0x80 || c == 0x7f; });
  } else {
    check_scale_codes(weight, kUe8m0, [](std::uint8_t c) { return c == 0xff; });
  }
}

void check_block_scales(const LinearWeightSource& source, HostWeight& weight,
                        const device::Device* device) {
  const ConstTensorView& view = source.scales;
  const std::int64_t rows = ceil_div(weight.n, kFp8Block), cols = ceil_div(weight.k, kFp8Block);
  check(view.data != nullptr || !view.shape.empty(),
        "an fp8 weight needs scales: F32 or F8_E8M0 [{}, {}]", rows, cols);
  check(is_one_of(view.dtype, {DType::kF32, DType::kF8_E8M0}),
        "scales of an fp8 weight have type {}; expected F32 or F8_E8M0", to_string(view.dtype));
  check(source.scale_order == ScaleOrder::kPlain,
        "scale_order = 128x4 of an fp8 weight; expected plain: its scales are [n/128, k/128]");
  check_scale_shape(view, rows, cols, ScaleOrder::kPlain, "one for each block of 128 x 128");
  std::vector<std::uint8_t> owned;
  const std::span<const std::uint8_t> bytes = fetch(view, "scales", device, owned);
  weight.block_scales.resize(static_cast<std::size_t>(rows * cols));
  for (std::size_t i = 0; i < weight.block_scales.size(); ++i) {
    float& scale = weight.block_scales[i];
    if (view.dtype == DType::kF32)
      std::memcpy(&scale, &bytes[4 * i], 4);
    else
      scale = static_cast<float>(decode(kUe8m0, bytes[i]));
    const auto at = static_cast<std::int64_t>(i);
    check(std::isfinite(scale) && scale >= 0,
          "scale ({}, {}) is {}; expected a finite number >= 0. Quantise again, or repair the "
          "tensor.",
          at / cols, at % cols, scale);
  }
}

void check_global_scale(const LinearWeightSource& source, HostWeight& weight) {
  check(
      source.global_scale.has_value(),
      "an nvfp4 weight needs its global scale (weight_scale_2 in ModelOpt's files, the reciprocal "
      "of weight_global_scale in those of compressed-tensors); it is missing");
  const float given = *source.global_scale;
  const bool is_divisor = source.is_global_scale_reciprocal;
  const float factor = is_divisor ? 1 / given : given;
  check(std::isfinite(given) && given > 0 && std::isfinite(factor) && factor > 0,
        "global_scale = {}; expected a finite number > 0 with a finite reciprocal", given);
  weight.global_scale = factor;
  const double largest = 6 * decode(kUe4m3, weight.largest_scale) * static_cast<double>(factor);
  if (source.accepts_any_global_scale || weight.largest_scale == 0) return;
  check(
      largest <= kLargestPlausible && largest >= kSmallestPlausible,
      "global_scale = {}{} with block scales up to {} would make the largest weight about {:.3g}; "
      "expected {:g} to {:g}. It looks like {}: {} is_global_scale_reciprocal, or set "
      "accepts_any_global_scale if the weight is like that.",
      given, is_divisor ? " as a reciprocal" : "", decode(kUe4m3, weight.largest_scale), largest,
      kSmallestPlausible, kLargestPlausible, is_divisor ? "no reciprocal" : "a reciprocal",
      is_divisor ? "clear" : "set");
}

}  // namespace

std::int64_t scale_group(NumberFormat format) noexcept {
  return format == NumberFormat::kNvfp4 ? 16 : format == NumberFormat::kMxfp4 ? 32 : 0;
}

std::int64_t HostWeight::value_row_bytes() const noexcept {
  return format == NumberFormat::kBf16 ? 2 * k : format == NumberFormat::kFp8 ? k : k / 2;
}

std::int64_t HostWeight::scale_row_bytes() const noexcept {
  const std::int64_t group = scale_group(format);
  return group == 0 ? 0 : k / group;
}

HostWeight HostWeight::group(std::int64_t index, std::int64_t groups) const {
  HostWeight part;
  part.format = format;
  part.n = n / groups;
  part.k = k;
  const auto of = [&](std::span<const std::uint8_t> rows, std::int64_t row_bytes) {
    const auto bytes = static_cast<std::size_t>(part.n * row_bytes);
    return rows.subspan(static_cast<std::size_t>(index) * bytes, bytes);
  };
  part.values = of(values, value_row_bytes());
  part.scales = of(scales, scale_row_bytes());
  const std::ptrdiff_t blocks = std::ssize(block_scales) / groups;
  const auto first = block_scales.begin() + index * blocks;
  part.block_scales.assign(first, first + blocks);
  part.global_scale = global_scale;
  part.largest_scale = largest_scale;  // of all: groups share a scale origin
  part.smallest_scale = smallest_scale;
  return part;
}

void require_one_group(const LinearWeightSource& source) {
  check(source.groups == 1,
        "groups = {}; expected 1 here. Only linear layers take a weight of groups.", source.groups);
}

HostWeight check_weight_source(const LinearWeightSource& source, const device::Device* device) {
  HostWeight weight;
  weight.format = source.format;
  check_values(source, weight);
  const bool has_scales = source.scales.data != nullptr || !source.scales.shape.empty();
  check(source.format != NumberFormat::kBf16 || !has_scales,
        "a bf16 weight comes without scales; these have shape {}", shape_text(source.scales.shape));
  check(source.format == NumberFormat::kNvfp4 || !source.global_scale.has_value(),
        "global_scale = {} of an {} weight; only nvfp4 has one", source.global_scale.value_or(0),
        to_string(source.format));
  weight.values = fetch(source.values, "values", device, weight.owned_values);
  if (is_fp4(source.format)) check_narrow_scales(source, weight, device);
  if (source.format == NumberFormat::kFp8) check_block_scales(source, weight, device);
  if (source.format == NumberFormat::kNvfp4) check_global_scale(source, weight);
  return weight;
}

}  // namespace tilewright::ops
