// Times of single steps of a model, on the device alone: no host that samples stands between them.
#pragma once

#include "tilewright/graph.h"

#include "model/kernel_runner/step.h"
#include "model/model.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tilewright::cli {

struct TimedSequences {
  std::int64_t count = 1;    ///< of this rank; all ranks have as many
  std::int64_t context = 1;  ///< the most tokens of one
  std::int64_t chunk = 256;  ///< the most prompt tokens of a step
};

/// What one kind of operator takes of a step. Launches do not overlap those before them here, as
/// they do in a graph, so that the sum is more than a step.
struct OperatorTime {
  int calls = 0;
  double us = 0;
};

struct DecodeTimes {
  std::vector<double> us;             ///< of a step, from its tokens to its logits
  std::vector<std::string> launches;  ///< what a step launches, as Graph::nodes()
  std::vector<float> logits;          ///< of the last step and the first sequence; this rank's part
  std::map<std::string, OperatorTime> by_operator;  ///< of a step that is not a graph
};

/// The caches of some sequences, and steps over them. With several ranks all make the same calls;
/// where the experts are divided each has sequences of its own, else the same.
///
/// Tokens   drawn at random; content of the caches is what a prompt of such tokens leaves there
/// Thread   one at a time
class StepTimer {
 public:
  /// `options.max_tokens` is not read. `config`: of this rank (rank_config()).
  /// Errors   as those of a kernel runner; OutOfMemory
  StepTimer(const Device& device, const model::ModelArrays& model, const model::Config& config,
            const model::RunnerOptions& options, const TimedSequences& sequences,
            const model::StepRanks& ranks = {});
  ~StepTimer();

  /// Microseconds of each step of a prompt: `tokens` of them (0: as many as fit), of the first
  /// sequence of every rank; the last step with the logits of its last token.
  std::vector<double> prefill(std::int64_t tokens = 0);
  /// All sequences get the caches of the first.
  void copy_first_sequence();
  /// One new token of each sequence, the one that makes it `context` long: captured once, launched
  /// `samples` times and more. A sample is the mean of a few launches that follow each other.
  DecodeTimes decode(std::int64_t context, int samples);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tilewright::cli
