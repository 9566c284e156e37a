#include "model/weight_reader.h"

#include "base/error.h"
#include "base/quote.h"
#include "base/tensor.h"

#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tilewright::model {
namespace {

constexpr std::size_t kMaxProblems = 10;

std::string expected_text(const std::vector<Dim>& dims) {
  std::vector<std::string_view> names;
  std::vector<std::int64_t> sizes;
  for (const Dim& dim : dims) {
    names.push_back(dim.name);
    sizes.push_back(dim.size);
  }
  return fmt::format("[{}] = {}", fmt::join(names, ", "), shape_text(sizes));
}

bool has_shape(const std::vector<std::int64_t>& shape, const std::vector<Dim>& dims) {
  if (shape.size() != dims.size()) return false;
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (shape[i] != dims[i].size) return false;
  return true;
}

}  // namespace

void WeightReader::note(std::string text) {
  if (problems_.size() < kMaxProblems) problems_.push_back(std::move(text));
  ++num_problems_;
}

const ConstTensorView* WeightReader::find(const std::string& name) {
  if (!files_.contains(name)) {
    note(quote(name) + " is missing");
    return nullptr;
  }
  take(name);
  view_ = files_.tensor(name);
  return &view_;
}

void WeightReader::take(const std::string& name) {
  const ConstTensorView view = files_.tensor(name);
  if (taken_.insert(name).second) num_bytes_ += checked_num_bytes(view.dtype, view.shape, name);
}

Matrix WeightReader::matrix(const std::string& name, Dim rows, Dim cols) {
  const std::string full = name + ".weight";
  if (find(full) == nullptr) return {};
  try {
    Matrix matrix = find_checkpoint_weight(files_, full);
    for (const std::string& companion : matrix.companions) take(companion);
    // ModelOpt's factor of activations, which are quantised here by their own amax.
    if (files_.contains(name + ".input_scale")) take(name + ".input_scale");
    if (matrix.rows == rows.size && matrix.cols == cols.size) return matrix;
    note(fmt::format("{} is [{}, {}]; expected {}", quote(full), matrix.rows, matrix.cols,
                     expected_text({rows, cols})));
  } catch (const Error& error) {
    note(error.what());
  }
  return {};
}

Vector WeightReader::vector(const std::string& name, std::initializer_list<Dim> dims) {
  const ConstTensorView* view = find(name);
  if (view == nullptr) return {};
  const bool is_plain =
      view->dtype == DType::kBF16 || view->dtype == DType::kF16 || view->dtype == DType::kF32;
  if (!is_plain || !has_shape(view->shape, dims)) {
    note(fmt::format("{} is {} {}; expected BF16, F16 or F32 {}", quote(name),
                     to_string(view->dtype), shape_text(view->shape), expected_text(dims)));
    return {};
  }
  Matrix row;  // read as a matrix of one row
  row.codes = *view;
  row.rows = 1;
  row.cols = checked_num_elems(view->shape, name);
  return read_checkpoint_rows(row, 0, 1);
}

std::vector<std::int32_t> WeightReader::table(const std::string& name, Dim rows, Dim cols,
                                              Dim limit) {
  const ConstTensorView* view = find(name);
  if (view == nullptr) return {};
  const bool is_wide = view->dtype == DType::kI64;
  if ((!is_wide && view->dtype != DType::kI32) || !has_shape(view->shape, {rows, cols})) {
    note(fmt::format("{} is {} {}; expected I64 or I32 {}", quote(name), to_string(view->dtype),
                     shape_text(view->shape), expected_text({rows, cols})));
    return {};
  }
  std::vector<std::int32_t> values;
  for (std::int64_t i = 0; i < rows.size * cols.size; ++i) {
    std::int64_t value = 0;
    std::memcpy(&value, static_cast<const char*>(view->data) + i * (is_wide ? 8 : 4),
                is_wide ? 8 : 4);
    if (value < 0 || value >= limit.size) {
      note(fmt::format("{}[{}, {}] is {}; expected 0 to {} - 1 = {}", quote(name), i / cols.size,
                       i % cols.size, value, limit.name, limit.size - 1));
      return {};
    }
    values.push_back(static_cast<std::int32_t>(value));
  }
  return values;
}

void WeightReader::note_left_over() {
  for (const std::string& name : files_.names()) {
    if (taken_.contains(name) || name.starts_with("mtp.")) continue;
    note(quote(name) + " does not belong to the model that config.json describes");
  }
}

void WeightReader::finish(std::string_view source) {
  note_left_over();
  if (num_problems_ == 0) return;
  fail(ErrorKind::kInvalidArgument,
       "{}: {} tensors do not fit config.json: {}{}. Take both from the same checkpoint", source,
       num_problems_, fmt::join(problems_, "; "),
       num_problems_ > static_cast<std::int64_t>(problems_.size()) ? "; ..." : "");
}

}  // namespace tilewright::model
