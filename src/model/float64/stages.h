// Tells a sink of stages, in the terms of one layer of one sequence.
#pragma once

#include "model/model.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace tilewright::model {

class Stages {
 public:
  Stages(const StageSink& sink, std::int64_t sequence, std::int64_t first_token)
      : sink_(sink), sequence_(sequence), first_token_(first_token) {}

  bool is_on() const { return static_cast<bool>(sink_); }
  void set_layer(std::int64_t layer) { layer_ = layer; }

  /// Rows of the new tokens; `dims` without the number of rows.
  template <class Values>
  void tokens(std::string_view name, const Values& values, std::vector<std::int64_t> dims) const {
    report(name, first_token_, values, std::move(dims));
  }
  /// Rows of compressed entries from number `first`.
  template <class Values>
  void entries(std::string_view name, std::int64_t first, const Values& values,
               std::vector<std::int64_t> dims) const {
    report(name, first, values, std::move(dims));
  }

 private:
  template <class Values>
  void report(std::string_view name, std::int64_t first_row, const Values& values,
              std::vector<std::int64_t> dims) const {
    if (!sink_) return;
    std::int64_t row = 1;
    for (const std::int64_t dim : dims) row *= dim;
    const std::vector<double> numbers(values.begin(), values.end());
    const std::int64_t rows = row > 0 ? static_cast<std::int64_t>(numbers.size()) / row : 0;
    dims.insert(dims.begin(), rows);
    sink_({name, layer_, sequence_, first_row, std::move(dims), numbers});
  }

  const StageSink& sink_;
  std::int64_t sequence_, first_token_, layer_ = -1;
};

}  // namespace tilewright::model
