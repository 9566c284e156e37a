// The sequences of a runner: how long each is, what it has room for, and the blocks of the caches
// that it holds.
#pragma once

#include "model/model.h"
#include "model/share.h"

#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

namespace tilewright::model {

struct SequenceState {
  std::int64_t length = 0;
  std::int64_t room = 0;     ///< tokens that it may have
  std::int64_t longest = 0;  ///< before tokens were taken back: what lies far before it is gone
  std::int64_t drafted = 0;  ///< tokens that the draft layer has seen
  std::int64_t before = 0;   ///< length before the last run()
  std::vector<std::int32_t> blocks = {};  ///< of kCacheBlock tokens each, in order
};

/// New tokens of one sequence in a step.
struct NewTokens {
  std::int64_t sequence, first_row;  ///< row of the step's tensors
  std::int64_t start, count;         ///< positions
};

/// What comes to the sequences, and how many of the last tokens of each need logits.
struct NewText {
  std::span<const std::vector<std::int32_t>> tokens;
  std::span<const std::int64_t> logit_rows;
};

/// New tokens of a step, and those whose logits are needed.
struct StepPlan {
  std::vector<NewTokens> tokens;
  /// Offsets of the sequences' tokens, where the sequences stand, ids.
  std::vector<std::int32_t> inputs;
  std::int64_t count = 0, longest = 0;
  std::vector<std::int64_t> logit_rows;  ///< rows of the step, ascending

  std::int64_t num_logit_rows() const { return std::ssize(logit_rows); }
};

/// The checks of run() and of the functions that begin and end sequences, and what these change;
/// all runners have one.
class Sequences {
 public:
  /// `groups`: ranks that divide the sequences, each with a pool of its own.
  Sequences(const Config& config, const RunnerOptions& options, std::int64_t groups = 1);

  RunnerLimits limits() const noexcept { return limits_; }
  std::int64_t count() const noexcept { return static_cast<std::int64_t>(states_.size()); }
  const SequenceState& operator[](std::int64_t sequence) const {
    return states_[static_cast<std::size_t>(sequence)];
  }

  /// Runner's functions of these names. Errors   as there
  void start(std::int64_t num_sequences);
  bool begin(std::int64_t sequence, std::int64_t tokens);
  void end(std::int64_t sequence);
  void take_back(std::int64_t sequence, std::int64_t tokens);

  /// Errors   as Runner::run()
  void check_run(std::span<const std::vector<std::int32_t>> tokens,
                 std::span<const std::int64_t> logit_rows) const;
  /// Those of run() have come.
  void append(std::span<const std::vector<std::int32_t>> tokens);
  /// Errors   as Runner::draft()
  void check_draft(std::span<const std::vector<std::int32_t>> next,
                   std::span<const std::int64_t> logit_rows) const;
  void append_drafted(std::span<const std::vector<std::int32_t>> next);

  /// As many tokens of those sequences as there is room for in a step, the first ones first;
  /// `done`, of each sequence, grows by them. `has_idle`: one further sequence, which nobody reads,
  /// has a token if no other has one.
  StepPlan plan_step(const NewText& text, std::vector<std::int64_t>& done, const Range& sequences,
                     std::int64_t room, bool has_idle) const;

 private:
  void check(const char* function, std::int64_t sequence) const;
  void check_room(std::int64_t sequence, std::int64_t new_tokens) const;

  const Config& config_;
  RunnerLimits limits_;
  std::vector<SequenceState> states_;
  std::vector<std::int32_t>& free_of(std::int64_t sequence);
  std::vector<std::vector<std::int32_t>> free_;  // blocks of each group, the next one last
};

}  // namespace tilewright::model
