#include "sim/time/issue_order.h"

#include <algorithm>
#include <array>
#include <span>
#include <unordered_map>
#include <unordered_set>

namespace tilewright::sim {

namespace {

/// Instructions that a label names: there a block begins.
std::unordered_set<const Instruction*> labelled(const KernelCode& code) {
  std::unordered_set<const Instruction*> out;
  std::unordered_set<const Function*> seen;
  for (const CodePlace& place : code.places) {
    if (place.function == nullptr || !seen.insert(place.function).second) continue;
    for (const Label& label : place.function->labels) {
      if (label.instruction_idx < place.function->body.size()) {
        out.insert(&place.function->body[label.instruction_idx]);
      }
    }
  }
  return out;
}

/// Where blocks begin; `is_end`: of an instruction, whether a block ends with it.
template <class IsEnd>
std::vector<std::size_t> starts_after(const KernelCode& code, IsEnd&& is_end) {
  const std::unordered_set<const Instruction*> named = labelled(code);
  std::vector<std::size_t> starts = {0};
  for (std::size_t i = 1; i < code.insns.size(); ++i) {
    const Instruction* const insn = code.place(code.insns[i]).syntax;
    const bool is_first = code.insns[i - 1].syntax != code.insns[i].syntax;
    const bool is_named = is_first && insn != nullptr && named.contains(insn);
    if (is_named || is_end(i - 1)) starts.push_back(i);
  }
  starts.push_back(code.insns.size());
  return starts;
}

/// Gives numbers to the values of one block after the other.
class Numberer {
 public:
  Numberer(const KernelCode& code, const std::vector<InsnCost>& costs)
      : code_(code), costs_(costs) {
    for (const Row row : code.rows) {
      rows_.try_emplace(row, static_cast<std::uint32_t>(rows_.size()));
    }
  }

  void add_block(std::size_t begin, std::size_t end) {
    std::unordered_map<Row, std::size_t> last_writer;
    for (std::size_t i = begin; i < end; ++i) {
      for (const Row row : written(i)) last_writer[row] = i;
    }
    std::unordered_map<Row, std::uint32_t> current;
    std::uint32_t num_inner = 0;
    for (std::size_t i = begin; i < end; ++i) {
      std::vector<std::uint32_t> reads;
      const auto read = [&](Row row) {
        const auto known = current.find(row);
        reads.push_back(known == current.end() ? rows_.at(row) : known->second);
      };
      for (const Row row : read_rows(i)) read(row);
      // Products are added to what they write.
      if (costs_[i].pipe == Pipe::kAsync) {
        for (const Row row : written(i)) read(row);
      }
      out_.first.push_back(static_cast<std::uint32_t>(out_.numbers.size()));
      out_.num_written.push_back(static_cast<std::uint16_t>(written(i).size()));
      for (const Row row : written(i)) {
        const bool is_last = last_writer.at(row) == i;
        current[row] =
            is_last ? rows_.at(row) : static_cast<std::uint32_t>(rows_.size()) + num_inner++;
        out_.numbers.push_back(current[row]);
      }
      out_.numbers.insert(out_.numbers.end(), reads.begin(), reads.end());
    }
    most_inner_ = std::max(most_inner_, num_inner);
  }

  ValueNumbers take() {
    out_.first.push_back(static_cast<std::uint32_t>(out_.numbers.size()));
    out_.count = static_cast<std::uint32_t>(rows_.size()) + most_inner_;
    return std::move(out_);
  }

 private:
  std::span<const Row> written(std::size_t insn) const {
    const RowUse& use = code_.uses[insn];
    return std::span(code_.rows).subspan(use.begin, use.num_written);
  }
  std::span<const Row> read_rows(std::size_t insn) const {
    const RowUse& use = code_.uses[insn];
    return std::span(code_.rows).subspan(use.begin + use.num_written, use.num_read);
  }

  const KernelCode& code_;
  const std::vector<InsnCost>& costs_;
  std::unordered_map<Row, std::uint32_t> rows_;
  std::uint32_t most_inner_ = 0;
  ValueNumbers out_;
};

/// Schedules the instructions [begin, end), which have no fence but perhaps the last.
class BlockScheduler {
 public:
  BlockScheduler(const ValueNumbers& values, const std::vector<InsnCost>& costs, std::size_t begin,
                 std::size_t end)
      : values_(values), costs_(costs), begin_(begin), nodes_(end - begin) {
    for (std::size_t i = 0; i < nodes_.size(); ++i) connect(i);
    for (std::size_t i = nodes_.size(); i-- > 0;) {
      double way = 0;
      for (const Edge& edge : nodes_[i].out) way = std::max(way, nodes_[edge.to].way + edge.delay);
      nodes_[i].way = way;
    }
  }

