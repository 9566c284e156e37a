// The sweep over all rungs of the attention ladder: running it, its log, and what is made of the
// log.
#pragma once

#include "report/terminal.h"
#include "verify/attention/data.h"

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::cli {

/// One shape: a row of plots and tables.
struct LadderCase {
  std::string name;    ///< "causal d128 n4096"
  std::string inputs;  ///< "N(0,1)", or the file and prefix
  AttentionProblem problem;
};

/// The kernels that a ladder compares: all but those that read keys in pages, which it has none of.
std::span<const AttentionKernelInfo> ladder_rungs();
/// The one of a name; nullptr if there is none, as for some of an old log.
const AttentionKernelInfo* find_rung(std::string_view name);

struct LadderPlan {
  std::vector<std::string> kernels;  ///< names of candidates, first rung first
  std::vector<LadderCase> cases;
  int samples = 15;              ///< of each kernel and shape; fewer of slow ones
  double budget_s = 6;           ///< of timed runs for each kernel and shape
  std::int64_t check_rows = 64;  ///< for each shape
  std::uint64_t seed = 1;
};

/// Runs all. The result is the log: docs/05-benchmarks.md describes it. `load` gives the operands
/// of a case; those of the last are kept.
class LadderSource {
 public:
  virtual ~LadderSource() = default;
  virtual AttentionData& load(const LadderCase& ladder_case) = 0;
};
nlohmann::json run_ladder(const Device& device, const LadderPlan& plan, LadderSource& source);

/// What a log begins with: version, commit, command, device, clocks.
nlohmann::json ladder_header(const Device& device, const std::string& command);

/// Attention of new tokens over a few lengths, for the report's last page: a log of `bench decode`,
/// kept as log["decode"].
nlohmann::json run_ladder_decode(const Device& device, int samples);

/// Adds the samples of other libraries: logs of bench/attention_peers.py.
/// Errors   ParseError if it is no such log
void merge_peers(nlohmann::json& log, const nlohmann::json& peers);

/// Checks that every result is correct; prints tables.
std::string ladder_table(const nlohmann::json& log, const Style& style);
bool is_ladder_correct(const nlohmann::json& log);

/// A page that needs nothing else, with plots of everything.
std::string ladder_report(const nlohmann::json& log);

}  // namespace tilewright::cli
