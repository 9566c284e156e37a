// clusterlaunchcontrol: a running cluster takes over the work of one that has not started.
//
// The response is 16 bytes: the first CTA's index x, y, z and a word that says whether there is
// one. The manual calls it opaque.
#include "sim/insn/async/async_work.h"
#include "sim/insn/memory_operand.h"
#include "sim/insn/sections.h"
#include "sim/memory/access_fault.h"

#include <array>
#include <optional>

namespace tilewright::sim {
namespace {

constexpr std::uint32_t kResponseBytes = 16;

struct Response {
  std::uint32_t x = 0xffffffff, y = 0xffffffff, z = 0xffffffff;
  std::uint32_t is_canceled = 0;
};
static_assert(sizeof(Response) == kResponseBytes);

struct TryForm {
  AddressForm response, mbarrier;
  bool is_multicast = false;
};

/// The first CTA of the cluster that will not start because this one does its work.
Response claim(Cluster& cluster) {
  const Grid& grid = *cluster.grid;
  if (cluster.next_claim >= grid.num_clusters) return {};
  const Dim3 &per = grid.launch->cluster, &all = grid.launch->grid;
  const std::uint64_t nx = all.x / per.x, ny = all.y / per.y, index = cluster.next_claim;
  cluster.next_claim += grid.num_seats;
  return {static_cast<std::uint32_t>(index % nx) * per.x,
          static_cast<std::uint32_t>(index / nx % ny) * per.y,
          static_cast<std::uint32_t>(index / (nx * ny)) * per.z, 1};
}

void respond(Warp& warp, const Insn& insn, int lane, const Range& to, const MbarrierPlace& barrier,
             const Response& response) {
  const AsyncRange ranges[] = {
      {AccessKind::kWrite, Proxy::kAsync, true, to.address, kResponseBytes}};
  AsyncOperation operation;
  operation.kind = AsyncKind::kStoreAsync;
  operation.completion = AsyncCompletion::kMbarrier;
  operation.mbarrier = barrier.address;
  operation.lanes = 1u << lane;
  operation.ranges = ranges;
  const std::uint64_t token = issue_async(warp, insn, operation);
  start_async(warp, [&warp, &insn, data = to.data, barrier, response, token, lane] {
    std::memcpy(data, &response, kResponseBytes);
    finish_async(warp, insn, token);
    complete_bytes(warp, insn, lane, barrier, kResponseBytes);
  });
}

Step try_cancel(Warp& warp, const Insn& insn, std::uint32_t active) {
  const TryForm& form = *static_cast<const TryForm*>(insn.extra);
  LaneAddresses to, barrier;
  compute_addresses(warp, form.response, active, to);
  compute_addresses(warp, form.mbarrier, active, barrier);
  Cluster& cluster = *warp.cta->cluster;
  for (std::uint32_t rest = active; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const auto place_of = [&](AddressSpace space, std::uint64_t address) {
      return resolve_range(warp, static_cast<std::uint32_t>(lane), space, address, kResponseBytes,
                           kResponseBytes, AccessKind::kWrite);
    };
    const Range own = place_of(form.response.space, to[lane]);
    if (!own.is_shared) {
      fault_wrong_space(AddressSpace::kSharedCta, AccessKind::kWrite, to[lane], 1u << lane);
    }
    const MbarrierPlace place = find_mbarrier(warp, lane, form.mbarrier.space, barrier[lane]);
    const Response response = claim(cluster);
    if (!form.is_multicast) {
      respond(warp, insn, lane, own, place, response);
      continue;
    }
    const std::uint64_t offset = own.address & ((1u << kSharedRankShift) - 1);
    for (std::uint32_t rank = 0; rank < cluster.ctas.size(); ++rank) {
      respond(
          warp, insn, lane,
          place_of(AddressSpace::kSharedCluster, std::uint64_t{rank} << kSharedRankShift | offset),
          mbarrier_in_rank(warp, lane, place, rank), response);
    }
  }
  return Step::kNext;
}

void lower_try_cancel(Lowering& l) {
  TryForm form;
  if (!l.take("async")) l.fail("expected .async");
  const bool is_shared = l.take("shared::cta");
  if (!l.take("mbarrier::complete_tx::bytes")) l.fail("expected .mbarrier::complete_tx::bytes");
  form.is_multicast = l.take("multicast::cluster::all");
  if (form.is_multicast && !l.module().is_arch_specific && !l.module().is_family_specific) {
    l.fail(".multicast::cluster::all needs .target sm_100a or sm_100f");
  }
  if (l.type() != Type::kB128) l.fail("the response has the type .b128");
  l.finish_modifiers();
  const AddressSpace space = is_shared ? AddressSpace::kSharedCta : AddressSpace::kGeneric;
  form.response = address_form(l, 0, space);
  form.mbarrier = address_form(l, 1, space);
  const TryForm* kept = l.keep(form);
  Insn& insn = l.emit(try_cancel, {kept->response.base, kept->mbarrier.base}, 0);
  insn.extra = kept;
  insn.flags |= kAsync | kUsesUndefined | kClaimsCluster;
}

// op: p, response
Step is_canceled(Warp& warp, const Insn& insn, std::uint32_t active) {
  const auto* responses = warp.row<Response>(insn.op[1]);
  std::uint32_t mask = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    if (responses[lane].is_canceled == 1) mask |= 1u << lane;
  }
  warp.set_predicate(insn.op[0], active, mask);
  return Step::kNext;
}

// op: d, response; small: the word of the response
Step first_ctaid(Warp& warp, const Insn& insn, std::uint32_t active) {
  const auto* words = warp.row<std::uint32_t>(insn.op[1]);
  std::uint32_t values[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) values[lane] = words[4 * lane + insn.small];
  write_row(warp.row<std::uint32_t>(insn.op[0]), values, active);
  return Step::kNext;
}

void take_query_types(Lowering& l) {
  if (l.type() != Type::kB32 || l.type() != Type::kB128) l.fail("expected .b32.b128");
  l.finish_modifiers();
}

void emit_ctaid(Lowering& l, const Operand& to, Row response, int component) {
  Insn& insn = l.emit(first_ctaid, {l.destination(to, Type::kB32), response});
  insn.small = static_cast<std::uint8_t>(component);
}

void lower_is_canceled(Lowering& l) {
  if (l.type() != Type::kPred || l.type() != Type::kB128) l.fail("expected .pred.b128");
  l.finish_modifiers();
  l.emit(is_canceled, {l.destination(0, Type::kPred), l.source(1, Type::kB128)});
}

void lower_first_ctaid(Lowering& l) {
  if (!l.take("v4")) l.fail("expected .v4, or get_first_ctaid::x, ::y or ::z");
  take_query_types(l);
  const auto elements = l.elements(0);
  if (elements.size() != 4) l.fail_at(l.operand(0), "expected 4 elements");
  const Row response = l.source(1, Type::kB128);
  for (int i = 0; i < 4; ++i) emit_ctaid(l, elements[static_cast<std::size_t>(i)], response, i);
}

template <int kComponent>
void lower_one_ctaid(Lowering& l) {
  take_query_types(l);
  emit_ctaid(l, l.operand(0), l.source(1, Type::kB128), kComponent);
}

constexpr std::string_view kOneSyntax =
    "clusterlaunchcontrol.query_cancel.get_first_ctaid::{x,y,z}.b32.b128 d, response;";

const InsnRow kClusterLaunchRows[] = {
    {"clusterlaunchcontrol.try_cancel",
     "clusterlaunchcontrol.try_cancel.async{.shared::cta}.mbarrier::complete_tx::bytes{.multicast::"
     "cluster::all}.b128 [response], [mbar];",
     100, InsnClass::kAsync, lower_try_cancel},
    {"clusterlaunchcontrol.query_cancel.is_canceled",
     "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, response;", 100,
     InsnClass::kPredicate, lower_is_canceled},
    {"clusterlaunchcontrol.query_cancel.get_first_ctaid",
     "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {x, y, z, _}, response;", 100,
     InsnClass::kMove, lower_first_ctaid},
    {"clusterlaunchcontrol.query_cancel.get_first_ctaid::x", kOneSyntax, 100, InsnClass::kMove,
     lower_one_ctaid<0>},
    {"clusterlaunchcontrol.query_cancel.get_first_ctaid::y", kOneSyntax, 100, InsnClass::kMove,
     lower_one_ctaid<1>},
    {"clusterlaunchcontrol.query_cancel.get_first_ctaid::z", kOneSyntax, 100, InsnClass::kMove,
     lower_one_ctaid<2>},
};

}  // namespace

const InsnSection& cluster_launch_section() {
  static const InsnSection section{"Cluster launch control", kClusterLaunchRows};
  return section;
}

}  // namespace tilewright::sim
