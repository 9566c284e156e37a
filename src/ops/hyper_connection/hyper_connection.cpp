// Hyper-connections: checks and launches.
#include "tilewright/hyper_connection.h"

#include "device/internal.h"
#include "kernels/model/hyper_connection.h"
#include "ops/hyper_connection/checks.h"
#include "ops/linear/kernel.h"
#include "ops/linear/weight.h"
#include "ops/operator/arguments.h"
#include "ops/operator/ceil_div.h"
#include "ops/operator/operator.h"
#include "ops/operator/problem_checks.h"
#include "ops/operator/type_word.h"

#include <algorithm>
#include <utility>

namespace tilewright {

namespace {

constexpr const char* kName = "hyper-connection";
constexpr ops::ArgumentChecks kChecks(kName);

static_assert(HyperConnectionRanks::kMost == kernels::kPeerRanks);

void check(const HyperConnectionProblem& p) {
  ops::ProblemChecks checks(kName);
  ops::check_sizes(checks, p.tokens, p.hidden);
  ops::check_float(checks, "stream_dtype", p.stream_dtype);
  ops::check_float(checks, "result_dtype", p.result_dtype);
  ops::check_float(checks, "second_dtype", p.second_dtype);
  checks.expect(p.has_merge || p.has_mix, "has_mix", p.has_mix,
                "true, or has_merge; nothing would be done");
  checks.expect(p.has_merge || !p.has_second, "has_second", p.has_second,
                "false without has_merge; a single result is `result`");
  checks.range("iterations", p.iterations, 1);
  // A column of weights may vanish in fp32: without eps it would be divided by 0, and below it by
  // numbers that the reciprocal takes for 0.
  constexpr double kLeastEps = 1e-36;
  checks.expect(p.eps >= kLeastEps && ops::is_normal_float(p.eps), "eps", p.eps,
                "a number of fp32 from {:g}", kLeastEps);
  checks.eps("norm_eps", p.norm_eps);
  checks.finish();
}

// One tile of tokens a CTA while that gives every SM two; then fn is read once for more of them: on
// an H200 8192 tokens of 4096 took 391 us with one tile, 352 with four.
std::int32_t merge_tiles(std::int64_t tokens, std::uint32_t slices, int num_sms) {
  constexpr std::int64_t kMostTiles = 4, kCtasOfAnSm = 2;
  const std::int64_t ctas = slices * ops::ctas_for(tokens, kernels::kHyperMergeTokens);
  return static_cast<std::int32_t>(
      std::clamp<std::int64_t>(ctas / (kCtasOfAnSm * num_sms), 1, kMostTiles));
}

const char* merge_entry(const HyperConnectionProblem& p) {
  return p.stream_dtype == DType::kF32 ? "hyper_merge_f32" : "hyper_merge_bf16";
}
const char* pre_entry(const HyperConnectionProblem& p) {
  return p.stream_dtype == DType::kF32 ? "hyper_pre_f32" : "hyper_pre_bf16";
}

std::uint32_t slices_of(const HyperConnectionProblem& p) {
  return ops::ctas_for(p.hidden, kernels::kHyperSliceColumns);
}

device::LaunchConfig merge_launch(const HyperConnectionProblem& p, int num_sms) {
  const std::uint32_t slices = slices_of(p);
  const std::int64_t tokens_of_a_cta =
      std::int64_t{kernels::kHyperMergeTokens} * merge_tiles(p.tokens, slices, num_sms);
  return {.grid = {slices * ops::ctas_for(p.tokens, tokens_of_a_cta)},
          .block = {kernels::kHyperMergeThreads},
          .is_dependent_launch = true};
}
device::LaunchConfig pre_launch(const HyperConnectionProblem& p) {
  return {.grid = {static_cast<std::uint32_t>(p.tokens)},
          .block = {kernels::kHyperPreThreads},
          .is_dependent_launch = true};
}

// One launch instead of two where that is quicker (docs/notes/2026-11-26-hyper-connection.md).
// Narrow streams would leave most of the cluster idle.
bool is_one_launch(const HyperConnectionProblem& p) {
  constexpr std::int64_t kLeastHidden = 2048;
  return p.has_mix && p.stream_dtype == DType::kBF16 && p.tokens <= kernels::kHyperConnectTokens &&
         p.hidden >= kLeastHidden;
}

device::LaunchConfig connect_launch(const HyperConnectionProblem& p) {
  return {.grid = {kernels::kHyperConnectCtas},
          .block = {kernels::kHyperConnectThreads},
          .cluster = {{kernels::kHyperConnectCtas}},
          .dynamic_shared_bytes = kernels::hyper_connect_shared_bytes(p.tokens, p.hidden),
          .is_dependent_launch = true};
}

std::size_t workspace_bytes_of(const HyperConnectionProblem& p) {
  if (!p.has_mix || is_one_launch(p)) return 0;
  return static_cast<std::size_t>(p.tokens) * slices_of(p) * kernels::kHyperPartStride *
         sizeof(float);
}

void check(const HyperConnectionProblem& p, const HyperConnectionArguments& a) {
  kChecks.address("streams", a.streams, ops::kRowAlignment);
  kChecks.address_if(p.has_merge, "merged", a.merged, ops::kRowAlignment);
  kChecks.address_if(p.has_merge, "mix_before", a.mix_before, ops::kRowAlignment);
  kChecks.address_if(p.has_merge, "result", a.result, ops::kRowAlignment);
  kChecks.address_if(p.has_second, "second_result", a.second_result, ops::kRowAlignment);
  kChecks.address_if(p.has_mix, "mix_weight", a.mix_weight, ops::kRowAlignment);
  kChecks.address_if(p.has_mix, "mix_bias", a.mix_bias, ops::kWordAlignment);
  kChecks.address_if(p.has_mix, "mix_scale", a.mix_scale, ops::kWordAlignment);
  kChecks.address_if(p.has_mix, "norm_weight", a.norm_weight, ops::kRowAlignment);
  kChecks.address_if(p.has_mix, "mix", a.mix, ops::kWordAlignment);
  kChecks.address_if(p.has_mix, "out", a.out, ops::kRowAlignment);
  kChecks.address_if(workspace_bytes_of(p) > 0, "workspace", a.workspace, ops::kWorkspaceAlignment);
}

void count_work(HyperConnectionPlan& plan) {
  constexpr double kStreams = 4;
  const HyperConnectionProblem& p = plan.problem;
  const double hidden = static_cast<double>(p.hidden), tokens = static_cast<double>(p.tokens);
  const double rows = p.is_head ? kernels::kHyperHeadRows : kernels::kHyperMixRows;
  double row = kStreams * ops::elem_bytes(p.stream_dtype);
  if (p.has_merge) {
    row *= 2;
    row += ops::elem_bytes(p.result_dtype) + (p.has_second ? ops::elem_bytes(p.second_dtype) : 0);
    plan.flops += 2 * (kStreams + 1) * kStreams * hidden * tokens;
  }
  if (p.has_mix) {
    row += ops::elem_bytes(DType::kBF16);
    plan.flops += 2 * (rows + 1) * kStreams * hidden * tokens;
    plan.bytes += rows * kStreams * hidden * sizeof(float);
  }
  plan.bytes += tokens * hidden * row;
}

HyperConnectionPlan make_plan(const device::DeviceInfo& device,
                              const HyperConnectionProblem& problem) {
  check(problem);
  HyperConnectionPlan plan;
  plan.problem = problem;
  const HyperConnectionProblem& p = problem;
  if (is_one_launch(p)) {
    plan.launches = {ops::planned_launch("connect", "hyper_connect", connect_launch(p))};
  } else {
    plan.launches = {ops::planned_launch("merge", merge_entry(p), merge_launch(p, device.num_sms))};
    if (p.has_mix) plan.launches.push_back(ops::planned_launch("mix", pre_entry(p), pre_launch(p)));
  }
  ops::require_built(kName, device, plan.launches);
  if (p.tokens == 0) plan.launches.clear();
  plan.workspace_bytes = workspace_bytes_of(p);
  count_work(plan);
  plan.notes = {{"streams",
                 fmt::format("{} tokens, 4 streams of {} in {}{}{}{}", p.tokens, p.hidden,
                             ops::type_word(p.stream_dtype), p.has_merge ? ", a result merged" : "",
                             p.has_second ? ", and a second one" : "",
                             !p.has_mix  ? ", not mixed"
                             : p.is_head ? ", mixed by the head"
                                         : ", mixed")}};
  return plan;
}

}  // namespace

struct HyperConnection::State : ops::LoadedPlan<HyperConnectionPlan> {
  using LoadedPlan::LoadedPlan;

