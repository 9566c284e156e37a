// The sweep over numbers of tokens of Mixture-of-Experts layers: running it, its log, and what is
// made of the log.
#pragma once

#include "report/terminal.h"
#include "verify/moe_data.h"

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace tilewright::cli {

struct MoeSweep {
  std::vector<MoeShape> shapes;
  NumberFormat format = NumberFormat::kNvfp4;
  std::vector<LinearActivations> activations;
  std::vector<std::int64_t> tokens;
  std::vector<std::string> kernels;  ///< of direct, band, wide, wide8; empty: all
  int samples = 15;                  ///< of each; fewer of slow ones
  std::int64_t distinct = 4;         ///< experts that differ
  bool has_steps = true;             ///< also times each launch alone
  bool has_single = false;           ///< an FP8 expert beside, by Moe::run_with_shared()
};

/// What the floors go by.
inline constexpr double kMoeBytesPerS = 4.3e12;
inline constexpr double kMoeBf16FlopsPerS = 790e12, kMoeFp8FlopsPerS = 1600e12;

/// Runs all; the result is the log: docs/05-benchmarks.md describes it.
nlohmann::json run_moe_sweep(const Device& device, const MoeSweep& sweep,
                             const std::string& command);

/// Adds the samples of other libraries: logs of bench/moe_peers.py.
/// Errors   ParseError if it is no such log
void merge_moe_peers(nlohmann::json& log, const nlohmann::json& peers);

bool is_moe_log_correct(const nlohmann::json& log);
std::string moe_table(const nlohmann::json& log, const Style& style);
/// A page that needs nothing else.
std::string moe_report(const nlohmann::json& log);

}  // namespace tilewright::cli
