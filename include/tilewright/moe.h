// Mixture-of-Experts layers on a device with weights of 4, 8 or 16 bits: prepare the experts once,
// plan a call, run it.
#pragma once

#include "tilewright/device.h"
#include "tilewright/linear.h"
#include "tilewright/plan.h"
#include "tilewright/tensor.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace tilewright {

/// The experts as a checkpoint holds them: one weight per expert and projection, all of one format.
/// linear.h has the types and shapes. Views may lie in one tensor (stacked_experts()).
struct MoeWeightsSource {
  std::vector<LinearWeightSource> gate;  ///< w1 [inter, hidden] of each expert
  std::vector<LinearWeightSource> up;    ///< w3 [inter, hidden]
  std::vector<LinearWeightSource> down;  ///< w2 [hidden, inter]
  /// Of the shared expert: none, or one each, of the same shape and format as the others.
  std::vector<LinearWeightSource> shared_gate = {}, shared_up = {}, shared_down = {};
};

/// The experts in one tensor [experts, n, ...] with scales [experts, ...], and for NVFP4 a global
/// scale for each. `first_row` and `rows` take a part of n: gate and up of a [gate; up] tensor;
/// rows = 0: all.
/// Errors   InvalidArgument if the shapes do not fit each other
std::vector<LinearWeightSource> stacked_experts(NumberFormat format, const ConstTensorView& values,
                                                const ConstTensorView& scales,
                                                const std::vector<float>& global_scales,
                                                std::int64_t first_row = 0, std::int64_t rows = 0);

/// Shape and storage of prepared experts: what a plan depends on.
struct MoeWeightsInfo {
  NumberFormat format = NumberFormat::kNvfp4;
  LinearActivations activations = LinearActivations::kBf16;
  std::int64_t experts = 0, hidden = 0, inter = 0;
  bool has_shared = false;
};

/// Experts on a device in the order that the kernels read: gate and up interleaved by 8 rows, FP4
/// codes alike for bf16 and fp8 activations, of which fp8 allows kernels that round x and h to e4m3
/// where they are expected to be faster; a problem that must not be rounded names "wide" or "band".
/// Made once; copies share the memory.
///
/// Thread   safe
class MoeWeights {
 public:
  /// Checks, reorders and copies; nothing of the source is referred to afterwards. Experts whose
  /// views are the same memory are packed once and copied on the device.
  /// Errors   InvalidArgument: as LinearWeight::prepare, with the expert and projection named; also
  ///          if shapes or formats of the experts differ. OutOfMemory; DeviceError
  static MoeWeights prepare(const Device& device, const MoeWeightsSource& source,
                            LinearActivations activations = LinearActivations::kBf16);

  const MoeWeightsInfo& info() const noexcept;
  std::size_t bytes() const noexcept;  ///< of device memory
  const Device& device() const noexcept;

 private:
  friend struct Internal;
  struct State;

  explicit MoeWeights(std::shared_ptr<const State> state) noexcept;
  std::shared_ptr<const State> state_;
};

/// What chooses the experts of a token.
enum class MoeRouting {
  kGiven,   ///< ids and weights come with the call
  kLogits,  ///< the topk largest of score(logits) + bias
  kHash,    ///< a table by token id; the logits still give the weights
  /// None: tokens come grouped by expert, each with room for as many, of which the call's counts
  /// say how many there are (what others call the masked layout).
  kGrouped,
  kContiguous,  ///< none: likewise, the tokens of each expert right behind those of the one before
  kSingle,      ///< none: one expert, a shared one, has all tokens
};
enum class MoeScore {
  kSoftmax,
  kSqrtSoftplus,  ///< sqrt(ln(1 + e^logit)), DeepSeek-V4
};

/// out[t,:] = sum_i y(x[t,:], ids[t,i], weights[t,i]) + y_shared(x[t,:])
/// y(x, e, r) = down[e] . (r * silu(min(g, limit)) * clamp(u, -limit, limit)),
/// g = gate[e] . x, u = up[e] . x; with weight_after_down r comes last
///
/// Routing  score = softmax or sqrt-softplus of the logits; ids = the topk largest of score + bias,
///          ties to the lower expert, NaN last; weights = route_scale * score[ids], divided by
///          their sum if `normalize`
/// Shapes   x, out [tokens, hidden]; ids, weights [tokens, topk]; logits [tokens, experts]
/// Numbers  g and u in fp32, h rounded to bf16 (fp8 activations where the plan says so: x and h to
///          e4m3 with a scale for 128 columns), y of an expert to bf16, their sum in fp32 in the
///          order of i, the shared expert last. Bit-exact from run to run. Block-scaled
///          activations: x and h rounded once, from bf16 and from fp32, to MXFP8 (mxfp8_ceil), or
///          to NVFP4 with a second scale for each row of x, and 1 / 8 for h: what is above 336
///          saturates
/// Dropped  an id of -1 adds nothing. Neither does an id out of range, or one that is given twice
///          for a token: Moe::check() reports those. Infinities and NaNs of a token stay with it
/// Grouped  kGrouped, for block-scaled activations: x, out [experts, tokens, hidden], weights
///          [experts, tokens] or null for ones; out[e,s,:] = y(x[e,s,:], e, weights[e,s]) for
///          s < counts[e], in bf16, rounded once. Other rows are neither read nor written.
///          kContiguous: x, out [tokens, hidden], weights [tokens] or null; rows of expert e begin
///          behind those of the experts before, counts[e] of them. Rows behind the last are not
///          written. (Rows that pad a segment count as its own.)
///          A count below 0 is taken as 0, one that reaches beyond the room as what fits it:
///          Moe::check() reports those. Costs are for expected_tokens in each expert, results for
///          any counts
/// Single   kSingle, of one expert: out[t,:] = y(x[t,:], 0, 1), rounded once, to out_dtype. topk is
///          1. Not for block-scaled activations (kContiguous with counts = {tokens} is)
/// Shares   with all_experts, the weights are a rank's: those of the experts first_expert,
///          first_expert + 1, ... of all. Routing, ids, logits, bias and table are of all experts;
///          what others have adds nothing here, and the sum of out over the ranks is the layer's.
///          Not for grouped tokens
struct MoeProblem {
  /// Of kGrouped rows that each expert has room for, of kContiguous all; topk is 1 there.
  std::int64_t tokens = 0, topk = 0;
  MoeRouting routing = MoeRouting::kGiven;
  MoeScore score = MoeScore::kSoftmax;
  bool normalize = true, has_bias = false;
  double route_scale = 1;
  std::int64_t vocab = 0;          ///< rows of the table of kHash
  std::int64_t logits_stride = 0;  ///< elements from token to token of the logits; 0: experts
  double swiglu_limit = std::numeric_limits<double>::infinity();  ///< > 0; DeepSeek-V4: 10
  bool weight_after_down = false;
  DType out_dtype = DType::kBF16;  ///< or kF32
  /// kGrouped, kContiguous: of an expert, for the choice of a kernel; 0: as many as fit.
  std::int64_t expected_tokens = 0;
  std::int64_t all_experts = 0;   ///< 0: the weights are those of all
  std::int64_t first_expert = 0;  ///< of the weights, with all_experts
  std::string kernel = "auto";    ///< or one that a plan lists: "direct", "band", "wide", "wide8",
                                  ///< or a tile of block-scaled products, "few"
};

