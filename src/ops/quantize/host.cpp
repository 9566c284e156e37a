// Quantising on the host: strips of rows over threads, the rules of formats/, the layouts of the
// kernels.
#include "base/thread_pool.h"
#include "formats/block_scale.h"
#include "formats/minifloat.h"
#include "formats/packed_matrix.h"
#include "formats/scale_layout.h"
#include "ops/quantize/plan.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

namespace tilewright {

namespace {

// About a megabyte of numbers at a time.
constexpr std::int64_t kStripElems = std::int64_t{1} << 18;

const std::vector<float>& half_table() {
  static const std::vector<float> kTable = [] {
    std::vector<float> values;
    for (std::uint32_t code = 0; code < 65536; ++code)
      values.push_back(static_cast<float>(decode(kFp16, code)));
    return values;
  }();
  return kTable;
}

// A row of `in` as fp32; zeros for a row that does not exist.
void read_row(const QuantizeProblem& p, const QuantizeArguments& a, std::int64_t row, float* to) {
  const std::int64_t from = p.has_row_index ? a.row_index[row] : row;
  if (from < 0) {
    std::fill_n(to, p.cols, 0.0f);
    return;
  }
  const int elem_bytes = bits_per_elem(p.dtype) / 8;
  const auto* const bytes = static_cast<const std::byte*>(a.in) + from * p.row_stride * elem_bytes;
  if (p.dtype == DType::kF32) {
    std::memcpy(to, bytes, static_cast<std::size_t>(p.cols) * sizeof(float));
    return;
  }
  const float* const halves = p.dtype == DType::kF16 ? half_table().data() : nullptr;
  for (std::int64_t i = 0; i < p.cols; ++i) {
    std::uint16_t code;
    std::memcpy(&code, bytes + 2 * i, sizeof code);
    to[i] = halves != nullptr ? halves[code] : std::bit_cast<float>(std::uint32_t{code} << 16);
  }
}

std::vector<float> read_rows(const QuantizeProblem& p, const QuantizeArguments& a,
                             std::int64_t first, std::int64_t last) {
  std::vector<float> values(
      static_cast<std::size_t>(std::max<std::int64_t>(last - first, 0) * p.cols));
  for (std::int64_t row = first; row < last; ++row)
    read_row(p, a, row, values.data() + (row - first) * p.cols);
  return values;
}

// What all strips have in common.
struct HostJob {
  const QuantizePlan& plan;
  const QuantizeArguments& arguments;
  BlockFormat format;
  float encode_scale;
  std::int64_t strip_rows;
};

void store_codes(const HostJob& job, const QuantizedTensor& strip, std::int64_t first_row) {
  const QuantizeProblem& p = job.plan.problem;
  const std::int64_t bytes = strip.padded_cols * job.format.element.bits() / 8;
  for (std::int64_t row = 0; row < strip.padded_rows; ++row) {
    auto* const to = static_cast<std::uint8_t*>(job.arguments.codes) +
                     (first_row + row) * job.plan.code_row_bytes;
    const std::uint8_t* const from = strip.codes.data() + row * bytes;
    if (!p.has_operand_order) {
      std::memcpy(to, from, static_cast<std::size_t>(bytes));
      continue;
    }
    for (std::int64_t i = 0; i < p.out_cols; ++i) {
      const std::int64_t k = i / 64 * 64 + kernels::operand_order(static_cast<int>(i % 64));
      if (k < bytes) to[i] = from[k];
    }
  }
}

void store_scales(const HostJob& job, const QuantizedTensor& strip, std::int64_t first_row) {
  const QuantizePlan& plan = job.plan;
  const QuantizeProblem& p = plan.problem;
  const std::int64_t cols = strip.padded_cols / job.format.block_cols;
  const std::int64_t begin = first_row / job.format.block_rows;
  for (std::int64_t row = 0; row < strip.padded_rows / job.format.block_rows; ++row) {
    for (std::int64_t col = 0; col < cols; ++col) {
      const std::int64_t at = begin + row;
      const std::int64_t idx = p.has_128x4_scales ? swizzled_scale_offset(at, col, plan.scale_cols)
                               : p.has_block_major_scales ? col * plan.scale_rows + at
                                                          : at * plan.scale_cols + col;
      std::memcpy(static_cast<std::uint8_t*>(job.arguments.scales) + idx * plan.bytes_per_scale,
                  strip.scales.data() + (row * cols + col) * plan.bytes_per_scale,
                  static_cast<std::size_t>(plan.bytes_per_scale));
    }
  }
}

void quantize_strip(const HostJob& job, std::int64_t strip_idx) {
  const QuantizeProblem& p = job.plan.problem;
  const std::int64_t first = strip_idx * job.strip_rows;
  const std::int64_t last = std::min(first + job.strip_rows, p.rows);
  const std::vector<float> values = read_rows(p, job.arguments, first, last);
  QuantizeOptions options;
  if (job.format.has_tensor_scale) {
    options.encode_scale = job.encode_scale;
    options.choice = ops::scale_choice(p);
  }
  const QuantizedTensor strip = quantize(job.format, values, last - first, p.cols, options);
  store_codes(job, strip, first);
  store_scales(job, strip, first);
}

float find_encode_scale(const HostJob& job, ThreadPool& pool, std::int64_t num_strips) {
  const QuantizeProblem& p = job.plan.problem;
  if (!job.format.has_tensor_scale) return 1;
  if (p.has_encode_scale_address) return *job.arguments.encode_scale;
  if (p.encode_scale) return *p.encode_scale;
  std::vector<float> amax(static_cast<std::size_t>(num_strips));
  pool.parallel_for(0, num_strips, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t end = std::min((i + 1) * job.strip_rows, p.rows);
      amax[static_cast<std::size_t>(i)] =
          finite_amax(read_rows(p, job.arguments, i * job.strip_rows, end));
    }
  });
  const float most = amax.empty() ? 0.0f : *std::ranges::max_element(amax);
  return tensor_encode_scale(job.format, most, ops::scale_choice(p));
}

}  // namespace

void quantize_on_host(const QuantizeProblem& problem, const QuantizeArguments& arguments,
                      int num_threads) {
  const QuantizePlan plan = ops::make_quantize_sizes(problem);
  ops::check_quantize_arguments(plan, arguments, 1);
  const QuantizeProblem& p = plan.problem;
  if (plan.code_bytes > 0) {
    std::memset(arguments.codes, 0, plan.code_bytes);
    std::memset(arguments.scales, 0, plan.scale_bytes);
  }
  HostJob job = {plan, arguments, ops::quantize_format(p), 1, 1};
  const std::int64_t unit = job.format.block_rows;
  job.strip_rows =
      std::max<std::int64_t>(kStripElems / std::max<std::int64_t>(p.cols, 1) / unit, 1) * unit;
  const std::int64_t num_strips = p.cols == 0 ? 0 : (p.rows + job.strip_rows - 1) / job.strip_rows;
  ThreadPool pool(num_threads == 0 ? default_num_threads() : num_threads);
  job.encode_scale = find_encode_scale(job, pool, num_strips);
  pool.parallel_for(0, num_strips, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) quantize_strip(job, i);
  });
  if (plan.code_bytes > 0 && arguments.tensor_scale != nullptr && job.format.has_tensor_scale)
    *arguments.tensor_scale = 1 / job.encode_scale;
}

}  // namespace tilewright
