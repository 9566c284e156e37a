// A BatchEngine on every rank of a model whose ranks are processes, each with a program of its own.
#pragma once

#include "model/agreement.h"
#include "model/text/batch_engine.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace tilewright::model {

/// Every rank adds the same requests in the same order, before the same step, and takes the same
/// steps; all get the same tokens. Before each step they compare what they were told. A request
/// that one rank cancels ends on all with the next step: those that have not cancelled it get an
/// event of FinishReason::kCancelled without tokens.
///
/// Without other ranks it is the engine, and cancelled requests end at once, without an event.
///
/// Errors   as BatchEngine; InvalidArgument, on all ranks, if they were told different things. What
///          is thrown on a rank by step() ends the others, too: DeviceError with that sentence
/// Thread   one call at a time
class RankedBatch {
 public:
  /// `ranks`: null if there are no others, or if the runner has them all.
  RankedBatch(Runner& runner, const BatchOptions& options, std::unique_ptr<Agreement> ranks);

  std::int64_t add(BatchRequest request);
  /// False if it has ended or was cancelled already, or there never was one. It gets no further
  /// event on this rank.
  bool cancel(std::int64_t request);
  /// Nothing runs and nothing waits, on any rank.
  bool is_idle() const noexcept { return engine_.is_idle(); }
  std::vector<BatchEvent> step();
  const BatchCounts& counts() const noexcept { return engine_.counts(); }

 private:
  std::vector<BatchEvent> step_of_all(std::span<const std::int64_t> cancelled);

  BatchEngine engine_;
  std::unique_ptr<Agreement> ranks_;
  Told told_;
  std::int64_t requests_ = 0;
  std::vector<std::int64_t> cancelled_;  // here, and not yet on all ranks
};

}  // namespace tilewright::model
