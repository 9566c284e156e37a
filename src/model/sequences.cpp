#include "model/sequences.h"

#include "base/error.h"

#include <algorithm>
#include <utility>

namespace tilewright::model {

namespace {

constexpr ErrorKind kBadCall = ErrorKind::kInvalidArgument;

std::int64_t blocks_for(std::int64_t tokens) {
  return (tokens + kCacheBlock - 1) / kCacheBlock;
}

}  // namespace

Sequences::Sequences(const Config& config, const RunnerOptions& options, std::int64_t groups)
    : config_(config),
      limits_{.max_tokens = std::min(options.max_tokens, config.max_positions),
              .cache_tokens = blocks_for(options.cache_tokens) * kCacheBlock,
              .step_tokens = options.step_tokens,
              .has_draft = options.has_draft,
              .groups = groups} {
  require(options.max_tokens >= 1 && options.cache_tokens >= 0, kBadCall,
          "model: max_tokens = {}, cache_tokens = {}; expected at least 1 and at least 0",
          options.max_tokens, options.cache_tokens);
  require(options.step_tokens >= 1 && options.step_tokens <= kMostStepTokens, kBadCall,
          "model: step_tokens = {}; expected 1 to {}", options.step_tokens, kMostStepTokens);
}

void Sequences::start(std::int64_t num_sequences) {
  require(num_sequences >= 1, kBadCall, "model: start({}) sequences; expected at least 1",
          num_sequences);
  const bool has_blocks = limits_.cache_tokens > 0;
  states_.assign(static_cast<std::size_t>(num_sequences),
                 {.room = has_blocks ? 0 : limits_.max_tokens});
  std::vector<std::int32_t> blocks;
  for (std::int64_t b = limits_.cache_tokens / kCacheBlock; b > 0; --b)
    blocks.push_back(static_cast<std::int32_t>(b - 1));
  free_.assign(static_cast<std::size_t>(limits_.groups), blocks);
}

std::vector<std::int32_t>& Sequences::free_of(std::int64_t sequence) {
  std::int64_t group = limits_.groups - 1;
  while (rank_range({.rank = group, .world = limits_.groups}, count()).first > sequence) --group;
  return free_[static_cast<std::size_t>(group)];
}

bool Sequences::begin(std::int64_t sequence, std::int64_t tokens) {
  check("begin", sequence);
  require(tokens >= 0 && tokens <= limits_.max_tokens, kBadCall,
          "model: begin() of sequence {} with room for {} tokens; expected 0 to {}, the most of a "
          "sequence: raise max_tokens",
          sequence, tokens, limits_.max_tokens);
  require(limits_.cache_tokens == 0 || tokens <= limits_.cache_tokens, kBadCall,
          "model: begin() of sequence {} with room for {} tokens; the caches have {} for all "
          "sequences: raise cache_tokens",
          sequence, tokens, limits_.cache_tokens);
  end(sequence);
  SequenceState& state = states_[static_cast<std::size_t>(sequence)];
  if (limits_.cache_tokens > 0) {
    const std::int64_t blocks = blocks_for(tokens);
    std::vector<std::int32_t>& free = free_of(sequence);
    if (blocks > std::ssize(free)) return false;
    state.blocks.assign(free.rbegin(), free.rbegin() + blocks);
    free.resize(free.size() - static_cast<std::size_t>(blocks));
  }
  state.room = tokens;
  return true;
}

void Sequences::end(std::int64_t sequence) {
  check("end", sequence);
  SequenceState& state = states_[static_cast<std::size_t>(sequence)];
  std::vector<std::int32_t>& free = free_of(sequence);
  free.insert(free.end(), state.blocks.rbegin(), state.blocks.rend());
  state = {};
}

void Sequences::take_back(std::int64_t sequence, std::int64_t tokens) {
  check("take_back", sequence);
  SequenceState& state = states_[static_cast<std::size_t>(sequence)];
  const std::int64_t least = std::max<std::int64_t>(0, state.longest - kMostTakenBack);
  require(
      tokens >= 0 && state.length - tokens >= least, kBadCall,
      "model: take_back() of {} of {} tokens of sequence {}; expected 0 to {}: only the last {} "
      "are still known",
      tokens, state.length, sequence, state.length - least, kMostTakenBack);
  state.length -= tokens;
  state.drafted = std::min(state.drafted, state.length);
}

void Sequences::check(const char* function, std::int64_t sequence) const {
  require(sequence >= 0 && sequence < count(), kBadCall,
          "model: {}() of sequence {}; expected one of the {} that start() began", function,
          sequence, count());
}

void Sequences::check_room(std::int64_t sequence, std::int64_t new_tokens) const {
  const SequenceState& state = (*this)[sequence];
  const std::int64_t total = state.length + new_tokens;
  require(total <= limits_.max_tokens, kBadCall,
          "model: sequence {} would have {} tokens; expected at most {}. Raise max_tokens (the "
          "model takes up to {}), or send less",
          sequence, total, limits_.max_tokens, config_.max_positions);
  require(total <= state.room, kBadCall,
          "model: sequence {} would have {} tokens, and has room for {}; begin() it with room for "
          "all that it will have",
          sequence, total, state.room);
}

void Sequences::check_run(std::span<const std::vector<std::int32_t>> tokens,
                          std::span<const std::int64_t> logit_rows) const {
  require(count() > 0, kBadCall, "model: run() before start(); begin the sequences first");
  require(std::ssize(tokens) == count() && std::ssize(logit_rows) == count(), kBadCall,
          "model: tokens for {} sequences and logits of {}; expected {}, as many as were started",
          tokens.size(), logit_rows.size(), count());
  require(std::ranges::any_of(tokens, [](const auto& list) { return !list.empty(); }), kBadCall,
          "model: no sequence has a new token; expected at least one in {} lists", tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto sequence = static_cast<std::int64_t>(i);
    const std::int64_t new_tokens = std::ssize(tokens[i]);
    if (new_tokens > 0) check_room(sequence, new_tokens);
    require(logit_rows[i] >= 0 && logit_rows[i] <= new_tokens, kBadCall,
            "model: logits after the last {} of {} new tokens of sequence {}; expected 0 to {}",
            logit_rows[i], new_tokens, i, new_tokens);
    for (const std::int32_t token : tokens[i]) {
      require(token >= 0 && token < config_.vocab, kBadCall,
              "model: sequence {} has the token {}; expected 0 to {}, the vocabulary", i, token,
              config_.vocab - 1);
    }
  }
}

void Sequences::append(std::span<const std::vector<std::int32_t>> tokens) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    SequenceState& state = states_[i];
    state.before = state.length;
    state.length += std::ssize(tokens[i]);
    state.longest = std::max(state.longest, state.length);
  }
}

