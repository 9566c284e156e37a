// The sweep over batches of sparse attention: running it, its log, and what is made of the log.
#pragma once

#include "report/terminal.h"
#include "verify/sparse_data.h"

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace tilewright::cli {

struct SparseSweep {
  std::vector<SparseShape> shapes;
  std::vector<std::int64_t> batches;
  std::vector<NumberFormat> formats;
  std::vector<std::string> kernels;  ///< empty: what plan() chooses, and no naive one
  std::string flashmla;              ///< library to run beside; empty: none
  int samples = 15;
  std::size_t sets = 8;  ///< lists that take turns
};

/// What the floors go by.
inline constexpr double kSparseBytesPerS = 4.3e12, kSparseFlopsPerS = 790e12;

/// Runs all; the result is the log: docs/05-benchmarks.md describes it.
nlohmann::json run_sparse_sweep(const Device& device, const SparseSweep& sweep,
                                const std::string& command);

bool is_sparse_log_correct(const nlohmann::json& log);
std::string sparse_table(const nlohmann::json& log, const Style& style);
/// A page that needs nothing else.
std::string sparse_report(const nlohmann::json& log);

}  // namespace tilewright::cli
