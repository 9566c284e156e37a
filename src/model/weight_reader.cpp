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
  taken_.insert(name);
  view_ = files_.tensor(name);
  return &view_;
}

bool WeightReader::keeps_expert(std::int64_t expert) const {
  return expert >= kept_.first && expert < kept_.first + kept_.count;
}

MatrixRange WeightReader::range_of(TensorPlace place, std::int64_t rows, std::int64_t cols) const {
  return share_of(share_, place.role, rows, cols, place.expert, experts_);
}

Matrix WeightReader::rank_part(TensorPlace place, const Matrix& matrix) {
  const MatrixRange range = range_of(place, matrix.rows, matrix.cols);
  if (range.rows.count == 0) return {};
  Matrix part = part_of(matrix, range);
  const auto add = [&](const ConstTensorView& view) {
    num_bytes_ += checked_num_bytes(view.dtype, view.shape, part.name);
  };
  add(part.codes);
  if (!part.format.empty()) add(part.scales);
  if (part.format == "nvfp4") num_bytes_ += static_cast<std::int64_t>(sizeof part.tensor_scale);
  return part;
}

Matrix WeightReader::matrix(TensorPlace place, const std::string& name, Dim rows, Dim cols) {
  const std::string full = name + ".weight";
  if (find(full) == nullptr) return {};
  try {
    const Matrix matrix = find_checkpoint_weight(files_, full, ScaleCheck::kLater);
    for (const std::string& companion : matrix.companions) taken_.insert(companion);
    // ModelOpt's factor of activations, which are quantised here by their own amax.
    if (files_.contains(name + ".input_scale")) taken_.insert(name + ".input_scale");
    if (matrix.rows == rows.size && matrix.cols == cols.size) return rank_part(place, matrix);
    note(fmt::format("{} is [{}, {}]; expected {}", quote(full), matrix.rows, matrix.cols,
                     expected_text({rows, cols})));
  } catch (const Error& error) {
    note(error.what());
  }
  return {};
}

Vector WeightReader::vector(TensorPlace place, const std::string& name,
                            std::initializer_list<Dim> dims) {
  const ConstTensorView* view = find(name);
  if (view == nullptr) return {};
  const bool is_plain =
      view->dtype == DType::kBF16 || view->dtype == DType::kF16 || view->dtype == DType::kF32;
  if (!is_plain || !has_shape(view->shape, dims)) {
    note(fmt::format("{} is {} {}; expected BF16, F16 or F32 {}", quote(name),
                     to_string(view->dtype), shape_text(view->shape), expected_text(dims)));
    return {};
  }
  Matrix column;  // read as a matrix of one column
  column.name = name;
  column.rows = checked_num_elems(view->shape, name);
  column.cols = 1;
  column.codes = contiguous_view(view->data, view->dtype, {column.rows, 1});
  const Matrix part = rank_part(place, column);
  return read_checkpoint_rows(part, 0, part.rows);
}

std::vector<std::int32_t> WeightReader::table(TensorPlace place, const std::string& name, Dim rows,
                                              Dim cols, Dim limit) {
  static_cast<void>(place);  // whole on every rank
  const ConstTensorView* view = find(name);
  if (view == nullptr) return {};
  const bool is_wide = view->dtype == DType::kI64;
  if ((!is_wide && view->dtype != DType::kI32) || !has_shape(view->shape, {rows, cols})) {
    note(fmt::format("{} is {} {}; expected I64 or I32 {}", quote(name), to_string(view->dtype),
                     shape_text(view->shape), expected_text({rows, cols})));
    return {};
  }
  num_bytes_ += checked_num_bytes(view->dtype, view->shape, name);
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
    const bool is_left_alone = !has_drafts_ && name.starts_with("mtp.");
    if (taken_.contains(name) || is_left_alone) continue;
    note(quote(name) + " does not belong to the model that config.json describes");
  }
}

void WeightReader::finish(std::string_view source) {
  note_left_over();
  if (num_problems_ == 0) return;
  fail(ErrorKind::kInvalidArgument,
       "{}: {} not fit config.json: {}{}. Take both from the same checkpoint", source,
       num_problems_ == 1 ? "a tensor does" : fmt::format("{} tensors do", num_problems_),
       fmt::join(problems_, "; "),
       num_problems_ > static_cast<std::int64_t>(problems_.size()) ? "; ..." : "");
}

}  // namespace tilewright::model
