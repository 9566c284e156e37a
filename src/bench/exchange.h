// Sums over ranks by their size: through NCCL, and through the memory of all ranks.
#pragma once

#include "tilewright/device.h"

#include "comm/communicator.h"
#include "report/terminal.h"

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace tilewright::cli {

struct ExchangeSweep {
  std::vector<std::int64_t> bytes;  ///< of a message; multiples of 16
  int calls = 50;                   ///< in a graph
  int samples = 15;
};

/// All-reduce of fp32, each result compared with the sum on the host; every rank makes the same
/// call. The log is that of this rank: docs/05-benchmarks.md describes it.
nlohmann::json run_exchange_sweep(const Device& device,
                                  const std::shared_ptr<comm::Communicator>& comm,
                                  const ExchangeSweep& sweep, const std::string& command);

bool is_exchange_log_correct(const nlohmann::json& log);
std::string exchange_table(const nlohmann::json& log, const Style& style);

}  // namespace tilewright::cli
