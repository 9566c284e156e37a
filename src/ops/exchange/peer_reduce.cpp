// A sum over ranks through memory that all of them reach: checks and launch.
#include "kernels/exchange/peer_reduce.h"

#include "tilewright/peer_reduce.h"

#include "device/internal.h"
#include "ops/exchange/peers.h"
#include "ops/operator/arguments.h"
#include "ops/operator/ceil_div.h"
#include "ops/operator/operator.h"
#include "ops/operator/problem_checks.h"
#include "ops/operator/type_word.h"

namespace tilewright {

namespace {

constexpr const char* kPeerReduce = "peer-reduce";
constexpr ops::ArgumentChecks kPeerReduceChecks(kPeerReduce);
constexpr int kWordBytes = ops::kPeerWordBytes;

static_assert(PeerReduceProblem::kMostRanks == kernels::kPeerRanks);
static_assert(PeerReduceProblem::kMostBytes == kWordBytes * kernels::kPeerWords);

void check_problem(const PeerReduceProblem& p) {
  ops::ProblemChecks checks(kPeerReduce);
  const bool has_type = bool(checks.expect(p.dtype == DType::kBF16 || p.dtype == DType::kF32,
                                           "dtype", p.dtype, "BF16 or F32"));
  checks.range("ranks", p.ranks, 2, PeerReduceProblem::kMostRanks);
  if (has_type) {
    const std::int64_t elem_bytes = bits_per_elem(p.dtype) / 8;
    const std::int64_t most = PeerReduceProblem::kMostBytes / elem_bytes;
    checks.expect(p.count >= 0 && p.count <= most && p.count * elem_bytes % kWordBytes == 0,
                  "count", p.count, "a multiple of {} from 0 to {} (64 KiB)",
                  kWordBytes / elem_bytes, most);
  }
  checks.finish();
}

std::int64_t message_bytes(const PeerReduceProblem& p) {
  return p.count * bits_per_elem(p.dtype) / 8;
}

PeerReducePlan make_plan(const device::DeviceInfo& device, const PeerReduceProblem& problem) {
  check_problem(problem);
  PeerReducePlan plan;
  plan.problem = problem;
  const std::int64_t words = message_bytes(problem) / kWordBytes;
  plan.launches = {ops::planned_launch("reduce", "peer_reduce",
                                       {.grid = {ops::ctas_for(words, kernels::kPeerThreads)},
                                        .block = {kernels::kPeerThreads},
                                        .is_dependent_launch = true})};
  ops::require_built(kPeerReduce, device, plan.launches);
  if (words == 0) plan.launches.clear();
  // In and out, and with every other rank what goes and what comes.
  plan.bytes = static_cast<double>(message_bytes(problem)) * (2 + 2 * (problem.ranks - 1));
  plan.notes = {{"sum", fmt::format("{} of {}, {} ranks", problem.count,
                                    ops::type_word(problem.dtype), problem.ranks)}};
  return plan;
}

}  // namespace

struct PeerReduce::State : ops::LoadedPlan<PeerReducePlan> {
  using LoadedPlan::LoadedPlan;
};

PeerReduce::PeerReduce(const Device& device, const PeerReduceProblem& problem)
    : state_(std::make_unique<State>(device, make_plan(opened(device).info(), problem))) {}

PeerReduce::~PeerReduce() = default;
PeerReduce::PeerReduce(PeerReduce&&) noexcept = default;
PeerReduce& PeerReduce::operator=(PeerReduce&&) noexcept = default;

const PeerReducePlan& PeerReduce::plan() const noexcept {
  return state_->plan();
}

PeerReducePlan plan_peer_reduce(const Device& device, const PeerReduceProblem& problem) {
  return make_plan(opened(device).info(), problem);
}

Buffer PeerReduce::memory(const Device& device, int ranks) {
  check_problem({.ranks = ranks});
  return ops::peer_memory(device, kernels::peer_bytes(ranks));
}

void PeerReduce::run(const PeerReduceArguments& a) const {
  const PeerReduceProblem& p = plan().problem;
  kPeerReduceChecks.range("num_parts", a.num_parts, 1, p.ranks);
  kPeerReduceChecks.range("rank", a.rank, 0, p.ranks - a.num_parts);
  if (p.count == 0) return;
  kernels::PeerReduceParams params = {};
  ops::bind_peers(kPeerReduceChecks, a, p.ranks, params);
  params.words = static_cast<std::int32_t>(message_bytes(p) / kWordBytes);
  params.is_bf16 = p.dtype == DType::kBF16;
  ops::launch_parts(*state_, a.num_parts, params, a.stream);
}

}  // namespace tilewright
