#include "model/config.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/json_node.h"
#include "base/quote.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace tilewright::model {
namespace {

constexpr std::int64_t kMaxSize = std::int64_t{1} << 24;  // keeps every product below 2^63

template <class... Args>
[[noreturn]] void refuse(const JsonNode& node, fmt::format_string<Args...> format, Args&&... args) {
  try {
    node.fail("{}", fmt::format(format, std::forward<Args>(args)...));
  } catch (const Error& error) {
    throw Error(ErrorKind::kUnsupported, error.what());
  }
}

std::int64_t size(const JsonNode& root, std::string_view key, std::int64_t min = 1) {
  return root.at(key).as_int(min, kMaxSize);
}

double positive(const JsonNode& root, std::string_view key) {
  const JsonNode node = root.at(key);
  const double value = node.as_double();
  if (!(value > 0 && std::isfinite(value))) node.fail("is {}; expected a number above 0", value);
  return value;
}

void require_text(const JsonNode& root, std::string_view key, std::string_view expected) {
  const auto node = root.find(key);
  if (node && node->as_string() != expected)
    refuse(*node, "is {}; only {} is known here", quote(node->as_string()), quote(expected));
}

void require_size(const JsonNode& root, std::string_view key, std::int64_t expected,
                  std::string_view why) {
  const JsonNode node = root.at(key);
  const std::int64_t value = node.as_int();
  if (value != expected) refuse(node, "is {}; expected {}: {}", value, expected, why);
}

LayerKind kind_of_ratio(const JsonNode& elem) {
  const std::int64_t ratio = elem.as_int();
  if (ratio != 0 && ratio != 4 && ratio != 128)
    refuse(elem, "is {}; DeepSeek-V4 has 0, 4 and 128 (1 and 2 are V4.1, another format)", ratio);
  return static_cast<LayerKind>(ratio);
}

// As transformers writes them.
LayerKind kind_of_name(const JsonNode& elem) {
  const std::string& name = elem.as_string();
  if (name == "sliding_attention") return LayerKind::kWindow;
  if (name == "compressed_sparse_attention") return LayerKind::kCsa;
  if (name == "heavily_compressed_attention") return LayerKind::kHca;
  refuse(elem,
         "is {}; expected sliding_attention, compressed_sparse_attention or "
         "heavily_compressed_attention",
         quote(name));
}

std::vector<LayerKind> read_layers(const JsonNode& root) {
  const std::int64_t num_layers = size(root, "num_hidden_layers");
  const auto names = root.find("layer_types");
  const bool has_ratios = root.find("compress_ratios").has_value() || !names;
  const JsonNode list = has_ratios ? root.at("compress_ratios") : *names;
  const auto elems = list.elems();
  if (static_cast<std::int64_t>(elems.size()) < num_layers)
    list.fail(
        "has {} entries; expected one for each of {} layers (and the draft layers after them)",
        elems.size(), num_layers);
  std::vector<LayerKind> layers;
  for (std::int64_t i = 0; i < num_layers; ++i) {
    const JsonNode& elem = elems[static_cast<std::size_t>(i)];
    layers.push_back(has_ratios ? kind_of_ratio(elem) : kind_of_name(elem));
  }
  return layers;
}

std::int64_t read_draft_layers(const JsonNode& root) {
  constexpr std::int64_t kMost = 8;
  const auto node = root.find("num_nextn_predict_layers");
  return node ? node->as_int(0, kMost) : 0;
}

// Tensors say themselves what they are; this refuses what they cannot say.
void check_quantization(const JsonNode& root) {
  const auto node = root.find("quantization_config");
  if (!node || node->value().is_null()) return;
  const auto blocks = node->find("weight_block_size");
  if (!blocks) return;
  const auto sizes = blocks->elems();
  if (sizes.size() != 2 || sizes[0].as_int() != 128 || sizes[1].as_int() != 128)
    refuse(*blocks, "is not [128, 128]; scales of FP8 weights are for 128 x 128 values here");
  require_text(*node, "fmt", "e4m3");
}

void read_attention(const JsonNode& root, Config& config) {
  config.heads = size(root, "num_attention_heads");
  config.head_dim = size(root, "head_dim");
  config.rope_dim = size(root, "qk_rope_head_dim");
  require_size(root, "head_dim", kV4HeadDim, "cache rows are 448 plain and 64 rotated numbers");
  require_size(root, "qk_rope_head_dim", kV4RopeDim, "so many of the 512 are rotated");
  require_size(root, "num_key_value_heads", 1, "one row is key and value of all heads");
  config.q_rank = size(root, "q_lora_rank");
  config.o_groups = size(root, "o_groups");
  config.o_rank = size(root, "o_lora_rank");
  config.window = size(root, "sliding_window");
  if (config.heads % config.o_groups != 0)
    root.at("o_groups")
        .fail("is {}, which does not divide num_attention_heads = {}", config.o_groups,
              config.heads);
  config.index_heads = size(root, "index_n_heads");
  config.index_dim = size(root, "index_head_dim");
  config.index_topk = size(root, "index_topk");
  require_size(root, "index_head_dim", kV4IndexDim,
               "the indexer's Hadamard transform has this size");
}

void read_moe(const JsonNode& root, Config& config) {
  config.experts = size(root, "n_routed_experts");
  config.experts_per_token = root.at("num_experts_per_tok").as_int(1, config.experts);
  config.shared_experts = root.at("n_shared_experts").as_int(0, 1);
  config.inter = size(root, "moe_intermediate_size");
  config.hash_layers = root.at("num_hash_layers").as_int(0, config.num_layers());
  config.routed_scale = positive(root, "routed_scaling_factor");
  config.swiglu_limit = positive(root, "swiglu_limit");
  require_text(root, "scoring_func", "sqrtsoftplus");
  require_text(root, "topk_method", "noaux_tc");
  require_text(root, "hidden_act", "silu");
  const auto norm = root.find("norm_topk_prob");
  if (norm && !norm->as_bool()) refuse(*norm, "is false; routing weights are normalised here");
}

void read_rope(const JsonNode& root, Config& config) {
  config.rope_theta = positive(root, "rope_theta");
  config.compress_rope_theta = positive(root, "compress_rope_theta");
  const bool has_compression =
      std::ranges::any_of(config.layers, [](LayerKind kind) { return kind != LayerKind::kWindow; });
  if (!has_compression) return;
  const JsonNode scaling = root.at("rope_scaling");
  require_text(scaling, "type", "yarn");
  require_text(scaling, "rope_type", "yarn");
  config.yarn = {positive(scaling, "factor"), positive(scaling, "original_max_position_embeddings"),
                 positive(scaling, "beta_fast"), positive(scaling, "beta_slow")};
}

// One token, a list of them, or none.
std::vector<std::int32_t> read_ends(const JsonNode& root, std::int64_t vocab) {
  const auto node = root.find("eos_token_id");
  if (!node || node->value().is_null()) return {};
  std::vector<std::int32_t> ends;
  for (const JsonNode& elem : node->value().is_array() ? node->elems() : std::vector{*node})
    ends.push_back(static_cast<std::int32_t>(elem.as_int(0, vocab - 1)));
  return ends;
}

}  // namespace

