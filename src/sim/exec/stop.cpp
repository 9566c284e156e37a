#include "sim/exec/stop.h"

#include "sim/async/cluster_barrier.h"
#include "sim/async/mbarrier.h"
#include "sim/async/named_barrier.h"
#include "sim/event/observer.h"
#include "sim/state/code.h"
#include "sim/state/lane_names.h"
#include "sim/state/waits.h"
#include "sim/tensor/tensor_memory.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

namespace tilewright::sim {

namespace {

/// Operands are read at the wait if the timing is late.
bool is_wgmma(const KernelCode& code, const Insn& insn) {
  const Instruction* syntax = code.place(insn).syntax;
  return syntax != nullptr && syntax->opcode == "wgmma";
}

std::string check_of(const FaultError& error, const KernelCode& code, const Insn& insn) {
  switch (error.kind()) {
    case FaultKind::kIllegalAddress:
      return is_wgmma(code, insn) ? "mma" : "mem";
    case FaultKind::kMisalignedAddress:
    case FaultKind::kInvalidAddressSpace:
      return "mem";
    case FaultKind::kClusterBlockNotPresent:
    case FaultKind::kDeadlock:
    case FaultKind::kFinding:
      return "sync";
    case FaultKind::kIllegalInstruction:
      return (insn.flags & kBarrier) != 0 ? "sync" : "mem";
    default:
      return "";
  }
}

std::string wait_text(const Warp& warp, const LaneGroup& group) {
  const Insn& insn = warp.grid->code->insns[group.pc];
  switch (group.wait.kind) {
    case WaitKind::kWarpSync: {
      const std::uint32_t missing =
          static_cast<std::uint32_t>(group.wait.a) & warp.live & ~group.lanes;
      if ((insn.flags & kAligned) != 0) {
        return fmt::format("waits (.aligned, executed divergently: {} are elsewhere)",
                           describe_lane_mask(missing));
      }
      return fmt::format("waits for {} of its warp", describe_lane_mask(missing));
    }
    case WaitKind::kNamedBarrier:
      return fmt::format("waits for barrier {}", group.wait.a);
    case WaitKind::kClusterBarrier:
      return "waits for the barrier of the cluster";
    case WaitKind::kMbarrier:
      return fmt::format("waits for phase parity {} of the mbarrier at shared {:#x}", group.wait.b,
                         group.wait.a & kSharedOffsetMask);
    case WaitKind::kAsync:
      return "waits for asynchronous work of its own";
    case WaitKind::kWarpgroup:
      return "waits for a group of wgmma that not all four warps of the warpgroup have committed";
    case WaitKind::kWgmma:
      return "waits at a wgmma for the other warps of the warpgroup: all four must come to it";
    case WaitKind::kRegisters:
      return fmt::format(
          "asks for {} registers a thread, {} more than it has: {} of the CTA's pool, "
          "which has {},",
          group.wait.a, group.wait.a - warp.num_registers, registers_missing(warp, group.wait.a),
          warp.cta->free_registers);
    case WaitKind::kGridSync:
      return "waits for the other CTAs of the grid";
    case WaitKind::kColumns:
      return group.wait.a != 0 ? "waits for a warp of the peer CTA to come, or for free columns of "
                                 "Tensor Memory in both"
                               : "waits for free columns of Tensor Memory";
    case WaitKind::kNone:
      break;
  }
  return "polls memory";
}

/// Warps of a CTA whose lanes wait for the same at the same place.
struct Waiters {
  const Cta* cta = nullptr;
  const Warp* first = nullptr;
  const LaneGroup* group = nullptr;
  std::vector<std::uint32_t> warps;
};

bool is_same_wait(const Waiters& known, const Warp& warp, const LaneGroup& group) {
  const LaneGroup& other = *known.group;
  return known.cta == warp.cta && other.pc == group.pc && other.lanes == group.lanes &&
         other.wait.kind == group.wait.kind && other.wait.a == group.wait.a &&
         other.wait.b == group.wait.b && known.warps.back() != warp.index;
}

std::vector<Waiters> all_waiters(const std::vector<std::unique_ptr<Cluster>>& clusters) {
  std::vector<Waiters> out;
  for (const auto& cluster : clusters) {
    for (const auto& cta : cluster->ctas) {
      const auto begin = static_cast<std::ptrdiff_t>(out.size());
      for (const Warp& warp : cta->warps) {
        for (const LaneGroup& group : warp.groups) {
          const auto known = std::find_if(out.begin() + begin, out.end(), [&](const Waiters& w) {
            return is_same_wait(w, warp, group);
          });
          if (known != out.end()) {
            known->warps.push_back(warp.index);
          } else {
            out.push_back({cta.get(), &warp, &group, {warp.index}});
          }
        }
      }
    }
  }
  return out;
}

/// Whether none of these warps waits for anything: they have ended, or do something else.
bool has_idle(const std::vector<WarpName>& names, const std::vector<Waiters>& all) {
  return std::ranges::any_of(names, [&](const WarpName& name) {
    return std::ranges::none_of(all, [&](const Waiters& waiters) {
      return waiters.cta->linear_index == name.cta && waiters.group->wait.kind != WaitKind::kNone &&
             std::ranges::find(waiters.warps, name.warp) != waiters.warps.end();
    });
  });
}

/// How far a wait is from the cause of the deadlock, as far as can be told: 0 for what can never
/// end, 1 if a warp that it needs does not wait for anything else, 3 if all of them do.
int distance_of(const Waiters& waiters, const std::vector<Waiters>& all) {
  const Cta& cta = *waiters.cta;
  const Wait& wait = waiters.group->wait;
  if (wait.kind == WaitKind::kWarpSync) {
    const Insn& insn = cta.grid->code->insns[waiters.group->pc];
    return (insn.flags & kAligned) != 0 ? 0 : 1;
  }
  if (wait.kind == WaitKind::kColumns || wait.kind == WaitKind::kRegisters) return 1;
  if (wait.kind != WaitKind::kMbarrier) return 3;
  const auto offset = static_cast<std::uint32_t>(wait.a) & kSharedOffsetMask;
  Mbarrier state;
  if (mbarrier_read(cta.shared + offset, state) != MbarrierError::kNone) return 0;
  if (state.pending == 0) return 0;  // bytes do not add up
  if (cta.grid->observer == nullptr) return 2;
  const std::vector<WarpName> missing = cta.grid->observer->missing_at_mbarrier(cta, offset);
  if (missing.empty()) return state.pending < state.expected ? 1 : 2;
  return has_idle(missing, all) ? 1 : 3;
}

/// The likely causes first.
void rank(std::vector<Waiters>& all) {
  std::vector<std::pair<int, Waiters>> ranked;
  for (const Waiters& waiters : all) ranked.emplace_back(distance_of(waiters, all), waiters);
  std::ranges::stable_sort(ranked, {}, [](const auto& each) { return each.first; });
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = ranked[i].second;
}

/// "warp 3 has ended, warps 0-1 are at gemm.ptx:40": of those that are not at the barrier.
std::string whereabouts(const Cta& cta, WaitKind kind, std::uint64_t id) {
  std::vector<std::uint32_t> ended;
  std::map<std::uint32_t, std::vector<std::uint32_t>> elsewhere;  // by place
  for (const Warp& warp : cta.warps) {
    if (warp.groups.empty()) ended.push_back(warp.index);
    for (const LaneGroup& group : warp.groups) {
      const bool is_there = group.wait.kind == kind && group.wait.a == id;
      if (!is_there) elsewhere[group.pc].push_back(warp.index);
    }
  }
  std::string out;
  if (!ended.empty()) {
    out = fmt::format("{} {} ended", describe_warps(ended), ended.size() == 1 ? "has" : "have");
  }
  for (const auto& [pc, warps] : elsewhere) {
    out += fmt::format("{}{} {} at {}", out.empty() ? "" : ", ", describe_warps(warps),
                       warps.size() == 1 ? "is" : "are",
                       cta.grid->code->describe(cta.grid->code->insns[pc]));
  }
  return out.empty() ? "all warps wait here" : out;
}

std::string missing_at(const std::byte* object) {
  Mbarrier state;
  if (mbarrier_read(object, state) != MbarrierError::kNone) return "it must be initialised first";
  if (state.pending == 0) {
    return state.tx_bytes > 0
               ? "only bytes are missing: a copy was not started, or more were expected than come"
               : "more bytes came than were expected: expect_tx must say them all";
  }
  return fmt::format(
      "{} arrival{}{} missing: a thread did not arrive, or mbarrier.init expects more than there "
      "are in a phase",
      state.pending, state.pending == 1 ? "" : "s",
      state.tx_bytes != 0  ? " and bytes are"
      : state.pending == 1 ? " is"
                           : " are");
}

/// Which CTAs hold what a CTA waits for.
std::vector<std::string> describe_columns(const TensorMemory& own) {
  const TensorColumns& columns = own.columns();
  std::string held;
  std::uint32_t num_own = 0;
  for (const TensorColumns::Held& each : columns.held) {
    if (each.holder == &own) num_own += each.num_columns;
    held += fmt::format("{}{} has columns {} to {}", held.empty() ? "" : ", ", each.holder->owner,
                        each.column, each.column + each.num_columns - 1);
  }
  std::vector<std::string> out = {fmt::format("{} asks for {} columns of the {} of its SM: {}",
                                              own.owner, own.wanted_columns, kTensorColumns,
                                              held.empty() ? "none are taken" : held)};
  if (num_own + own.wanted_columns > kTensorColumns) {
    out.push_back("  it waits for columns that it has itself: it can never have so many");
  }
  if (!own.may_allocate()) {
    out.push_back(
        fmt::format("  {} has the permit to allocate: it has neither ended nor executed "
                    "tcgen05.relinquish_alloc_permit",
                    columns.permit->owner));
  }
  return out;
}

/// How many registers each warp of a CTA holds.
std::vector<std::string> describe_registers(const Cta& cta) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> held;  // warps, by registers of a thread
  std::map<std::uint32_t, std::vector<std::uint32_t>> ended;
  for (const Warp& warp : cta.warps) {
    (warp.live != 0 ? held : ended)[warp.num_registers].push_back(warp.index);
  }
  const std::uint32_t at_entry = cta.grid->code->info.entry_registers;
  std::vector<std::string> out = {
      fmt::format("{} has {} registers: {} of {} threads at the launch; {} of them are in the pool",
                  describe_cta(cta), (at_entry + 7) / 8 * 8 * kLanes * cta.warps.size(), at_entry,
                  cta.num_threads, cta.free_registers)};
  for (const auto& [count, warps] : held) {
    out.push_back(fmt::format("  {} {} {} a thread", describe_warps(warps),
                              warps.size() == 1 ? "holds" : "hold", count));
  }
  for (const auto& [count, warps] : ended) {
    out.push_back(fmt::format("  {} ended with {} a thread, which no .dec has given back",
                              describe_warps(warps), count));
  }
  return out;
}

/// What is known of the thing that is waited for, the first time that it is met.
void explain(const Waiters& waiters, std::set<std::string>& said, std::vector<std::string>& notes) {
  const Cta& cta = *waiters.cta;
  const Wait& wait = waiters.group->wait;
  const auto say = [&](const std::string& line) {
    const bool is_new = said.insert(line).second;
    if (is_new) notes.push_back(line);
    return is_new;
  };
  switch (wait.kind) {
    case WaitKind::kNamedBarrier:
      if (say(fmt::format("{} {}", describe_cta(cta),
                          cta.barriers->describe(static_cast<std::uint32_t>(wait.a))))) {
        notes.push_back("  not there: " + whereabouts(cta, wait.kind, wait.a));
      }
      return;
    case WaitKind::kClusterBarrier:
      if (say(cta.cluster->barrier->describe())) {
        for (const auto& member : cta.cluster->ctas) {
          notes.push_back(fmt::format("  rank {}, {}: {}", member->rank, describe_cta(*member),
                                      whereabouts(*member, wait.kind, wait.a)));
        }
      }
      return;
    case WaitKind::kMbarrier: {
      const auto offset = static_cast<std::uint32_t>(wait.a) & kSharedOffsetMask;
      if (!say(fmt::format("{} mbarrier at shared {:#x}: {}", describe_cta(cta), offset,
                           mbarrier_describe(cta.shared + offset))) ||
          cta.grid->observer == nullptr) {
        return;
      }
      for (const std::string& line : cta.grid->observer->describe_mbarrier(cta, offset)) {
        notes.push_back("  " + line);
      }
      notes.push_back(fmt::format("  {}", missing_at(cta.shared + offset)));
      return;
    }
    case WaitKind::kColumns:
      for (const std::string& line : describe_columns(*cta.tensor_memory)) say(line);
      return;
    case WaitKind::kRegisters:
      for (const std::string& line : describe_registers(cta)) say(line);
      return;
    default:
      return;
  }
}

}  // namespace

