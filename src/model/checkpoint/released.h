// What a released checkpoint of a model consists of: its config.json, its tensors, its files.
#pragma once

#include "tilewright/format.h"

#include "model/model_tensors.h"

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::model {

/// The published sizes of "flash" or "pro"; nothing for another name.
std::optional<Config> released_config(std::string_view name);

/// The config.json from which parse_config() reads the same.
nlohmann::json config_json(const Config& config);

/// A tensor as it is stored, with its place in the model.
struct StoredTensor {
  std::string name;
  DType dtype = DType::kBF16;
  std::vector<std::int64_t> shape;
  TensorPlace place = {};
  std::int64_t layer = -1;  ///< draft layers after the others; -1: of the whole model
  /// Rows and columns of the weight that one element stands for: {1, 2} of FP4 codes, {128, 128} of
  /// FP8 scales.
  std::int64_t elem_rows = 1, elem_cols = 1;
  bool is_scale = false;

  std::int64_t rows() const { return shape.empty() ? 1 : shape[0]; }
  std::int64_t cols() const { return shape.size() < 2 ? 1 : shape[1]; }
  std::int64_t bytes() const;
};

/// The block format that released checkpoints store the matrices of a role in; "": bf16.
std::string_view stored_format(TensorRole role, NumberFormat experts) noexcept;

/// All tensors of a released checkpoint, in the order of its files, and in each as a model needs
/// them. Routed experts are MXFP4 with DeepSeek's names, or NVFP4 with ModelOpt's.
/// Errors   Unsupported for another format
std::vector<StoredTensor> released_tensors(const Config& config,
                                           NumberFormat experts = NumberFormat::kMxfp4);

/// The part of a stored tensor that a rank reads: ranges of its elements. What several ranks need
/// of a scale that stands for rows of both is in the part of each.
MatrixRange stored_share(const Share& share, const StoredTensor& tensor, std::int64_t experts);
/// Its bytes.
std::int64_t stored_share_bytes(const Share& share, const StoredTensor& tensor,
                                std::int64_t experts);

/// Files of a released checkpoint: the embedding is in the first, layer L in number L + 2, then
/// come head, final norm and its hyper-connection in one, and a file for each draft layer.
std::int64_t num_shards(const Config& config) noexcept;
/// From 1 on.
std::int64_t shard_of(const Config& config, const StoredTensor& tensor) noexcept;
/// "model-00003-of-00046.safetensors"
std::string shard_name(std::int64_t shard, std::int64_t shards);

}  // namespace tilewright::model
