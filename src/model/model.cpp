#include "model/model.h"

#include "base/error.h"

#include <algorithm>

namespace tilewright::model {

void check_forward(const Config& config, const RunnerOptions& options,
                   std::span<const std::int64_t> lengths,
                   std::span<const std::vector<std::int32_t>> tokens) {
  constexpr ErrorKind kInvalid = ErrorKind::kInvalidArgument;
  require(tokens.size() == lengths.size(), kInvalid,
          "model: tokens for {} sequences; expected {}, as many as were started", tokens.size(),
          lengths.size());
  require(std::ranges::any_of(tokens, [](const auto& list) { return !list.empty(); }), kInvalid,
          "model: no sequence has a new token; expected at least one in {} lists", tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto total = lengths[i] + static_cast<std::int64_t>(tokens[i].size());
    require(total <= std::min(options.max_tokens, config.max_positions), kInvalid,
            "model: sequence {} would have {} tokens; expected at most {}. Raise max_tokens (the "
            "model takes up to {}), or send less",
            i, total, std::min(options.max_tokens, config.max_positions), config.max_positions);
    for (const std::int32_t token : tokens[i]) {
      require(token >= 0 && token < config.vocab, kInvalid,
              "model: sequence {} has the token {}; expected 0 to {}, the vocabulary", i, token,
              config.vocab - 1);
    }
  }
}

}  // namespace tilewright::model
