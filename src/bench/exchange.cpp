#include "bench/exchange.h"

#include "tilewright/graph.h"
#include "tilewright/peer_reduce.h"

#include "base/error.h"
#include "bench/batch_report.h"
#include "bench/ladder.h"
#include "comm/peers/rank_sum.h"
#include "verify/device_facts.h"

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

using nlohmann::json;

// Whole numbers and halves below 2^11: fp32 adds 64 of them without rounding, in any order.
float exchanged_number(int rank, std::int64_t call, std::size_t i) {
  const auto x = static_cast<std::uint32_t>(i) * 2654435761u +
                 static_cast<std::uint32_t>(rank) * 97u + static_cast<std::uint32_t>(call) * 31u;
  return 0.5f * static_cast<float>(static_cast<int>(x >> 8 & 0xfff) - 2048);
}

std::vector<float> exchanged_numbers(int rank, std::int64_t call, std::size_t count) {
  std::vector<float> numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = exchanged_number(rank, call, i);
  return numbers;
}

class ExchangeSweeper {
 public:
  ExchangeSweeper(const Device& device, std::shared_ptr<comm::Communicator> comm,
                  const ExchangeSweep& sweep)
      : device_(device),
        stream_(device),
        begin_(device),
        end_(device),
        comm_(std::move(comm)),
        sweep_(sweep),
        sum_(comm::make_rank_sum(device, comm_)) {}

  bool has_peers() const { return sum_ != nullptr; }

  json run() {
    for (const std::int64_t bytes : sweep_.bytes) {
      run_size(bytes, "all_reduce", [this](void* data, std::int64_t count) {
        comm_->all_reduce(data, data, count, DType::kF32, stream_.handle());
      });
      if (sum_ == nullptr || bytes > PeerReduceProblem::kMostBytes) continue;
      run_size(bytes, "peer_reduce", [this](void* data, std::int64_t count) {
        sum_->run(data, data, count, DType::kF32, stream_.handle());
      });
    }
    return std::move(samples_);
  }

 private:
  void run_size(std::int64_t bytes, const char* kernel,
                const std::function<void(void*, std::int64_t)>& reduce) {
    const std::int64_t count = bytes / 4;
    Buffer data(device_, static_cast<std::size_t>(bytes));
    bool is_right = true;
    // Several calls in a row: buffers that take turns have to be right in each of them.
    for (std::int64_t call = 0; call < 7; ++call) {
      const std::vector<float> own =
          exchanged_numbers(comm_->rank(), call, static_cast<std::size_t>(count));
      data.upload(std::as_bytes(std::span(own)));
      reduce(data.data(), count);
      comm_->synchronize(stream_);
      is_right = is_right && data.to_vector<float>() == sums(call, static_cast<std::size_t>(count));
    }
    json sample = {{"kernel", kernel}, {"bytes", bytes}, {"ok", is_right}};
    sample["samples_us"] = json::array();
    if (!device_.is_simulated()) sample["samples_us"] = times_us(data, count, reduce);
    samples_.push_back(std::move(sample));
  }

  std::vector<float> sums(std::int64_t call, std::size_t count) const {
    std::vector<float> sums(count, 0);
    for (int rank = 0; rank < comm_->size(); ++rank)
      for (std::size_t i = 0; i < count; ++i) sums[i] += exchanged_number(rank, call, i);
    return sums;
  }

  std::vector<double> times_us(Buffer& data, std::int64_t count,
                               const std::function<void(void*, std::int64_t)>& reduce) {
    data.fill(std::byte{0});  // sums of sums stay 0
    const Graph graph = Graph::capture(stream_, [&] {
      for (int i = 0; i < sweep_.calls; ++i) reduce(data.data(), count);
    });
    std::vector<double> us;
    for (int i = 0; i < sweep_.samples; ++i) {
      graph.launch(stream_);  // brings the ranks together
      begin_.record(stream_);
      graph.launch(stream_);
      end_.record(stream_);
      comm_->synchronize(stream_);
      us.push_back(elapsed_us(begin_, end_) / sweep_.calls);
    }
    return us;
  }

  Device device_;
  Stream stream_;
  Event begin_, end_;
  std::shared_ptr<comm::Communicator> comm_;
  const ExchangeSweep& sweep_;
  std::unique_ptr<comm::RankSum> sum_;
  json samples_ = json::array();
};

}  // namespace

json run_exchange_sweep(const Device& device, const std::shared_ptr<comm::Communicator>& comm,
                        const ExchangeSweep& sweep, const std::string& command) {
  json log = ladder_header(device, command);
  log["kind"] = "exchange";
  log["tool"] = std::string("tilewright bench exchange ") + TILEWRIGHT_VERSION;
  log["cache"] = device.is_simulated()
                     ? "simulated: no times"
                     : fmt::format("{} calls in a graph, on one buffer", sweep.calls);
  for (const char* const key : {"ceiling_tflops", "ceiling"}) log.erase(key);
  ExchangeSweeper sweeper(device, comm, sweep);
  log["ranks"] = {{"count", comm->size()},
                  {"communicator", comm->description()},
                  {"has_peers", sweeper.has_peers()}};
  log["clocks_before"] = read_clocks(device);
  log["samples"] = sweeper.run();
  log["clocks_after"] = read_clocks(device);
  return log;
}

bool is_exchange_log_correct(const json& log) {
  for (const json& sample : log.at("samples"))
    if (!sample.value("ok", false)) return false;
  return !log.at("samples").empty();
}

std::string exchange_table(const json& log, const Style& style) {
  std::string text = log.at("ranks").value("communicator", "") + "\n";
  if (!log.at("ranks").value("has_peers", false))
    text += "no peer_reduce: the memory of other ranks is not mapped\n";
  text += fmt::format("{:<14}{:>10}{:>10}\n", "sum of fp32", "bytes", "us");
  for (const json& sample : log.at("samples")) {
    const double us = median_us(sample, "samples_us");
    const std::string cell = !sample.value("ok", false) ? style.bad(fmt::format("{:>10}", "WRONG"))
                             : us > 0                   ? fmt::format("{:>10.2f}", us)
                                      : style.good(fmt::format("{:>10}", "right"));
    text += fmt::format("{:<14}{:>10}{}\n", sample.at("kernel").get<std::string>(),
                        sample.at("bytes").get<std::int64_t>(), cell);
  }
  return text;
}

}  // namespace tilewright::cli