void Sequences::check_draft(std::span<const std::vector<std::int32_t>> next,
                            std::span<const std::int64_t> logit_rows) const {
  require(std::ssize(next) == count() && std::ssize(logit_rows) == count(), kBadCall,
          "model: drafts for {} sequences and logits of {}; expected {}, as many as were started",
          next.size(), logit_rows.size(), count());
  for (std::size_t i = 0; i < next.size(); ++i) {
    const SequenceState& state = states_[i];
    const std::int64_t tokens = std::ssize(next[i]);
    require(logit_rows[i] >= 0 && logit_rows[i] <= tokens, kBadCall,
            "model: logits of the last {} of {} drafts of sequence {}; expected 0 to {}",
            logit_rows[i], tokens, i, tokens);
    if (tokens == 0) continue;
    require(tokens <= state.length - state.before, kBadCall,
            "model: {} tokens follow the last ones of sequence {}; expected at most {}, as many as "
            "came and were not taken back",
            tokens, i, state.length - state.before);
    require(state.drafted == state.before, kBadCall,
            "model: sequence {} drafts from token {} on, and has drafted {}; the layer has to see "
            "all of them",
            i, state.before, state.drafted);
    for (const std::int32_t token : next[i])
      require(token >= 0 && token < config_.vocab, kBadCall,
              "model: sequence {} drafts with the token {}; expected 0 to {}, the vocabulary", i,
              token, config_.vocab - 1);
  }
}

void Sequences::append_drafted(std::span<const std::vector<std::int32_t>> next) {
  for (std::size_t i = 0; i < next.size(); ++i) states_[i].drafted += std::ssize(next[i]);
}

StepPlan Sequences::plan_step(const NewText& text, std::vector<std::int64_t>& done,
                              const Range& sequences, std::int64_t room, bool has_idle) const {
  StepPlan plan;
  std::vector<std::int32_t> offsets = {0}, starts, ids;
  const auto end = static_cast<std::size_t>(sequences.first + sequences.count);
  for (auto s = static_cast<std::size_t>(sequences.first); s < end; ++s) {
    const std::int64_t waiting = std::ssize(text.tokens[s]) - done[s];
    const std::int64_t count = std::min(waiting, room - plan.count);
    const std::int64_t start = states_[s].length + done[s];
    plan.tokens.push_back({static_cast<std::int64_t>(s), plan.count, start, count});
    starts.push_back(static_cast<std::int32_t>(start));
    for (std::int64_t i = 0; i < count; ++i) {
      ids.push_back(text.tokens[s][static_cast<std::size_t>(done[s] + i)]);
      if (i >= waiting - text.logit_rows[s]) plan.logit_rows.push_back(plan.count + i);
    }
    done[s] += count;
    plan.count += count;
    plan.longest = std::max(plan.longest, count);
    offsets.push_back(static_cast<std::int32_t>(plan.count));
  }
  if (has_idle) {  // token 0 at position 0, again and again
    if (plan.count == 0) {
      plan.count = plan.longest = 1;
      ids.push_back(0);
    }
    starts.push_back(0);
    offsets.push_back(static_cast<std::int32_t>(plan.count));
  }
  plan.inputs = std::move(offsets);
  plan.inputs.insert(plan.inputs.end(), starts.begin(), starts.end());
  plan.inputs.insert(plan.inputs.end(), ids.begin(), ids.end());
  return plan;
}

}  // namespace tilewright::model
