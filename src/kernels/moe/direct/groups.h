// What a CTA of the direct kernels knows of the routing: which experts there are, and whose tokens.
#pragma once

#include "kernels/moe/direct/direct.h"
#include "kernels/moe/direct/select.h"
#include "kernels/moe/own_expert.h"
#include "kernels/moe/slot_expert.h"

namespace tilewright::kernels {

/// In shared memory. A group is an expert with its slots, a pair one of them. Groups stand in the
/// order of their first slots, the shared expert last.
struct MoeDirectGroups {
  static constexpr int kSlots = kMoeDirectMaxTokens * kMoeMaxTopk;

  std::int32_t count, pairs;
  std::int32_t ids[kSlots];     ///< as the router gives them, then those of this rank
  std::int32_t expert[kSlots];  ///< of a slot; -1: none
  std::int32_t first[kSlots];   ///< the first slot with that expert
  float weights[kMoeDirectMaxPairs];
  std::int32_t group_expert[kSlots + 1];
  std::int32_t group_begin[kSlots + 2];  ///< pairs before the group
  std::int32_t pair_slot[kMoeDirectMaxPairs];

  __device__ std::int32_t size(std::int32_t group) const {
    return group_begin[group + 1] - group_begin[group];
  }
};

/// Fills the groups: the ids of a token by a warp each, the rest by the first `threads` of the CTA,
/// a warp or all. Loops are not unrolled: this runs once, and instructions come from memory.
class MoeDirectRouter {
 public:
  __device__ MoeDirectRouter(const MoeDirectExperts& experts, MoeDirectGroups& groups,
                             std::int32_t threads)
      : p_(experts),
        r_(experts.routing),
        s_(groups),
        slots_(experts.tokens * experts.topk),
        threads_(threads) {}

  /// Which experts a token has, before they are those of this rank. A whole warp. `keys`: those of
  /// store_keys(), if it chooses by them.
  __device__ void take_ids(std::int32_t token, const std::uint32_t* keys) const {
    RoutedExpert routed = {};
    if (r_.route.logits != nullptr) {
      routed = route_token_once(r_.route, token, lane(), keys);
    } else if (lane() < p_.topk) {
      routed.id = r_.given_ids[token * p_.topk + lane()];
      routed.weight = r_.given_weights[token * p_.topk + lane()];
    }
    if (lane() >= p_.topk) return;
    s_.ids[token * p_.topk + lane()] = routed.id;
    s_.weights[token * p_.topk + lane()] = routed.weight;
  }

  /// All that follows from the ids of all tokens. Ends with sync().
  /// `is_writer`: the ids, weights and flaws that are found go to memory.
  __device__ void find(bool is_writer) const {
    if (r_.is_single) {
      take_all();
    } else {
      if (is_writer && thread() == 0) *r_.status = {0, 0, kMoeNone, kMoeNone};
      find_experts(is_writer);
      sync();
      find_groups();
    }
    sync();
  }

  /// A barrier of those threads.
  __device__ void sync() const {
    if (threads_ == 32) {
      __syncwarp();
    } else {
      __syncthreads();
    }
  }

 private:
  static __device__ std::int32_t thread() { return static_cast<std::int32_t>(threadIdx.x); }
  static __device__ std::int32_t lane() { return static_cast<std::int32_t>(threadIdx.x % 32); }

  __device__ void take_all() const {
    if (thread() < p_.tokens) {
      s_.pair_slot[thread()] = thread();
      s_.expert[thread()] = 0;
      s_.weights[thread()] = 1;
    }
    if (thread() > 0) return;
    s_.count = 1;
    s_.pairs = p_.tokens;
    s_.group_expert[0] = 0;
    s_.group_begin[0] = 0;
    s_.group_begin[1] = p_.tokens;
  }

  // As MoeShareParams.
  __device__ std::int32_t own_id(std::int32_t id) const {
    if (r_.all == 0) return id;
    return own_expert(id, r_.first, p_.experts, r_.all);
  }

  __device__ void find_experts(bool is_writer) const {
    // Ids of a rank differ where those of the router do, up to -1 and what is no expert.
#pragma unroll 1
    for (std::int32_t slot = thread(); slot < slots_; slot += threads_)
      s_.ids[slot] = own_id(s_.ids[slot]);
    sync();
#pragma unroll 1
    for (std::int32_t slot = thread(); slot < slots_; slot += threads_) {
      SlotFlaw flaw = SlotFlaw::kNone;
      s_.expert[slot] = expert_of_slot(s_.ids, p_.topk, p_.experts, slot, flaw);
      if (!is_writer) continue;
      report_flaw(*r_.status, flaw, slot);
      if (r_.own_ids != nullptr) r_.own_ids[slot] = s_.ids[slot];
      if (r_.route.logits != nullptr) r_.route.weights[slot] = s_.weights[slot];
    }
  }

  __device__ void find_groups() const {
#pragma unroll 1
    for (std::int32_t slot = thread(); slot < slots_; slot += threads_) {
      std::int32_t first = 0;
#pragma unroll 1
      while (s_.expert[first] != s_.expert[slot]) ++first;
      s_.first[slot] = s_.expert[slot] < 0 ? -1 : first;
    }
    sync();
    // Every slot of an expert stands behind the pairs of all groups before, and of its own before.
#pragma unroll 1
    for (std::int32_t slot = thread(); slot < slots_; slot += threads_) {
      const std::int32_t first = s_.first[slot];
      if (first < 0) continue;
      std::int32_t groups = 0, begin = 0, before = 0;
#pragma unroll 2
      for (std::int32_t other = 0; other < slots_; ++other) {
        const std::int32_t others = s_.first[other];
        groups += others == other && other < first ? 1 : 0;
        begin += others >= 0 && others < first ? 1 : 0;
        before += others == first && other < slot ? 1 : 0;
      }
      s_.pair_slot[begin + before] = slot;
      if (first != slot) continue;
      s_.group_expert[groups] = s_.expert[slot];
      s_.group_begin[groups] = begin;
    }
    if (p_.has_shared) add_shared();
    if (thread() == 0) count_all();
  }

  __device__ std::int32_t routed_pairs() const {
    std::int32_t pairs = 0;
#pragma unroll 2
    for (std::int32_t slot = 0; slot < slots_; ++slot) pairs += s_.first[slot] >= 0 ? 1 : 0;
    return pairs;
  }
  __device__ void add_shared() const {
    if (thread() >= p_.tokens) return;
    s_.pair_slot[routed_pairs() + thread()] = slots_ + thread();
    s_.weights[slots_ + thread()] = 1;
  }
  __device__ void count_all() const {
    std::int32_t groups = 0, pairs = routed_pairs();
#pragma unroll 2
    for (std::int32_t slot = 0; slot < slots_; ++slot) groups += s_.first[slot] == slot ? 1 : 0;
    if (p_.has_shared) {
      s_.group_expert[groups] = p_.experts;
      s_.group_begin[groups] = pairs;
      ++groups;
      pairs += p_.tokens;
    }
    s_.group_begin[groups] = pairs;
    s_.count = groups;
    s_.pairs = pairs;
  }

  const MoeDirectExperts& p_;
  const MoeDirectRouting& r_;
  MoeDirectGroups& s_;
  std::int32_t slots_, threads_;
};

}  // namespace tilewright::kernels
