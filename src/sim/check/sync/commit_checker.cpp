#include "sim/check/sync/commit_checker.h"

#include "sim/state/code.h"
#include "sim/state/warp.h"

#include <algorithm>

#include <fmt/format.h>

namespace tilewright::sim {

void CommitChecker::join(Moments& to, const Moments& from) {
  for (const auto& [pipe, moment] : from) {
    Moment& known = to[pipe];
    known.num_issued = std::max(known.num_issued, moment.num_issued);
    known.num_commits = std::max(known.num_commits, moment.num_commits);
  }
}

void CommitChecker::check_ended(const Cta& cta, CtaState& state) {
  for (const auto& [name, commit] : state.coming) {
    const auto& [committer, mbarrier] = name;
    const auto known = state.done.find(committer);
    const bool is_work_done =
        known != state.done.end() && commit.moment.num_issued <= known->second.num_issued;
    const bool is_strict = is_work_done || committer->cta == &cta;
    if (!is_strict || is_strict_) report(cta, mbarrier, commit, is_strict);
  }
}

void CommitChecker::cta_ended(Cta& cta) {
  const std::lock_guard lock(mutex_);
  const auto at = clusters_.find(cta.cluster);
  if (at == clusters_.end()) return;
  ClusterState& cluster = at->second;
  check_ended(cta, cluster.ctas[&cta]);
  if (++cluster.num_ended == cta.cluster->ctas.size()) clusters_.erase(at);
}

void CommitChecker::tensor_issued(Warp& warp, const Insn&, const TensorOperation&) {
  const std::lock_guard lock(mutex_);
  ++clusters_[warp.cta->cluster].pipes[&warp].num_issued;
}

void CommitChecker::tensor_committed(Warp& warp, const Insn& insn, const TensorCommit& commit) {
  const std::lock_guard lock(mutex_);
  ClusterState& cluster = clusters_[warp.cta->cluster];
  Pipe& pipe = cluster.pipes[&warp];
  const Moment moment{pipe.num_issued, static_cast<std::uint32_t>(pipe.commits.size() + 1)};
  pipe.commits.push_back(moment);
  for (const std::uint32_t address : commit.targets) {
    const Cta* const target = warp.cta->cluster->ctas[address >> kSharedRankShift].get();
    cluster.ctas[target].coming[{&warp, address & kSharedOffsetMask}] = {
        execution_of(warp, insn, 1U << commit.lane), moment};
  }
}

void CommitChecker::learn(CtaState& cta, const Moments& done) {
  join(cta.done, done);
  std::erase_if(cta.coming, [&](const auto& entry) {
    const auto at = cta.done.find(entry.first.first);
    return at != cta.done.end() && entry.second.moment.num_commits <= at->second.num_commits;
  });
}

void CommitChecker::mbarrier(Warp& warp, const Insn&, const MbarrierEvent& event) {
  const bool is_arrival = event.action == MbarrierAction::kArrive;
  if (!is_arrival && event.action != MbarrierAction::kWaitSuccess) return;
  const std::lock_guard lock(mutex_);
  const auto at = clusters_.find(warp.cta->cluster);
  if (at == clusters_.end()) return;  // no commit yet, or all of the cluster has ended
  ClusterState& cluster = at->second;
  const Cta* const cta = warp.cta->cluster->ctas[event.address >> kSharedRankShift].get();
  CtaState& state = cluster.ctas[cta];
  Moments& handed_over = state.handed_over[event.address & kSharedOffsetMask];
  if (event.commit != 0) {
    handed_over[&warp] = cluster.pipes[&warp].commits[event.commit - 1];
  } else if (is_arrival) {
    join(handed_over, cluster.ctas[warp.cta].done);
  } else {
    learn(state, handed_over);
  }
}

void CommitChecker::barrier(Warp& warp, const Insn&, std::uint32_t, const BarrierEvent& event) {
  if (event.kind != BarrierKind::kCluster) return;
  const std::lock_guard lock(mutex_);
  const auto at = clusters_.find(warp.cta->cluster);
  if (at == clusters_.end()) return;
  ClusterState& cluster = at->second;
  CtaState& state = cluster.ctas[warp.cta];
  if (event.is_arrive) {
    state.generation = event.generation;
    join(cluster.met[event.generation], state.done);
    // Nobody is further behind than the generation before.
    std::erase_if(cluster.met, [&](const auto& met) { return met.first + 1 < event.generation; });
  }
  if (event.is_passed) learn(state, cluster.met[state.generation]);
}

void CommitChecker::report(const Cta& cta, std::uint32_t mbarrier, const Commit& commit,
                           bool is_strict) {
  Finding finding;
  finding.check = is_strict ? "strict" : "sync";
  finding.kernel = cta.grid->code->info.name;
  finding.what =
      fmt::format("{} ends while a tcgen05.commit may still arrive in it", describe_cta(cta));
  finding.places = {place_of(commit.by, "committed")};
  finding.missing = fmt::format(
      "a wait for the mbarrier at shared {:#x}, or for a later commit of that thread; if another "
      "CTA waits, a barrier of the cluster after it",
      mbarrier);
  finding.cause = "commit into a CTA that ends " + finding.places[0].ptx;
  findings_.add(std::move(finding));
}

}  // namespace tilewright::sim
