#include "model/checkpoint/released.h"

#include "base/error.h"
#include "base/tensor.h"
#include "formats/block_scale.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include <fmt/format.h>

namespace tilewright::model {
namespace {

using nlohmann::json;

// Two layers, then CSA and HCA in turns, CSA first and last.
std::vector<LayerKind> layer_kinds(std::int64_t layers, LayerKind first) {
  std::vector<LayerKind> kinds(2, first);
  for (std::int64_t i = 2; i < layers; ++i)
    kinds.push_back(i % 2 == 0 ? LayerKind::kCsa : LayerKind::kHca);
  return kinds;
}

Config flash_config() {
  Config c;
  c.hidden = 4096;
  c.heads = 64;
  c.head_dim = kV4HeadDim;
  c.rope_dim = kV4RopeDim;
  c.q_rank = 1024;
  c.o_groups = 8;
  c.o_rank = 1024;
  c.window = 128;
  c.layers = layer_kinds(43, LayerKind::kWindow);
  c.draft_layers = 1;
  c.index_heads = 64;
  c.index_dim = kV4IndexDim;
  c.index_topk = 512;
  c.experts = 256;
  c.experts_per_token = 6;
  c.shared_experts = 1;
  c.inter = 2048;
  c.hash_layers = 3;
  c.routed_scale = 1.5;
  c.swiglu_limit = 10;
  c.streams = 4;
  c.sinkhorn_iters = 20;
  c.hyper_eps = 1e-6;
  c.norm_eps = 1e-6;
  c.vocab = 129280;
  c.max_positions = 1048576;
  c.rope_theta = 10000;
  c.compress_rope_theta = 160000;
  c.ends = {1};
  return c;
}

Config pro_config() {
  Config c = flash_config();
  c.hidden = 7168;
  c.heads = 128;
  c.q_rank = 1536;
  c.o_groups = 16;
  c.layers = layer_kinds(61, LayerKind::kHca);
  c.index_topk = 1024;
  c.experts = 384;
  c.inter = 3072;
  c.routed_scale = 2.5;
  return c;
}

// Writes down what it is asked for.
class TensorLister final : public TensorReader {
 public:
  explicit TensorLister(NumberFormat experts) : experts_(experts) {}

  void begin_layer(std::int64_t layer) override { layer_ = layer; }

  Matrix matrix(TensorPlace place, const std::string& name, Dim rows, Dim cols) override {
    const std::string_view format = stored_format(place.role, experts_);
    if (format.empty()) {
      add(place, name + ".weight", DType::kBF16, {rows.size, cols.size});
      return {};
    }
    const BlockFormat& blocks = block_format_by_name(format);
    const bool is_nvfp4 = blocks.has_tensor_scale;
    const auto names = is_nvfp4 ? CheckpointNames::kModelOpt : CheckpointNames::kDeepSeek;
    const auto parts = checkpoint_parts(names, blocks, name + ".weight", rows.size, cols.size);
    add(place, parts[0].name, parts[0].dtype, parts[0].shape);
    list_.back().elem_cols = cols.size / parts[0].shape[1];
    add(place, parts[1].name, parts[1].dtype, parts[1].shape);
    list_.back().elem_rows = blocks.block_rows;
    list_.back().elem_cols = blocks.block_cols;
    list_.back().is_scale = true;
    if (!is_nvfp4) return {};
    // Of the tensor, and of activations.
    for (const std::string& scalar : {parts[2].name, name + ".input_scale"}) {
      add(place, scalar, DType::kF32, {});
      list_.back().elem_rows = rows.size;
      list_.back().elem_cols = cols.size;
      list_.back().is_scale = true;
    }
    return {};
  }

  Vector vector(TensorPlace place, const std::string& name,
                std::initializer_list<Dim> dims) override {
    std::vector<std::int64_t> shape;
    for (const Dim& dim : dims) shape.push_back(dim.size);
    add(place, name, place.role == TensorRole::kNorm ? DType::kBF16 : DType::kF32,
        std::move(shape));
    return {};
  }

  std::vector<std::int32_t> table(TensorPlace place, const std::string& name, Dim rows, Dim cols,
                                  Dim) override {
    add(place, name, DType::kI64, {rows.size, cols.size});
    return {};
  }

  std::vector<StoredTensor> take() && { return std::move(list_); }

 private:
  void add(TensorPlace place, std::string name, DType dtype, std::vector<std::int64_t> shape) {
    StoredTensor& tensor = list_.emplace_back();
    tensor.name = std::move(name);
    tensor.dtype = dtype;
    tensor.shape = std::move(shape);
    tensor.place = place;
    tensor.layer = layer_;
  }

