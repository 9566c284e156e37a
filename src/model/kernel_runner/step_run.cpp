// A step, operator after operator.
#include "model/kernel_runner/step.h"

#include <cmath>

namespace tilewright::model {

SequenceBatch StepContext::sequences() const {
  const std::int32_t* const inputs = at.inputs.get();
  return {.batch = memory.num_sequences,
          .offsets = inputs,
          .starts = inputs + memory.num_sequences + 1};
}

const std::int32_t* StepContext::ids() const {
  return at.inputs.get() + 2 * memory.num_sequences + 1;
}

void KernelStep::run(const StepContext& context, void* workspace) const {
  Call call = {context, workspace};
  const ModelArrays& model = context.model;
  embedding_.run({.table = model.embed.get(),
                  .ids = keeps_all_streams_ ? ids_of_experts(call) : context.ids(),
                  .streams = call.at().streams.get(),
                  .stream = context.stream});
  call.mark("embedding");
  lists(call);
  call.mark("lists");
  bool had_two = false;
  for (std::int64_t i = 0; i < config_.num_layers(); ++i) {
    const LayerArrays& layer = call.arrays(i);
    connect(call,
            i == 0    ? kFirst
            : had_two ? kTwoResults
                      : kOneResult,
            layer.hc_attn, layer.attn_norm);
    if (call.tap() != nullptr) {
      if (i > 0) streams(call, "streams", i - 1);
      sub_layer_input(call, "attn", i);
    }
    attention(call, i);
    connect_experts(call, i);
    if (call.tap() != nullptr) {
      streams(call, "streams_mid", i);
      sub_layer_input(call, "ffn", i);
    }
    experts(call, i);
    had_two = layer.shared.has_value();
  }
  connect(call, had_two ? kHeadTwoResults : kHeadOneResult, model.hc_head, model.norm);
  if (call.tap() != nullptr) {
    streams(call, "streams", config_.num_layers() - 1);
    call.tap()->rows("head_mix", -1, {call.at().mix.get(), DType::kF32, {4}});
    call.tap()->rows("final_norm", -1, {call.at().normed.get(), DType::kBF16, {config_.hidden}});
  }
}

void KernelStep::run_draft(const StepContext& context, void* workspace) const {
  Call call = {context, workspace};
  Activations& at = call.at();
  const DraftArrays& draft = context.model.drafts[0];
  const std::int64_t number = config_.num_layers();
  draft_->stream_norm.run({.x = at.streams.get(),
                           .weight = draft.hnorm.get(),
                           .out = at.draft_streams.get(),
                           .stream = context.stream});
  embedding_.run({.table = context.model.embed.get(),
                  .ids = at.draft_ids.get(),
                  .streams = at.streams.get(),
                  .stream = context.stream});
  draft_->token_norm.run({.x = at.streams.get(),
                          .weight = draft.enorm.get(),
                          .out = at.normed.get(),
                          .stream = context.stream});
  draft_->e_proj.run(at.normed.get(), at.result.get(), workspace, context.stream);
  draft_->h_proj.run(at.draft_streams.get(), at.streams.get(), workspace, context.stream);
  connect(call, kOneResult, draft.layer.hc_attn, draft.layer.attn_norm, at.draft_mix.get());
  attention(call, number);
  connect_experts(call, number);
  experts(call, number);
  connect(call, draft.layer.shared ? kHeadTwoResults : kHeadOneResult, draft.hc_head, draft.norm);
}

void KernelStep::streams(const Call& call, const char* name, std::int64_t layer) const {
  call.tap()->rows(name, layer,
                   {call.at().streams.get(), numbers_.streams, {config_.streams, config_.hidden}});
}

void KernelStep::sub_layer_input(const Call& call, const std::string& name,
                                 std::int64_t layer) const {
  call.tap()->rows(name + "_mix", layer, {call.at().mix.get(), DType::kF32, {24}});
  call.tap()->rows(name + "_in", layer, {call.at().normed.get(), DType::kBF16, {config_.hidden}});
}

// Where tokens stand and what they may look at is the same in all layers, except the choice of CSA.
void KernelStep::lists(const Call& call) const {
  Activations& at = call.at();
  const KernelMemory& memory = call.context.memory;
  KvListArguments list = {.kind = KvListKind::kWrite,
                          .tokens = tokens_,
                          .sequences = call.context.sequences(),
                          .table = memory.window_table.pages(),
                          .ring = memory.ring(),
                          .window = config_.window,
                          .list_len = 1,
                          .lists = at.slots.get(),
                          .positions = at.positions.get(),
                          .stream = call.stream()};
  memory.window_cache.list(list);
  list.kind = KvListKind::kWindow;
  list.list_len = config_.window;
  list.lists = at.window_list.get();
  list.lengths = at.window_length.get();
  list.positions = nullptr;
  memory.window_cache.list(list);
  if (!memory.hca) return;
  list.kind = KvListKind::kEntries;
  list.table = memory.hca->table.pages();
  list.ring = 0;
  list.ratio = static_cast<std::int64_t>(LayerKind::kHca);
  list.list_len = at.hca_entries;
  list.lists = at.hca_list.get();
  list.lengths = at.hca_length.get();
  memory.hca_cache->list(list);
}

HyperConnectionArguments KernelStep::connection(const Call& call, const HyperArrays& weights,
                                                const Bf16Array& norm,
                                                const float* mix_before) const {
  Activations& at = call.at();
  const void* const results = call.results == nullptr ? at.result.get() : call.results;
  return {.streams = at.streams.get(),
          .merged = at.streams.get(),
          .mix_before = mix_before == nullptr ? at.mix.get() : mix_before,
          .result = results,
          .second_result = static_cast<const std::uint8_t*>(results) + result_bytes(stream_tokens_),
          .mix_weight = weights.fn.get(),
          .mix_bias = weights.base.get(),
          .mix_scale = weights.scale.get(),
          .norm_weight = norm.get(),
          .mix = at.mix.get(),
          .out = at.normed.get(),
          .workspace = call.workspace,
          .stream = call.stream()};
}

void KernelStep::connect(Call& call, Connection kind, const HyperArrays& weights,
                         const Bf16Array& norm, const float* mix_before) const {
  const HyperConnectionArguments arguments = connection(call, weights, norm, mix_before);
  if (call.has_results_of_ranks)
    connections_[kind].run(arguments, ranks_.sum->connection_ranks());
  else
    connections_[kind].run(arguments);
  call.has_results_of_ranks = false;
  call.mark("hyper-connection");
}

// Where experts are divided, the router's rows are those of all ranks, and so have to be the
// connection's.
bool KernelStep::connections_route(std::int64_t i, const Call& call) const {
  const LinearWeight* const router = call.arrays(i).router.single();
  return (keeps_all_streams_ || !ranks_.divides_experts()) && router != nullptr &&
         connections_[kOneResult].routes(router->info());
}

void KernelStep::connect_experts(Call& call, std::int64_t i) const {
  const LayerArrays& arrays = call.arrays(i);
  if (!connections_route(i, call)) return connect(call, kOneResult, arrays.hc_ffn, arrays.ffn_norm);
  std::optional<HyperConnectionRanks> ranks;
  if (call.has_results_of_ranks) ranks = ranks_.sum->connection_ranks();
  connections_[kOneResult].run(connection(call, arrays.hc_ffn, arrays.ffn_norm, nullptr),
                               ranks ? &*ranks : nullptr,
                               {.weight = arrays.router.single(),
                                .logits = call.at().router_logits.get(),
                                .logits_stride = arrays.router.width()});
  call.has_results_of_ranks = false;
  call.mark("hyper-connection");
}

void KernelStep::attention(Call& call, std::int64_t i) const {
  Activations& at = call.at();
  const auto idx = static_cast<std::size_t>(i);
  const LayerArrays& arrays = call.arrays(i);
  layers_[idx].input.run(own_rows(at), at.input.get(), call.workspace, call.stream());
  call.mark("first projection");
  const float* const q_a = at.input.get() + arrays.columns.q_a;
  const bool is_fused = layers_[idx].query.takes_input();
  if (!is_fused || call.tap() != nullptr)
    q_norm_[idx].run(
        {.x = q_a, .weight = arrays.q_norm.get(), .out = at.q_a.get(), .stream = call.stream()});
  call.mark("q norm");
  if (call.tap() != nullptr)
    call.tap()->rows("qr", i, {at.q_a.get(), DType::kBF16, {config_.q_rank}});
  layers_[idx].query.run({.x = is_fused ? static_cast<const void*>(q_a) : at.q_a.get(),
                          .out = at.query.get(),
                          .workspace = call.workspace,
                          .stream = call.stream(),
                          .norm = arrays.q_norm.get()});
  call.mark("queries");
  store_rows(call, i);
  if (arrays.kind == LayerKind::kCsa) {
    choose_entries(call, i);
    call.mark("indexer");
  }
  attend(call, i);
  project_output(call, i);
}

KvWriteArguments KernelStep::window_rows(const Call& call, std::int64_t i) const {
  Activations& at = call.at();
  const LayerArrays& arrays = call.arrays(i);
  return {.tokens = tokens_,
          .heads = config_.heads,
          .eps = config_.norm_eps,
          .q = at.query.get(),
          .q_token_stride = arrays.query.width(),
          .q_head_stride = config_.head_dim,
          .kv = at.input.get() + arrays.columns.kv,
          .kv_dtype = DType::kF32,
          .kv_stride = arrays.input.width(),
          .kv_weight = arrays.kv_norm.get(),
          .positions = at.positions.get(),
          .rope = call.rope_table(arrays.kind),
          .slots = at.slots.get(),
          .pages = call.memory(i).window.get(),
          .stream = call.stream()};
}

// Queries and rows of the window, entries of the compressor, and what the indexer reads.
void KernelStep::store_rows(Call& call, std::int64_t i) const {
  const LayerArrays& arrays = call.arrays(i);
  const KernelMemory& memory = call.context.memory;
  const CompressedCache* cache = memory.entries(arrays.kind);
  const LayerMemory& of_layer = call.memory(i);
  const KvWriteArguments write = window_rows(call, i);
  if (cache == nullptr) {
    memory.window_cache.write(write);
  } else {
    const auto arguments = [&](const CompressedCache& to, const CompressorArrays& weights,
                               std::int64_t kv, std::int64_t gate, const ByteArray& state,
                               const ByteArray& pages) -> CompressorArguments {
      return {.sequences = call.context.sequences(),
              .max_tokens = call.context.longest,
              .kv = call.at().input.get() + kv,
              .gate = call.at().input.get() + gate,
              .kv_stride = arrays.input.width(),
              .gate_stride = arrays.input.width(),
              .ape = weights.ape.get(),
              .norm_weight = weights.norm.get(),
              .rope = call.rope_table(arrays.kind),
              .state = state.get(),
              .table = to.table.pages(),
              .pages = pages.get(),
              .stream = call.stream()};
    };
    const InputColumns& at = arrays.columns;
    LayerRowsArguments rows = {
        .cache = &memory.window_cache,
        .write = write,
        .compressor = &cache->compressor,
        .entries = arguments(*cache, *arrays.compressor, at.compressor_kv, at.compressor_gate,
                             *of_layer.state, *of_layer.entries)};
    if (arrays.kind == LayerKind::kCsa) {
      const CompressedCache& index = *memory.index;
      rows.keys = &index.compressor;
      rows.of_keys = arguments(index, *arrays.index_compressor, at.index_kv, at.index_gate,
                               *of_layer.index_state, *of_layer.index_keys);
      rows.indexer = &*memory.indexer;
      rows.queries = indexer_call(call, i);
    }
    layer_rows_.run(rows);
  }
  call.mark("caches");
  if (call.tap() == nullptr) return;
  call.tap()->rows("q", i,
                   {call.at().query.get(),
                    DType::kBF16,
                    {config_.heads, config_.head_dim},
                    arrays.query.width()});
  call.tap()->window_rows(i, memory);
  if (cache != nullptr) call.tap()->entries(i, *cache, *of_layer.entries);
}

// Layers of one kind have lists of the same lengths, and so one schedule.
void KernelStep::run_attention(Call& call, LayerKind kind, SparseAttentionArguments a) const {
  const auto run = [&](const SparseAttention& attention, std::size_t workspace,
                       bool& is_scheduled) {
    a.workspace = static_cast<std::uint8_t*>(call.workspace) + workspace;
    a.reuses_schedule = is_scheduled;
    attention.run(a);
    is_scheduled = true;
  };
  if (kind == LayerKind::kWindow)
    run(*window_attention_, window_workspace_, call.has_window_schedule);
  else if (kind == LayerKind::kCsa)
    run(*csa_attention_, csa_workspace_, call.has_csa_schedule);
  else
    run(*hca_attention_, hca_workspace_, call.has_hca_schedule);
}

void KernelStep::attend(Call& call, std::int64_t i) const {
  Activations& at = call.at();
  const LayerArrays& arrays = call.arrays(i);
  const LayerMemory& memory = call.memory(i);
  SparseAttentionArguments a = {.q = at.query.get(),
                                .window = {.pages = memory.window.get(),
                                           .indices = at.window_list.get(),
                                           .lengths = at.window_length.get()},
                                .out = at.attended.get(),
                                .lse = at.lse.get(),
                                .sink = arrays.sink.get(),
                                .stream = call.stream()};
  if (arrays.kind == LayerKind::kCsa)
    a.compressed = {memory.entries->get(), at.csa_list.get(), at.csa_length.get()};
  if (arrays.kind == LayerKind::kHca)
    a.compressed = {memory.entries->get(), at.hca_list.get(), at.hca_length.get()};
  run_attention(call, arrays.kind, a);
  call.mark(arrays.kind == LayerKind::kWindow ? "attention (window)"
            : arrays.kind == LayerKind::kCsa  ? "attention (CSA)"
                                              : "attention (HCA)");
  if (call.tap() == nullptr) return;
  call.tap()->rows("lse", i, {at.lse.get(), DType::kF32, {config_.heads}});
  call.tap()->rows("attn_o", i,
                   {at.attended.get(), DType::kBF16, {config_.heads, config_.head_dim}});
}

void KernelStep::project_output(Call& call, std::int64_t i) const {
  Activations& at = call.at();
  const LayerArrays& arrays = call.arrays(i);
  const Layer& layer = layers_[static_cast<std::size_t>(i)];
  const InverseRopeArguments turn = {.tokens = tokens_,
                                     .heads = config_.heads,
                                     .out = at.attended.get(),
                                     .positions = at.positions.get(),
                                     .rope = call.rope_table(arrays.kind),
                                     .stream = call.stream()};
  const bool is_fused = layer.wo_a.takes_input();
  if (!is_fused) inverse_rope_.run(turn);
  call.mark("inverse rotation");
  layer.wo_a.run({.x = at.attended.get(),
                  .out = at.grouped.get(),
                  .workspace = call.workspace,
                  .stream = call.stream(),
                  .positions = at.positions.get(),
                  .rope = turn.rope});
  // Then nobody else turns the rows, and what looks at them has them so.
  if (is_fused && call.tap() != nullptr) inverse_rope_.run(turn);
  call.mark("wo_a");
  layer.wo_b.run(at.grouped.get(), attention_result(call), call.workspace, call.stream());
  call.mark("wo_b");
  add_up_ranks(call, keeps_all_streams_ ? at.parts.get() : at.result.get(), 1);
  call.mark("exchange");
  if (call.tap() == nullptr) return;
  const TappedRows turned = {at.attended.get() + config_.head_dim - config_.rope_dim,
                             DType::kBF16,
                             {config_.heads, config_.rope_dim},
                             config_.heads * config_.head_dim,
                             config_.head_dim};
  call.tap()->rows("attn_o_inv_rope", i, turned);
  call.tap()->rows("attn_out", i, {at.result.get(), numbers_.sub_layer, {config_.hidden}});
}

void KernelStep::experts(Call& call, std::int64_t i) const {
  Activations& at = call.at();
  const LayerArrays& arrays = call.arrays(i);
  const Layer& layer = layers_[static_cast<std::size_t>(i)];
  const bool is_gathered = ranks_.divides_experts() && !keeps_all_streams_;
  gather_experts_input(call);
  call.mark("exchange");
  const std::uint16_t* const x = is_gathered ? at.gathered.get() : at.normed.get();
  if (!connections_route(i, call))
    layer.router.run(x, at.router_logits.get(), call.workspace, call.stream());
  call.mark("router");
  const MoeArguments arguments = {
      .x = x,
      .logits = at.router_logits.get(),
      .bias = arrays.router_bias ? arrays.router_bias->get() : nullptr,
      .token_ids = ids_of_experts(call),
      .table = arrays.router_table ? arrays.router_table->get() : nullptr,
      .out = experts_result(call),
      .workspace = call.workspace,
      .stream = call.stream()};
  run_experts(call, i, arguments);
  call.mark("experts");
  scatter_experts_result(call);
  call.mark("exchange");
  add_up_ranks(call, keeps_all_streams_ ? experts_result(call) : at.result.get(),
               layer.shared ? 2 : 1);
  call.mark("exchange");
  if (call.tap() == nullptr) return;
  const TappedRows routed = {at.result.get(), numbers_.sub_layer, {config_.hidden}};
  const TappedRows shared = {shared_result(call), numbers_.sub_layer, {config_.hidden}};
  call.tap()->sum_of_rows("moe_out", i, routed, layer.shared ? &shared : nullptr);
}

// The shared expert goes with the routed ones, in their launches if tokens are few.
void KernelStep::run_experts(const Call& call, std::int64_t i,
                             const MoeArguments& arguments) const {
  const Activations& at = call.at();
  const Layer& layer = layers_[static_cast<std::size_t>(i)];
  const auto run_routed = [&] {
    layer.experts.run(arguments);
    // Before the workspace is that of the shared expert.
    if (call.tap() != nullptr) tap_routing(call, i, arguments);
  };
  if (!layer.shared) return run_routed();
  const MoeArguments shared = {
      .x = own_rows(at),
      .ids = at.zeros.get(),
      .weights = at.ones.get(),
      .out = shared_result(call),
      .workspace = static_cast<std::uint8_t*>(call.workspace) + shared_workspace(layer),
      .stream = call.stream()};
  if (call.tap() == nullptr && layer.shared->plan().problem.routing == MoeRouting::kSingle)
    return layer.experts.run_with_shared(arguments, *layer.shared, shared);
  run_routed();
  layer.shared->run(shared);
}

void KernelStep::tap_routing(const Call& call, std::int64_t i,
                             const MoeArguments& arguments) const {
  const Moe& moe = layers_[static_cast<std::size_t>(i)].experts;
  const auto score = [](std::vector<double>& z) {
    for (double& x : z) x = std::sqrt(std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))));
  };
  call.tap()->rows("router_scores", i,
                   {call.at().router_logits.get(),
                    DType::kF32,
                    {config_.experts},
                    call.arrays(i).router.width()},
                   score);
  call.tap()->rows("router_ids", i, {moe.ids(arguments), DType::kI32, {config_.experts_per_token}});
  call.tap()->rows("router_weights", i,
                   {moe.weights(arguments), DType::kF32, {config_.experts_per_token}});
}

}  // namespace tilewright::model
