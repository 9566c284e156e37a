// A small DeepSeek-V4 checkpoint with random weights, in a folder of its own.
#pragma once

#include "base/safetensors_writer.h"
#include "formats/minifloat.h"
#include "tests/base/scoped_folder.h"
#include "tests/reference/inputs.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace tilewright::model {

/// Every token has all experts: with random weights their order would hang on the last bit.
struct CheckpointSizes {
  std::int64_t hidden = 128, heads = 2, q_rank = 64, groups = 2, o_rank = 32, index_heads = 2,
               index_topk = 4, experts = 2, topk = 2, inter = 128, vocab = 32, hash_layers = 1,
               window = 128;
  std::vector<int> ratios = {0, 4, 128};
  std::int64_t drafts = 0;
  std::int64_t drawn_experts = 0;  ///< the others are copies of them in turn; 0: all are drawn
};

class RandomCheckpoint {
 public:
  explicit RandomCheckpoint(const CheckpointSizes& sizes = {}) : sizes_(sizes) {
    write_config();
    write_weights();
  }
  const std::filesystem::path& folder() const { return folder_.path(); }

 private:
  struct Tensor {
    DType dtype;
    std::vector<std::int64_t> shape;
    std::vector<std::uint8_t> bytes;
  };
  using Shape = std::vector<std::int64_t>;

