// Finds the tensors of a checkpoint one by one and collects what does not fit.
#pragma once

#include "model/weights.h"

#include <cstdint>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tilewright::model {

/// A dimension and the name of the config.json value that it follows from.
struct Dim {
  std::string_view name;
  std::int64_t size;
};

class WeightReader {
 public:
  explicit WeightReader(const SafetensorsModel& files) : files_(files) {}

  /// The tensor `name`.weight as a matrix, or a part of one (empty, and noted) if it does not fit.
  Matrix matrix(const std::string& name, Dim rows, Dim cols);
  /// A plain tensor of any rank as fp32.
  Vector vector(const std::string& name, std::initializer_list<Dim> dims);
  /// Whole numbers from 0 to below `limit`.
  std::vector<std::int32_t> table(const std::string& name, Dim rows, Dim cols, Dim limit);

  /// Errors   InvalidArgument with all that was noted, and with tensors that were not asked for
  void finish(std::string_view source);

  std::int64_t num_bytes() const noexcept { return num_bytes_; }

 private:
  const ConstTensorView* find(const std::string& name);
  void note(std::string text);
  void take(const std::string& name);
  void note_left_over();

  const SafetensorsModel& files_;
  ConstTensorView view_;
  std::set<std::string, std::less<>> taken_;
  std::vector<std::string> problems_;
  std::int64_t num_problems_ = 0, num_bytes_ = 0;
};

}  // namespace tilewright::model
