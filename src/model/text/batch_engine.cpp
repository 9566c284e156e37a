#include "model/text/batch_engine.h"

#include "base/error.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

namespace tilewright::model {

namespace {

constexpr ErrorKind kBadBatch = ErrorKind::kInvalidArgument;

std::int64_t most_of_one(const RunnerLimits& limits) {
  return limits.cache_tokens > 0 ? std::min(limits.max_tokens, limits.cache_tokens)
                                 : limits.max_tokens;
}

}  // namespace

BatchEngine::BatchEngine(Runner& runner, const BatchOptions& options)
    : runner_(runner), options_(options), limits_(runner.limits()) {
  require(options.sequences >= 1 && options.step_tokens >= 0 && options.prefill_chunk >= 1,
          kBadBatch,
          "batch: sequences = {}, step_tokens = {}, prefill_chunk = {}; expected at least 1, 0 and "
          "1",
          options.sequences, options.step_tokens, options.prefill_chunk);
  require(!options.has_draft || limits_.has_draft, kBadBatch,
          "batch: has_draft, but the runner has no draft layer; expected RunnerOptions::has_draft");
  if (options_.step_tokens == 0) options_.step_tokens = limits_.step_tokens;
  // Drafts follow one step of the runner.
  if (options_.has_draft)
    options_.step_tokens = std::min(options_.step_tokens, limits_.step_tokens);
  runner_.start(options.sequences);
  for (std::int64_t i = 0; i < options.sequences; ++i) runner_.end(i);
  sequences_.resize(static_cast<std::size_t>(options.sequences));
  for (std::int64_t rank = 0; rank < limits_.groups; ++rank) {
    const Range range = rank_range({.rank = rank, .world = limits_.groups}, options.sequences);
    groups_.insert(groups_.end(), static_cast<std::size_t>(range.count),
                   static_cast<std::size_t>(rank));
  }
}

void BatchEngine::check(const BatchRequest& request) const {
  const std::int64_t length = std::ssize(request.prompt), most = most_of_one(limits_);
  require(length > 0, kBadBatch,
          "batch: an empty prompt; expected at least one token, for the model has no token that "
          "begins a text");
  require(request.max_tokens >= 0, kBadBatch, "batch: max_tokens = {}; expected at least 0",
          request.max_tokens);
  require(length <= most, kBadBatch,
          "batch: a prompt of {} tokens; expected at most {}, the context that the caches were "
          "made for: shorten it, or make room for more",
          length, most);
  const std::int64_t vocab = runner_.config().vocab;
  for (const std::int32_t token : request.prompt)
    require(token >= 0 && token < vocab, kBadBatch,
            "batch: a prompt has the token {}; expected 0 to {}, the vocabulary", token, vocab - 1);
}

std::int64_t BatchEngine::add(BatchRequest request) {
  check(request);
  const std::int64_t length = std::ssize(request.prompt);
  Waiting waiting;
  Sequence& sequence = waiting.sequence;
  sequence.sampler.emplace(request.sampler, request.sampler_sequence);
  // The last token goes to no step, and needs no room.
  const std::int64_t most = most_of_one(limits_);
  const std::int64_t new_tokens = std::min(request.max_tokens, most + 1 - length);
  waiting.room = std::min(length + new_tokens, most);
  sequence.request = next_request_++;
  sequence.tokens = std::move(request.prompt);
  sequence.prompt_tokens = length;
  sequence.most_tokens = length + new_tokens;
  sequence.ends = std::move(request.ends);
  waiting_.push_back(std::move(waiting));
  return waiting_.back().sequence.request;
}

bool BatchEngine::cancel(std::int64_t request) {
  const auto waits = std::ranges::find_if(
      waiting_, [&](const Waiting& waiting) { return waiting.sequence.request == request; });
  if (waits != waiting_.end()) {
    waiting_.erase(waits);
    return true;
  }
  for (std::size_t slot = 0; slot < sequences_.size(); ++slot) {
    if (sequences_[slot].is_free() || sequences_[slot].request != request) continue;
    free(slot);
    return true;
  }
  return false;
}

bool BatchEngine::has(std::int64_t request) const {
  const auto waits = [&](const Waiting& waiting) { return waiting.sequence.request == request; };
  const auto runs = [&](const Sequence& sequence) { return sequence.request == request; };
  return request >= 0 &&
         (std::ranges::any_of(waiting_, waits) || std::ranges::any_of(sequences_, runs));
}

void BatchEngine::free(std::size_t slot) {
  runner_.end(static_cast<std::int64_t>(slot));
  sequences_[slot] = {};
  --num_running_;
}

// A sequence of the group with the fewest that run, of those that have room.
std::optional<std::size_t> BatchEngine::find_slot(std::int64_t room) {
  const auto num_groups = static_cast<std::size_t>(limits_.groups);
  std::vector<std::int64_t> running(num_groups, 0);
  std::vector<std::optional<std::size_t>> free(num_groups);
  for (std::size_t slot = 0; slot < sequences_.size(); ++slot) {
    if (!sequences_[slot].is_free())
      ++running[group_of(slot)];
    else if (!free[group_of(slot)])
      free[group_of(slot)] = slot;
  }
  std::vector<std::size_t> order(num_groups);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t group) { return running[group]; });
  for (const std::size_t group : order)
    if (free[group] && runner_.begin(static_cast<std::int64_t>(*free[group]), room))
      return free[group];
  return std::nullopt;
}

