#include "model/checkpoint/plan_model.h"

#include "tilewright/compressor.h"
#include "tilewright/hyper_connection.h"
#include "tilewright/indexer.h"
#include "tilewright/linear.h"
#include "tilewright/moe.h"
#include "tilewright/sparse_attention.h"

#include "base/error.h"
#include "model/kernel_runner/memory.h"
#include "model/weight_source.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace tilewright::model {
namespace {

class Planner {
 public:
  Planner(const Device& device, const StepShape& shape)
      : device_(device),
        shape_(shape),
        config_(shape.config),
        local_(local_sizes(shape.share, shape.config)) {}

  std::vector<NamedPlan> plan() && {
    hyper_connections();
    projections();
    for (const LayerKind kind : {LayerKind::kWindow, LayerKind::kCsa, LayerKind::kHca})
      if (std::ranges::count(config_.layers, kind) > 0) attention(kind);
    experts();
    return std::move(plans_);
  }

 private:
  template <class Make>
  void add(std::string name, const Make& make) {
    try {
      plans_.push_back({name, make()});
    } catch (const Error& error) {
      throw Error(error.kind(), fmt::format("{}: {}", name, error.what()));
    }
  }

  void linear(std::string name, NumberFormat format, std::int64_t n, std::int64_t k,
              DType out = DType::kBF16, std::int64_t groups = 1) {
    add(std::move(name), [&] {
      return plan_linear(device_,
                         {.format = format, .n = stacked_rows(n), .k = k, .groups = groups},
                         {.m = shape_.tokens, .out_dtype = out});
    });
  }

  void hyper_connections() {
    const auto connect = [&](const char* name, bool has_merge, bool is_head) {
      add(name, [&] {
        return plan_hyper_connection(device_, {.tokens = shape_.tokens,
                                               .hidden = config_.hidden,
                                               .has_merge = has_merge,
                                               .has_second = has_merge,
                                               .is_head = is_head,
                                               .result_dtype = DType::kF32,
                                               .second_dtype = DType::kF32});
      });
    };
    add("embedding", [&] {
      return plan_hyper_embedding(
          device_, {.tokens = shape_.tokens, .hidden = config_.hidden, .vocab = config_.vocab});
    });
    connect("hyper-connection, first", false, false);
    connect("hyper-connection", true, false);
    connect("hyper-connection, head", true, true);
    add("norm of q_a", [&] {
      return plan_rms_norm(device_,
                           {.rows = shape_.tokens, .cols = config_.q_rank, .x_dtype = DType::kF32});
    });
  }

  void projections() {
    constexpr NumberFormat kFp8 = NumberFormat::kFp8, kBf16 = NumberFormat::kBf16;
    const Config& c = config_;
    linear("wq_a and wkv", kFp8, c.q_rank + c.head_dim, c.hidden, DType::kF32);
    linear("wq_b", kFp8, local_.heads * c.head_dim, c.q_rank);
    linear("wq_b, also of the indexer", kFp8,
           local_.heads * c.head_dim + c.index_heads * c.index_dim, c.q_rank);
    // Groups that share blocks of scales become bf16.
    linear("wo_a", c.o_rank % 128 == 0 ? kFp8 : kBf16, local_.o_groups * c.o_rank,
           c.heads / c.o_groups * c.head_dim, DType::kBF16, local_.o_groups);
    linear("wo_b", kFp8, c.hidden, local_.o_groups * c.o_rank, DType::kF32);
    linear("compressor (CSA) and indexer", kBf16,
           2 * 2 * (c.head_dim + c.index_dim) + c.index_heads, c.hidden, DType::kF32);
    linear("compressor (HCA)", kBf16, 2 * c.head_dim, c.hidden, DType::kF32);
    linear("router", kBf16, c.experts, c.hidden, DType::kF32);
    linear("head", kBf16, local_.vocab.count, c.hidden, DType::kF32);
    add("inverse rope", [&] { return plan_inverse_rope(device_, shape_.tokens, local_.heads); });
  }

  KvCacheLayout layout(std::int64_t rows, std::int64_t page_size) const {
    const std::int64_t blocks = std::max<std::int64_t>(1, (rows + page_size - 1) / page_size);
    return complete({.format = to_cache_format(shape_.options.kv.value_or(KvFormat::kBf16)),
                     .page_size = page_size,
                     .num_pages = blocks * shape_.sequences});
  }

  // Rows of a sequence that a compressor makes.
  std::int64_t entries(LayerKind kind) const {
    return shape_.options.max_tokens / static_cast<std::int64_t>(kind);
  }

