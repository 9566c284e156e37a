// What runs a DeepSeek-V4 model: one interface, a float64 runner and one of kernels behind it.
#pragma once

#include "formats/kv_page.h"
#include "model/weights.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::model {

/// Numbers of the indexer's keys and queries.
enum class IndexFormat { kBf16, kFp8, kMxfp4 };

/// Is told how many layers are on the device, while weights are taken there.
using LoadSink = std::function<void(std::int64_t layers)>;

/// Tokens of a page of compressed entries: what caches are handed out by.
inline constexpr std::int64_t kCacheBlock = 256;
inline constexpr std::int64_t kMostStepTokens = 2048;
/// So far below its greatest length a sequence can be taken back.
inline constexpr std::int64_t kMostTakenBack = 8;

/// How a runner keeps what it remembers.
struct RunnerOptions {
  /// Of window and compressed rows; nothing: not rounded at all, for the float64 runner alone.
  std::optional<KvFormat> kv = KvFormat::kFp8;
  IndexFormat index = IndexFormat::kMxfp4;  ///< not read if kv is nothing
  std::int64_t max_tokens = 4096;           ///< of a sequence, prompt and continuation together
  /// Of all sequences (of a rank's, where ranks divide them): what the compressed caches have pages
  /// for, which begin() hands out. 0: max_tokens for each, handed out by start().
  std::int64_t cache_tokens = 0;
  /// The most of one step of kernels, up to kMostStepTokens. Rings of window rows grow with it.
  std::int64_t step_tokens = 256;
  /// Also the draft layer, for which the weights need WeightsOptions::has_drafts.
  bool has_draft = false;
  LoadSink on_load = {};  ///< for a runner of kernels
};

/// An intermediate value of a forward pass. Stages are named like the tensors of a reference file
/// (docs/06-deepseek-v4.md): "attn_in", "q", "kv_fp8", "comp", "idx_selected", "router_ids", ...
/// Codes, indices and bytes are given as whole numbers.
struct Stage {
  std::string_view name;
  std::int64_t layer;     ///< -1: of the whole model (head_mix, final_norm, logits)
  std::int64_t sequence;  ///< its number in start()
  /// Position of the first row, or for the stages of compressed rows (comp*, idx_k) the number of
  /// the first entry. Rows are consecutive.
  std::int64_t first_row;
  std::vector<std::int64_t> shape;  ///< [rows, ...]; idx_scores: [rows, entries so far]
  std::span<const double> values;   ///< row-major, valid during the call
};

/// Is told of every stage, in the order of the layers, while forward() runs; on its thread.
using StageSink = std::function<void(const Stage&)>;

enum class LogitRows {
  kLast,  ///< of every sequence that got tokens, those after its last token
  kAll,   ///< those after every new token
};

struct Logits {
  std::int64_t vocab = 0;
  std::vector<double> values;  ///< [rows, vocab], sequences in order, tokens in order

  std::int64_t rows() const {
    return vocab > 0 ? static_cast<std::int64_t>(values.size()) / vocab : 0;
  }
  std::span<const double> row(std::int64_t idx) const {
    return std::span(values).subspan(static_cast<std::size_t>(idx * vocab),
                                     static_cast<std::size_t>(vocab));
  }
};

/// How tokens are drawn from logits: tilewright/sample.h.
struct SamplerOptions {
  double temperature = 0;  ///< 0: the largest logit; the lowest token of equal ones
  std::int64_t top_k = 0;  ///< only so many of the likeliest tokens; 0: all
  double top_p = 1;        ///< of these the likeliest whose probabilities reach this sum
  double min_p = 0;        ///< none that is so much less likely than the likeliest
  std::uint64_t seed = 0;
};

/// What follows the last new tokens of a sequence: drawn, and with which noise. The noise of a
/// token depends on the seed, on `sequence` and on the token's position alone.
struct DrawnRows {
  std::int64_t rows = 0;  ///< after so many of the last new tokens
  SamplerOptions sampler = {};
  std::uint64_t sequence = 0;  ///< makes sequences with one seed differ
};

/// What a runner has room for, in tokens.
struct RunnerLimits {
  std::int64_t max_tokens = 0;    ///< of a sequence
  std::int64_t cache_tokens = 0;  ///< of all sequences of a group; 0: max_tokens of each
  std::int64_t step_tokens = 0;   ///< of all sequences of a group in one step
  bool has_draft = false;         ///< draft() may be called
  /// Ranks that divide the sequences, in their order (rank_range()): each has its own caches and
  /// steps. One group where they are not divided.
  std::int64_t groups = 1;
};