  void write_config() const {
    const CheckpointSizes& s = sizes_;
    std::ofstream(folder_ / "config.json") << fmt::format(
        R"({{"architectures": ["DeepseekV4ForCausalLM"], "model_type": "deepseek_v4",
"hidden_size": {}, "num_hidden_layers": {}, "num_attention_heads": {}, "num_key_value_heads": 1,
"head_dim": 512, "qk_rope_head_dim": 64, "q_lora_rank": {}, "o_groups": {}, "o_lora_rank": {},
"sliding_window": {}, "compress_ratios": [{}], "index_n_heads": {}, "index_head_dim": 128,
"index_topk": {}, "num_nextn_predict_layers": {},
"n_routed_experts": {}, "num_experts_per_tok": {}, "n_shared_experts": 1,
"moe_intermediate_size": {}, "num_hash_layers": {}, "routed_scaling_factor": 1.5,
"scoring_func": "sqrtsoftplus", "topk_method": "noaux_tc", "norm_topk_prob": true,
"swiglu_limit": 10.0, "hidden_act": "silu", "hc_mult": 4, "hc_sinkhorn_iters": 20,
"hc_eps": 1e-06, "rms_norm_eps": 1e-06, "vocab_size": {}, "max_position_embeddings": 1048576,
"rope_theta": 10000.0, "compress_rope_theta": 160000.0, "tie_word_embeddings": false,
"rope_scaling": {{"type": "yarn", "rope_type": "yarn", "factor": 16,
"original_max_position_embeddings": 65536, "beta_fast": 32, "beta_slow": 1}},
"attention_bias": false, "torch_dtype": "bfloat16"}})",
        s.hidden, s.ratios.size(), s.heads, s.q_rank, s.groups, s.o_rank, s.window,
        fmt::join(s.ratios, ", "), s.index_heads, s.index_topk, s.drafts, s.experts, s.topk,
        s.inter, s.hash_layers, s.vocab);
  }

  // Uniform with a standard deviation of `scale`.
  void draw(const std::string& name, DType dtype, Shape shape, double scale, double middle = 0) {
    std::int64_t count = 1;
    for (const std::int64_t dim : shape) count *= dim;
    Tensor tensor = {dtype, std::move(shape), {}};
    for (std::int64_t i = 0; i < count; ++i) {
      const double x = middle + scale * random_.uniform(-std::sqrt(3.0), std::sqrt(3.0));
      const auto single = static_cast<float>(x);
      const auto half = static_cast<std::uint16_t>(encode(kBf16, x));
      const auto* from = dtype == DType::kF32 ? reinterpret_cast<const std::uint8_t*>(&single)
                                              : reinterpret_cast<const std::uint8_t*>(&half);
      tensor.bytes.insert(tensor.bytes.end(), from, from + bits_per_elem(dtype) / 8);
    }
    tensors_[name] = std::move(tensor);
  }
  // Products keep the size of what they multiply.
  void matrix(const std::string& name, std::int64_t rows, std::int64_t cols) {
    draw(name + ".weight", DType::kBF16, {rows, cols}, 1 / std::sqrt(static_cast<double>(cols)));
  }
  void norm(const std::string& name, std::int64_t dim) {
    draw(name + ".weight", DType::kBF16, {dim}, 0.2, 1);
  }
  void hyper(const std::string& name, std::int64_t rows, std::int64_t parts) {
    draw(name + "_fn", DType::kF32, {rows, 4 * sizes_.hidden}, 0.05);
    draw(name + "_base", DType::kF32, {rows}, 1);
    draw(name + "_scale", DType::kF32, {parts}, 0.2, 1);
  }
  void compressor(const std::string& name, int ratio, std::int64_t dim) {
    const std::int64_t width = ratio == 4 ? 2 * dim : dim;
    matrix(name + "wkv", width, sizes_.hidden);
    matrix(name + "wgate", width, sizes_.hidden);
    draw(name + "ape", DType::kF32, {ratio, width}, 0.5);
    norm(name + "norm", dim);
  }
  void expert(const std::string& name) {
    matrix(name + "w1", sizes_.inter, sizes_.hidden);
    matrix(name + "w3", sizes_.inter, sizes_.hidden);
    matrix(name + "w2", sizes_.hidden, sizes_.inter);
  }
  void attention(const std::string& name, int ratio) {
    const CheckpointSizes& s = sizes_;
    matrix(name + "wq_a", s.q_rank, s.hidden);
    matrix(name + "wq_b", s.heads * 512, s.q_rank);
    matrix(name + "wkv", 512, s.hidden);
    matrix(name + "wo_a", s.groups * s.o_rank, s.heads / s.groups * 512);
    matrix(name + "wo_b", s.hidden, s.groups * s.o_rank);
    norm(name + "q_norm", s.q_rank);
    norm(name + "kv_norm", 512);
    draw(name + "attn_sink", DType::kF32, {s.heads}, 1);
    if (ratio == 0) return;
    compressor(name + "compressor.", ratio, 512);
    if (ratio != 4) return;
    matrix(name + "indexer.wq_b", s.index_heads * 128, s.q_rank);
    matrix(name + "indexer.weights_proj", s.index_heads, s.hidden);
    compressor(name + "indexer.compressor.", ratio, 128);
  }
  void experts(const std::string& name, bool is_hash) {
    const CheckpointSizes& s = sizes_;
    matrix(name + "gate", s.experts, s.hidden);
    if (is_hash) {
      Tensor table = {DType::kI64, {s.vocab, s.topk}, {}};
      for (std::int64_t t = 0; t < s.vocab; ++t)
        for (std::int64_t i = 0; i < s.topk; ++i) {
          const std::int64_t id = (t * 3 + i) % s.experts;
          const auto* from = reinterpret_cast<const std::uint8_t*>(&id);
          table.bytes.insert(table.bytes.end(), from, from + sizeof id);
        }
      tensors_[name + "gate.tid2eid"] = std::move(table);
    } else {
      draw(name + "gate.bias", DType::kF32, {s.experts}, 0.1);
    }
    const std::int64_t drawn = s.drawn_experts == 0 ? s.experts : s.drawn_experts;
    const auto expert_name = [&](std::int64_t e) { return fmt::format("{}experts.{}.", name, e); };
    for (std::int64_t e = 0; e < drawn; ++e) expert(expert_name(e));
    for (std::int64_t e = drawn; e < s.experts; ++e)
      for (const char* matrix : {"w1.weight", "w2.weight", "w3.weight"})
        tensors_[expert_name(e) + matrix] = tensors_.at(expert_name(e % drawn) + matrix);
    expert(name + "shared_experts.");
  }

  void layer(const std::string& name, int ratio, bool is_hash) {
    const CheckpointSizes& s = sizes_;
    norm(name + "attn_norm", s.hidden);
    norm(name + "ffn_norm", s.hidden);
    hyper(name + "hc_attn", 24, 3);
    hyper(name + "hc_ffn", 24, 3);
    attention(name + "attn.", ratio);
    experts(name + "ffn.", is_hash);
  }
  void draft(const std::string& name) {
    layer(name, 0, false);
    for (const char* part : {"e_proj", "h_proj"}) matrix(name + part, sizes_.hidden, sizes_.hidden);
    for (const char* part : {"enorm", "hnorm", "norm"}) norm(name + part, sizes_.hidden);
    hyper(name + "hc_head", 4, 1);
  }

  void write_weights() {
    const CheckpointSizes& s = sizes_;
    draw("embed.weight", DType::kBF16, {s.vocab, s.hidden}, 1);
    matrix("head", s.vocab, s.hidden);
    norm("norm", s.hidden);
    hyper("hc_head", 4, 1);
    for (std::size_t i = 0; i < s.ratios.size(); ++i)
      layer(fmt::format("layers.{}.", i), s.ratios[i],
            static_cast<std::int64_t>(i) < s.hash_layers);
    for (std::int64_t i = 0; i < s.drafts; ++i) draft(fmt::format("mtp.{}.", i));
    std::map<std::string, ConstTensorView> views;
    for (const auto& [name, tensor] : tensors_)
      views[name] = contiguous_view(static_cast<const void*>(tensor.bytes.data()), tensor.dtype,
                                    tensor.shape);
    write_safetensors(folder_ / "model.safetensors", views);
  }

  CheckpointSizes sizes_;
  reference::Random random_{1};
  std::map<std::string, Tensor> tensors_;
  ScopedFolder folder_;
};

}  // namespace tilewright::model
