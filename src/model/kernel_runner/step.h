// One step of a model through the kernels: some tokens of some sequences, from the embedding to the
// input of the language-model head.
#pragma once

#include "tilewright/hyper_connection.h"
#include "tilewright/indexer.h"
#include "tilewright/sparse_attention.h"

#include "comm/communicator.h"
#include "comm/peers/rank_rows.h"
#include "comm/peers/rank_sum.h"
#include "model/kernel_runner/memory.h"
#include "model/kernel_runner/stages.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tilewright::model {

/// How the values between operators are kept.
struct KernelNumbers {
  DType streams = DType::kBF16;
  DType sub_layer = DType::kF32;  ///< results of attention and of the experts
};

/// How many tokens a step has.
struct StepTokens {
  std::int64_t own = 0;  ///< of this rank
  /// Of every rank, where the experts are divided; else empty.
  std::vector<std::int64_t> of_ranks = {};

  /// Those that come to the experts of this rank.
  std::int64_t of_experts() const noexcept;
  /// Those of the ranks before.
  std::int64_t before(std::int64_t rank) const noexcept;
  auto operator<=>(const StepTokens&) const = default;
};

/// The other ranks of a step, and what is divided among all.
struct StepRanks {
  comm::Communicator* comm = nullptr;  ///< null: there are none
  Share share = {};
  comm::RankSum* sum = nullptr;    ///< of small messages; null: as the communicator sums
  comm::RankRows* rows = nullptr;  ///< of few tokens; null: as the communicator moves them

  bool divides_experts() const noexcept {
    return comm != nullptr && share.scheme == Scheme::kExpertParallel;
  }
  bool divides_heads() const noexcept {
    return comm != nullptr && share.scheme == Scheme::kTensorParallel;
  }
};

/// Where experts are divided and all ranks together have no more tokens than that, each of them
/// keeps the streams of all: so many a connection takes in one launch, with the sum over ranks and
/// the router.
inline constexpr std::int64_t kMostKeptTokens = 2;

/// The device memory of a step of at most `tokens` tokens of this rank, and of `expert_tokens` of
/// all ranks where the experts are divided, else 0.
struct Activations {
  Activations(const Device& device, const Config& config, const ModelArrays& model,
              const KernelMemory& memory, const KernelNumbers& numbers, std::int64_t tokens,
              std::int64_t expert_tokens = 0);

  /// offsets [sequences + 1], starts [sequences], ids [tokens]; where the experts are divided, then
  /// the ids of all ranks
  IntArray inputs;
  IntArray positions, slots;
  IntArray window_list, window_length;    ///< [tokens, window], [tokens]
  IntArray hca_list, hca_length;          ///< [tokens, hca_entries]
  IntArray csa_list, csa_length;          ///< [tokens, csa_entries]
  std::int64_t hca_entries, csa_entries;  ///< longest lists
  ByteArray streams;
  FloatArray mix;
  Bf16Array normed;  ///< input of a sub-layer, at last of the head (KernelStep::own_rows)
  FloatArray input;  ///< results of LayerArrays::input
  Bf16Array q_a, query, attended;
  FloatArray lse;
  Bf16Array grouped;   ///< after wo_a
  ByteArray result;    ///< of a sub-layer; behind its rows those of the shared expert of its own
  Bf16Array gathered;  ///< the experts' input of all ranks
  ByteArray partial;   ///< what the experts of this rank add to the tokens of all
  /// Of kMostKeptTokens what this rank adds to results: of attention, of the experts, of the shared
  /// expert. Of tokens of other ranks the first and the last stay zero.
  ByteArray parts;
  FloatArray router_logits;
  FloatArray rope_plain, rope_yarn;  ///< of window layers, of the others
  std::int64_t rope_positions;
  ByteArray indexer;  ///< workspace: its schedule serves all layers
  IntArray zeros;     ///< expert 0 for the shared expert of its own
  FloatArray ones;    ///< and its weight
  // Of the draft layer.
  IntArray draft_ids;       ///< the token after each; -1: none
  Bf16Array draft_streams;  ///< normalised, [tokens, 4, hidden]
  FloatArray draft_mix;     ///< adds a result to each stream, and nothing else
};

/// What a step works on.
struct StepContext {
  const ModelArrays& model;
  const KernelMemory& memory;
  Activations& at;
  std::int64_t longest = 0;  ///< most new tokens of a sequence
  StageTap* tap = nullptr;   ///< is told of intermediate values, or null
  /// Is called behind the launches of each operator, with what it does; empty: nobody is.
  std::function<void(const char* what)> mark = {};
  void* stream = nullptr;

  SequenceBatch sequences() const;
  const std::int32_t* ids() const;
};

/// The operators for a number of tokens.
///
/// Thread   run() one at a time: activations and workspace are shared
class KernelStep {
 public:
  KernelStep(const Device& device, const Config& config, const ModelArrays& model,
             const KernelMemory& memory, const KernelNumbers& numbers, const Activations& at,
             const StepTokens& tokens, const StepRanks& ranks = {});

  std::int64_t tokens() const noexcept { return tokens_; }
  std::size_t workspace_bytes() const noexcept { return workspace_bytes_; }
  /// Enqueues everything.
  void run(const StepContext& context, void* workspace) const;
  /// The draft layer, on the streams and lists that run() left and Activations::draft_ids.
  void run_draft(const StepContext& context, void* workspace) const;
  /// Of Activations::normed those of this rank, [tokens, hidden]: what either leaves for the head.
  const std::uint16_t* own_rows(const Activations& at) const noexcept;

