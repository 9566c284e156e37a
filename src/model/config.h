// The sizes of a DeepSeek-V4 model, from the config.json of a checkpoint.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::model {

inline constexpr std::int64_t kV4HeadDim = 512, kV4RopeDim = 64, kV4IndexDim = 128;

/// How a layer compresses what lies before its window; the number is the ratio in config.json.
enum class LayerKind {
  kWindow = 0,  ///< not at all
  kCsa = 4,     ///< overlapping groups of 4, chosen by the indexer
  kHca = 128,   ///< groups of 128, all of them
};

struct YarnConfig {
  double factor = 16, original_max_pos = 65536, beta_fast = 32, beta_slow = 1;
  bool operator==(const YarnConfig&) const = default;
};

/// Names as in the published config.json where the comment gives one.
struct Config {
  std::int64_t hidden = 0;             ///< hidden_size
  std::int64_t heads = 0;              ///< num_attention_heads
  std::int64_t head_dim = 0;           ///< head_dim, 512
  std::int64_t rope_dim = 0;           ///< qk_rope_head_dim, 64: the last ones
  std::int64_t q_rank = 0;             ///< q_lora_rank
  std::int64_t o_groups = 0;           ///< o_groups
  std::int64_t o_rank = 0;             ///< o_lora_rank
  std::int64_t window = 0;             ///< sliding_window
  std::vector<LayerKind> layers;       ///< compress_ratios, of the main layers
  std::int64_t draft_layers = 0;       ///< num_nextn_predict_layers
  std::int64_t index_heads = 0;        ///< index_n_heads
  std::int64_t index_dim = 0;          ///< index_head_dim, 128
  std::int64_t index_topk = 0;         ///< index_topk
  std::int64_t experts = 0;            ///< n_routed_experts
  std::int64_t experts_per_token = 0;  ///< num_experts_per_tok
  std::int64_t shared_experts = 0;     ///< n_shared_experts, 0 or 1
  std::int64_t inter = 0;              ///< moe_intermediate_size, of routed and shared experts
  std::int64_t hash_layers = 0;        ///< num_hash_layers, the first ones
  double routed_scale = 1;             ///< routed_scaling_factor
  double swiglu_limit = 0;             ///< swiglu_limit
  std::int64_t streams = 0;            ///< hc_mult, 4
  std::int64_t sinkhorn_iters = 0;     ///< hc_sinkhorn_iters
  double hyper_eps = 0;                ///< hc_eps
  double norm_eps = 0;                 ///< rms_norm_eps
  std::int64_t vocab = 0;              ///< vocab_size
  std::vector<std::int32_t> ends;      ///< eos_token_id: none, one or several end a text
  std::int64_t max_positions = 0;      ///< max_position_embeddings
  double rope_theta = 0;               ///< rope_theta, of layers without compression
  double compress_rope_theta = 0;      ///< compress_rope_theta, of the others, with YaRN
  YarnConfig yarn;                     ///< rope_scaling

  std::int64_t num_layers() const { return static_cast<std::int64_t>(layers.size()); }
  LayerKind kind(std::int64_t layer) const { return layers[static_cast<std::size_t>(layer)]; }
  bool is_hash_routed(std::int64_t layer) const { return layer < hash_layers; }
  bool operator==(const Config&) const = default;
};

/// Reads and checks the text of a config.json.
/// Errors   ParseError: not JSON, a value missing or of a wrong type or out of range; Unsupported,
///          with the value, what was expected and why: another architecture (V4.1 has other
///          compression ratios), another scoring or rotation, more than one KV head
Config parse_config(std::string_view text, std::string_view source);

/// The config.json of a folder.
/// Errors   also those of reading a file
Config read_config(const std::filesystem::path& folder);

/// "6 layers (1 window, 3 CSA, 2 HCA), hidden 256, 8 heads, 8 experts (2 per token)"
std::string config_text(const Config& config);

}  // namespace tilewright::model