  NumberFormat experts_;
  std::int64_t layer_ = -1;
  std::vector<StoredTensor> list_;
};

// Elements that stand for any of the range's rows or columns.
Range stored_range(const Range& range, std::int64_t per_elem) {
  if (range.count == 0) return {};
  const std::int64_t first = range.first / per_elem;
  return {first, (range.first + range.count + per_elem - 1) / per_elem - first};
}

}  // namespace

std::string_view stored_format(TensorRole role, NumberFormat experts) noexcept {
  switch (role) {
    case TensorRole::kLatent:
    case TensorRole::kQuery:
    case TensorRole::kOutputGroup:
    case TensorRole::kOutput:
    case TensorRole::kIndexQuery:
    case TensorRole::kSharedIn:
    case TensorRole::kSharedOut:
    case TensorRole::kDraftProjection:
      return "fp8_128x128_ue8m0";
    case TensorRole::kExpertIn:
    case TensorRole::kExpertOut:
      return tilewright::to_string(experts);
    default:
      return {};
  }
}

std::optional<Config> released_config(std::string_view name) {
  if (name == "flash") return flash_config();
  if (name == "pro") return pro_config();
  return std::nullopt;
}

json config_json(const Config& c) {
  json ratios = json::array();
  for (const LayerKind kind : c.layers) ratios.push_back(static_cast<int>(kind));
  for (std::int64_t i = 0; i < c.draft_layers; ++i) ratios.push_back(0);
  const json scaling = {{"type", "yarn"},
                        {"factor", c.yarn.factor},
                        {"original_max_position_embeddings", c.yarn.original_max_pos},
                        {"beta_fast", c.yarn.beta_fast},
                        {"beta_slow", c.yarn.beta_slow}};
  return {{"architectures", {"DeepseekV4ForCausalLM"}},
          {"model_type", "deepseek_v4"},
          {"hidden_size", c.hidden},
          {"num_hidden_layers", c.num_layers()},
          {"num_nextn_predict_layers", c.draft_layers},
          {"num_attention_heads", c.heads},
          {"num_key_value_heads", 1},
          {"head_dim", c.head_dim},
          {"qk_rope_head_dim", c.rope_dim},
          {"q_lora_rank", c.q_rank},
          {"o_groups", c.o_groups},
          {"o_lora_rank", c.o_rank},
          {"sliding_window", c.window},
          {"compress_ratios", ratios},
          {"index_n_heads", c.index_heads},
          {"index_head_dim", c.index_dim},
          {"index_topk", c.index_topk},
          {"n_routed_experts", c.experts},
          {"num_experts_per_tok", c.experts_per_token},
          {"n_shared_experts", c.shared_experts},
          {"moe_intermediate_size", c.inter},
          {"num_hash_layers", c.hash_layers},
          {"routed_scaling_factor", c.routed_scale},
          {"scoring_func", "sqrtsoftplus"},
          {"topk_method", "noaux_tc"},
          {"norm_topk_prob", true},
          {"swiglu_limit", c.swiglu_limit},
          {"hidden_act", "silu"},
          {"hc_mult", c.streams},
          {"hc_sinkhorn_iters", c.sinkhorn_iters},
          {"hc_eps", c.hyper_eps},
          {"rms_norm_eps", c.norm_eps},
          {"vocab_size", c.vocab},
          {"max_position_embeddings", c.max_positions},
          {"rope_theta", c.rope_theta},
          {"compress_rope_theta", c.compress_rope_theta},
          {"rope_scaling", scaling},
          {"tie_word_embeddings", false},
          {"attention_bias", false},
          {"bos_token_id", 0},
          {"eos_token_id", c.ends.size() == 1 ? json(c.ends[0]) : json(c.ends)},
          {"torch_dtype", "bfloat16"}};
}

std::int64_t StoredTensor::bytes() const {
  return checked_num_bytes(dtype, shape, name);
}

std::int64_t num_shards(const Config& config) noexcept {
  return config.num_layers() + 2 + config.draft_layers;
}

std::int64_t shard_of(const Config& config, const StoredTensor& tensor) noexcept {
  if (tensor.place.role == TensorRole::kEmbedding) return 1;
  if (tensor.layer < 0) return config.num_layers() + 2;
  return tensor.layer + (tensor.layer < config.num_layers() ? 2 : 3);
}

std::string shard_name(std::int64_t shard, std::int64_t shards) {
  return fmt::format("model-{:05}-of-{:05}.safetensors", shard, shards);
}

std::vector<StoredTensor> released_tensors(const Config& config, NumberFormat experts) {
  require(experts == NumberFormat::kMxfp4 || experts == NumberFormat::kNvfp4,
          ErrorKind::kUnsupported,
          "released checkpoints have experts in mxfp4 or nvfp4; {} was asked for",
          tilewright::to_string(experts));
  TensorLister lister(experts);
  read_model(config, lister, true);
  auto tensors = std::move(lister).take();
  std::ranges::stable_sort(tensors, {}, [&](const StoredTensor& t) { return shard_of(config, t); });
  return tensors;
}

MatrixRange stored_share(const Share& share, const StoredTensor& t, std::int64_t experts) {
  const std::int64_t rows = t.rows() * t.elem_rows, cols = t.cols() * t.elem_cols;
  const MatrixRange range = share_of(share, t.place.role, rows, cols, t.place.expert, experts);
  return {stored_range(range.rows, t.elem_rows), stored_range(range.cols, t.elem_cols)};
}

std::int64_t stored_share_bytes(const Share& share, const StoredTensor& tensor,
                                std::int64_t experts) {
  const MatrixRange range = stored_share(share, tensor, experts);
  return range.rows.count * range.cols.count * bits_per_elem(tensor.dtype) / 8;
}

}  // namespace tilewright::model
