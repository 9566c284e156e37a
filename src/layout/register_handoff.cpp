#include "layout/register_handoff.h"

#include "base/error.h"
#include "layout/print.h"

#include <algorithm>
#include <map>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tilewright {

namespace {

// Who holds element (row, column): the first (thread, value) that does.
struct Holder {
  int thread = -1, value = -1;
};

class HolderTable {
 public:
  HolderTable(const Layout& tv, std::int64_t rows, std::int64_t columns)
      : rows_(rows), holders_(static_cast<std::size_t>(rows * columns)) {
    const auto threads = static_cast<int>(size(tv, 0)), values = static_cast<int>(size(tv, 1));
    for (int value = 0; value < values; ++value) {
      for (int thread = 0; thread < threads; ++thread) {
        const std::int64_t at = tv(thread, value);
        require(at >= 0 && at < rows * columns, ErrorKind::kInvalidArgument,
                "handoff: {} maps thread {} value {} to {}, outside its {} x {} tile",
                to_string(tv), thread, value, at, rows, columns);
        Holder& holder = holders_[static_cast<std::size_t>(at)];
        if (holder.thread < 0) holder = {thread, value};
      }
    }
  }
  Holder at(std::int64_t row, std::int64_t column) const {
    return holders_[static_cast<std::size_t>(row + rows_ * column)];
  }
  // Which thread holds each row of a column: two columns with equal signatures can stand for each
  // other.
  std::vector<int> signature(std::int64_t column) const {
    std::vector<int> threads;
    for (std::int64_t row = 0; row < rows_; ++row) threads.push_back(at(row, column).thread);
    return threads;
  }

 private:
  std::int64_t rows_;
  std::vector<Holder> holders_;
};

struct HandoffOperands {
  const Layout& accumulator;
  const Layout& operand;
  std::int64_t m, n, k;

  int threads() const { return static_cast<int>(size(operand, 0)); }
  int step_values() const { return static_cast<int>(size(operand, 1)); }
  int consumer_values() const { return step_values() * static_cast<int>(n / k); }
  // Element that the operand's value `value` of `thread` stands for, over all k-steps.
  std::pair<std::int64_t, std::int64_t> wanted(int thread, int value) const {
    const std::int64_t at = operand(thread, value % step_values());
    return {at % m, at / m + value / step_values() * k};
  }
};

// For every operand value the accumulator value with the same element under the key numbering, or
// nothing if some thread lacks it or threads disagree about the register.
std::vector<int> register_map(const HandoffOperands& of, const HolderTable& held,
                              const std::vector<int>& key) {
  std::vector<int> map;
  for (int value = 0; value < of.consumer_values(); ++value) {
    int source = -1;
    for (int thread = 0; thread < of.threads(); ++thread) {
      const auto [row, slot] = of.wanted(thread, value);
      const Holder holder = held.at(row, key[static_cast<std::size_t>(slot)]);
      if (holder.thread != thread || (source >= 0 && source != holder.value)) return {};
      source = holder.value;
    }
    map.push_back(source);
  }
  return map;
}

// A numbering of the keys under which every thread finds its own columns: slots and keys with the
// same signature are matched in ascending order. Empty if there is none.
std::vector<int> find_key_permutation(const HandoffOperands& of, const HolderTable& held) {
  const HolderTable wanted(of.operand, of.m, of.k);
  std::map<std::vector<int>, std::vector<int>> keys_of;
  for (int key = 0; key < of.n; ++key) keys_of[held.signature(key)].push_back(key);
  std::map<std::vector<int>, std::size_t> used;
  std::vector<int> key_of_slot;
  for (int slot = 0; slot < of.n; ++slot) {
    const std::vector<int> signature = wanted.signature(slot % of.k);
    const auto keys = keys_of.find(signature);
    std::size_t& next = used[signature];
    if (keys == keys_of.end() || next == keys->second.size()) return {};
    key_of_slot.push_back(keys->second[next++]);
  }
  return key_of_slot;
}

int shortest_period(const std::vector<int>& key_of_slot) {
  const auto n = static_cast<int>(key_of_slot.size());
  for (int period = 1; period < n; ++period) {
    bool repeats = n % period == 0;
    for (int i = 0; repeats && i < n; ++i) {
      const int in_block = key_of_slot[static_cast<std::size_t>(i % period)];
      repeats = in_block < period &&
                key_of_slot[static_cast<std::size_t>(i)] == in_block + i / period * period;
    }
    if (repeats) return period;
  }
  return n;
}

std::vector<Move> find_moves(const HandoffOperands& of, const HolderTable& held) {
  std::vector<Move> moves;
  for (int thread = 0; thread < of.threads(); ++thread) {
    for (int value = 0; value < of.consumer_values(); ++value) {
      const auto [row, column] = of.wanted(thread, value);
      const Holder holder = held.at(row, column);
      if (holder.thread != thread) moves.push_back({thread, value, holder.thread, holder.value});
    }
  }
  return moves;
}

// Smallest power of two such that no value leaves its aligned group of that many threads.
int exchange_group(const std::vector<Move>& moves) {
  int group = 1;
  for (const Move& move : moves) {
    while (move.thread / group != move.from_thread / group) group *= 2;
  }
  return group;
}

void check_operands(const HandoffOperands& of) {
  require(rank(of.accumulator) == 2 && rank(of.operand) == 2, ErrorKind::kInvalidArgument,
          "handoff: accumulator {} and operand {} must both be (thread, value) layouts",
          to_string(of.accumulator), to_string(of.operand));
  require(size(of.accumulator, 0) == size(of.operand, 0), ErrorKind::kInvalidArgument,
          "handoff: the accumulator has {} threads, the operand {}; they must be the same threads",
          size(of.accumulator, 0), size(of.operand, 0));
  require(of.k > 0 && of.n % of.k == 0, ErrorKind::kInvalidArgument,
          "handoff: {} accumulator columns are not a multiple of the operand's k = {}", of.n, of.k);
}

// "0,1,8,9 2,3,10,11 ..." for one period of the permutation.
std::string period_text(const RegisterHandoff& handoff) {
  return fmt::format("{}", fmt::join(handoff.key_of_slot.begin(),
                                     handoff.key_of_slot.begin() + handoff.key_period, " "));
}

}  // namespace