  void compressor(const char* name, CompressorKind kind, const KvCacheLayout& cache) {
    add(name, [&] {
      return plan_compressor(
          device_, {.kind = kind, .cache = cache, .state_slots = shape_.sequences},
          shape_.sequences, (shape_.tokens + shape_.sequences - 1) / shape_.sequences);
    });
  }

  void attention(LayerKind kind) {
    SparseAttentionProblem p = {.batch = shape_.tokens, .q_len = 1, .heads = local_.heads};
    p.window = {.cache = layout(window_rows(config_, shape_.tokens), kWindowPage),
                .topk = config_.window,
                .lengths = SparseLengths::kPerQuery};
    p.has_sink = p.has_lse = true;
    std::string name = "sparse attention (window)";
    if (kind == LayerKind::kCsa) {
      name = "sparse attention (CSA)";
      p.compressed = {.cache = layout(entries(kind), kCsaPage),
                      .topk = config_.index_topk,
                      .lengths = SparseLengths::kPerQuery};
      compressor("compressor state (CSA)", CompressorKind::kCsa, p.compressed.cache);
      indexer(p.compressed.cache);
    }
    if (kind == LayerKind::kHca) {
      name = "sparse attention (HCA)";
      p.compressed = {
          .cache = layout(entries(kind), kHcaPage),
          .topk = layout(entries(kind), kHcaPage).num_pages / shape_.sequences * kHcaPage,
          .lengths = SparseLengths::kPerQuery};
      compressor("compressor state (HCA)", CompressorKind::kHca, p.compressed.cache);
    }
    add(std::move(name), [&] { return plan_sparse_attention(device_, p); });
  }

  void indexer(const KvCacheLayout& rows) {
    const bool is_fp8 = shape_.options.index == IndexFormat::kFp8;
    const KvCacheLayout keys = {
        .format = rows.format, .page_size = rows.page_size, .num_pages = rows.num_pages};
    compressor("compressor state (keys)",
               is_fp8 ? CompressorKind::kIndexFp8 : CompressorKind::kIndexMxfp4, keys);
    add("indexer", [&] {
      return plan_indexer(device_,
                          {.format = is_fp8 ? NumberFormat::kFp8 : NumberFormat::kMxfp4,
                           .heads = config_.index_heads,
                           .topk = config_.index_topk,
                           .ratio = static_cast<std::int64_t>(LayerKind::kCsa),
                           .max_len = rows.num_pages / shape_.sequences * rows.page_size,
                           .keys = keys,
                           .rows = rows},
                          shape_.tokens, shape_.sequences);
    });
  }

  void experts() {
    // Where ranks divide the experts, the tokens of all come to those of each.
    const bool is_divided =
        shape_.share.world > 1 && shape_.share.scheme == Scheme::kExpertParallel;
    const MoeProblem routed = {.tokens = shape_.tokens * (is_divided ? shape_.share.world : 1),
                               .topk = config_.experts_per_token,
                               .routing = MoeRouting::kLogits,
                               .score = MoeScore::kSqrtSoftplus,
                               .has_bias = true,
                               .route_scale = config_.routed_scale,
                               .swiglu_limit = config_.swiglu_limit,
                               .out_dtype = DType::kF32,
                               .all_experts = is_divided ? config_.experts : 0,
                               .first_expert = local_.experts.first};
    add("experts", [&] {
      return plan_moe(device_,
                      {.format = shape_.experts,
                       .experts = local_.experts.count,
                       .hidden = config_.hidden,
                       .inter = local_.inter},
                      routed);
    });
    add("shared expert", [&] {
      return plan_moe(device_,
                      {.format = NumberFormat::kFp8,
                       .experts = 1,
                       .hidden = config_.hidden,
                       .inter = local_.inter},
                      {.tokens = shape_.tokens,
                       .topk = 1,
                       .routing = shape_.experts == NumberFormat::kFp8 ? MoeRouting::kGiven
                                                                       : MoeRouting::kSingle,
                       .swiglu_limit = config_.swiglu_limit,
                       .out_dtype = DType::kF32});
    });
  }

  const Device& device_;
  const StepShape& shape_;
  const Config& config_;
  LocalSizes local_;
  std::vector<NamedPlan> plans_;
};

}  // namespace

std::vector<NamedPlan> plan_model(const Device& device, const StepShape& shape) {
  return Planner(device, shape).plan();
}

}  // namespace tilewright::model
