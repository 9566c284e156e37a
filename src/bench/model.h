// Steps of a whole model over batches and contexts, on one rank or several: running them, their
// log, and what is made of the log.
#pragma once

#include "comm/communicator.h"
#include "model/kernel_runner/weights.h"
#include "model/model.h"
#include "report/terminal.h"

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace tilewright::cli {

/// A steady state of serving: whenever a request ends the next one comes.
struct ServeSweep {
  std::int64_t sequences = 0;  ///< of a rank (of all, where heads are divided); 0: not asked for
  std::int64_t input = 8192, output = 1024;  ///< tokens of a request
  std::int64_t requests = 8;                 ///< of a rank, that end while it is timed
};

struct ModelSweep {
  std::string name;                    ///< of the model, for the log
  std::vector<std::int64_t> batches;   ///< sequences of a rank; of all, where heads are divided
  std::vector<std::int64_t> contexts;  ///< tokens of each
  std::int64_t prompt = 8192;          ///< tokens of the timed prompt; 0: none
  std::int64_t chunk = 2048;           ///< prompt tokens of a step
  int samples = 15;
  model::RunnerOptions options;
  ServeSweep serve;  ///< if asked for, this alone
};

/// What the floors go by: an H200.
inline constexpr double kModelBytesPerS = 4.3e12;
inline constexpr double kModelBf16FlopsPerS = 790e12, kModelFp8FlopsPerS = 1600e12;

/// Runs all on this rank; every rank makes the same call, with its weights. The log is that of this
/// rank: docs/05-benchmarks.md describes it.
nlohmann::json run_model_sweep(const Device& device, std::shared_ptr<const model::Weights> weights,
                               const std::shared_ptr<comm::Communicator>& comm,
                               const ModelSweep& sweep, const std::string& command);

bool is_model_log_correct(const nlohmann::json& log);
std::string model_table(const nlohmann::json& log, const Style& style);
/// A page of logs, at least one, that needs nothing else.
std::string model_report(const std::vector<nlohmann::json>& logs);
/// A picture of the decode steps of logs, a line for each number of ranks, scheme and number of
/// layers: over the sequences of a GPU at the context that most have, or over contexts if all have
/// as many sequences. Of points that several logs have, those of the last; "" without times.
std::string model_image(const std::vector<nlohmann::json>& logs);

}  // namespace tilewright::cli
