// What the order checker says of two accesses.
#include "sim/check/order/order_checker.h"
#include "sim/state/code.h"
#include "sim/state/global_memory.h"
#include "sim/state/lane_names.h"

#include <bit>

#include <fmt/format.h>

namespace tilewright::sim {

/// The wait is there, but does not reach so far; "" if not even that.
std::string OrderChecker::missing_acquire(const Access& now, const AccessRecord& old) {
  if (old.time <= now.knows->narrow.of(old.agent)) {
    return "between CTAs an mbarrier hands over writes only if both the arrival is "
           ".release.cluster and the wait .acquire.cluster; without a scope they are .cta";
  }
  const WarpState& own = state_of(*now.warp);
  if (old.time <= own.withheld.of(old.agent)) {
    return "an mbarrier stands between them, but its arrival or its wait is .relaxed and hands "
           "nothing over: .release and .acquire, or a fence before the one and after the other";
  }
  return {};
}

std::string OrderChecker::missing_order(const Access& access, const AccessRecord& old) const {
  const AccessRecord& now = access.record;
  switch (agents_[old.agent].kind) {
    case AgentKind::kMbarrier:
      return "the copy may still be under way: wait for the mbarrier on which it completes";
    case AgentKind::kCpAsync:
      return "cp.async may still be under way: cp.async.wait_group by the warp that issued it, "
             "then "
             "a barrier";
    case AgentKind::kBulkRead:
      return "the copy may still read: cp.async.bulk.wait_group.read by the thread that issued it, "
             "then a barrier";
    case AgentKind::kBulkWrite:
      return "the copy may still be under way: cp.async.bulk.wait_group (without .read) by the "
             "thread that issued it, then a barrier";
    case AgentKind::kWgmma:
      return "wgmma may still read it: wgmma.wait_group of the warps that issued it, then a "
             "barrier";
    case AgentKind::kTensor:
      return "the tensor pipe may still read it: tcgen05.commit by the thread that issued it, "
             "and a wait for the mbarrier at which that arrives";
    case AgentKind::kTensorMove:  // never in shared or global memory
    case AgentKind::kWarp:
      break;
  }
  if (old.scope != MemoryScope::kNone || now.scope != MemoryScope::kNone) {
    return "no barrier and no release / acquire of a sufficient scope orders them: both must be "
           "strong, of a scope that holds the other, or a fence must come between data and flag";
  }
  if (agents_[old.agent].cta != agents_[now.issuer].cta) {
    return agents_[old.agent].cluster == agents_[now.issuer].cluster
               ? "no barrier orders them: barrier.cluster, or an mbarrier with .release / .acquire "
                 "at .cluster, between the two"
               : "no barrier orders them: CTAs need a flag with release / acquire at .gpu, or two "
                 "launches";
  }
  return "no barrier orders them: bar.sync between the two, or an mbarrier on which the first "
         "arrives and the second waits";
}

FindingPlace OrderChecker::place_as(const Warp& any_warp, const AccessRecord& record,
                                    std::string role) const {
  const KernelCode& code = *any_warp.grid->code;
  const AgentInfo& agent = agents_[record.issuer];
  FindingPlace out = place_of(code, code.insns[record.insn], std::move(role),
                              {agent.cta_index, {agent.warp}, record.lanes});
  out.order = agent.cta;
  return out;
}

FindingPlace OrderChecker::place(const Warp& any_warp, const AccessRecord& record,
                                 const char* when) const {
  const bool is_async = record.agent != record.issuer;
  const char* const role =
      record.kind == AccessKind::kRead    ? is_async ? "read by async work, issued" : "read"
      : record.kind == AccessKind::kWrite ? is_async ? "written by async work, issued" : "written"
                                          : "updated atomically";
  return place_as(any_warp, record, fmt::format("{} {}", when, role));
}

namespace {

std::string_view what_of(std::string_view check) {
  return check == "mma"    ? "wgmma operand overwritten: race"
         : check == "tmem" ? "operand of the tensor pipe overwritten: race"
         : check == "race" ? "race"
                           : "missing proxy fence";
}

std::string text_of(std::string_view what, bool is_shared, std::uint64_t from, std::uint64_t to) {
  const std::uint64_t rank = is_shared ? from >> kSharedRankShift : 0;
  const std::uint64_t mask = is_shared ? kSharedOffsetMask : ~std::uint64_t{0};
  std::string out = fmt::format("{} on {}[{:#x}..{:#x}]", what, is_shared ? "shared" : "global",
                                from & mask, to & mask);
  if (rank != 0) out += fmt::format(" of the cluster's CTA of rank {}", rank);
  return out;
}

}  // namespace

void OrderChecker::report(const Access& now, const AccessRecord& old, std::string_view check,
                          std::uint64_t cell_address, std::string missing, std::string_view what) {
  if (what.empty()) what = what_of(check);
  const auto common = static_cast<std::uint32_t>(old.bytes & now.record.bytes);
  const std::uint64_t from = cell_address + static_cast<unsigned>(std::countr_zero(common));
  const std::uint64_t to = cell_address + 31 - static_cast<unsigned>(std::countl_zero(common));
  const auto [at, is_new] = said_.try_emplace({old.insn, now.record.insn, check});
  Said& said = at->second;
  if (!is_new) {
    const bool is_same = said.agent == now.record.issuer && said.time == now.record.time;
    const bool grows = said.from != 0 && (to + 1 == said.from || from == said.to + 1);
    if (grows) {
      said.from = std::min(said.from, from);
      said.to = std::max(said.to, to);
    }
    said.agent = now.record.issuer, said.time = now.record.time;
    if (is_same && !grows) return;
    findings_.add_again(said.handle,
                        grows ? text_of(what, now.is_shared, said.from, said.to) : std::string());
    return;
  }
  Finding finding;
  finding.check = check;
  finding.kernel = now.warp->grid->code->info.name;
  finding.what = text_of(what, now.is_shared, from, to);
  finding.places = {place(*now.warp, old, "first"), place(*now.warp, now.record, "then")};
  finding.cause = what == kUnfencedInit ? std::string(what)
                                        : fmt::format("{} {} {}", stretches_[old.insn],
                                                      stretches_[now.record.insn], missing);
  if (!now.is_shared) {
    if (const auto holder = now.warp->grid->memory->find(from)) {
      finding.notes.push_back(fmt::format("{:#x} is byte {} of {}, made by {}", from,
                                          from - holder->address, holder->size_bytes,
                                          holder->origin));
    }
  }
  const std::uint32_t last_wait = state_of(*now.warp).last_wait;
  if (check == "race" && last_wait != kNoInsn) {
    const KernelCode& code = *now.warp->grid->code;
    finding.notes.push_back(fmt::format("{} waited last at {}", describe_warp(*now.warp),
                                        code.describe(code.insns[last_wait])));
  }
  finding.missing = std::move(missing);
  said.agent = now.record.issuer, said.time = now.record.time;
  // Only where the text is of these two instructions may it grow.
  if (findings_.add(std::move(finding), &said.handle)) said.from = from, said.to = to;
}

}  // namespace tilewright::sim
