// Many prompts through one runner: first come, first served, as caches and steps have room.
#pragma once

#include "model/model.h"
#include "model/text/sampler.h"

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

namespace tilewright::model {

struct BatchOptions {
  std::int64_t sequences = 1;  ///< the most that run at the same time
  /// The most tokens of a step, of all sequences (of a rank's, where ranks divide them); 0: as many
  /// as a step of the runner takes.
  std::int64_t step_tokens = 0;
  std::int64_t prefill_chunk = kMostStepTokens;  ///< prompt tokens of a sequence in one step
  /// Speculative decoding: the draft layer guesses a token, and the next step takes it along.
  bool has_draft = false;
};

struct BatchRequest {
  std::vector<std::int32_t> prompt = {};
  std::int64_t max_tokens = 64;  ///< new ones
  SamplerOptions sampler = {};
  std::uint64_t sampler_sequence = 0;   ///< makes requests with one seed differ
  std::vector<std::int32_t> ends = {};  ///< it ends with the first of these that it gets
};

/// Why a request is at its end.
enum class FinishReason {
  kEnd,        ///< it got a token of BatchRequest::ends
  kLength,     ///< max_tokens, or the room of the model
  kCancelled,  ///< another rank has cancelled it (ranked_batch.h)
};

/// What a step gave a request.
struct BatchEvent {
  std::int64_t request = 0;
  std::vector<std::int32_t> tokens = {};    ///< new ones, in order
  std::optional<FinishReason> finish = {};  ///< with its last tokens
};

struct BatchCounts {
  std::int64_t steps = 0;
  std::int64_t prompt_tokens = 0;  ///< that went through the model
  std::int64_t new_tokens = 0;
  std::int64_t decode_tokens = 0;  ///< new ones of steps without prompt tokens
  std::int64_t drafted = 0;        ///< tokens that the draft layer guessed and a step took along
  std::int64_t accepted = 0;       ///< of these, those that were right
  /// Of steps with prompt tokens, and of the others.
  double prefill_s = 0, decode_s = 0;
};

/// A step over a batch of sequences: each that runs gets its next token, and what is left of the
/// step's tokens goes to prompts, in chunks, in the order in which requests came. A request waits
/// until a sequence is free and the caches have room for its prompt and all its new tokens; those
/// behind it wait, too. One that has ended, or is cancelled, gives its room back at once.
///
///     BatchEngine engine(runner, {.sequences = 16});
///     engine.add({.prompt = prompt});
///     while (!engine.is_idle())
///       for (const BatchEvent& event : engine.step()) ...   // and add() whenever one comes
///
/// Draws    on the device where the runner can: then ids alone come to the host
/// Ranks    that divide the sequences fill a step each; the next request goes to the one with the
///          fewest. All ranks have an engine of their own, make the same calls and get the same
/// Drafts   a step with a guessed token gives logits after the last token and after the guess. The
///          sampler draws from the first as ever; if it draws the guess, it draws from the second,
///          too, else the guess is taken back. So tokens are those without drafts, whatever the
///          temperature
/// Numbers  logits have the bits that a sequence gets alone where the runner's sums do not depend
///          on what else is in a step (the float64 runner); kernels round otherwise in steps of
///          other sizes, so that a token nearly as likely as the best may come instead
/// Thread   one call at a time
class BatchEngine {
 public:
  /// Starts the runner anew; nobody else uses it then.
  /// Errors   InvalidArgument for numbers below 1, or drafts of a runner without them; as
  ///          Runner::start()
  BatchEngine(Runner& runner, const BatchOptions& options);

  /// Its number, from 0.
  /// Errors   InvalidArgument, and nothing is added: an empty prompt, a token outside the
  ///          vocabulary, a prompt that is longer than the context or the caches allow, max_tokens
  ///          below 0; as Sampler
  std::int64_t add(BatchRequest request);
  /// False if it has ended already, or there never was one. It gets no further event.
  bool cancel(std::int64_t request);
  /// Whether it waits or runs.
  bool has(std::int64_t request) const;

  bool is_idle() const noexcept { return waiting_.empty() && num_running_ == 0; }
  std::int64_t num_waiting() const noexcept { return std::ssize(waiting_); }
  std::int64_t num_running() const noexcept { return num_running_; }
  /// One step of the runner; those of the requests that it brought further.
  /// Errors   as Runner::run()
  std::vector<BatchEvent> step();

  const BatchCounts& counts() const noexcept { return counts_; }

 private:
  struct Sequence {
    std::int64_t request = -1;              // none
    std::vector<std::int32_t> tokens = {};  // the prompt, then what it got
    std::int64_t prompt_tokens = 0, most_tokens = 0;
    std::int64_t done = 0;  // tokens that the runner has
    std::vector<std::int32_t> ends = {};
    std::optional<Sampler> sampler = {};
    std::optional<std::int32_t> guess = {};  // of the token behind the last

    bool is_free() const { return request < 0; }
    bool is_decoding() const { return done >= prompt_tokens; }
  };
  struct Waiting {
    Sequence sequence;
    std::int64_t room = 0;
  };

  void check(const BatchRequest& request) const;
  void admit();
  std::optional<std::size_t> find_slot(std::int64_t room);
  std::size_t group_of(std::size_t slot) const { return groups_[slot]; }
  std::vector<std::size_t> in_order() const;
  std::vector<std::vector<std::int32_t>> next_tokens() const;
  /// Tokens after the rows, of all sequences in order.
  std::vector<std::int32_t> draw(std::span<const std::vector<std::int32_t>> tokens,
                                 std::span<const std::int64_t> rows);
  std::vector<std::int32_t> draw_drafts(std::span<const std::vector<std::int32_t>> next,
                                        std::span<const std::int64_t> rows);
  void take(Sequence& sequence, std::int32_t token, BatchEvent& event);
  void draft(const std::vector<std::int64_t>& before);
  void free(std::size_t slot);

  Runner& runner_;
  BatchOptions options_;
  RunnerLimits limits_;
  std::deque<Waiting> waiting_;
  std::vector<Sequence> sequences_;  // by the runner's number
  std::vector<std::size_t> groups_;  // RunnerLimits::groups; likewise
  std::int64_t num_running_ = 0, next_request_ = 0;
  BatchCounts counts_;
};

}  // namespace tilewright::model
