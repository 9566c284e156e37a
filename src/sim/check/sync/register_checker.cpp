#include "sim/check/sync/register_checker.h"

#include "sim/state/code.h"
#include "sim/state/lane_names.h"
#include "sim/state/warp.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace tilewright::sim {

namespace {

constexpr const char* kAllFour = "all four warps of a warpgroup must execute the same setmaxnreg";

}  // namespace

void RegisterChecker::report(std::string what, std::vector<FindingPlace> places,
                             std::string missing, const Change& by, bool is_strict) {
  Finding finding;
  finding.check = is_strict ? "strict" : "sync";
  finding.kernel = by.by.code->info.name;
  finding.what = std::move(what);
  finding.places = std::move(places);
  finding.missing = std::move(missing);
  findings_.add(std::move(finding));
}

void RegisterChecker::check_change(const Change& now, std::uint32_t before) {
  if (before == 0) {
    if (!is_strict_) return;
    return report(
        "setmaxnreg where nothing says how many registers a thread has at the launch",
        {place_of(now.by, "executed")},
        "ptxas leaves the instruction out unless the kernel has .maxnreg, or .maxntid with "
        ".minnctapersm (both numbers of __launch_bounds__); its --maxrregcount does as "
        "well, but is not in the text",
        now, true);
  }
  if (now.is_inc ? now.count >= before : now.count <= before) return;
  report(fmt::format("setmaxnreg.{} to {} registers a thread by a warp that has {}",
                     now.is_inc ? "inc" : "dec", now.count, before),
         {place_of(now.by, "executed")},
         ".inc takes registers and .dec gives them back; the opposite is undefined", now);
}

void RegisterChecker::check_whole(const Warp& warp, const Change& now) {
  const std::size_t first = warp.index / kWarps * kWarps;
  const std::size_t left = warp.cta->warps.size() - first;
  if (left >= kWarps) return;
  report(fmt::format("setmaxnreg in a warpgroup of {} warp{}", left, left == 1 ? "" : "s"),
         {place_of(now.by, "executed")}, "a warpgroup has four: launch a multiple of 128 threads",
         now);
}

void RegisterChecker::check_same(const Warpgroup& group, std::size_t warp) {
  const std::size_t number = group[warp].size() - 1;
  const Change& now = group[warp].back();
  for (std::size_t w = 0; w < kWarps; ++w) {
    if (w == warp) continue;
    if (group[w].size() <= number) {
      if (!is_strict_ || number == 0 || group[w].size() >= number) continue;
      return report("setmaxnreg again before the whole warpgroup has executed the last one",
                    {place_of(now.by, "executed"),
                     place_of(group[warp][number - 1].by, "the last one, executed")},
                    "all warps of the warpgroup must meet between two setmaxnreg", now, true);
    }
    const Change& other = group[w][number];
    const bool is_same = other.is_inc == now.is_inc && other.count == now.count;
    if (is_same && (!is_strict_ || other.by.insn == now.by.insn)) continue;
    return report("warps of a warpgroup execute different setmaxnreg",
                  {place_of(now.by, "executed"), place_of(other.by, "executed")}, kAllFour, now,
                  is_same);
  }
}

void RegisterChecker::registers_set(Warp& warp, const Insn& insn, const RegisterEvent& event) {
  const std::lock_guard lock(mutex_);
  std::vector<Warpgroup>& groups = ctas_[warp.cta];
  groups.resize((warp.cta->warps.size() + kWarps - 1) / kWarps);
  Warpgroup& group = groups[warp.index / kWarps];
  const std::size_t own = warp.index % kWarps;
  group[own].push_back({execution_of(warp, insn, event.lanes), event.is_inc, event.count});
  const Change& now = group[own].back();
  check_change(now, event.before);
  check_whole(warp, now);
  check_same(group, own);
}

void RegisterChecker::check_ended(const Warpgroup& group) {
  const auto longest = std::ranges::max_element(group, {}, &std::vector<Change>::size);
  const auto shortest = std::ranges::min_element(group, {}, &std::vector<Change>::size);
  if (shortest->size() == longest->size()) return;
  const Change& missed = (*longest)[shortest->size()];
  std::vector<std::uint32_t> absent;
  for (std::size_t w = 0; w < kWarps; ++w) {
    if (group[w].size() > shortest->size()) continue;
    absent.push_back(static_cast<std::uint32_t>(missed.by.warp / kWarps * kWarps + w));
  }
  report(fmt::format("{} of a warpgroup {} without a setmaxnreg that the others have executed",
                     describe_warps(absent), absent.size() == 1 ? "ends" : "end"),
         {place_of(missed.by, "executed")}, kAllFour, missed);
}

void RegisterChecker::cta_ended(Cta& cta) {
  const std::lock_guard lock(mutex_);
  const auto at = ctas_.find(&cta);
  if (at == ctas_.end()) return;
  const std::vector<Warpgroup> groups = std::move(at->second);
  ctas_.erase(at);
  const std::size_t num_whole = cta.warps.size() / kWarps;  // of the rest was spoken before
  for (std::size_t g = 0; g < std::min(num_whole, groups.size()); ++g) check_ended(groups[g]);
}

}  // namespace tilewright::sim