void BatchEngine::admit() {
  while (!waiting_.empty()) {
    const std::optional<std::size_t> slot = find_slot(waiting_.front().room);
    if (!slot) return;
    sequences_[*slot] = std::move(waiting_.front().sequence);
    waiting_.pop_front();
    ++num_running_;
  }
}

// Numbers of the sequences that run, the one that came first at the front.
std::vector<std::size_t> BatchEngine::in_order() const {
  std::vector<std::size_t> slots;
  for (std::size_t slot = 0; slot < sequences_.size(); ++slot)
    if (!sequences_[slot].is_free()) slots.push_back(slot);
  std::ranges::sort(slots, {}, [&](std::size_t slot) { return sequences_[slot].request; });
  return slots;
}

// Those that decode go first: a long prompt does not keep them waiting.
std::vector<std::vector<std::int32_t>> BatchEngine::next_tokens() const {
  std::vector<std::vector<std::int32_t>> tokens(sequences_.size());
  std::vector<std::int64_t> rooms(static_cast<std::size_t>(limits_.groups), options_.step_tokens);
  const std::vector<std::size_t> slots = in_order();
  const auto give = [&](std::size_t slot, std::int64_t most) {
    const Sequence& sequence = sequences_[slot];
    std::int64_t& room = rooms[group_of(slot)];
    const auto first = sequence.tokens.begin() + sequence.done;
    const std::int64_t count = std::min({room, most, sequence.tokens.end() - first});
    tokens[slot].assign(first, first + count);
    room -= count;
  };
  for (const std::size_t slot : slots)
    if (sequences_[slot].is_decoding()) give(slot, 1);
  for (const std::size_t slot : slots) {
    std::int64_t& room = rooms[group_of(slot)];
    if (!sequences_[slot].guess || tokens[slot].empty() || room == 0) continue;
    tokens[slot].push_back(*sequences_[slot].guess);
    --room;
  }
  for (const std::size_t slot : slots)
    if (!sequences_[slot].is_decoding()) give(slot, options_.prefill_chunk);
  return tokens;
}

std::vector<std::int32_t> BatchEngine::draw(std::span<const std::vector<std::int32_t>> tokens,
                                            std::span<const std::int64_t> rows) {
  if (runner_.can_draw()) {
    std::vector<DrawnRows> drawn;
    for (std::size_t slot = 0; slot < tokens.size(); ++slot) {
      const std::optional<Sampler>& sampler = sequences_[slot].sampler;
      if (sampler)
        drawn.push_back({rows[slot], sampler->options(), sampler->sequence()});
      else
        drawn.emplace_back();
    }
    std::vector<std::int32_t> ids = runner_.run_and_draw(tokens, drawn);
    require(std::ranges::count(ids, -1) == 0, ErrorKind::kInvalidArgument,
            "sampler: none of {} logits is finite, or the largest is infinite; expected numbers. "
            "The model's arithmetic went wrong: compare its stages with --trace",
            runner_.config().vocab);
    return ids;
  }
  const Logits logits = runner_.run(tokens, rows);
  std::vector<std::int32_t> ids;
  for (std::size_t slot = 0; slot < tokens.size(); ++slot) {
    const std::int64_t end = sequences_[slot].done + std::ssize(tokens[slot]);
    for (std::int64_t position = end - rows[slot] + 1; position <= end; ++position)
      ids.push_back(sequences_[slot].sampler->draw(logits.row(std::ssize(ids)), position));
  }
  return ids;
}