 private:
  struct Layer {
    ProjectionRun input, query, wo_a, wo_b, router;
    Moe experts;
    std::optional<Moe> shared;
  };
  struct Call;

  /// What stands between two sub-layers: how many results are merged, and what comes next.
  enum Connection { kFirst, kOneResult, kTwoResults, kHeadOneResult, kHeadTwoResults };

  Layer make_layer(const LayerArrays& arrays) const;
  SparseAttention make_attention(const Device& device, const ModelArrays& model,
                                 const KernelMemory& memory, const Activations& at,
                                 LayerKind kind) const;
  void find_workspace();

  void lists(const Call& call) const;
  /// `mix_before`: null: that of the last connection.
  void connect(Call& call, Connection kind, const HyperArrays& weights, const Bf16Array& norm,
               const float* mix_before = nullptr) const;
  /// The same before experts: with the router in the launch, if it can.
  void connect_experts(Call& call, std::int64_t layer) const;
  bool connections_route(std::int64_t layer, const Call& call) const;
  HyperConnectionArguments connection(const Call& call, const HyperArrays& weights,
                                      const Bf16Array& norm, const float* mix_before) const;
  void attention(Call& call, std::int64_t layer) const;
  void store_rows(Call& call, std::int64_t layer) const;
  KvWriteArguments window_rows(const Call& call, std::int64_t layer) const;
  IndexerArguments indexer_call(const Call& call, std::int64_t layer) const;
  void attend(Call& call, std::int64_t layer) const;
  void project_output(Call& call, std::int64_t layer) const;
  void experts(Call& call, std::int64_t layer) const;
  bool keeps_all_streams(const ModelArrays& model) const;
  const std::int32_t* ids_of_experts(const Call& call) const;
  std::size_t result_bytes(std::int64_t rows) const noexcept;
  /// Where sub-layers write; connections read results(), and the second one behind it.
  void* attention_result(const Call& call) const;
  void* experts_result(const Call& call) const;
  void* shared_result(const Call& call) const;
  void run_experts(const Call& call, std::int64_t layer, const MoeArguments& arguments) const;
  /// Where the shared expert's part of the workspace begins: behind that of the routed ones, if
  /// both are in the same launches.
  static std::size_t shared_workspace(const Layer& layer);
  /// Exchanges with the other ranks: nothing to do without them.
  void gather_experts_input(const Call& call) const;
  void scatter_experts_result(const Call& call) const;
  bool has_sums_of_ranks() const noexcept;
  void add_up_ranks(Call& call, void* parts, std::int64_t results) const;
  bool connections_sum_ranks() const;
  void choose_entries(Call& call, std::int64_t layer) const;
  void streams(const Call& call, const char* name, std::int64_t layer) const;
  void sub_layer_input(const Call& call, const std::string& name, std::int64_t layer) const;
  void tap_routing(const Call& call, std::int64_t layer, const MoeArguments& arguments) const;

  const Config& config_;
  KernelNumbers numbers_;
  StepTokens step_tokens_;
  StepRanks ranks_;
  std::int64_t tokens_;  // of this rank
  // Those whose streams it has, and among them the first of its own.
  bool keeps_all_streams_;
  std::int64_t stream_tokens_, first_own_;
  HyperEmbedding embedding_;
  std::vector<HyperConnection> connections_;  // by Connection
  std::vector<RmsNorm> q_norm_;               // by width of the input
  LayerRows layer_rows_;
  InverseRope inverse_rope_;
  std::optional<SparseAttention> window_attention_, csa_attention_, hca_attention_;
  void run_attention(Call& call, LayerKind kind, SparseAttentionArguments arguments) const;
  struct Draft {
    RmsNorm token_norm, stream_norm;
    ProjectionRun e_proj, h_proj;
  };

  std::vector<Layer> layers_;
  std::optional<Draft> draft_;
  std::size_t workspace_bytes_ = 0;
  // Attention of each kind of layer has its own, where the schedule of its first layer stays.
  std::size_t window_workspace_ = 0, csa_workspace_ = 0, hca_workspace_ = 0;
};

/// One run() of a step.
struct KernelStep::Call {
  const StepContext& context;
  void* workspace;
  /// Kinds of layers whose attention has a schedule already.
  bool has_indexer_schedule = false;
  /// What the next connection reads; of this rank alone, if it adds up what the ranks have.
  const void* results = nullptr;
  bool has_results_of_ranks = false;
  bool has_window_schedule = false, has_csa_schedule = false, has_hca_schedule = false;

  Activations& at() const { return context.at; }
  void mark(const char* what) const {
    if (context.mark) context.mark(what);
  }
  void* stream() const { return context.stream; }
  const StageTap* tap() const { return context.tap; }
  const LayerArrays& arrays(std::int64_t layer) const { return context.model.layer(layer); }
  const LayerMemory& memory(std::int64_t layer) const {
    return context.memory.layers[static_cast<std::size_t>(layer)];
  }
  RotaryTable rope_table(LayerKind kind) const {
    const FloatArray& angles = kind == LayerKind::kWindow ? at().rope_plain : at().rope_yarn;
    return {.angles = angles.get(), .positions = at().rope_positions};
  }
};

}  // namespace tilewright::model
