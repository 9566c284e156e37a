// The operators of a step and their memory; step_run.cpp enqueues them.
#include "model/kernel_runner/step.h"

#include "model/weight_source.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace tilewright::model {

namespace {

FloatArray rope_array(const Device& device, const RopeOptions& options, std::int64_t positions) {
  return {device, std::span<const float>(rope_table(options, positions))};
}

RopeOptions yarn_rope(const Config& c) {
  return {.theta = c.compress_rope_theta,
          .has_yarn = true,
          .factor = c.yarn.factor,
          .original_positions = c.yarn.original_max_pos,
          .beta_fast = c.yarn.beta_fast,
          .beta_slow = c.yarn.beta_slow};
}

std::int64_t widest_input(const ModelArrays& model) {
  std::int64_t width = 0;
  for (std::int64_t i = 0; i < model.num_layers(); ++i)
    width = std::max(width, model.layer(i).input.width());
  return width;
}

std::int64_t widest_query(const ModelArrays& model) {
  std::int64_t width = 0;
  for (std::int64_t i = 0; i < model.num_layers(); ++i)
    width = std::max(width, model.layer(i).query.width());
  return width;
}

// [tokens, 24] of a hyper-connection: of each token pre 0, post 1, comb the identity.
std::vector<float> adding_mix(std::int64_t tokens) {
  constexpr std::array<float, 24> kRow = {0, 0, 0, 0, 1, 1, 1, 1, 1, 0, 0, 0,
                                          0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
  std::vector<float> mix;
  for (std::int64_t t = 0; t < tokens; ++t) mix.insert(mix.end(), kRow.begin(), kRow.end());
  return mix;
}

// Tokens of arrays that the draft layer alone needs.
std::int64_t draft_tokens(const ModelArrays& model, std::int64_t tokens) {
  return model.drafts.empty() ? 0 : tokens;
}

// Where experts are divided.
std::int64_t kept_tokens(std::int64_t tokens, std::int64_t expert_tokens) {
  return expert_tokens == 0 ? tokens : std::max(tokens, kMostKeptTokens);
}

ByteArray zero_bytes(const Device& device, std::int64_t count) {
  ByteArray bytes(device, count);
  if (count > 0) bytes.buffer().fill(std::byte{0});
  return bytes;
}

std::int64_t indexer_bytes(const KernelMemory& memory, std::int64_t tokens) {
  if (!memory.indexer) return 0;
  return static_cast<std::int64_t>(memory.indexer->workspace_bytes(tokens, memory.num_sequences));
}

std::int64_t elem_bytes(DType dtype) {
  return bits_per_elem(dtype) / 8;
}

}  // namespace

std::int64_t StepTokens::of_experts() const noexcept {
  return of_ranks.empty() ? own
                          : std::accumulate(of_ranks.begin(), of_ranks.end(), std::int64_t{0});
}

std::int64_t StepTokens::before(std::int64_t rank) const noexcept {
  return std::accumulate(of_ranks.begin(), of_ranks.begin() + rank, std::int64_t{0});
}

Activations::Activations(const Device& device, const Config& c, const ModelArrays& model,
                         const KernelMemory& memory, const KernelNumbers& numbers,
                         std::int64_t tokens, std::int64_t expert_tokens)
    : inputs(device, 2 * memory.num_sequences + 1 + tokens + expert_tokens),
      positions(device, tokens),
      slots(device, tokens),
      window_list(device, tokens * c.window),
      window_length(device, tokens),
      hca_list(device, memory.hca ? tokens * memory.hca->table.rows() : 0),
      hca_length(device, tokens),
      csa_list(device, memory.csa ? tokens * c.index_topk : 0),
      csa_length(device, tokens),
      hca_entries(memory.hca ? memory.hca->table.rows() : 0),
      csa_entries(memory.csa ? c.index_topk : 0),
      streams(device, kept_tokens(tokens, expert_tokens) * c.streams * c.hidden *
                          elem_bytes(numbers.streams)),
      mix(device, kept_tokens(tokens, expert_tokens) * 24),
      normed(device, kept_tokens(tokens, expert_tokens) * c.hidden),
      input(device, tokens * widest_input(model)),
      q_a(device, tokens * c.q_rank),
      query(device, tokens * widest_query(model)),
      attended(device, tokens * c.heads * c.head_dim),
      lse(device, tokens * c.heads),
      grouped(device, tokens * c.o_groups * c.o_rank),
      result(device,
             2 * kept_tokens(tokens, expert_tokens) * c.hidden * elem_bytes(numbers.sub_layer)),
      gathered(device, expert_tokens * c.hidden),
      partial(device, expert_tokens * c.hidden * elem_bytes(numbers.sub_layer)),
      parts(zero_bytes(
          device,
          expert_tokens == 0 ? 0 : 3 * kMostKeptTokens * c.hidden * elem_bytes(numbers.sub_layer))),
      router_logits(device, std::max(tokens, expert_tokens) * stacked_rows(c.experts)),
      rope_plain(rope_array(device, {.theta = c.rope_theta}, memory.max_tokens)),
      rope_yarn(rope_array(device, yarn_rope(c), memory.max_tokens)),
      rope_positions(memory.max_tokens),
      indexer(device, indexer_bytes(memory, tokens)),
      zeros(device, std::span<const std::int32_t>(
                        std::vector<std::int32_t>(static_cast<std::size_t>(tokens), 0))),
      ones(device,
           std::span<const float>(std::vector<float>(static_cast<std::size_t>(tokens), 1.0F))),
      draft_ids(device, draft_tokens(model, tokens)),
      draft_streams(device, draft_tokens(model, tokens) * c.streams * c.hidden),
      draft_mix(device, std::span<const float>(adding_mix(draft_tokens(model, tokens)))) {}

KernelStep::KernelStep(const Device& device, const Config& config, const ModelArrays& model,
                       const KernelMemory& memory, const KernelNumbers& numbers,
                       const Activations& at, const StepTokens& tokens, const StepRanks& ranks)
    : config_(config),
      numbers_(numbers),
      step_tokens_(tokens),
      ranks_(ranks),
      tokens_(tokens.own),
      keeps_all_streams_(keeps_all_streams(model)),
      stream_tokens_(keeps_all_streams_ ? tokens.of_experts() : tokens.own),
      first_own_(keeps_all_streams_ ? tokens.before(ranks.share.rank) : 0),
      embedding_(device, {stream_tokens_, config.hidden, config.vocab, numbers.streams}),
      layer_rows_(device),
      inverse_rope_(device) {
  for (const Connection kind : {kFirst, kOneResult, kTwoResults, kHeadOneResult, kHeadTwoResults}) {
    connections_.emplace_back(
        device, HyperConnectionProblem{.tokens = stream_tokens_,
                                       .hidden = config.hidden,
                                       .stream_dtype = numbers.streams,
                                       .has_merge = kind != kFirst,
                                       .has_second = kind == kTwoResults || kind == kHeadTwoResults,
                                       .is_head = kind >= kHeadOneResult,
                                       .result_dtype = numbers.sub_layer,
                                       .second_dtype = numbers.sub_layer,
                                       .iterations = static_cast<int>(config.sinkhorn_iters),
                                       .eps = config.hyper_eps,
                                       .norm_eps = config.norm_eps});
  }
  for (std::int64_t i = 0; i < model.num_layers(); ++i) {
    const LayerArrays& layer = model.layer(i);
    q_norm_.emplace_back(device, RmsNormProblem{.rows = tokens_,
                                                .cols = config.q_rank,
                                                .x_dtype = DType::kF32,
                                                .x_stride = layer.input.width(),
                                                .eps = config.norm_eps});
    layers_.push_back(make_layer(layer));
  }
  if (!model.drafts.empty()) {
    const DraftArrays& draft = model.drafts[0];
    draft_ =
        Draft{.token_norm = RmsNorm(device, {.rows = tokens_,
                                             .cols = config.hidden,
                                             .x_dtype = numbers.streams,
                                             .x_stride = config.streams * config.hidden,
                                             .eps = config.norm_eps}),
              .stream_norm = RmsNorm(device, {.rows = tokens_ * config.streams,
                                              .cols = config.hidden,
                                              .x_dtype = numbers.streams,
                                              .eps = config.norm_eps}),
              .e_proj = ProjectionRun(draft.e_proj, tokens_, numbers.sub_layer),
              .h_proj = ProjectionRun(draft.h_proj, tokens_ * config.streams, numbers.streams)};
  }
  const auto make = [&](LayerKind kind, std::optional<SparseAttention>& to) {
    const bool is_drafts = kind == LayerKind::kWindow && draft_;
    if (is_drafts || std::ranges::count(config.layers, kind) > 0)
      to.emplace(make_attention(device, model, memory, at, kind));
  };
  make(LayerKind::kWindow, window_attention_);
  make(LayerKind::kCsa, csa_attention_);
  make(LayerKind::kHca, hca_attention_);
  find_workspace();
  // No rank waits on the device for one that is still loading kernels.
  if (has_sums_of_ranks() && connections_sum_ranks()) ranks_.comm->barrier();
}

KernelStep::Layer KernelStep::make_layer(const LayerArrays& a) const {
  const Config& c = config_;
  const std::int64_t expert_tokens = step_tokens_.of_experts();
  const bool is_divided = ranks_.divides_experts();
  const MoeProblem routed = {
      .tokens = expert_tokens,
      .topk = c.experts_per_token,
      .routing = a.router_table ? MoeRouting::kHash : MoeRouting::kLogits,
      .score = MoeScore::kSqrtSoftplus,
      .has_bias = a.router_bias.has_value(),
      .route_scale = c.routed_scale,
      .vocab = a.router_table ? c.vocab : 0,
      .logits_stride = a.router.width(),
      .swiglu_limit = c.swiglu_limit,
      .out_dtype = numbers_.sub_layer,
      .all_experts = is_divided ? c.experts : 0,
      .first_expert = is_divided ? rank_range(ranks_.share, c.experts).first : 0};
  Layer layer = {
      ProjectionRun(a.input, tokens_, DType::kF32),
      ProjectionRun(a.query, tokens_, DType::kBF16, a.input.width(), 0,
                    {.kind = StackInput::kNormalised, .eps = c.norm_eps}),
      ProjectionRun(
          a.wo_a, tokens_, DType::kBF16, 0, 0,
          {.kind = StackInput::kTurnedBack, .head_dim = c.head_dim, .rope_dims = c.rope_dim}),
      ProjectionRun(a.wo_b, tokens_, numbers_.sub_layer, 0, c.hidden),
      ProjectionRun(a.router, expert_tokens, DType::kF32),
      Moe(a.experts, routed),
      std::nullopt};
  // Kernels of block-scaled activations take no single expert: there it is routed to. So is one of
  // the format of the others, which has the bits that it has among them on a single rank.
  const auto is_single = [&](const tilewright::MoeWeights& weights) {
    return weights.info().activations != LinearActivations::kBlockScaled &&
           weights.info().format != a.experts.info().format;
  };
  if (a.shared)
    layer.shared.emplace(*a.shared, MoeProblem{.tokens = tokens_,
                                               .topk = 1,
                                               .routing = is_single(*a.shared) ? MoeRouting::kSingle
                                                                               : MoeRouting::kGiven,
                                               .swiglu_limit = c.swiglu_limit,
                                               .out_dtype = numbers_.sub_layer});
  return layer;
}

SparseAttention KernelStep::make_attention(const Device& device, const ModelArrays& model,
                                           const KernelMemory& memory, const Activations& at,
                                           LayerKind kind) const {
  SparseAttentionProblem p = {.batch = tokens_, .q_len = 1, .heads = config_.heads};
  p.window = {
      .cache = memory.window_layout, .topk = config_.window, .lengths = SparseLengths::kPerQuery};
  if (const CompressedCache* cache = memory.entries(kind))
    p.compressed = {.cache = cache->layout,
                    .topk = kind == LayerKind::kCsa ? at.csa_entries : at.hca_entries,
                    .lengths = SparseLengths::kPerQuery};
  p.has_sink = p.has_lse = true;
  // Queries of the indexer stand behind those of attention.
  for (std::int64_t i = 0; i < model.num_layers(); ++i) {
    const std::int64_t width = model.layer(i).query.width();
    if (model.layer(i).kind == kind) p.q_strides = {width, width, config_.head_dim};
  }
  return SparseAttention(device, p);
}

std::size_t KernelStep::shared_workspace(const Layer& layer) {
  constexpr std::size_t kAlignment = 256;
  const bool are_one_launch = layer.shared && layer.experts.plan().kernel == "direct" &&
                              layer.shared->plan().kernel == "direct";
  if (!are_one_launch) return 0;
  return (layer.experts.plan().workspace_bytes + kAlignment - 1) / kAlignment * kAlignment;
}

void KernelStep::find_workspace() {
  const auto need = [&](std::size_t bytes) {
    workspace_bytes_ = std::max(workspace_bytes_, bytes);
  };
  for (const HyperConnection& step : connections_) need(step.workspace_bytes());
  for (const Layer& layer : layers_) {
    for (const ProjectionRun* run :
         {&layer.input, &layer.query, &layer.wo_a, &layer.wo_b, &layer.router})
      need(run->workspace_bytes());
    need(layer.experts.plan().workspace_bytes);
    if (layer.shared) need(shared_workspace(layer) + layer.shared->plan().workspace_bytes);
  }
  if (draft_)
    for (const ProjectionRun* run : {&draft_->e_proj, &draft_->h_proj})
      need(run->workspace_bytes());
  const auto append = [&](const std::optional<SparseAttention>& attention, std::size_t& at) {
    constexpr std::size_t kAlignment = 256;
    at = (workspace_bytes_ + kAlignment - 1) / kAlignment * kAlignment;
    if (attention) workspace_bytes_ = at + attention->plan().workspace_bytes;
  };
  append(window_attention_, window_workspace_);
  append(csa_attention_, csa_workspace_);
  append(hca_attention_, hca_workspace_);
}

}  // namespace tilewright::model
