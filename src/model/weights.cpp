#include "model/weights.h"

#include "model/weight_reader.h"

#include <utility>

namespace tilewright::model {
namespace {

std::string short_name(const Matrix& matrix) {
  if (matrix.format.empty()) return matrix.codes.dtype == DType::kF32 ? "f32" : "bf16";
  return matrix.format.starts_with("fp8") ? "fp8" : matrix.format;
}

}  // namespace

std::vector<float> read_matrix(const Matrix& matrix) {
  check_checkpoint_scales(matrix);
  return read_checkpoint_rows(matrix, 0, matrix.rows);
}

Weights::Weights(const std::filesystem::path& folder, const WeightsOptions& options)
    : config_(read_config(folder)),
      share_(options.share),
      source_(folder.string()),
      files_(std::in_place, folder) {
  check_share(share_, config_);
  WeightReader reader(*files_, share_, config_, options.has_drafts);
  static_cast<ModelWeights&>(*this) = read_model(config_, reader, options.has_drafts);
  reader.finish(source_);
  num_bytes_ = reader.num_bytes();
  for (LayerWeights& layer : layers) {
    for (ExpertWeights& expert : layer.ffn.experts) {
      // Serving code multiplies gate and up as one matrix: they share a tensor scale.
      convert_matrices({&expert.gate, &expert.up}, options.experts, storage_);
      convert_matrices({&expert.down}, options.experts, storage_);
    }
  }
  expert_format_ = short_name(layers.back().ffn.experts[0].gate);
}

Weights::Weights(WeightsSource source)
    : ModelWeights(std::move(source.weights)),
      config_(std::move(source.config)),
      share_(source.share),
      source_(std::move(source.name)),
      expert_format_(short_name(layers.back().ffn.experts[0].gate)),
      num_bytes_(source.num_bytes),
      storage_(std::move(source.storage)) {}

}  // namespace tilewright::model
