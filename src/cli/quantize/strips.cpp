#include "cli/quantize/strips.h"

#include "tilewright/buffer.h"

#include "base/error.h"
#include "base/quote.h"
#include "layout/int_tuple.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace tilewright::cli {

namespace {

constexpr std::int64_t kStripElems = std::int64_t{1} << 23;
constexpr std::int64_t kRowUnit = 128;  // of every format
constexpr std::int64_t kPartElems = std::int64_t{1} << 18;

std::int64_t part_rows(std::int64_t cols) {
  return std::max<std::int64_t>(kPartElems / (cols * kRowUnit), 1) * kRowUnit;
}

// The first `to_bytes` of each of the rows.
void cut_rows(std::vector<std::uint8_t>& bytes, std::int64_t rows, std::int64_t from_bytes,
              std::int64_t to_bytes) {
  if (from_bytes != to_bytes) {
    for (std::int64_t row = 0; row < rows; ++row)
      std::memmove(bytes.data() + row * to_bytes, bytes.data() + row * from_bytes,
                   static_cast<std::size_t>(to_bytes));
  }
  bytes.resize(static_cast<std::size_t>(rows * to_bytes));
}

// The strip's numbers where they can be read as their type, converted or moved if need be.
struct Numbers {
  DType dtype = DType::kF32;
  std::vector<float> converted;
  std::vector<std::byte> moved;
  const void* data = nullptr;
};

Numbers numbers_of(const CheckpointWeight& weight, std::int64_t first, std::int64_t rows,
                   ThreadPool& pool) {
  Numbers numbers;
  if (!weight.format.empty()) {
    const std::int64_t part = part_rows(weight.cols);
    numbers.converted.resize(static_cast<std::size_t>(rows * weight.cols));
    pool.parallel_for(0, ceil_div(rows, part), 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const auto values =
            read_checkpoint_rows(weight, first + i * part, first + std::min((i + 1) * part, rows));
        std::ranges::copy(values, numbers.converted.begin() + i * part * weight.cols);
      }
    });
    numbers.data = numbers.converted.data();
    return numbers;
  }
  numbers.dtype = weight.codes.dtype;
  const std::int64_t row_bytes = weight.cols * bits_per_elem(numbers.dtype) / 8;
  const auto* const from = static_cast<const std::byte*>(weight.codes.data) + first * row_bytes;
  constexpr std::uintptr_t kAlignment = 4;
  numbers.data = from;
  if (reinterpret_cast<std::uintptr_t>(from) % kAlignment == 0) return numbers;
  numbers.moved.assign(from, from + rows * row_bytes);
  numbers.data = numbers.moved.data();
  return numbers;
}

bool is_nan_scale(const BlockFormat& format, const std::uint8_t* scale) {
  if (scale_bytes(format) == 1) return is_nan(format.scale, *scale);
  float value;
  std::memcpy(&value, scale, sizeof value);
  return std::isnan(value);
}

void require_finite(const CheckpointWeight& weight, const BlockFormat& format,
                    const std::vector<std::uint8_t>& scales, std::int64_t first_row) {
  const std::int64_t bytes = scale_bytes(format), cols = ceil_div(weight.cols, format.block_cols);
  for (std::size_t i = 0; i < scales.size(); i += static_cast<std::size_t>(bytes)) {
    if (!is_nan_scale(format, &scales[i])) continue;
    const std::int64_t block = static_cast<std::int64_t>(i) / bytes;
    fail(ErrorKind::kCheckFailed,
         "quantize: weight {} holds a NaN or an infinity in rows from {}, columns from {}. Exclude "
         "it (--exclude), or repair the checkpoint.",
         quote(weight.name), first_row + block / cols * format.block_rows,
         block % cols * format.block_cols);
  }
}

}  // namespace

ErrorSums& ErrorSums::operator+=(const ErrorSums& other) {
  xx += other.xx;
  xy += other.xy;
  yy += other.yy;
  dd += other.dd;
  return *this;
}
double ErrorSums::relative_rms() const {
  return xx > 0 ? std::sqrt(dd / xx) : 0;
}
double ErrorSums::cosine() const {
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 1;
}

std::int64_t strip_rows(std::int64_t cols) {
  return std::max<std::int64_t>(kStripElems / (cols * kRowUnit), 1) * kRowUnit;
}

StripQuantizer::StripQuantizer(std::optional<Device> device, std::string format, std::string scales)
    : device_(std::move(device)),
      format_name_(std::move(format)),
      scales_(std::move(scales)),
      format_(block_format_by_name(format_name_)) {}

float StripQuantizer::find_amax(const CheckpointWeight& weight,
                                const std::function<void(std::int64_t)>& done) {
  const std::int64_t part = part_rows(weight.cols), parts = ceil_div(weight.rows, part);
  std::vector<float> amax(static_cast<std::size_t>(parts));
  pool_.parallel_for(0, parts, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t last = std::min((i + 1) * part, weight.rows);
      amax[static_cast<std::size_t>(i)] = finite_amax(read_checkpoint_rows(weight, i * part, last));
      done(last - i * part);
    }
  });
  return *std::ranges::max_element(amax);
}

