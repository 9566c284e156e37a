#include "sim/insn/async/bulk_form.h"

#include "sim/insn/lower_forms.h"

namespace tilewright::sim {

BulkModifiers take_bulk_modifiers(Lowering& l) {
  BulkModifiers m;
  const bool has_mbarrier = l.take("mbarrier::complete_tx::bytes");
  const bool has_group = l.take("bulk_group");
  const bool has_global = l.take("global");
  const bool has_cluster = l.take("shared::cluster");
  const bool has_cta = l.take("shared::cta") || l.take("shared");
  if (has_mbarrier == has_group) {
    l.fail("expected one completion: .mbarrier::complete_tx::bytes or .bulk_group");
  }
  m.direction = has_group    ? BulkDirection::kStore
                : has_global ? BulkDirection::kLoad
                             : BulkDirection::kSharedToPeer;
  const bool is_legal = m.direction == BulkDirection::kStore  ? has_global && has_cta
                        : m.direction == BulkDirection::kLoad ? has_cluster != has_cta
                                                              : has_cluster && has_cta;
  if (!is_legal) l.fail("no bulk copy between these spaces with this completion");
  if (has_cluster) m.shared_space = AddressSpace::kSharedCluster;
  m.is_multicast = l.take("multicast::cluster");
  if (m.is_multicast && !has_cluster) l.fail(".multicast::cluster needs .shared::cluster");
  m.has_policy = l.take("L2::cache_hint");
  const int group = l.take_one_of({"cta_group::1", "cta_group::2"});
  if (group >= 0) need_family_target(l, 100, "a copy with .cta_group");
  m.cta_group = group + 1;
  return m;
}

ReduceOp take_reduce_op(Lowering& l) {
  const int op = l.take_one_of({"add", "min", "max", "inc", "dec", "and", "or", "xor"});
  if (op < 0) l.fail("expected .add .min .max .inc .dec .and .or .xor");
  return static_cast<ReduceOp>(op);
}

std::function<void()> join_bulk_group(Warp& warp, int lane) {
  if (is_eager(warp)) return [] {};
  CopyGroups& groups = bulk_groups(warp, lane);
  const CopyGroups::CopyId id = groups.issue();
  return [&groups, id] { groups.advance(id, CopyGroups::Stage::kDone); };
}

}  // namespace tilewright::sim
