// The clock and what happens by it. One class, in files by subject: engine.cpp (events, the life of
// CTAs, the result), engine_issue.cpp (warps), and what a trace says of an instruction:
// engine_memory.cpp, engine_copies.cpp, engine_barriers.cpp, engine_tensor.cpp.
#pragma once

#include "sim/time/playing.h"
#include "sim/time/sm_engine.h"

#include <cstdint>
#include <memory>
#include <queue>
#include <span>
#include <unordered_map>
#include <vector>

namespace tilewright::sim {

/// One use: constructed, run. See play().
class Engine {
 public:
  Engine(const KernelTiming& kernel, const MemoryShare& memory, std::span<const PlaceQueue> queues,
         std::uint32_t slots, const Around& around);

  EngineResult run();

 private:
  enum class EventKind : std::uint8_t { kWarp, kArrival, kStart };
  struct Event {
    double time = 0;
    std::uint64_t number = 0;  ///< of equal times the first comes first
    EventKind kind = EventKind::kWarp;
    PlayingWarp* warp = nullptr;
    PlayingCta* cta = nullptr;
    PlayingPlace* place = nullptr;  ///< of kStart
    std::uint32_t mbarrier = 0;
    std::uint32_t count = 0;  ///< of arrivals; kStart: the slot
    std::int64_t bytes = 0;

    bool operator<(const Event& other) const {
      return time != other.time ? time > other.time : number > other.number;
    }
  };

  // Events.
  void push(Event event);
  void wake(PlayingWarp& warp, double time);
  /// What `warp` does at `mbarrier`: as in TraceEvent::b, perhaps of another CTA of the cluster.
  void arrive_later(double time, PlayingWarp& warp, std::uint64_t mbarrier, std::uint32_t count,
                    std::int64_t bytes);
  /// The CTA of the cluster that the address is of.
  static PlayingCta& cta_of(PlayingCta& cta, std::uint64_t address);
  static PlayingMbarrier& mbarrier_of(PlayingCta& cta, std::uint64_t address);

  // The life of CTAs.
  const PreparedCta& prepared(const CtaTrace& trace);
  void start_cluster(PlayingPlace& place, std::uint32_t slot, double time);
  void start_warps(PlayingCta& cta, double time);
  void end_warp(PlayingWarp& warp);
  EngineResult result();
  void add_busy(const Sm& sm, std::vector<double>& busy) const;
  void add_busy_memory(std::vector<double>& busy) const;

  // Warps.
  const PreparedOp& op_of(const PlayingWarp& warp) const { return warp.trace->ops[warp.next]; }
  std::uint32_t line_of(std::uint32_t insn) const;
  /// The warp has waited from wait_began to `end`, and for what.
  void account(PlayingWarp& warp, WaitCause cause, double end);
  void wait_until(PlayingWarp& warp, WaitCause cause, double time);
  /// Whether it is that time already; else the warp waits.
  bool await_time(PlayingWarp& warp, WaitCause cause, double time);
  /// The instruction itself holds its warp so long, once its event is handled.
  void delay(double clocks, WaitCause cause = WaitCause::kOwn);
  /// Issues what can be issued at now_.
  void advance(PlayingWarp& warp);
  /// False: the rest of the instruction comes later.
  bool handle_events(PlayingWarp& warp);
  /// Whether the instruction was issued at now_; else the warp waits.
  bool issue(PlayingWarp& warp);
  bool issue_to_pipe(PlayingWarp& warp, const InsnCost& cost);
  /// The same of an instruction of the machine.
  bool issue_machine(PlayingWarp& warp, const MachineOp& op);
  const MachineOp* machine_of(const PlayingWarp& warp) const {
    const std::uint32_t number = op_of(warp).machine;
    return number == kNoMachineOp ? nullptr : &kernel_.machine.ops[number];
  }
  /// Whether the code is there; else the warp waits.
  bool fetch(PlayingWarp& warp, const MachineOp& op);
  /// A counter is not at zero before that time.
  static void hold_counter(PlayingWarp& warp, std::uint8_t counter, double time, WaitCause cause);
  /// Goes to the next instruction. Whether the warp is to be woken for it.
  bool finish(PlayingWarp& warp);
  double operands_ready(const PlayingWarp& warp, std::uint32_t insn, WaitCause& cause) const;
  void set_results(PlayingWarp& warp, double time, WaitCause producer);
  /// Clocks for which the pipe is busy with an instruction.
  double interval_of(const Sm& sm, const Sm::Scheduler& scheduler, const InsnCost& cost) const;

  /// Whether it computes while products of mma.sync run at its scheduler.
  bool is_beside_mma_sync(const Sm::Scheduler& scheduler, const InsnCost& cost) const;

  // What the trace says of an instruction. False: the warp waits, and the event comes again.
  bool handle(PlayingWarp& warp, const TraceEvent& event);

