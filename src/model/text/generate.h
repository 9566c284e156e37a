// From prompts to continuations, and from a text to its score.
#pragma once

#include "model/model.h"
#include "model/text/batch_engine.h"
#include "model/text/sampler.h"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace tilewright::model {

struct GenerateOptions {
  SamplerOptions sampler;
  std::int64_t max_tokens = 64;      ///< new ones, of every sequence
  double max_seconds = 0;            ///< no further token after so long; 0: no limit
  std::vector<std::int32_t> ends;    ///< a sequence ends with the first of these that it gets
  std::int64_t prefill_chunk = 512;  ///< prompt tokens of a sequence in one step
  std::int64_t step_tokens = 0;      ///< as BatchOptions
  std::int64_t sequences = 0;        ///< the most at the same time; 0: all prompts
  bool has_draft = false;            ///< as BatchOptions
};

struct GenerateResult {
  std::vector<std::vector<std::int32_t>>
      tokens;                   ///< new ones, of every sequence, its end with them
  std::vector<bool> has_ended;  ///< whether the last of them is an end
  BatchCounts counts;
};

/// Called for every new token in the order they come.
using TokenSink = std::function<void(std::int64_t sequence, std::int32_t token)>;

/// Continues all prompts together, by a BatchEngine that they come to at once.
/// Errors   InvalidArgument if there is no prompt; as the engine's and the runner's
GenerateResult generate(Runner& runner, std::span<const std::vector<std::int32_t>> prompts,
                        const GenerateOptions& options, const TokenSink& sink = {});

/// How well a model predicts a text of tokens: token t + 1 from the tokens 0 .. t.
struct TextScore {
  std::int64_t tokens = 0;    ///< predicted
  double bits_per_token = 0;  ///< mean of -log2 p
  double kl_nats = 0;         ///< mean divergence of the model from the base, if there is one
  double same_best = 0;       ///< share of tokens with the base's likeliest token
};

/// Logits after the tokens 0 .. n - 2 of every text, run together from empty sequences.
/// Errors   as the runner's; InvalidArgument if a text has fewer than two tokens
std::vector<Logits> text_logits(Runner& runner, std::span<const std::vector<std::int32_t>> texts,
                                std::int64_t prefill_chunk = 512);

/// Mean over the rows of sum_i p_i ln(p_i / q_i), p of the base and q of `logits`, in nats.
/// Errors   InvalidArgument if the two have not as many rows of as many logits
double mean_kl(const Logits& base, const Logits& logits);

/// `base`: logits of another model for the same text, or nullptr. KL is sum_i p_i ln(p_i / q_i)
/// with p of the base and q of `logits`.
TextScore score_text(const Logits& logits, std::span<const std::int32_t> text,
                     const Logits* base = nullptr);

}  // namespace tilewright::model
