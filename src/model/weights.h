// The tensors of a DeepSeek-V4 checkpoint, found by name and checked for shape.
#pragma once

#include "base/safetensors_model.h"
#include "formats/checkpoint_weight.h"
#include "model/config.h"
#include "model/share.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::model {

/// A matrix [rows, cols] in the order of checkpoints, [out, in]; plain or quantised, see
/// checkpoint_weight.h. Its views are valid as long as the Weights.
using Matrix = CheckpointWeight;
/// Values that are small and not quantised: norms, biases, tables of fp32.
using Vector = std::vector<float>;

struct CompressorWeights {
  Matrix wkv, wgate;  ///< [width, hidden]; width = 2 * dim with overlap, else dim
  Vector ape;         ///< [ratio, width]
  Vector norm;        ///< [dim]
};

struct IndexerWeights {
  Matrix wq_b;          ///< [index_heads * index_dim, q_rank]
  Matrix weights_proj;  ///< [index_heads, hidden]
  CompressorWeights compressor;
};

struct AttentionWeights {
  Matrix wq_a;  ///< [q_rank, hidden]
  Matrix wq_b;  ///< [heads * head_dim, q_rank]
  Matrix wkv;   ///< [head_dim, hidden]
  Matrix wo_a;  ///< [o_groups * o_rank, heads / o_groups * head_dim]
  Matrix wo_b;  ///< [hidden, o_groups * o_rank]
  Vector q_norm, kv_norm, sink;
  std::optional<CompressorWeights> compressor;  ///< CSA and HCA
  std::optional<IndexerWeights> indexer;        ///< CSA
};

struct HyperWeights {
  Vector fn;     ///< [2 n + n n, n * hidden]; of the head [n, n * hidden]
  Vector base;   ///< [2 n + n n]; [n]
  Vector scale;  ///< [3]; [1]
};

struct ExpertWeights {
  Matrix gate, up;  ///< [inter, hidden], w1 and w3
  Matrix down;      ///< [hidden, inter], w2
};

struct FfnWeights {
  Matrix gate;                         ///< [experts, hidden], the router
  Vector bias;                         ///< [experts]; empty in hash-routed layers
  std::vector<std::int32_t> tid2eid;   ///< [vocab, experts_per_token]; hash-routed layers
  std::vector<ExpertWeights> experts;  ///< routed
  std::optional<ExpertWeights> shared;
};

struct LayerWeights {
  Vector attn_norm, ffn_norm;
  HyperWeights hc_attn, hc_ffn;
  AttentionWeights attn;
  FfnWeights ffn;
};

/// A draft layer of multi-token prediction, mtp.N: it takes the streams before the head and the
/// next token's embedding. Embedding and head are the model's.
struct DraftWeights {
  LayerWeights layer;     ///< without compressor
  Matrix e_proj, h_proj;  ///< [hidden, hidden]
  Vector enorm, hnorm, norm;
  HyperWeights hc_head;
};

/// All weights of a model, or of a rank's share of it.
struct ModelWeights {
  Matrix embed;  ///< [vocab, hidden]
  Matrix head;   ///< [vocab, hidden]
  Vector norm;   ///< [hidden]
  HyperWeights hc_head;
  std::vector<LayerWeights> layers;
  std::vector<DraftWeights> drafts;
};

/// Converted matrices: what their views show.
class MatrixStorage {
 public:
  /// The bytes, owned from now on.
  const void* keep(std::vector<std::uint8_t> bytes);

 private:
  std::vector<std::unique_ptr<std::vector<std::uint8_t>>> kept_;
};

/// A number format that routed experts can be brought into; kStored leaves them as they are.
enum class ExpertFormat { kStored, kBf16, kFp8, kMxfp4, kNvfp4 };

/// "stored", "bf16", "fp8", "mxfp4", "nvfp4"; nothing for another name.
std::optional<ExpertFormat> expert_format_by_name(std::string_view name);

/// Matrices of the same shape brought into a format, with the rules of formats/block_scale.h;
/// nvfp4: under one tensor scale. Those that are in it already stay as they are.
/// Errors   Unsupported if the columns are not whole blocks of the format
void convert_matrices(std::vector<Matrix*> matrices, ExpertFormat format, MatrixStorage& storage);

/// Weights that come from elsewhere than a checkpoint.
struct WeightsSource {
  std::string name;
  Config config;
  Share share = {};
  ModelWeights weights;
  MatrixStorage storage;  ///< of the matrices
  std::int64_t num_bytes = 0;
};

struct WeightsOptions {
  ExpertFormat experts = ExpertFormat::kStored;
  Share share = {};         ///< what a rank has
  bool has_drafts = false;  ///< also mtp.*; else those tensors are left alone
};

/// Everything of one checkpoint, or a rank's share of it. Owns the mapped files and what was
/// converted.
///
/// Files are mapped; values are read when an operator or the float64 model takes them, so that of a
/// rank's share no other bytes are read, and nothing is copied on the host but one matrix at a
/// time. Sizes of matrices and vectors are those of the share (local_sizes()), `layers[i].ffn` has
/// the rank's experts alone.
class Weights : public ModelWeights {
 public:
  /// `folder` has config.json and model.safetensors, or shards with an index. Plain (BF16, F16,
  /// F32), FP8 in blocks, MXFP4 and NVFP4 matrices are recognised one by one.
  /// Errors   those of read_config, check_share and SafetensorsModel; InvalidArgument with the
  ///          names and shapes of up to ten tensors, of all ranks, that are missing, have another
  ///          shape or do not belong to the model
  explicit Weights(const std::filesystem::path& folder, const WeightsOptions& options = {});
  Weights(const std::filesystem::path& folder, ExpertFormat experts)
      : Weights(folder, WeightsOptions{.experts = experts}) {}
  explicit Weights(WeightsSource source);
  Weights(const Weights&) = delete;
  Weights& operator=(const Weights&) = delete;

  const Config& config() const noexcept { return config_; }  ///< of the whole model
  const Share& share() const noexcept { return share_; }
  const std::string& source() const noexcept { return source_; }
  /// Bytes of all tensors of the share as they are stored.
  std::int64_t num_bytes() const noexcept { return num_bytes_; }
  /// What the routed experts of the last layer are in: "bf16", "fp8", "mxfp4", "nvfp4".
  const std::string& expert_format() const noexcept { return expert_format_; }

 private:
  Config config_;
  Share share_;
  std::string source_, expert_format_;
  std::optional<SafetensorsModel> files_;
  std::int64_t num_bytes_ = 0;
  MatrixStorage storage_;
};

/// All rows of a matrix as fp32.
/// Errors   as check_checkpoint_scales
std::vector<float> read_matrix(const Matrix& matrix);

}  // namespace tilewright::model