  /// Calls place(instruction) in the order of issue.
  template <class Place>
  void run(Place&& place) {
    std::vector<std::size_t> ready;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].num_before == 0) ready.push_back(i);
    }
    double now = 0;
    while (!ready.empty()) {
      const auto best = std::ranges::min_element(
          ready, [&](std::size_t a, std::size_t b) { return is_before(a, b, now); });
      const std::size_t node = *best;
      ready.erase(best);
      now = std::max(now, start_of(node));
      place(begin_ + node);
      const InsnCost& cost = costs_[begin_ + node];
      if (!cost.is_free) pipe_free_[static_cast<std::size_t>(cost.pipe)] = now + cost.interval;
      for (const Edge& edge : nodes_[node].out) {
        Node& next = nodes_[edge.to];
        next.earliest = std::max(next.earliest, now + edge.delay);
        if (--next.num_before == 0) ready.push_back(edge.to);
      }
      now += cost.slots;
    }
  }

 private:
  struct Edge {
    std::size_t to = 0;
    double delay = 0;
  };
  struct Node {
    std::vector<Edge> out;
    std::uint32_t num_before = 0;
    double way = 0;  ///< to the end of the block
    double earliest = 0;
  };

  double start_of(std::size_t node) const {
    const InsnCost& cost = costs_[begin_ + node];
    if (cost.is_free) return nodes_[node].earliest;
    return std::max(nodes_[node].earliest, pipe_free_[static_cast<std::size_t>(cost.pipe)]);
  }

  /// What can begin first, then what has the longest way, then what stands first.
  bool is_before(std::size_t a, std::size_t b, double now) const {
    const double start_a = std::max(now, start_of(a)), start_b = std::max(now, start_of(b));
    if (start_a != start_b) return start_a < start_b;
    if (nodes_[a].way != nodes_[b].way) return nodes_[a].way > nodes_[b].way;
    return a < b;
  }

  void add_edge(std::size_t from, std::size_t to, double delay) {
    nodes_[from].out.push_back({to, delay});
    ++nodes_[to].num_before;
  }

  void connect(std::size_t node) {
    const InsnCost& cost = costs_[begin_ + node];
    const std::uint32_t first = values_.first[begin_ + node];
    const std::uint32_t first_read = first + values_.num_written[begin_ + node];
    const double own = cost.is_free ? 0 : 1;
    for (std::uint32_t i = first_read; i < values_.first[begin_ + node + 1]; ++i) {
      const std::uint32_t value = values_.numbers[i];
      if (const auto writer = writers_.find(value); writer != writers_.end()) {
        add_edge(writer->second, node, costs_[begin_ + writer->second].latency);
      }
      readers_[value].push_back(node);
    }
    for (std::uint32_t i = first; i < first_read; ++i) {
      const std::uint32_t value = values_.numbers[i];
      if (const auto writer = writers_.find(value); writer != writers_.end()) {
        if (writer->second != node) add_edge(writer->second, node, own);
      }
      for (const std::size_t reader : readers_[value]) {
        if (reader != node) add_edge(reader, node, 0);
      }
      readers_[value].clear();
      writers_[value] = node;
    }
    if (cost.is_ordered || cost.is_fence) {
      if (last_ordered_ != kNobody) add_edge(last_ordered_, node, own);
      last_ordered_ = node;
    }
    // The end of the block comes last.
    if (cost.is_fence || cost.ends_block) {
      for (std::size_t i = 0; i < node; ++i) add_edge(i, node, 0);
    }
  }

  static constexpr std::size_t kNobody = ~std::size_t{0};

  const ValueNumbers& values_;
  const std::vector<InsnCost>& costs_;
  std::size_t begin_;
  std::vector<Node> nodes_;
  std::unordered_map<std::uint32_t, std::size_t> writers_;
  std::unordered_map<std::uint32_t, std::vector<std::size_t>> readers_;
  std::size_t last_ordered_ = kNobody;
  std::array<double, kNumPipes> pipe_free_{};
};

}  // namespace

std::vector<std::size_t> control_block_starts(const KernelCode& code,
                                              const std::vector<InsnCost>& costs) {
  return starts_after(code, [&](std::size_t insn) { return costs[insn].ends_block; });
}

IssueOrder issue_order(const KernelCode& code, const std::vector<InsnCost>& costs) {
  IssueOrder order;
  const std::size_t count = code.insns.size();
  order.block.resize(count);
  order.rank.resize(count);
  const std::vector<std::size_t> starts = starts_after(
      code, [&](std::size_t insn) { return costs[insn].ends_block || costs[insn].is_fence; });
  Numberer numberer(code, costs);
  for (std::size_t b = 0; b + 1 < starts.size(); ++b) numberer.add_block(starts[b], starts[b + 1]);
  order.values = numberer.take();
  for (std::size_t b = 0; b + 1 < starts.size(); ++b) {
    std::uint32_t rank = 0;
    BlockScheduler(order.values, costs, starts[b], starts[b + 1]).run([&](std::size_t i) {
      order.block[i] = static_cast<std::uint32_t>(b);
      order.rank[i] = rank++;
    });
  }
  return order;
}

}  // namespace tilewright::sim
