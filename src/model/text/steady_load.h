// Requests of one size that follow each other without a pause: what a runner that serves does in
// the long run.
#pragma once

#include "model/text/batch_engine.h"

#include <cstdint>
#include <random>

namespace tilewright::model {

struct SteadyLoadOptions {
  std::int64_t sequences = 1;             ///< at the same time, of each group (RunnerLimits)
  std::int64_t input = 1024, output = 1;  ///< tokens of a request
  SamplerOptions sampler = {.temperature = 1, .top_p = 0.95};
};

/// What a load has done since it began.
struct LoadMark {
  BatchCounts counts;
  double waited_s = 0;  ///< Runner::waited_s()
};

/// Prompts of random tokens. All sequences get one each, and the first answers are of lengths such
/// that from then on one ends every output / sequences steps: so while a number of them end, as
/// many prompts are read, and as many answers written, as in the long run.
///
///     SteadyLoad load(runner, {.sequences = 32, .input = 8192, .output = 1024});
///     load.warm_up();
///     const LoadMark before = load.mark();
///     load.run(8);
///
/// Ranks    each has a load of its own, and all do the same
/// Thread   one call at a time
class SteadyLoad {
 public:
  /// Starts the runner anew; nobody else uses it then.
  /// Errors   as BatchEngine
  SteadyLoad(Runner& runner, const SteadyLoadOptions& options);

  /// Until all sequences write and the first requests of each group have ended: so what is recorded
  /// of steps is recorded.
  void warm_up();
  /// Until so many requests of each group have ended, on average; others take their place.
  void run(std::int64_t requests);
  LoadMark mark() const { return {engine_.counts(), runner_.waited_s()}; }

 private:
  std::int64_t first_output(std::int64_t number) const;
  void add(std::int64_t output);

  Runner& runner_;
  SteadyLoadOptions options_;
  RunnerLimits limits_;
  BatchEngine engine_;
  std::uint64_t number_ = 0;
  std::mt19937_64 random_{1};  // the same everywhere
};

}  // namespace tilewright::model
