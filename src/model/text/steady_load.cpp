#include "model/text/steady_load.h"

#include <algorithm>
#include <utility>

namespace tilewright::model {

SteadyLoad::SteadyLoad(Runner& runner, const SteadyLoadOptions& options)
    : runner_(runner),
      options_(options),
      limits_(runner.limits()),
      engine_(runner, {.sequences = options.sequences * limits_.groups,
                       .prefill_chunk = limits_.step_tokens}) {}

void SteadyLoad::warm_up() {
  for (std::int64_t i = 0; i < options_.sequences * limits_.groups; ++i)
    add(first_output(i / limits_.groups));
  constexpr std::int64_t kEnded = 2;
  run(kEnded);
}

void SteadyLoad::run(std::int64_t requests) {
  std::int64_t left = requests * limits_.groups;
  while (left > 0) {
    for (const BatchEvent& event : engine_.step()) {
      if (!event.finish) continue;
      --left;
      add(options_.output);
    }
  }
}

// While the prompts behind it are read a sequence writes a token in each of their steps; then the
// sequences end one after the other, with the same number of steps in between.
std::int64_t SteadyLoad::first_output(std::int64_t number) const {
  const std::int64_t room = std::max<std::int64_t>(1, limits_.step_tokens - options_.sequences);
  const std::int64_t steps_of_prompt = (options_.input + room - 1) / room;
  const std::int64_t others = options_.sequences - 1 - number;
  return std::clamp<std::int64_t>(
      options_.output * (number + 1) / options_.sequences + others * steps_of_prompt, 1,
      options_.output);
}

void SteadyLoad::add(std::int64_t output) {
  BatchRequest request = {
      .max_tokens = output, .sampler = options_.sampler, .sampler_sequence = number_++, .ends = {}};
  const auto vocab = static_cast<std::uint64_t>(runner_.config().vocab);
  for (std::int64_t i = 0; i < options_.input; ++i)
    request.prompt.push_back(static_cast<std::int32_t>(random_() % vocab));
  engine_.add(std::move(request));
}

}  // namespace tilewright::model
