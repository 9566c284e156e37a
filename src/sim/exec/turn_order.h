// The order of turns when CTAs that can talk to each other run on several host threads.
//
// In a round each resident cluster has a turn. The turns run at the same time up to the first thing
// that another cluster could notice: an access that orders or an atomic, a fault, a line of printf.
// There a turn waits until all turns before it in the round are over. So everything that clusters
// tell each other happens in the order of one host thread, and results do not depend on how many
// there are. Only races between plain accesses, which no program may rely on, are seen as they
// fall.
#pragma once

#include "sim/memory/access.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace tilewright::sim {

/// Thread   safe, but for begin()
class TurnOrder {
 public:
  void begin(std::size_t num_turns);
  /// Until all turns before this one are over.
  void await(std::size_t turn);
  void finish(std::size_t turn);

 private:
  std::mutex mutex_;
  std::vector<char> is_over_;
  std::atomic<std::size_t> num_over_{0};  ///< of the first turns, without a gap
};

/// Until what the cluster does next may be seen by others. At once on a single host thread.
void await_turn(const Cluster& cluster);
/// The same before an access of these lanes, if it may be to memory that other clusters see, and if
/// the kernel's accesses have an order at all (KernelCode::is_ordered).
void await_turn(Warp& warp, const AddressForm& form, std::uint32_t active);

/// Host threads for the rounds of a launch.
class Crew {
 public:
  using Turn = std::function<void(Cluster&)>;

  /// `num_threads`: with the one that calls run_round().
  Crew(std::uint32_t num_threads, Turn turn);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  /// One turn for each.
  void run_round(const std::vector<std::unique_ptr<Cluster>>& clusters);

 private:
  void help();
  void take_turns();

  Turn turn_;
  TurnOrder order_;
  const std::vector<std::unique_ptr<Cluster>>* clusters_ = nullptr;
  std::atomic<std::size_t> next_{0};
  std::atomic<std::uint32_t> round_{0}, num_busy_{0};
  std::atomic<bool> is_over_{false};
  std::vector<std::jthread> helpers_;
};

}  // namespace tilewright::sim
