#include "sim/exec/turn_order.h"

#include "sim/state/code.h"

#include <bit>
#include <utility>

namespace tilewright::sim {

void TurnOrder::begin(std::size_t num_turns) {
  is_over_.assign(num_turns, 0);
  num_over_.store(0);
}

void TurnOrder::await(std::size_t turn) {
  for (std::size_t over = num_over_.load(); over < turn; over = num_over_.load()) {
    num_over_.wait(over);
  }
}

void TurnOrder::finish(std::size_t turn) {
  const std::lock_guard lock(mutex_);
  is_over_[turn] = 1;
  std::size_t over = num_over_.load();
  if (over != turn) return;
  while (over < is_over_.size() && is_over_[over] != 0) ++over;
  num_over_.store(over);
  num_over_.notify_all();
}

void await_turn(const Cluster& cluster) {
  if (cluster.turn_order != nullptr) cluster.turn_order->await(cluster.turn);
}

namespace {

/// Whether a generic address is of shared or local memory, by its window.
bool is_own_window(std::uint64_t address) {
  const std::uint64_t window = address & kWindowMask;
  return window == kSharedWindow || window == kLocalWindow;
}

bool may_be_seen(Warp& warp, const AddressForm& form, std::uint32_t active) {
  if (form.space != AddressSpace::kGeneric) return form.space == AddressSpace::kGlobal;
  if (form.base == kNoRow || !form.is_wide) return true;
  const auto* base = warp.row<std::uint64_t>(form.base);
  for (std::uint32_t rest = active; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(rest));
    if (!is_own_window(base[lane] + static_cast<std::uint64_t>(form.offset))) return true;
  }
  return false;
}

}  // namespace

void await_turn(Warp& warp, const AddressForm& form, std::uint32_t active) {
  const Cluster& cluster = *warp.cta->cluster;
  if (cluster.turn_order == nullptr || !warp.grid->code->is_ordered) return;
  if (may_be_seen(warp, form, active)) await_turn(cluster);
}

Crew::Crew(std::uint32_t num_threads, Turn turn) : turn_(std::move(turn)) {
  for (std::uint32_t i = 1; i < num_threads; ++i) helpers_.emplace_back([this] { help(); });
}

Crew::~Crew() {
  is_over_ = true;
  ++round_;
  round_.notify_all();
}

void Crew::run_round(const std::vector<std::unique_ptr<Cluster>>& clusters) {
  order_.begin(clusters.size());
  for (std::size_t i = 0; i < clusters.size(); ++i) {
    clusters[i]->turn_order = &order_;
    clusters[i]->turn = i;
  }
  clusters_ = &clusters;
  next_ = 0;
  num_busy_ = static_cast<std::uint32_t>(helpers_.size());
  ++round_;
  round_.notify_all();
  take_turns();
  for (std::uint32_t busy = num_busy_; busy != 0; busy = num_busy_) num_busy_.wait(busy);
  for (const std::unique_ptr<Cluster>& cluster : clusters) cluster->turn_order = nullptr;
}

void Crew::help() {
  for (std::uint32_t known = 0;;) {
    round_.wait(known);
    if (is_over_) return;
    known = round_;
    take_turns();
    if (--num_busy_ == 0) num_busy_.notify_all();
  }
}

void Crew::take_turns() {
  struct Finish {
    TurnOrder& order;
    std::size_t turn;
    ~Finish() { order.finish(turn); }
  };
  for (std::size_t i = next_++; i < clusters_->size(); i = next_++) {
    const Finish finish{order_, i};
    turn_(*(*clusters_)[i]);
  }
}

}  // namespace tilewright::sim