ErrorSums StripQuantizer::quantize(const CheckpointWeight& weight,
                                   std::optional<float> encode_scale, bool has_errors,
                                   const Sink& sink) {
  ErrorSums sums;
  const std::int64_t step = strip_rows(weight.cols);
  std::vector<std::uint8_t> codes, scales;
  for (std::int64_t first = 0; first < weight.rows; first += step) {
    const std::int64_t rows = std::min(step, weight.rows - first);
    const Numbers numbers = numbers_of(weight, first, rows, pool_);
    quantize_strip({.format = format_name_,
                    .scales = scales_,
                    .dtype = numbers.dtype,
                    .rows = rows,
                    .cols = weight.cols,
                    .encode_scale = encode_scale},
                   numbers.data, codes, scales);
    require_finite(weight, format_, scales, first);
    if (has_errors)
      sums += compare(weight, first, rows, 1 / encode_scale.value_or(1), codes, scales);
    sink(codes, scales, rows);
  }
  return sums;
}

void StripQuantizer::quantize_strip(const QuantizeProblem& problem, const void* numbers,
                                    std::vector<std::uint8_t>& codes,
                                    std::vector<std::uint8_t>& scales) {
  const QuantizePlan plan = plan_quantize_on_host(problem);
  codes.resize(plan.code_bytes);
  scales.resize(plan.scale_bytes);
  if (device_) {
    run_on_device(problem, numbers, codes, scales);
  } else {
    quantize_on_host(problem, {.in = numbers, .codes = codes.data(), .scales = scales.data()},
                     pool_.num_threads());
  }
  const std::int64_t cols = ceil_div(problem.cols, format_.block_cols);
  cut_rows(codes, problem.rows, plan.code_row_bytes, problem.cols * format_.element.bits() / 8);
  cut_rows(scales, ceil_div(problem.rows, format_.block_rows),
           plan.scale_cols * plan.bytes_per_scale, cols * plan.bytes_per_scale);
}

void StripQuantizer::run_on_device(const QuantizeProblem& problem, const void* numbers,
                                   std::vector<std::uint8_t>& codes,
                                   std::vector<std::uint8_t>& scales) {
  const std::vector<std::int64_t> key = {
      problem.rows, problem.cols, static_cast<std::int64_t>(problem.dtype),
      std::bit_cast<std::int32_t>(problem.encode_scale.value_or(0))};
  auto found = operators_.find(key);
  if (found == operators_.end()) {
    operators_.clear();  // one at a time: strips of a weight are alike
    found = operators_.emplace(key, Quantize(*device_, problem)).first;
  }
  const auto bytes =
      static_cast<std::size_t>(problem.rows * problem.cols * bits_per_elem(problem.dtype) / 8);
  const Buffer in =
      Buffer::from(*device_, std::span(static_cast<const std::byte*>(numbers), bytes));
  const Buffer code_buffer(*device_, codes.size()), scale_buffer(*device_, scales.size());
  found->second.run({.in = in.data(), .codes = code_buffer.data(), .scales = scale_buffer.data()});
  device_->synchronize();
  code_buffer.download(std::as_writable_bytes(std::span(codes)));
  scale_buffer.download(std::as_writable_bytes(std::span(scales)));
}

ErrorSums StripQuantizer::compare(const CheckpointWeight& weight, std::int64_t first,
                                  std::int64_t rows, float tensor_scale,
                                  const std::vector<std::uint8_t>& codes,
                                  const std::vector<std::uint8_t>& scales) {
  const std::int64_t part = part_rows(weight.cols), parts = ceil_div(rows, part);
  const std::int64_t code_row = weight.cols * format_.element.bits() / 8;
  const std::int64_t scale_row = ceil_div(weight.cols, format_.block_cols) * scale_bytes(format_);
  std::vector<ErrorSums> sums(static_cast<std::size_t>(parts));
  pool_.parallel_for(0, parts, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t from = i * part, to = std::min(from + part, rows);
      const std::vector<float> x = read_checkpoint_rows(weight, first + from, first + to);
      const std::vector<float> y =
          dequantize_rows(format_, codes.data() + from * code_row,
                          scales.data() + from / format_.block_rows * scale_row, tensor_scale,
                          to - from, weight.cols);
      ErrorSums& sum = sums[static_cast<std::size_t>(i)];
      for (std::size_t j = 0; j < x.size(); ++j) {
        const double a = x[j], b = y[j];
        sum += {a * a, a * b, b * b, (a - b) * (a - b)};
      }
    }
  });
  ErrorSums total;  // in order: the same whatever the number of threads
  for (const ErrorSums& sum : sums) total += sum;
  return total;
}

}  // namespace tilewright::cli
