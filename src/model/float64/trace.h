// Comparing the stages of a run with a reference file.
#pragma once

#include "base/safetensors.h"
#include "model/model.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::model {

/// When a stage counts as met. Codes, indices and bytes have to be equal either way.
struct TraceTolerance {
  double absolute = 1e-4;  ///< of every element
  double relative = 0;     ///< or: rms of the differences by rms of the reference, at most this
};

/// What became of one tensor of the reference file.
struct TraceResult {
  std::string name;  ///< "layers.3.lse", "logits"
  std::int64_t elems = 0, rows = 0;
  std::int64_t different_rows = 0;  ///< rows with an element beyond the absolute tolerance
  double max_difference = 0;        ///< NaN and infinities that are not the same: infinity
  double reference_rms = 0, relative_rms = 0;
  bool is_exact = false;  ///< whole numbers: no tolerance
  bool is_met = false;
  std::string first;  ///< where the first element beyond tolerance is, with both values
};

/// Listens to a runner (Runner::set_stage_sink) that is fed the prompt of a reference file, in one
/// piece or in chunks.
///
/// Format   safetensors; tensors <prompt>.<mode>.<stage> and <prompt>.<mode>.layers.<n>.<stage>,
///          <prompt>.input_ids and <prompt>.positions: those of tensors that do not hold all rows
class Trace {
 public:
  /// Errors   InvalidArgument if the file has no such prompt and mode (those it has are listed)
  Trace(const std::filesystem::path& path, std::string prompt, std::string mode,
        const TraceTolerance& tolerance = {});

  const std::vector<std::int32_t>& input_ids() const noexcept { return input_ids_; }
  /// Those after the first `tokens` tokens of the prompt in a mode of the file; none if it has
  /// no such logits.
  Logits logits_of(const std::string& mode, std::int64_t tokens) const;
  /// The continuation, and how much better the best byte was than the next; may be empty.
  const std::vector<std::int32_t>& continuation() const noexcept { return continuation_; }
  const std::vector<double>& continuation_margin() const noexcept { return margin_; }

  /// Stages of other sequences than 0 and of positions that the file lacks are passed over.
  void receive(const Stage& stage);

  /// In the order in which a forward pass makes them.
  std::vector<TraceResult> results() const;
  /// Tensors of the file that no stage told of.
  std::vector<std::string> missing() const;

 private:
  struct Tensor {
    TraceResult result;
    double sum_squares = 0, sum_squared_differences = 0;
    std::int64_t order = -1;  // -1: not seen
  };
  struct Rows {
    const std::vector<double>& values;
    std::int64_t rows, cols;
  };

  const std::vector<double>& reference(const std::string& name);
  std::vector<double> read(const std::string& name) const;
  void compare_row(const Stage& stage, std::int64_t row, std::int64_t reference_row,
                   const std::vector<std::int64_t>& shape, Tensor& tensor);

  SafetensorsFile file_;
  std::string prompt_, prefix_;
  TraceTolerance tolerance_;
  std::vector<std::int32_t> input_ids_, continuation_;
  std::vector<double> margin_;
  std::map<std::int64_t, std::int64_t> row_of_position_;
  std::map<std::string, Tensor> tensors_;
  std::map<std::string, std::vector<double>> cache_;
  std::int64_t next_order_ = 0;
};

/// "p200.exact", "p200.quant", ...: what a reference file holds.
std::vector<std::string> trace_runs(const std::filesystem::path& path);

}  // namespace tilewright::model
