// Happens-before: the race and proxy checks, and the part of mma that is about shared memory.
//
// A warp is one agent; so is each stream of asynchronous work that is waited for as a whole: the
// copies of a thread by group, the wgmmas of a warp, what completes on an mbarrier. An access is a
// moment of its agent. It is ordered before another if the other's agent knows of that moment,
// through barriers, mbarriers, fences with strong accesses, waits. Knowledge travels twice: as what
// has happened, and as what has happened and was made visible to the async proxy by a fence on the
// way, apart for shared and global memory.
//
// Kernels that are right on hardware must be clean, so some things count for more than the manual
// says: an acquire needs no fence, a strong read learns what the location was given; a fence may
// stand before the barrier after which another thread makes the relaxed access; a proxy fence may
// stand anywhere between write and use; an mbarrier hands reads from CTA to CTA at any scope. Lanes
// of a warp are not distinguished, but for strict, which asks whether one that arrives had met the
// others. Why: docs/notes/2026-11-23-order-check.md.
#pragma once

#include "sim/async/named_barrier.h"
#include "sim/check/order/access_history.h"
#include "sim/event/finding.h"
#include "sim/host/reused_memory.h"
#include "sim/model/options.h"

#include <array>
#include <map>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tilewright::sim {

class OrderChecker final : public Observer {
 public:
  OrderChecker(Findings& findings, const Checks& checks) : findings_(findings), checks_(checks) {}

  bool wants_instructions() const override { return false; }

  /// Where a warp stands, for the tmem check: the moments of what it does next, by agent.
  struct TensorMoments {
    Agent warp = 0, pipe = 0, loads = 0, uses = 0, stores = 0;
    std::uint32_t warp_time = 0, pipe_time = 0, loads_time = 0, stores_time = 0;
  };
  TensorMoments tensor_moments(const Warp& warp);
  /// What a warp knows to have happened.
  const Clock& seen(const Warp& warp);
  /// What has come before a cluster barrier that the warp has passed, whose arrivals were .relaxed.
  const Clock& met(const Warp& warp) { return state_of(warp).now.met; }
  /// The next tcgen05.ld of a warp is a moment of its own.
  void load_started(const Warp& warp) { ++state_of(warp).tensor_loads.time; }
  /// The warp used what a tcgen05.ld loaded: that and those before it have given their registers,
  /// which says less than that they are done.
  void load_used(const Warp& warp, std::uint32_t time);

  void launch_started(Grid& grid) override;
  void cta_started(Cta& cta) override;
  void cta_ended(Cta& cta) override;
  void shared_access(Warp& warp, const Insn& insn, const WarpAccess& access) override;
  void global_access(Warp& warp, const Insn& insn, const WarpAccess& access) override;
  std::uint64_t async_issued(Warp& warp, const Insn& insn,
                             const AsyncOperation& operation) override;
  void warpgroup_met(Warp& warp, const Insn& insn) override;
  void group_committed(Warp& warp, const Insn& insn, GroupKind kind, std::uint32_t lanes) override;
  void group_waited(Warp& warp, const Insn& insn, GroupKind kind, std::uint32_t lanes,
                    std::uint32_t num_open) override;
  void tensor_waited(Warp& warp, const Insn& insn, AccessKind kind) override;
  void tensor_committed(Warp& warp, const Insn& insn, const TensorCommit& commit) override;
  void mbarrier(Warp& warp, const Insn& insn, const MbarrierEvent& event) override;
  void fence(Warp& warp, const Insn& insn, std::uint32_t lanes, const FenceEvent& event) override;
  void barrier(Warp& warp, const Insn& insn, std::uint32_t lanes,
               const BarrierEvent& event) override;