/// Depends on the experts' shape as well, and holds for that many tokens: another number needs
/// another plan, of the same experts. flops are 6 * hidden * inter for every token and expert of
/// it; bytes those of the experts that uniform routing is expected to visit, x, h twice, and out.
/// Grouped: of expected_tokens of every expert. Steps: "route", "permute", "scatter", "gate_up",
/// "quantize" (of h), "down", "combine"; of a share "share"; grouped: "offsets", "quantize_x". The
/// direct kernels do all in one launch, "experts", whose CTAs wait for each other (cooperative).
struct MoePlan : Plan {
  MoeWeightsInfo weights;
  MoeProblem problem;
  double expected_experts = 0;  ///< visited under uniform routing, with the shared one
};

/// Device addresses, and the stream to work on.
struct MoeArguments {
  const void* x = nullptr;                  ///< bf16
  const std::int32_t* ids = nullptr;        ///< kGiven
  const float* weights = nullptr;           ///< kGiven; grouped, or null
  const float* logits = nullptr;            ///< kLogits, kHash
  const float* bias = nullptr;              ///< [experts] if has_bias
  const std::int32_t* token_ids = nullptr;  ///< [tokens]: kHash
  const std::int32_t* table = nullptr;      ///< [vocab, topk]: kHash
  const std::int32_t* counts = nullptr;     ///< [experts]: kGrouped, kContiguous
  void* out = nullptr;
  void* workspace = nullptr;  ///< workspace_bytes, of any content
  void* stream = nullptr;     ///< CUstream; null: the default stream
};

/// A plan with its kernels loaded, on prepared experts.
///
/// Thread   run() may be called from several threads if workspaces and outputs differ
class Moe {
 public:
  /// Errors   InvalidArgument if the problem makes no sense (the message names field, value, rule);
  ///          Unsupported if no kernel fits, or the named one does not (the message lists why)
  Moe(const MoeWeights& weights, const MoeProblem& problem);
  ~Moe();
  Moe(Moe&&) noexcept;
  Moe& operator=(Moe&&) noexcept;

  const MoePlan& plan() const noexcept;
  /// Enqueues the kernels. Allocates nothing, waits for nothing; may be captured in a CUDA graph.
  /// How many tokens an expert gets is known on the device alone.
  /// Errors   InvalidArgument if an address is missing or misaligned; DeviceError
  void run(const MoeArguments& arguments) const;
  /// run(), and that of the expert `shared` (kSingle) of the same stream, of weights in any format
  /// and of other tokens if need be: in the same launch if both plans are of the direct kernels
  /// and the shared weights fp8, else one behind the other.
  /// Errors   as run(); InvalidArgument if `shared` is routed, or if both are in the same launch
  ///          with one workspace
  void run_with_shared(const MoeArguments& arguments, const Moe& shared,
                       const MoeArguments& shared_arguments) const;
  /// Enqueues one launch of plan().launches alone, to time it. It reads what those before it have
  /// left in the workspace.
  /// Errors   as run(); InvalidArgument if there is no such launch
  void run_launch(std::size_t index, const MoeArguments& arguments) const;
  /// Waits for the stream and looks at what the last run() with this workspace found.
  /// Errors   InvalidArgument if it dropped ids other than -1: out of range or given twice to a
  ///          token (the message names the first); or if counts were out of range; DeviceError
  void check(const MoeArguments& arguments) const;
  /// The routing that the last run() with this workspace used, [tokens, topk] in device memory.
  /// Grouped tokens have no ids. Of a share, the ids count from its first expert, and are -1 for
  /// experts that others have.
  const std::int32_t* ids(const MoeArguments& arguments) const noexcept;
  const float* weights(const MoeArguments& arguments) const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The plan alone. Errors as Moe's constructor.
MoePlan plan_moe(const Device& device, const MoeWeightsInfo& weights, const MoeProblem& problem);

}  // namespace tilewright
