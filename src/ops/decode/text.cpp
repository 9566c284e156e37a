// How a decode plan reads.
#include "ops/decode/plan.h"
#include "ops/operator/type_word.h"

#include <fmt/format.h>

namespace tilewright::ops {

namespace {

std::string cache_text(const AttentionDecodeProblem& p) {
  const char* const kv = type_word(p.kv_dtype);
  if (p.page_size == 0) return fmt::format("{} keys of {}", p.max_len, kv);
  return fmt::format("{} pages of {} keys of {}, {} a sequence", p.num_pages, p.page_size, kv,
                     p.max_pages);
}

std::string details_text(const AttentionDecodeProblem& p) {
  std::string text;
  if (!p.causal) text += ", not causal";
  if (p.chunk > 0) text += fmt::format(", chunks of {}", p.chunk);
  if (p.window_left >= 0) text += fmt::format(", window {}", p.window_left);
  if (p.softcap > 0) text += fmt::format(", softcap {:g}", p.softcap);
  if (p.has_sink) text += ", sinks";
  if (p.append.is_wanted) text += ", new tokens appended";
  if (p.append.rotary != RotaryPairs::kNone)
    text += fmt::format(", {} dimensions rotated ({})", p.append.rotary_dim,
                        p.append.rotary == RotaryPairs::kHalves ? "halves" : "interleaved");
  return text;
}

}  // namespace

std::vector<PlanNote> decode_notes(const AttentionDecodePlan& plan) {
  const AttentionDecodeProblem& p = plan.problem;
  std::vector<PlanNote> notes = {
      {"decode", fmt::format("batch {}, q_len {}, heads {}/{}, head_dim {}, {}; {}{}", p.batch,
                             p.q_len, p.heads, p.kv_heads, p.head_dim, type_word(p.dtype),
                             cache_text(p), details_text(p))},
      {"kernel", fmt::format("{}: {} rows of a KV head in tiles of {}", plan.kernel,
                             p.heads / p.kv_heads * p.q_len, plan.tile_rows)},
      {"schedule", p.splits > 0 ? fmt::format("{} splits of every sequence", p.splits)
                                : "by the lengths, on the device"}};
  if (plan.launches.empty()) notes.push_back({"launches", "none: there are no queries"});
  return notes;
}

}  // namespace tilewright::ops
