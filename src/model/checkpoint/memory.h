// Where the memory of a device goes when a model runs on it, and what would fit.
#pragma once

#include "model/checkpoint/plan_model.h"

#include <cstdint>
#include <functional>
#include <string>

namespace tilewright::model {

struct MemoryRequest {
  StepShape step;  ///< a rank's; step.tokens: the most of a step
  bool has_drafts = false;
  bool has_idle = false;  ///< one of step.sequences is a rank's idle one, which nobody asked for
  /// Block format of the weight `name` ("" for plain numbers); absent: as released.
  std::function<std::string(const std::string& name)> format_of = {};
};

/// Bytes on a rank.
struct MemoryUse {
  std::int64_t experts = 0;     ///< routed ones
  std::int64_t layers = 0;      ///< everything else of the layers
  std::int64_t vocabulary = 0;  ///< embedding, head, and what comes before it
  std::int64_t drafts = 0;
  std::int64_t caches = 0;  ///< pages and states of all sequences
  std::int64_t step = 0;    ///< activations, rotation tables, workspaces

  std::int64_t weights() const noexcept { return experts + layers + vocabulary + drafts; }
  std::int64_t total() const noexcept { return weights() + caches + step; }
};

/// Of the weights alone, as kernel_runner/weights.h holds them.
MemoryUse weight_memory(const MemoryRequest& request);
/// Pages and compressors' states of StepShape::sequences, as kernel_runner/memory.h holds them.
std::int64_t cache_memory(const StepShape& shape);
/// `device` plans the operators; it may be one that was opened to plan alone.
MemoryUse memory_use(const Device& device, const MemoryRequest& request);

/// What would fit if one thing were changed; 0: nothing would.
struct MemoryFit {
  std::int64_t sequences = 0;     ///< on a rank, but an idle one, at the context asked for
  std::int64_t context = 0;       ///< of as many sequences as asked for
  std::int64_t ranks = 0;         ///< twice as many and so on, each with as many sequences
  std::int64_t cache_tokens = 0;  ///< of a pool of all sequences, where that is asked for
};
MemoryFit memory_fit(const Device& device, const MemoryRequest& request,
                     std::int64_t available_bytes);

/// "" if it fits; else the sentence that says what is needed, what there is, and what would fit.
std::string memory_problem(const Device& device, const MemoryRequest& request,
                           std::int64_t available_bytes);

/// Refuses a model for which the device has no room, before anything of it goes there. `sequences`:
/// of all ranks; where they divide them, a runner has an idle one more. What the runner itself
/// refuses, formats and numbers, is left to it.
/// Errors   OutOfMemory: memory_problem()
void require_memory(const Device& device, const Weights& weights, const RunnerOptions& options,
                    std::int64_t sequences, bool has_runner = true);
/// The same of weights that are not there yet. `source`: what the message calls them.
/// `step.sequences`: of all ranks.
void require_memory(const Device& device, const std::string& source, StepShape step,
                    bool has_runner = true);

}  // namespace tilewright::model
