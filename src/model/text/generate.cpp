#include "model/text/generate.h"

#include "base/error.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace tilewright::model {
namespace {

using Tokens = std::vector<std::int32_t>;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The tokens [done, done + chunk) of every text, as far as there are any.
std::vector<Tokens> next_chunks(std::span<const Tokens> texts, std::int64_t done,
                                std::int64_t chunk) {
  std::vector<Tokens> chunks;
  for (const Tokens& text : texts) {
    const auto size = static_cast<std::int64_t>(text.size());
    const auto first = std::min(done, size), last = std::min(done + chunk, size);
    chunks.emplace_back(text.begin() + first, text.begin() + last);
  }
  return chunks;
}

std::int64_t longest(std::span<const Tokens> texts) {
  std::size_t size = 0;
  for (const Tokens& text : texts) size = std::max(size, text.size());
  return static_cast<std::int64_t>(size);
}

// log of softmax at `token`, and the whole log-sum.
double log_sum(std::span<const double> row) {
  const double max = *std::ranges::max_element(row);
  double sum = 0;
  for (const double z : row) sum += std::exp(z - max);
  return max + std::log(sum);
}

std::ptrdiff_t best(std::span<const double> row) {
  return std::ranges::max_element(row) - row.begin();
}

double kl(std::span<const double> base, std::span<const double> row) {
  const double base_sum = log_sum(base), sum = log_sum(row);
  double nats = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const double log_p = base[i] - base_sum;
    nats += std::exp(log_p) * (log_p - (row[i] - sum));
  }
  return nats;
}

}  // namespace

GenerateResult generate(Runner& runner, std::span<const Tokens> prompts,
                        const GenerateOptions& options, const TokenSink& sink) {
  require(!prompts.empty(), ErrorKind::kInvalidArgument,
          "generate: no prompt; expected at least one");
  const auto start = std::chrono::steady_clock::now();
  BatchEngine engine(runner,
                     {.sequences = options.sequences > 0 ? options.sequences : std::ssize(prompts),
                      .step_tokens = options.step_tokens,
                      .prefill_chunk = options.prefill_chunk,
                      .has_draft = options.has_draft});
  for (std::size_t i = 0; i < prompts.size(); ++i)
    engine.add({.prompt = prompts[i],
                .max_tokens = options.max_tokens,
                .sampler = options.sampler,
                .sampler_sequence = i,
                .ends = options.ends});
  GenerateResult result;
  result.tokens.resize(prompts.size());
  result.has_ended.resize(prompts.size());
  const auto is_late = [&] {
    return options.max_seconds > 0 && seconds_since(start) > options.max_seconds;
  };
  while (!engine.is_idle()) {
    for (const BatchEvent& event : engine.step()) {
      const auto number = static_cast<std::size_t>(event.request);
      for (const std::int32_t token : event.tokens) {
        result.tokens[number].push_back(token);
        if (sink) sink(event.request, token);
      }
      result.has_ended[number] = event.finish == FinishReason::kEnd;
    }
    // Every prompt gets its first token.
    const bool is_reading = std::ranges::any_of(result.tokens, &Tokens::empty);
    if (!is_reading && is_late()) break;
  }
  result.counts = engine.counts();
  return result;
}

std::vector<Logits> text_logits(Runner& runner, std::span<const Tokens> texts,
                                std::int64_t prefill_chunk) {
  std::vector<Tokens> inputs(texts.begin(), texts.end());
  for (Tokens& input : inputs) {
    require(input.size() >= 2, ErrorKind::kInvalidArgument,
            "score: a text of {} tokens; expected at least 2, for the first is not predicted",
            input.size());
    input.pop_back();
  }
  std::vector<Logits> logits(inputs.size());
  runner.start(static_cast<std::int64_t>(inputs.size()));
  for (std::int64_t done = 0; done < longest(inputs); done += prefill_chunk) {
    const auto chunks = next_chunks(inputs, done, prefill_chunk);
    const Logits part = runner.forward(chunks, LogitRows::kAll);
    auto from = part.values.begin();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const auto count = static_cast<std::int64_t>(chunks[i].size()) * part.vocab;
      logits[i].vocab = part.vocab;
      logits[i].values.insert(logits[i].values.end(), from, from + count);
      from += count;
    }
  }
  return logits;
}

double mean_kl(const Logits& base, const Logits& logits) {
  require(base.vocab == logits.vocab && base.rows() == logits.rows(), ErrorKind::kInvalidArgument,
          "mean_kl: {} rows of {} and {} of {} logits; expected the same", base.rows(), base.vocab,
          logits.rows(), logits.vocab);
  double sum = 0;
  for (std::int64_t row = 0; row < base.rows(); ++row) sum += kl(base.row(row), logits.row(row));
  return base.rows() > 0 ? sum / static_cast<double>(base.rows()) : 0;
}

TextScore score_text(const Logits& logits, std::span<const std::int32_t> text, const Logits* base) {
  TextScore score;
  score.tokens = logits.rows();
  require(score.tokens + 1 == static_cast<std::int64_t>(text.size()) &&
              (base == nullptr || base->values.size() == logits.values.size()),
          ErrorKind::kInvalidArgument,
          "score: logits for {} tokens of a text of {}; expected them for all but the last",
          score.tokens, text.size());
  for (std::int64_t t = 0; t < score.tokens; ++t) {
    const auto row = logits.row(t);
    const double sum = log_sum(row);
    const auto next = static_cast<std::size_t>(text[static_cast<std::size_t>(t) + 1]);
    score.bits_per_token += (sum - row[next]) / std::log(2.0);
    if (base == nullptr) continue;
    score.kl_nats += kl(base->row(t), row);
    score.same_best += best(row) == best(base->row(t));
  }
  const auto tokens = static_cast<double>(std::max<std::int64_t>(score.tokens, 1));
  score.bits_per_token /= tokens;
  score.kl_nats /= tokens;
  score.same_best /= tokens;
  return score;
}

}  // namespace tilewright::model
