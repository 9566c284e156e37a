#include "model/float64/trace.h"

#include "base/error.h"
#include "base/quote.h"
#include "base/tensor.h"
#include "formats/minifloat.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tilewright::model {
namespace {

constexpr double kNoBound = std::numeric_limits<double>::infinity();

template <class T>
std::vector<double> widen(const HostTensor& tensor) {
  const auto elems = tensor.elems<T>();
  return {elems.begin(), elems.end()};
}

std::vector<double> to_doubles(const ConstTensorView& view, std::string_view name) {
  const HostTensor tensor(view);
  switch (view.dtype) {
    case DType::kF32:
      return widen<float>(tensor);
    case DType::kI32:
      return widen<std::int32_t>(tensor);
    case DType::kI16:
      return widen<std::int16_t>(tensor);
    case DType::kI64:
      return widen<std::int64_t>(tensor);
    case DType::kU8:
      return widen<std::uint8_t>(tensor);
    case DType::kBF16: {
      std::vector<double> values;
      for (const std::uint16_t code : tensor.elems<std::uint16_t>())
        values.push_back(decode(kBf16, code));
      return values;
    }
    default:
      fail(ErrorKind::kUnsupported, "trace: {} is {}; expected F32, BF16, I16, I32, I64 or U8",
           quote(name), to_string(view.dtype));
  }
}

std::vector<std::int32_t> to_ints(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

bool is_whole(DType dtype) {
  return dtype != DType::kF32 && dtype != DType::kBF16;
}

bool is_entry_stage(std::string_view name) {
  return name.starts_with("comp") || name == "idx_k";
}

// The same value, infinities included: 0; one of them no number: infinity.
double difference(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double d = std::abs(a - b);
  return std::isfinite(d) ? d : kNoBound;
}

// Entry and weight of a choice belong together, but their order is free: by id.
bool is_unordered(std::string_view name) {
  return name == "router_ids";
}

}  // namespace

std::vector<std::string> trace_runs(const std::filesystem::path& path) {
  const SafetensorsFile file(path);
  std::set<std::string> runs;
  for (const SafetensorsEntry& entry : file.entries()) {
    const std::size_t first = entry.name.find('.');
    const std::size_t second = first == std::string::npos ? first : entry.name.find('.', first + 1);
    if (second != std::string::npos) runs.insert(entry.name.substr(0, second));
  }
  return {runs.begin(), runs.end()};
}

Trace::Trace(const std::filesystem::path& path, std::string prompt, std::string mode,
             const TraceTolerance& tolerance)
    : file_(path),
      prompt_(std::move(prompt)),
      prefix_(prompt_ + "." + mode + "."),
      tolerance_(tolerance) {
  for (const SafetensorsEntry& entry : file_.entries()) {
    if (!entry.name.starts_with(prefix_)) continue;
    const std::string name = entry.name.substr(prefix_.size());
    if (name.starts_with("continuation")) continue;
    tensors_[name].result.name = name;
    tensors_[name].result.is_exact = is_whole(entry.dtype);
  }
  require(!tensors_.empty() && file_.contains(prompt_ + ".input_ids") &&
              file_.contains(prompt_ + ".positions"),
          ErrorKind::kInvalidArgument, "trace: {} has no run {}; it has {}", path.string(),
          quote(prompt_ + "." + mode), fmt::join(trace_runs(path), ", "));
  input_ids_ = to_ints(read(prompt_ + ".input_ids"));
  const auto positions = to_ints(read(prompt_ + ".positions"));
  for (std::size_t i = 0; i < positions.size(); ++i)
    row_of_position_[positions[i]] = static_cast<std::int64_t>(i);
  if (file_.contains(prefix_ + "continuation"))
    continuation_ = to_ints(read(prefix_ + "continuation"));
  if (file_.contains(prefix_ + "continuation_margin"))
    margin_ = read(prefix_ + "continuation_margin");
}

std::vector<double> Trace::read(const std::string& name) const {
  return to_doubles(file_.tensor(name), name);
}

Logits Trace::logits_of(const std::string& mode, std::int64_t tokens) const {
  const std::string name = prompt_ + "." + mode + ".logits";
  if (!file_.contains(name)) return {};
  Logits logits = {.vocab = file_.tensor(name).shape.back(), .values = read(name)};
  logits.values.resize(static_cast<std::size_t>(std::min(tokens, logits.rows()) * logits.vocab));
  return logits;
}

const std::vector<double>& Trace::reference(const std::string& name) {
  const auto [found, is_new] = cache_.try_emplace(name);
  if (is_new) found->second = read(prefix_ + name);
  return found->second;
}

void Trace::receive(const Stage& stage) {
  if (stage.sequence != 0) return;
  const std::string name = stage.layer < 0 ? std::string(stage.name)
                                           : fmt::format("layers.{}.{}", stage.layer, stage.name);
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) return;
  Tensor& tensor = found->second;
  if (tensor.order < 0) tensor.order = next_order_++;
  const auto shape = file_.tensor(prefix_ + name).shape;
  const bool has_all =
      is_entry_stage(stage.name) || shape[0] == static_cast<std::int64_t>(input_ids_.size());
  for (std::int64_t row = 0; row < stage.shape[0]; ++row) {
    std::int64_t reference_row = stage.first_row + row;
    if (!has_all) {
      const auto position = row_of_position_.find(reference_row);
      if (position == row_of_position_.end()) continue;
      reference_row = position->second;
    }
    if (reference_row < shape[0]) compare_row(stage, row, reference_row, shape, tensor);
  }
}