Config parse_config(std::string_view text, std::string_view source) {
  const nlohmann::json json = parse_json(text, source);
  const JsonNode root(json, std::string(source));
  require_text(root, "model_type", "deepseek_v4");
  Config config;
  config.layers = read_layers(root);
  config.draft_layers = read_draft_layers(root);
  check_quantization(root);
  config.hidden = size(root, "hidden_size");
  read_attention(root, config);
  read_moe(root, config);
  read_rope(root, config);
  config.streams = size(root, "hc_mult");
  require_size(root, "hc_mult", 4, "so many residual streams are known here");
  config.sinkhorn_iters = size(root, "hc_sinkhorn_iters");
  config.hyper_eps = positive(root, "hc_eps");
  config.norm_eps = positive(root, "rms_norm_eps");
  config.vocab = size(root, "vocab_size");
  config.ends = read_ends(root, config.vocab);
  config.max_positions = size(root, "max_position_embeddings");
  return config;
}

Config read_config(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "config.json";
  const MappedFile file(path);
  return parse_config(file.text(), path.string());
}

std::string config_text(const Config& config) {
  const auto count = [&](LayerKind kind) { return std::ranges::count(config.layers, kind); };
  return fmt::format(
      "{} layers ({} window, {} CSA, {} HCA), hidden {}, {} heads, {} experts ({} per token)",
      config.num_layers(), count(LayerKind::kWindow), count(LayerKind::kCsa),
      count(LayerKind::kHca), config.hidden, config.heads, config.experts,
      config.experts_per_token);
}

}  // namespace tilewright::model