 private:
  static constexpr std::uint32_t kNoInsn = ~std::uint32_t{0};
  static constexpr std::string_view kUnfencedInit = "use of an mbarrier that was not fenced";
  enum class AgentKind : std::uint8_t {
    kWarp,
    kMbarrier,
    kCpAsync,
    kBulkRead,
    kBulkWrite,
    kWgmma,
    kTensor,
    kTensorMove
  };
  struct AgentInfo {
    AgentKind kind = AgentKind::kWarp;
    std::uint32_t cluster = 0;
    std::uint32_t warp = 0;
    std::uint32_t rank = 0;
    std::uint64_t cta = 0;
    Dim3 cta_index;
  };
  /// Asynchronous work in groups that complete in order.
  struct Groups {
    Agent agent = 0;
    std::uint32_t time = 1;
    std::vector<std::uint32_t> commits;  ///< the last few hundred
    void commit();
    /// The last moment that is over if only `num_open` groups are not.
    std::uint32_t done(std::uint32_t num_open) const;
  };
  struct BulkGroups {
    Groups reads, writes;
  };
  /// What copies may read as tensor maps since a thread acquired them.
  struct AcquiredMap {
    Clock maps;
    Agent agent = 0;
    std::uint32_t time = 0;  ///< of the fence, in the agent's count
  };
  /// What the arrivals of a phase of an mbarrier hand over, by whom it reaches.
  struct Phase {
    Knowledge near;            ///< to every wait that acquires: threads of the mbarrier's own CTA
    Knowledge far;             ///< to waits of cluster scope: threads of other CTAs
    Knowledge narrow;          ///< arrivals of other CTAs that were not of cluster scope
    Clock withheld;            ///< arrivals that were .relaxed
    AccessRecord after_moves;  ///< one of another CTA's warp that had used its Tensor Memory
    AccessRecord from_afar;    ///< the first of another CTA: an arrival or a commit, no copy
  };
  /// A phase of a named or cluster barrier.
  struct Rendezvous {
    std::uint64_t generation = ~std::uint64_t{0};
    std::shared_ptr<Knowledge> met;
  };
  /// When a warp did what makes its mbarrier.init visible, in its count: the first time after each.
  struct InitFences {
    std::vector<std::uint32_t> to_async;    ///< to copies that complete on it
    std::vector<std::uint32_t> to_cluster;  ///< to other CTAs
    std::uint32_t last_init = 0;
    void add(std::vector<std::uint32_t>& to, std::uint32_t time) const {
      if (last_init != 0 && (to.empty() || to.back() < last_init)) to.push_back(time);
    }
  };
  struct CtaState;
  struct WarpState {
    Agent agent = 0;
    std::uint32_t time = 1;
    CtaState* cta = nullptr;
    Knowledge now;
    Knowledge at_fence;  ///< what a relaxed access may pass on within `fence_scope`
    MemoryScope fence_scope = MemoryScope::kNone;
    Phase unfenced;                 ///< what .relaxed waits found, until a fence acquires it
    Clock withheld;                 ///< what .relaxed arrivals and waits did not hand over
    Clock any;                      ///< `seen` with what has come at too narrow a scope
    std::uint32_t lanes_since = 0;  ///< that touched memory since the warp last met
    InitFences init_fences;
    std::uint32_t num_moves_told = 2;  ///< tcgen05.ld and st, by the count of their agents
    /// The barriers at which the warp has arrived, by id; that of the cluster behind them.
    std::array<std::shared_ptr<Knowledge>, kNumNamedBarriers + 1> arrived_at;
    Groups cp_async, wgmma;
    Groups tensor_loads, tensor_stores;        ///< tcgen05.ld and st, done when waited for
    Groups tensor_uses;                        ///< tcgen05.ld whose registers have been used
    Groups tensor;                             ///< of the tensor pipe: one for each tcgen05.commit
    std::map<std::uint32_t, BulkGroups> bulk;  ///< by lane
    std::map<std::uint64_t, AcquiredMap> acquired_maps;  ///< by address of the tensor map
    std::uint32_t last_wait = kNoInsn;                   ///< barrier or mbarrier it passed last
  };
  struct Mbarrier {
    Agent agent = 0;   ///< of the copies that complete on it
    Agent stores = 0;  ///< likewise st.async and red.async, which are of the generic proxy
    std::uint32_t phase = 1;
    bool parity = false;
    Phase current, completed[2];
    AccessRecord init;
    const InitFences* fences = nullptr;  ///< of the warp that initialised it
    bool is_init_said = false;
  };
  struct CtaState {
    std::vector<WarpState> warps;
    std::map<std::uint64_t, AcquiredMap> acquired_maps;  ///< by whichever warp was last
    std::vector<AccessCell, Reused<AccessCell>> shared;
    std::array<Rendezvous, kNumNamedBarriers> barriers;
    std::unordered_map<std::uint32_t, Mbarrier> mbarriers;  ///< by offset
    std::vector<Knowledge> warpgroups;  ///< what they knew together when they met at a wgmma
  };
  struct ClusterState {
    Rendezvous barrier;
    std::vector<std::unique_ptr<CtaState>> ctas;
    std::uint32_t num_ended = 0;
    std::uint32_t index = 0;
  };
  /// One access of an agent that knows this much.
  struct Access {
    AccessRecord record;
    const Knowledge* knows = nullptr;
    const Knowledge* met = nullptr;  ///< in strict, of a wgmma: what its warpgroup knows
    bool is_shared = false;
    Warp* warp = nullptr;
    const WarpAccess* store = nullptr;  ///< a plain one, of `record.insn`
  };

