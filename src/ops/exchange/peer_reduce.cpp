// A sum over ranks through memory that all of them reach: checks and launch.
#include "kernels/exchange/peer_reduce.h"

#include "tilewright/peer_reduce.h"

#include "device/internal.h"
#include "ops/operator/arguments.h"
#include "ops/operator/ceil_div.h"
#include "ops/operator/operator.h"
#include "ops/operator/problem_checks.h"
#include "ops/operator/type_word.h"

namespace tilewright {

namespace {

constexpr const char* kPeerReduce = "peer-reduce";
constexpr ops::ArgumentChecks kPeerReduceChecks(kPeerReduce);
constexpr int kWordBytes = 16;

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
  constexpr std::int64_t kPage = 2 << 20;  // smaller allocations share one with others
  Buffer buffer(device,
                static_cast<std::size_t>(ops::ceil_div(kernels::peer_bytes(ranks), kPage) * kPage));
  buffer.fill(std::byte{0xff});  // kernels::kPeerEmpty
  return buffer;
}

void PeerReduce::run(const PeerReduceArguments& a) const {
  const PeerReduceProblem& p = plan().problem;
  kPeerReduceChecks.range("num_parts", a.num_parts, 1, p.ranks);
  kPeerReduceChecks.range("rank", a.rank, 0, p.ranks - a.num_parts);
  if (p.count == 0) return;
  kernels::PeerReduceParams params = {};
  for (int i = 0; i < a.num_parts; ++i) {
    const PeerReducePart& part = a.parts.at(static_cast<std::size_t>(i));
    kPeerReduceChecks.address("in", part.in, kWordBytes);
    kPeerReduceChecks.address("out", part.out, kWordBytes);
    params.parts[i] = {part.in, part.out};
  }
  for (int r = 0; r < p.ranks; ++r) {
    params.memory[r] = a.memory.at(static_cast<std::size_t>(r));
    kPeerReduceChecks.address("memory", params.memory[r], kWordBytes);
  }
  params.given_up = a.given_up;
  params.first_rank = a.rank;
  params.ranks = p.ranks;
  params.words = static_cast<std::int32_t>(message_bytes(p) / kWordBytes);
  params.is_bf16 = p.dtype == DType::kBF16;
  const Launch& launch = plan().launches[0];
  device::LaunchConfig config =
      a.num_parts == 1 ? ops::dependent_launch(launch) : ops::plain_launch(launch);
  config.grid.y = static_cast<std::uint32_t>(a.num_parts);
  config.is_cooperative = a.num_parts > 1;  // they wait for each other
  state_->entries[0].launch(config, params, state_->stream(a.stream));
}

}  // namespace tilewright