  // Memory.
  void handle_access(PlayingWarp& warp, const TraceEvent& event);
  void load_global(PlayingWarp& warp, const TraceEvent& event);
  void access_remote(PlayingWarp& warp, const TraceEvent& event);
  /// When a line that others ask for as well is there; 0: nobody waits for it.
  double line_under_way(const PlayingCta& cta, std::uint16_t area, std::uint64_t line);
  /// Whether the next request to the area goes on to HBM.
  bool is_miss(std::uint16_t area, double bytes);
  /// Of L1: no two CTAs share one.
  static std::uint64_t line_of_cta(const PlayingCta& cta, std::uint64_t line);
  /// What so many bytes of HBM cost beside themselves since it both reads and writes, in bytes.
  double turned(double bytes, bool is_write);
  /// Bytes that L2 writes to HBM to make room for so many.
  double written_back(double bytes);
  /// When the bytes of a request are there.
  double request(Sm& sm, std::uint16_t area, double bytes, bool is_write);
  /// The way through the load and store unit; a long queue in front of it holds the warp.
  double through_shared(PlayingWarp& warp, double wavefronts);

  // Asynchronous copies.
  bool handle_copy(PlayingWarp& warp, const TraceEvent& event);
  void copy_in(PlayingWarp& warp, const TraceEvent& event);
  void copy_out(PlayingWarp& warp, const TraceEvent& event);

  // Barriers and fences.
  bool handle_mbarrier(PlayingWarp& warp, const TraceEvent& event);
  bool handle_barrier(PlayingWarp& warp, const TraceEvent& event);
  void handle_fence(PlayingWarp& warp, const TraceEvent& event);
  /// Until others see what the warp has stored.
  double fence_clocks(PlayingWarp& warp) const;
  void arrive_at_mbarrier(const Event& arrival);
  /// `warp` will go on at that time since `by` has done what it waits for.
  void release(PlayingWarp& warp, const PlayingWarp& by, double time);
  bool await_mbarrier(PlayingWarp& warp, const TraceEvent& event);
  /// `needed`: arrivals that end the generation; `clocks`: from the last one to its end.
  void arrive_at_barrier(const PlayingWarp& warp, PlayingBarrier& barrier, std::uint32_t needed,
                         double clocks);
  void count_arrivals(PlayingCluster& cluster, const CtaTrace& trace);
  bool await_barrier(PlayingWarp& warp, PlayingBarrier& barrier, WaitCause cause);
  void arrive_at_grid_barrier(PlayingWarp& warp, std::uint64_t generation);

  // Tensor cores.
  bool handle_wgmma(PlayingWarp& warp, const TraceEvent& event);
  bool handle_tcgen05(PlayingWarp& warp, const TraceEvent& event);
  bool issue_wgmma(PlayingWarp& warp, const TraceEvent& event);
  bool await_wgmma(PlayingWarp& warp, const TraceEvent& event);
  void issue_tcgen05_mma(PlayingWarp& warp, const TraceEvent& event);
  void access_tensor_memory(PlayingWarp& warp, const TraceEvent& event);
  void multiply(PlayingCta& cta, double clocks);

  /// In the timeline, unless that is full.
  void show(const TimelineSpan& span);

  const KernelTiming& kernel_;
  const TimeParameters& p_;
  const MemoryShare& memory_;
  std::unordered_map<const CtaTrace*, std::unique_ptr<PreparedCta>> prepared_;
  std::priority_queue<Event> events_;
  std::uint64_t num_events_ = 0;
  double now_ = 0, end_ = 0;
  double own_delay_ = 0;  ///< that handle() asked for
  WaitCause own_cause_ = WaitCause::kOwn;
  std::uint64_t num_ctas_ = 0, num_live_ = 0, num_instructions_ = 0;
  std::vector<std::unique_ptr<PlayingPlace>> places_;
  std::size_t num_sms_ = 0;                             ///< of all places
  Server l2_, hbm_;                                     ///< of the device
  double dirty_bytes_ = 0;                              ///< of L2
  double read_ = 0, written_ = 0, turned_ = 0;          ///< bytes of HBM; turned()
  std::vector<std::unique_ptr<PlayingCluster>> ended_;  ///< at which something is still to arrive
  const Around& around_;
  /// Of a cooperative launch, by generation; and how many arrivals each needs
  std::unordered_map<std::uint64_t, PlayingBarrier> grid_barriers_;
  std::unordered_map<std::uint64_t, std::uint32_t> grid_arrivals_;
  double grid_trigger_ = -1;    ///< EngineResult::grid_trigger
  std::vector<double> asked_;   ///< by area: bytes so far
  std::vector<double> misses_;  ///< by area: the part of a miss that is due
  /// When each line was there that CTAs that started with the launch have loaded
  std::unordered_map<std::uint64_t, double> lines_there_;
  std::vector<double> waits_;
  std::vector<std::vector<double>> lines_;
  double warp_clocks_ = 0;
  std::vector<TimelineSpan> timeline_;
};

}  // namespace tilewright::sim