Finding finding_of(const Warp& warp, const FaultError& error) {
  const KernelCode& code = *warp.grid->code;
  const Insn& insn = code.insns[warp.pc];
  const std::uint32_t lanes = error.lanes() != 0 ? error.lanes() : warp.group_lanes;
  Finding out;
  out.check = check_of(error, code, insn);
  out.kernel = code.info.name;
  out.what = error.what();
  out.places.push_back(place_of(warp, insn, lanes, "executed"));
  if (error.kind() == FaultKind::kFinding) {
    out.missing =
        "the count of mbarrier.init must be that of all arrivals of a phase, the bytes of "
        "expect_tx those of its copies, and nothing may use it before it is initialised";
  }
  return out;
}

Finding deadlock_of(const std::vector<std::unique_ptr<Cluster>>& clusters) {
  constexpr std::size_t kMostPlaces = 24, kMostNotes = 60;
  Finding out;
  out.check = "sync";
  out.kernel = clusters.front()->grid->code->info.name;
  out.what = "deadlock: nothing can go on";
  std::vector<Waiters> all = all_waiters(clusters);
  rank(all);
  std::set<std::string> said;
  for (const Waiters& waiters : all) {
    if (out.places.size() == kMostPlaces) break;
    const Warp& warp = *waiters.first;
    out.places.push_back(place_of(*warp.grid->code, warp.grid->code->insns[waiters.group->pc],
                                  wait_text(warp, *waiters.group),
                                  {waiters.cta->index, waiters.warps, waiters.group->lanes}));
    if (out.notes.size() < kMostNotes) explain(waiters, said, out.notes);
  }
  const bool is_divergent = std::ranges::any_of(all, [](const Waiters& waiters) {
    const Insn& insn = waiters.first->grid->code->insns[waiters.group->pc];
    return waiters.group->wait.kind == WaitKind::kWarpSync && (insn.flags & kAligned) != 0;
  });
  if (is_divergent) {
    out.missing =
        "an .aligned instruction must be reached by all lanes of a warp together: move it out of "
        "the branch, or meet with bar.warp.sync before";
  }
  const bool lacks_columns = std::ranges::any_of(all, [](const Waiters& waiters) {
    const Wait& wait = waiters.group->wait;
    return wait.kind == WaitKind::kColumns && wait.a == 0;
  });
  if (lacks_columns) {
    out.missing =
        "the CTAs of an SM share its columns: a CTA that holds some, or the permit, must be able "
        "to go on without the CTAs that wait; take fewer columns, let fewer CTAs be resident "
        "(more dynamic shared memory), relinquish the permit after the last tcgen05.alloc";
  }
  const bool lacks_registers = std::ranges::any_of(
      all, [](const Waiters& waiters) { return waiters.group->wait.kind == WaitKind::kRegisters; });
  if (lacks_registers) {
    out.missing =
        "what the warps of a CTA hold after setmaxnreg must not be more than they have at the "
        "launch, and warps that ask for more wait until others have given it back: ask for fewer "
        "by "
        ".inc, or let .dec leave fewer";
  }
  if (all.size() > kMostPlaces) {
    out.notes.push_back(
        fmt::format("and {} more groups of lanes that wait", all.size() - kMostPlaces));
  }
  return out;
}

}  // namespace tilewright::sim
