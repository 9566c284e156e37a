// Rows of ranks through memory that all of them reach: checks and launch.
#include "kernels/exchange/peer_rows.h"

#include "tilewright/peer_reduce.h"

#include "device/internal.h"
#include "ops/exchange/peers.h"
#include "ops/operator/arguments.h"
#include "ops/operator/ceil_div.h"
#include "ops/operator/operator.h"
#include "ops/operator/problem_checks.h"
#include "ops/operator/type_word.h"

#include <algorithm>
#include <numeric>

#include <fmt/ranges.h>

namespace tilewright {

const char* to_string(PeerRowsKind kind) noexcept {
  return kind == PeerRowsKind::kGather ? "gather" : "scatter";
}

namespace {

constexpr const char* kPeerRows = "peer-rows";
constexpr ops::ArgumentChecks kPeerRowsChecks(kPeerRows);
constexpr int kRowsWord = ops::kPeerWordBytes;

static_assert(PeerRowsProblem::kMostRanks == kernels::kPeerRanks);
static_assert(PeerRowsProblem::kMostBytes == kernels::kPeerRowsMostBytes);

std::int64_t room_words(std::int64_t most_bytes) {
  return ops::ceil_div(most_bytes, std::int64_t{kRowsWord} * kernels::kPeerThreads) *
         kernels::kPeerThreads;
}

void check_memory(ops::ProblemChecks& checks, std::int64_t ranks, std::int64_t most_bytes) {
  checks.range("ranks", ranks, 2, PeerRowsProblem::kMostRanks);
  checks.range("most_bytes", most_bytes, 1, PeerRowsProblem::kMostBytes);
}

void check_problem(const PeerRowsProblem& p) {
  ops::ProblemChecks checks(kPeerRows);
  check_memory(checks, std::ssize(p.counts), p.most_bytes);
  if (checks.expect(p.dtype == DType::kBF16 || p.dtype == DType::kF32, "dtype", p.dtype,
                    "BF16 or F32")) {
    const std::int64_t elem_bytes = bits_per_elem(p.dtype) / 8;
    for (const std::int64_t count : p.counts)
      checks.expect(
          count >= 0 && count <= p.most_bytes / elem_bytes && count * elem_bytes % kRowsWord == 0,
          "counts", count, "multiples of {} from 0 to {} ({} bytes)", kRowsWord / elem_bytes,
          p.most_bytes / elem_bytes, p.most_bytes);
  }
  checks.finish();
}

std::int64_t bytes_of(const PeerRowsProblem& p, std::int64_t count) {
  return count * bits_per_elem(p.dtype) / 8;
}

PeerRowsPlan make_plan(const device::DeviceInfo& device, const PeerRowsProblem& problem) {
  check_problem(problem);
  PeerRowsPlan plan;
  plan.problem = problem;
  const std::int64_t most = bytes_of(problem, std::ranges::max(problem.counts));
  plan.launches = {
      ops::planned_launch(to_string(problem.kind), "peer_rows",
                          {.grid = {ops::ctas_for(most / kRowsWord, kernels::kPeerThreads)},
                           .block = {kernels::kPeerThreads},
                           .is_dependent_launch = true})};
  ops::require_built(kPeerRows, device, plan.launches);
  if (most == 0) plan.launches.clear();
  const std::int64_t all = bytes_of(
      problem, std::accumulate(problem.counts.begin(), problem.counts.end(), std::int64_t{0}));
  const auto others = static_cast<double>(problem.counts.size() - 1);
  // In and out, and with every other rank what goes and what comes.
  plan.bytes = problem.kind == PeerRowsKind::kGather
                   ? static_cast<double>(most) * (1 + others) + 2 * static_cast<double>(all) -
                         static_cast<double>(most)
                   : 2 * static_cast<double>(all) + static_cast<double>(most) * (1 + others);
  plan.notes = {
      {to_string(problem.kind), fmt::format("{} of {}, {} ranks", fmt::join(problem.counts, ", "),
                                            ops::type_word(problem.dtype), problem.counts.size())}};
  return plan;
}

}  // namespace

struct PeerRows::State : ops::LoadedPlan<PeerRowsPlan> {
  using LoadedPlan::LoadedPlan;
};

PeerRows::PeerRows(const Device& device, const PeerRowsProblem& problem)
    : state_(std::make_unique<State>(device, make_plan(opened(device).info(), problem))) {}

PeerRows::~PeerRows() = default;
PeerRows::PeerRows(PeerRows&&) noexcept = default;
PeerRows& PeerRows::operator=(PeerRows&&) noexcept = default;

const PeerRowsPlan& PeerRows::plan() const noexcept {
  return state_->plan();
}

PeerRowsPlan plan_peer_rows(const Device& device, const PeerRowsProblem& problem) {
  return make_plan(opened(device).info(), problem);
}

Buffer PeerRows::memory(const Device& device, int ranks, std::int64_t most_bytes) {
  ops::ProblemChecks checks(kPeerRows);
  check_memory(checks, ranks, most_bytes);
  checks.finish();
  return ops::peer_memory(device, kernels::peer_rows_bytes(ranks, room_words(most_bytes)));
}

void PeerRows::run(const PeerRowsArguments& a) const {
  const PeerRowsProblem& p = plan().problem;
  const int ranks = static_cast<int>(p.counts.size());
  kPeerRowsChecks.range("num_parts", a.num_parts, 1, ranks);
  kPeerRowsChecks.range("rank", a.rank, 0, ranks - a.num_parts);
  if (plan().launches.empty()) return;
  kernels::PeerRowsParams params = {};
  ops::bind_peers(kPeerRowsChecks, a, ranks, params);
  for (int r = 0; r < ranks; ++r) {
    const std::int64_t count = p.counts[static_cast<std::size_t>(r)];
    params.words[r] = static_cast<std::int32_t>(bytes_of(p, count) / kRowsWord);
  }
  params.room = static_cast<std::int32_t>(room_words(p.most_bytes));
  params.is_scatter = p.kind == PeerRowsKind::kScatter;
  params.is_bf16 = p.dtype == DType::kBF16;
  ops::launch_parts(*state_, a.num_parts, params, a.stream);
}

}  // namespace tilewright