void Trace::compare_row(const Stage& stage, std::int64_t row, std::int64_t reference_row,
                        const std::vector<std::int64_t>& shape, Tensor& tensor) {
  TraceResult& result = tensor.result;
  const auto& all = reference(result.name);
  const auto cols = static_cast<std::int64_t>(all.size()) / shape[0];
  const auto own_cols = static_cast<std::int64_t>(stage.values.size()) / stage.shape[0];
  std::vector<double> expected(all.begin() + reference_row * cols,
                               all.begin() + (reference_row + 1) * cols);
  std::vector<double> actual(stage.values.begin() + row * own_cols,
                             stage.values.begin() + (row + 1) * own_cols);
  // Scores of entries that did not exist yet when this chunk ran.
  if (stage.name == "idx_scores") actual.resize(static_cast<std::size_t>(cols), -kNoBound);
  if (is_unordered(stage.name)) {
    std::ranges::sort(expected);
    std::ranges::sort(actual);
  }
  require(actual.size() == expected.size(), ErrorKind::kInvalidArgument,
          "trace: {} has rows of {} numbers, the reference file {}; the file belongs to another "
          "model",
          result.name, own_cols, cols);
  bool is_different = false;
  for (std::int64_t c = 0; c < cols; ++c) {
    const auto i = static_cast<std::size_t>(c);
    const double d = difference(actual[i], expected[i]);
    result.max_difference = std::max(result.max_difference, d);
    if (std::isfinite(expected[i])) {
      tensor.sum_squares += expected[i] * expected[i];
      tensor.sum_squared_differences += d * d;
    }
    if (d <= (result.is_exact ? 0 : tolerance_.absolute)) continue;
    is_different = true;
    if (result.first.empty())
      result.first = fmt::format("{} {}, element {}: {:.9g} instead of {:.9g}",
                                 is_entry_stage(stage.name) ? "entry" : "position",
                                 stage.first_row + row, c, actual[i], expected[i]);
  }
  result.elems += cols;
  ++result.rows;
  result.different_rows += is_different;
}

std::vector<TraceResult> Trace::results() const {
  std::vector<const Tensor*> seen;
  for (const auto& [name, tensor] : tensors_)
    if (tensor.order >= 0) seen.push_back(&tensor);
  std::ranges::sort(seen, {}, &Tensor::order);
  std::vector<TraceResult> results;
  for (const Tensor* tensor : seen) {
    TraceResult result = tensor->result;
    if (result.elems > 0)
      result.reference_rms = std::sqrt(tensor->sum_squares / static_cast<double>(result.elems));
    if (tensor->sum_squares > 0)
      result.relative_rms = std::sqrt(tensor->sum_squared_differences / tensor->sum_squares);
    const bool is_near =
        !result.is_exact && tolerance_.relative > 0 && result.relative_rms <= tolerance_.relative;
    result.is_met = result.different_rows == 0 || is_near;
    results.push_back(std::move(result));
  }
  return results;
}

std::vector<std::string> Trace::missing() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors_)
    if (tensor.order < 0) names.push_back(name);
  return names;
}

}  // namespace tilewright::model