  kernels::HyperMergeParams merge_params(const HyperConnectionArguments& a) const;
  kernels::HyperPreParams pre_params(const HyperConnectionArguments& a) const;
  kernels::HyperPeers peers_of(const HyperConnectionRanks& ranks) const;
  kernels::HyperRouter router_of(const HyperConnectionRouter& router) const;
  void launch(const HyperConnectionArguments& a, const kernels::HyperPeers& peers,
              const kernels::HyperRouter& router = {}) const;
};

HyperConnection::HyperConnection(const Device& device, const HyperConnectionProblem& problem)
    : state_(std::make_unique<State>(device, make_plan(opened(device).info(), problem))) {}

HyperConnection::~HyperConnection() = default;
HyperConnection::HyperConnection(HyperConnection&&) noexcept = default;
HyperConnection& HyperConnection::operator=(HyperConnection&&) noexcept = default;

const HyperConnectionPlan& HyperConnection::plan() const noexcept {
  return state_->plan();
}

const HyperConnectionProblem& HyperConnection::problem() const noexcept {
  return plan().problem;
}

std::size_t HyperConnection::workspace_bytes() const noexcept {
  return plan().workspace_bytes;
}

HyperConnectionPlan plan_hyper_connection(const Device& device,
                                          const HyperConnectionProblem& problem) {
  return make_plan(opened(device).info(), problem);
}

kernels::HyperMergeParams HyperConnection::State::merge_params(
    const HyperConnectionArguments& a) const {
  const HyperConnectionProblem& p = plan().problem;
  return {.streams = a.streams,
          .merged = a.merged,
          .f = p.has_merge ? a.result : nullptr,
          .g = p.has_second ? a.second_result : nullptr,
          .mix = a.mix_before,
          .fn = p.has_mix ? a.mix_weight : nullptr,
          .parts = static_cast<float*>(a.workspace),
          .f_stride = p.hidden,
          .g_stride = p.hidden,
          .tokens = static_cast<std::int32_t>(p.tokens),
          .hidden = static_cast<std::int32_t>(p.hidden),
          .rows = p.is_head ? kernels::kHyperHeadRows : kernels::kHyperMixRows,
          .tiles = merge_tiles(p.tokens, slices_of(p), handle.num_sms()),
          .is_f_f32 = p.result_dtype == DType::kF32,
          .is_g_f32 = p.second_dtype == DType::kF32};
}

kernels::HyperPreParams HyperConnection::State::pre_params(
    const HyperConnectionArguments& a) const {
  const HyperConnectionProblem& p = plan().problem;
  return {.streams = p.has_merge ? a.merged : a.streams,
          .parts = static_cast<const float*>(a.workspace),
          .base = a.mix_bias,
          .scale = a.mix_scale,
          .weight = static_cast<const std::uint16_t*>(a.norm_weight),
          .mix = a.mix,
          .out = static_cast<std::uint16_t*>(a.out),
          .out_stride = p.hidden,
          .tokens = static_cast<std::int32_t>(p.tokens),
          .hidden = static_cast<std::int32_t>(p.hidden),
          .slices = static_cast<std::int32_t>(slices_of(p)),
          .iterations = p.iterations,
          .eps = static_cast<float>(p.eps),
          .norm_eps = static_cast<float>(p.norm_eps),
          .is_head = p.is_head};
}

void HyperConnection::State::launch(const HyperConnectionArguments& a,
                                    const kernels::HyperPeers& peers,
                                    const kernels::HyperRouter& router) const {
  const HyperConnectionProblem& p = plan().problem;
  const device::Stream lent = stream(a.stream);
  const std::vector<Launch>& launches = plan().launches;
  if (is_one_launch(p)) {
    const kernels::HyperConnectParams params = {merge_params(a), pre_params(a), peers, router};
    entries[0].launch(ops::dependent_launch(launches[0]), params, lent);
    return;
  }
  entries[0].launch(ops::dependent_launch(launches[0]), merge_params(a), lent);
  if (p.has_mix) entries[1].launch(ops::dependent_launch(launches[1]), pre_params(a), lent);
}

void HyperConnection::run(const HyperConnectionArguments& a) const {
  const HyperConnectionProblem& p = plan().problem;
  if (p.tokens == 0) return;
  check(p, a);
  state_->launch(a, {});
}

bool HyperConnection::sums_ranks() const noexcept {
  const HyperConnectionProblem& p = plan().problem;
  return is_one_launch(p) && p.has_merge;
}

// Checked.
kernels::HyperPeers HyperConnection::State::peers_of(const HyperConnectionRanks& ranks) const {
  const HyperConnectionProblem& p = plan().problem;
  require(is_one_launch(p) && p.has_merge, ErrorKind::kUnsupported,
          "{}: results of ranks are added up for at most {} tokens, merged and mixed in one launch "
          "(bf16 streams, hidden >= 2048); this is {} tokens of {}. Add them up before "
          "(PeerReduce), and call run() without ranks",
          kName, kernels::kHyperConnectTokens, p.tokens, p.hidden);
  kChecks.range("ranks", ranks.ranks, 2, HyperConnectionRanks::kMost);
  kChecks.range("rank", ranks.rank, 0, ranks.ranks - 1);
  kernels::HyperPeers peers = {
      .memory = {}, .given_up = ranks.given_up, .rank = ranks.rank, .ranks = ranks.ranks};
  for (int r = 0; r < ranks.ranks; ++r) {
    peers.memory[r] = ranks.memory.at(static_cast<std::size_t>(r));
    kChecks.address("memory", peers.memory[r], ops::kRowAlignment);
  }
  return peers;
}

void HyperConnection::run(const HyperConnectionArguments& a,
                          const HyperConnectionRanks& ranks) const {
  const HyperConnectionProblem& p = plan().problem;
  const kernels::HyperPeers peers = state_->peers_of(ranks);
  if (p.tokens == 0) return;
  check(p, a);
  state_->launch(a, peers);
}

bool HyperConnection::routes(const LinearWeightInfo& weight) const noexcept {
  const HyperConnectionProblem& p = plan().problem;
  return is_one_launch(p) && kernels::is_router_width(p.hidden) &&
         weight.format == NumberFormat::kBf16 && weight.activations == LinearActivations::kBf16 &&
         weight.k == p.hidden && weight.groups == 1 &&
         weight.n <= std::int64_t{kernels::kHyperRouterBricks} * kernels::kBrickRows &&
         !ops::keeps_rows(state_->device().info(), weight);
}

// Checked.
kernels::HyperRouter HyperConnection::State::router_of(const HyperConnectionRouter& r) const {
  kChecks.address("logits", r.logits, ops::kWordAlignment);
  const StateOf<LinearWeight>& weight = Internal::of(*r.weight);
  const std::int64_t width = std::int64_t{weight.shape.bricks_rows()} * kernels::kBrickRows;
  return {.weights = weight.pointer_to<std::uint8_t>(weight.bricks),
          .logits = r.logits,
          .logits_stride = kChecks.stride("logits_stride", r.logits_stride, width, 1),
          .bricks = weight.shape.bricks_rows(),
          .alpha = weight.alpha_bf16};
}

void HyperConnection::run(const HyperConnectionArguments& a, const HyperConnectionRanks* ranks,
                          const HyperConnectionRouter& router) const {
  const HyperConnectionProblem& p = plan().problem;
  kChecks.check(router.weight != nullptr, "router.weight is null; expected that of the router");
  const LinearWeightInfo& weight = router.weight->info();
  require(
      routes(weight), ErrorKind::kUnsupported,
      "{}: a router is multiplied with for at most {} tokens of a hidden size that is a multiple "
      "of 1024, by a packed bf16 weight of at most {} rows; this is {} tokens of {}, and a weight "
      "{} x {} of {}. Multiply after it (Linear), and call run() without a router",
      kName, kernels::kHyperConnectTokens, kernels::kHyperRouterBricks * kernels::kBrickRows,
      p.tokens, p.hidden, weight.n, weight.k, to_string(weight.format));
  const kernels::HyperPeers peers =
      ranks == nullptr ? kernels::HyperPeers{} : state_->peers_of(*ranks);
  if (p.tokens == 0) return;
  check(p, a);
  state_->launch(a, peers, state_->router_of(router));
}

Buffer HyperConnection::memory(const Device& device, int ranks, std::int64_t hidden) {
  kChecks.range("ranks", ranks, 2, HyperConnectionRanks::kMost);
  check({.hidden = hidden});
  constexpr std::int64_t kPage = 2 << 20;  // smaller allocations share one with others
  const std::int64_t bytes = kernels::hyper_peer_bytes(ranks, hidden);
  Buffer buffer(device, static_cast<std::size_t>(ops::ceil_div(bytes, kPage) * kPage));
  buffer.fill(std::byte{0xff});  // kernels::kPeerEmpty
  return buffer;
}

}  // namespace tilewright