const char* to_string(RegisterVerdict verdict) {
  switch (verdict) {
    case RegisterVerdict::kAsIs:
      return "as they are";
    case RegisterVerdict::kReorder:
      return "reorder registers";
    case RegisterVerdict::kPermuteKeys:
      return "permute keys";
    case RegisterVerdict::kExchange:
      return "exchange between lanes";
  }
  return "?";
}

RegisterHandoff analyze_register_handoff(const Layout& accumulator_tv, const Layout& operand_tv,
                                         std::int64_t m, std::int64_t n, std::int64_t k) {
  const HandoffOperands of{accumulator_tv, operand_tv, m, n, k};
  check_operands(of);
  const HolderTable held(accumulator_tv, m, n);
  RegisterHandoff out;
  out.num_threads = of.threads();
  out.producer_values = static_cast<int>(size(accumulator_tv, 1));
  out.consumer_values = of.consumer_values();
  out.key_of_slot.resize(static_cast<std::size_t>(n));
  std::iota(out.key_of_slot.begin(), out.key_of_slot.end(), 0);
  out.source_value = register_map(of, held, out.key_of_slot);
  if (!out.source_value.empty()) {
    const bool in_order = std::is_sorted(out.source_value.begin(), out.source_value.end()) &&
                          out.source_value.front() == 0 &&
                          out.source_value.back() == out.consumer_values - 1;
    out.verdict = in_order ? RegisterVerdict::kAsIs : RegisterVerdict::kReorder;
    return out;
  }
  out.moves = find_moves(of, held);
  out.exchange_group = exchange_group(out.moves);
  const std::vector<int> permutation = find_key_permutation(of, held);
  if (!permutation.empty()) out.source_value = register_map(of, held, permutation);
  if (out.source_value.empty()) {
    out.verdict = RegisterVerdict::kExchange;
    return out;
  }
  out.verdict = RegisterVerdict::kPermuteKeys;
  out.key_of_slot = permutation;
  out.key_period = shortest_period(permutation);
  return out;
}

std::string RegisterHandoff::explain() const {
  std::string out;
  switch (verdict) {
    case RegisterVerdict::kAsIs:
      return fmt::format(
          "The {} accumulator values of each of the {} threads are the operand's values, in order: "
          "convert, "
          "pack and re-read. No register moves, no lane exchanges.\n",
          consumer_values, num_threads);
    case RegisterVerdict::kReorder:
      return fmt::format(
          "Every thread already holds its operand values, in other registers. Operand values 0.. "
          "are "
          "accumulator values {}: rename, nothing moves between lanes.\n",
          fmt::join(source_value, " "));
    case RegisterVerdict::kPermuteKeys:
      out = fmt::format(
          "Not as they are: with the keys in their order {} of {} values change threads, within "
          "groups of "
          "{} lanes.\n"
          "With the keys renumbered nothing moves. Within every {} keys, let slot 0.. of the "
          "operand stand "
          "for key\n    {}\nand order the rows of the other operand the same way; a sum does not "
          "mind the "
          "order. Operand values 0.. are then accumulator values\n    {}\n",
          moves.size(), consumer_values * num_threads, exchange_group, key_period,
          period_text(*this),
          fmt::join(source_value.begin(),
                    source_value.begin() + std::min<std::ptrdiff_t>(consumer_values, 32), " "));
      return out;
    case RegisterVerdict::kExchange:
      break;
  }
  out = fmt::format(
      "{} of {} values change threads, within groups of {} lanes; no order of the keys avoids it. "
      "First "
      "moves:\n",
      moves.size(), consumer_values * num_threads, exchange_group);
  for (std::size_t i = 0; i < std::min<std::size_t>(moves.size(), 8); ++i) {
    const Move& move = moves[i];
    out += fmt::format("    thread {} value {}  <-  thread {} value {}\n", move.thread, move.value,
                       move.from_thread, move.from_value);
  }
  return out;
}

}  // namespace tilewright