/// A model with the memory of some sequences.
///
///     runner.start(2);
///     Logits logits = runner.forward({prompt_a, prompt_b}, LogitRows::kLast);
///     logits = runner.forward({{next_a}, {}}, LogitRows::kLast);   // b has ended
///     runner.end(1);
///     if (runner.begin(1, prompt_c.size() + 64)) runner.forward({{next_a}, prompt_c}, ...);
///
/// Thread   one call at a time
class Runner {
 public:
  virtual ~Runner() = default;

  virtual const Config& config() const = 0;
  /// One line: what runs where, with which formats.
  virtual std::string description() const = 0;
  virtual RunnerLimits limits() const = 0;

  /// Begins `num_sequences` empty sequences and forgets all others. With
  /// RunnerOptions::cache_tokens they have no room before begin().
  /// Errors   InvalidArgument if num_sequences < 1; OutOfMemory
  virtual void start(std::int64_t num_sequences) = 0;

  /// Ends what a sequence was and begins it anew, empty, with room for `tokens` tokens. False, and
  /// the sequence has ended: so many are not free, and other sequences have to end first.
  /// Errors   InvalidArgument if there is no such sequence, or it could never have such room
  virtual bool begin(std::int64_t sequence, std::int64_t tokens) = 0;
  /// Gives back a sequence's room; it takes no tokens until begin().
  /// Errors   InvalidArgument if there is no such sequence
  virtual void end(std::int64_t sequence) = 0;
  /// Removes the last tokens of a sequence, as if they had not come.
  /// Errors   InvalidArgument if there is no such sequence, or if it would have fewer than none, or
  ///          be more than kMostTakenBack tokens shorter than it has ever been
  virtual void take_back(std::int64_t sequence, std::int64_t tokens) = 0;

  /// Appends tokens[i] to sequence i, any number each (none: the sequence waits or has ended), and
  /// runs the model on them. Prompts come in chunks of any size. Logits are those after the last
  /// logit_rows[i] of the new tokens.
  /// Errors   InvalidArgument if there are not as many lists and numbers as sequences, all lists
  ///          are empty, a token is not in the vocabulary, a sequence would exceed its room, or
  ///          logits are asked for after more tokens than come
  virtual Logits run(std::span<const std::vector<std::int32_t>> tokens,
                     std::span<const std::int64_t> logit_rows) = 0;
  /// The draft layer of multi-token prediction, right after run(), on the tokens of that: it takes
  /// each with the one that follows it and predicts the one after that. next[i][k] follows new
  /// token k of sequence i; fewer than came: the others were taken back, or the sequence drafts no
  /// more. Logits are those of the last logit_rows[i] of them. A sequence drafts from its first
  /// token on, for the layer attends to what it has seen.
  ///
  ///     x_s = h_proj(hnorm(streams_s)) + e_proj(enorm(embed(next)))     of each stream s; at
  ///           position 0 the second part is left out
  ///     then a layer with a window, its own hyper-connection and norm, and the head of the model
  ///
  /// Errors   Unsupported without RunnerOptions::has_draft; InvalidArgument if tokens were left out
  ///          before, if more follow than came, or if run() took several steps
  virtual Logits draft(std::span<const std::vector<std::int32_t>> next,
                       std::span<const std::int64_t> logit_rows);
  /// Whether tokens can be drawn where the logits are, without these going to the host.
  virtual bool can_draw() const { return false; }
  /// run(), then draws a token after each of the rows that are named. In the order of the logits;
  /// -1 where no logit is finite.
  /// Errors   Unsupported unless can_draw(); as run()
  virtual std::vector<std::int32_t> run_and_draw(std::span<const std::vector<std::int32_t>> tokens,
                                                 std::span<const DrawnRows> rows);
  /// draft(), and of the rows the likeliest token each.
  /// Errors   Unsupported unless can_draw(); as draft()
  virtual std::vector<std::int32_t> draft_and_draw(std::span<const std::vector<std::int32_t>> next,
                                                   std::span<const std::int64_t> rows);
  /// Seconds that calls have waited for the device; of a runner without one 0.
  virtual double waited_s() const { return 0; }
  /// run() with the logits that `rows` names.
  Logits forward(std::span<const std::vector<std::int32_t>> tokens, LogitRows rows);

  /// Who is told of the stages; none by default. A kernel runner copies them from the device for
  /// that, which is slow.
  void set_stage_sink(StageSink sink) { sink_ = std::move(sink); }

 protected:
  const StageSink& stage_sink() const { return sink_; }

 private:
  StageSink sink_;
};

}  // namespace tilewright::model
