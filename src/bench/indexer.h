// The sweep of the lightning indexer: running it, its log, and what is made of the log.
#pragma once

#include "report/terminal.h"
#include "verify/indexer_data.h"

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace tilewright::cli {

struct IndexSweep {
  std::vector<IndexShape> shapes;  ///< without formats
  std::vector<NumberFormat> formats;
  std::string deepgemm;  ///< library to run beside; empty: none
  int samples = 15;
  /// Of keys in memory, so that tables over them find cold ones.
  std::size_t cache_bytes = std::size_t{256} << 20;
  std::size_t tables = 8;
};

/// What the floors go by.
inline constexpr double kIndexBytesPerS = 4.3e12, kIndexFlopsPerS = 1600e12;

/// Runs all; the result is the log: docs/05-benchmarks.md describes it.
nlohmann::json run_index_sweep(const Device& device, const IndexSweep& sweep,
                               const std::string& command);

bool is_index_log_correct(const nlohmann::json& log);
std::string index_table(const nlohmann::json& log, const Style& style);
/// A page that needs nothing else.
std::string index_report(const nlohmann::json& log);

}  // namespace tilewright::cli
