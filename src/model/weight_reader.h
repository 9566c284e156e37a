// Finds the tensors of a checkpoint one by one and collects what does not fit.
#pragma once

#include "model/model_tensors.h"

#include <cstdint>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tilewright::model {

/// Reads headers alone, but for vectors and tables: a matrix is a view, and its scales are not
/// looked at. What belongs to other ranks is found and checked for shape all the same.
class WeightReader final : public TensorReader {
 public:
  /// Without `has_drafts` tensors of draft layers (mtp.*) are left alone.
  WeightReader(const SafetensorsModel& files, const Share& share, const Config& config,
               bool has_drafts)
      : files_(files),
        share_(share),
        has_drafts_(has_drafts),
        experts_(config.experts),
        kept_(local_sizes(share, config).experts) {}

  bool keeps_expert(std::int64_t expert) const override;
  /// The rank's part; an empty matrix, and a note, if the tensor does not fit.
  Matrix matrix(TensorPlace place, const std::string& name, Dim rows, Dim cols) override;
  Vector vector(TensorPlace place, const std::string& name,
                std::initializer_list<Dim> dims) override;
  std::vector<std::int32_t> table(TensorPlace place, const std::string& name, Dim rows, Dim cols,
                                  Dim limit) override;

  /// Errors   InvalidArgument with all that was noted, and with tensors that were not asked for
  void finish(std::string_view source);

  /// Of what the rank has.
  std::int64_t num_bytes() const noexcept { return num_bytes_; }

 private:
  const ConstTensorView* find(const std::string& name);
  void note(std::string text);
  void note_left_over();
  MatrixRange range_of(TensorPlace place, std::int64_t rows, std::int64_t cols) const;
  Matrix rank_part(TensorPlace place, const Matrix& matrix);

  const SafetensorsModel& files_;
  Share share_;
  bool has_drafts_;
  std::int64_t experts_;
  Range kept_;
  ConstTensorView view_;
  std::set<std::string, std::less<>> taken_;
  std::vector<std::string> problems_;
  std::int64_t num_problems_ = 0, num_bytes_ = 0;
};

}  // namespace tilewright::model