std::vector<std::int32_t> BatchEngine::draw_drafts(std::span<const std::vector<std::int32_t>> next,
                                                   std::span<const std::int64_t> rows) {
  if (runner_.can_draw()) return runner_.draft_and_draw(next, rows);
  const Logits logits = runner_.draft(next, rows);
  std::vector<std::int32_t> ids;
  for (std::int64_t row = 0; row < logits.rows(); ++row) {
    const auto of_row = logits.row(row);
    ids.push_back(static_cast<std::int32_t>(std::ranges::max_element(of_row) - of_row.begin()));
  }
  return ids;
}

void BatchEngine::take(Sequence& sequence, std::int32_t token, BatchEvent& event) {
  if (std::ssize(sequence.tokens) < sequence.most_tokens) {
    sequence.tokens.push_back(token);
    event.tokens.push_back(token);
    ++counts_.new_tokens;
    if (std::ranges::count(sequence.ends, token) > 0) event.finish = FinishReason::kEnd;
  }
  if (!event.finish && std::ssize(sequence.tokens) == sequence.most_tokens)
    event.finish = FinishReason::kLength;
}

std::vector<BatchEvent> BatchEngine::step() {
  admit();
  if (num_running_ == 0) return {};
  const auto start = std::chrono::steady_clock::now();
  const auto tokens = next_tokens();
  std::vector<std::int64_t> rows, before;
  std::int64_t prompt_tokens = 0;
  for (std::size_t slot = 0; slot < tokens.size(); ++slot) {
    const Sequence& sequence = sequences_[slot];
    const std::int64_t count = std::ssize(tokens[slot]);
    const std::int64_t left = std::ssize(sequence.tokens) - sequence.done;
    if (!sequence.is_decoding()) prompt_tokens += count;
    before.push_back(sequence.done);
    rows.push_back(count >= left ? std::min(count, count - left + 1) : 0);
  }
  const std::vector<std::int32_t> drawn = draw(tokens, rows);
  std::vector<BatchEvent> events;
  std::size_t row = 0;
  std::int64_t new_tokens = 0;
  for (std::size_t slot = 0; slot < tokens.size(); ++slot) {
    Sequence& sequence = sequences_[slot];
    const bool has_guess = rows[slot] == 2;
    sequence.done += std::ssize(tokens[slot]) - (has_guess ? 1 : 0);
    if (rows[slot] == 0) continue;
    BatchEvent& event = events.emplace_back(BatchEvent{.request = sequence.request});
    take(sequence, drawn[row], event);
    if (has_guess) {
      const bool is_right = sequence.tokens.back() == tokens[slot].back();
      ++counts_.drafted;
      if (is_right) ++counts_.accepted, ++sequence.done;
      if (is_right && !event.finish) take(sequence, drawn[row + 1], event);
      if (!is_right) runner_.take_back(static_cast<std::int64_t>(slot), 1);
    }
    row += static_cast<std::size_t>(rows[slot]);
    new_tokens += std::ssize(event.tokens);
    if (event.finish) free(slot);
  }
  if (options_.has_draft) draft(before);
  std::ranges::sort(events, {}, &BatchEvent::request);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  ++counts_.steps;
  counts_.prompt_tokens += prompt_tokens;
  (prompt_tokens > 0 ? counts_.prefill_s : counts_.decode_s) += seconds.count();
  if (prompt_tokens == 0) counts_.decode_tokens += new_tokens;
  return events;
}

// The layer sees every token with the one behind it; what it says is of use from the prompt's last
// token on, as long as a step can give two tokens.
void BatchEngine::draft(const std::vector<std::int64_t>& before) {
  std::vector<std::vector<std::int32_t>> next(sequences_.size());
  std::vector<std::int64_t> rows(sequences_.size(), 0);
  bool is_needed = false;
  for (std::size_t slot = 0; slot < sequences_.size(); ++slot) {
    Sequence& sequence = sequences_[slot];
    if (sequence.is_free() || sequence.done == before[slot]) continue;
    sequence.guess.reset();
    if (std::ssize(sequence.tokens) + 2 > sequence.most_tokens) continue;
    const auto first = sequence.tokens.begin() + before[slot] + 1;
    next[slot].assign(first, first + (sequence.done - before[slot]));
    rows[slot] = sequence.is_decoding() ? 1 : 0;
    is_needed = true;
  }
  if (!is_needed) return;
  const std::vector<std::int32_t> guesses = draw_drafts(next, rows);
  auto guess = guesses.begin();
  for (std::size_t slot = 0; slot < sequences_.size(); ++slot)
    if (rows[slot] > 0) sequences_[slot].guess = *guess++;
}

}  // namespace tilewright::model