  Agent new_agent(AgentKind kind, const Warp& warp);
  ClusterState& state_of(const Cluster& cluster) { return clusters_[&cluster]; }
  WarpState& state_of(const Warp& warp);
  CtaState& cta_at(const Warp& warp, std::uint64_t shared_address);
  AccessCell& cell_at(const Warp& warp, bool is_shared, std::uint64_t address);
  std::uint32_t index_of(const Warp& warp, const Insn& insn) const;

  void tick(WarpState& warp);
  /// These lanes have met, or are alone in having done anything since the warp met.
  void converge(const Warp& warp, WarpState& own, std::uint32_t lanes);
  /// Joins what an access or arrival with this order passes on to others within a scope.
  static void pass_on(const WarpState& warp, MemoryOrder order, MemoryScope scope, Knowledge& to);
  void synchronize(Warp& warp, const WarpAccess& access, bool is_shared);
  void warp_access(Warp& warp, const Insn& insn, const WarpAccess& access, bool is_shared);
  void touch(const Access& access, std::uint64_t address, std::uint64_t bytes);
  bool is_ordered(const Access& now, const AccessRecord& old, std::uint64_t cell_address,
                  const LaterAccesses& later);
  void report_unordered(const Access& now, const AccessRecord& old, std::uint64_t cell_address);
  void check_strictly(const Access& now, const AccessRecord& old, std::uint64_t cell_address);
  bool is_plain(const AccessRecord& record) const;
  bool has_met_in_own_cta(const Access& now, const AccessRecord& old) const;
  bool is_handed_over_narrowly(const Access& now, const AccessRecord& old,
                               std::uint64_t cell_address) const;
  bool is_observed(const Access& now, const AccessRecord& old, const LaterAccesses& later) const;
  bool stores_what_is_there(const Access& now, const AccessRecord& old,
                            std::uint64_t cell_address) const;
  bool is_guess_for_swap(const Access& now, const AccessRecord& old) const;
  bool are_both_strong(const AccessRecord& a, const AccessRecord& b) const;
  static bool has_acquired(const WarpState& warp, const AcquiredMap& acquired,
                           const AccessRecord& old);
  /// The memory of an operation, `now` but for its record's agent: work of `reads` and `writes`, or
  /// without them of the warp.
  void touch_ranges(Access& now, const Insn& insn, const AsyncOperation& operation,
                    const Groups* reads, const Groups* writes);
  void use_tensor_map(Warp& warp, const Insn& insn, const AsyncOperation& operation,
                      const AsyncRange& map);
  /// Whether an mbarrier was initialised before `lanes` of a warp, or a copy of theirs, use it.
  void check_init(Warp& warp, const Insn& insn, std::uint32_t lanes, std::uint64_t address,
                  Mbarrier& barrier, bool is_async);
  void arrive(Warp& warp, const Insn& insn, const MbarrierEvent& event, Phase& phase);
  bool check_moves(Warp& warp, const Insn& insn, const MbarrierEvent& event, const Phase& phase);
  void check_wait_scope(Warp& warp, const Insn& insn, const MbarrierEvent& event,
                        const Phase& phase);
  static void wait(WarpState& warp, const Phase& phase, MemoryOrder order);
  static void take(WarpState& warp, const Phase& phase, MemoryScope scope);
  void phase_changed(Warp& warp, const MbarrierEvent& event, Mbarrier& barrier);

  std::string missing_order(const Access& now, const AccessRecord& old) const;
  std::string missing_acquire(const Access& now, const AccessRecord& old);
  void check_proxy(const Access& now, const AccessRecord& old, std::uint64_t cell_address);
  void report(const Access& now, const AccessRecord& old, std::string_view check,
              std::uint64_t cell_address, std::string missing, std::string_view what = {});
  FindingPlace place(const Warp& any_warp, const AccessRecord& record, const char* when) const;
  FindingPlace place_as(const Warp& any_warp, const AccessRecord& record, std::string role) const;

  Findings& findings_;
  Checks checks_;
  std::vector<AgentInfo> agents_{1};
  std::unordered_map<const Cluster*, ClusterState> clusters_;
  std::uint32_t num_clusters_ = 0;
  GlobalHistory global_;
  ReadsBefore reads_before_;  ///< forgotten wherever `seen`, `met` or `narrow` of a warp may change
  std::map<std::pair<std::uint64_t, std::uint64_t>, Knowledge> locations_;  ///< address, domain
  const Warp* last_warp_ = nullptr;
  WarpState* last_state_ = nullptr;
  /// What was said of two instructions, and of which bytes.
  struct Said {
    Findings::Handle handle = Findings::kNone;
    std::uint64_t from = 0, to = 0;
    Agent agent = 0;  ///< of the access it was said of last
    std::uint32_t time = 0;
  };
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::string_view>, Said> said_;
  std::vector<std::uint32_t> stretches_;
};

}  // namespace tilewright::sim
