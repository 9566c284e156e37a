// How a decode plan reads.
#include "tilewright/attention_decode.h"

#include <fmt/format.h>

namespace tilewright {

namespace {

std::string cache_text(const AttentionDecodeProblem& p) {
  const char* const kv = to_string(p.kv_dtype);
  if (p.page_size == 0) return fmt::format("{} keys of {}", p.max_len, kv);
  return fmt::format("{} pages of {} keys of {}, {} a sequence", p.num_pages, p.page_size, kv,
                     p.max_pages);
}

std::string details_text(const AttentionDecodeProblem& p) {
  std::string text;
  if (!p.causal) text += ", not causal";
  if (p.window_left >= 0) text += fmt::format(", window {}", p.window_left);
  if (p.softcap > 0) text += fmt::format(", softcap {:g}", p.softcap);
  if (p.has_sink) text += ", sinks";
  if (p.append.is_wanted) text += ", new tokens appended";
  if (p.append.rotary != RotaryPairs::kNone)
    text += fmt::format(", {} dimensions rotated ({})", p.append.rotary_dim,
                        p.append.rotary == RotaryPairs::kHalves ? "halves" : "interleaved");
  return text;
}

std::string launch_text(const AttentionDecodePlan& plan, const AttentionDecodeLaunch& l) {
  std::string text = fmt::format("{:<11}{}: grid {}", l.step, l.entry, l.grid[0]);
  if (l.grid[1] != 1) text += fmt::format(" x {}", l.grid[1]);
  text += fmt::format(", block {}", l.block[0]);
  if (l.step == "attend" && plan.cluster > 1) text += fmt::format(", clusters of {}", plan.cluster);
  if (l.shared_bytes > 0) text += fmt::format(", {} bytes of shared memory", l.shared_bytes);
  return text + '\n';
}

}  // namespace

std::string AttentionDecodePlan::to_string() const {
  const AttentionDecodeProblem& p = problem;
  std::string text =
      fmt::format("decode     batch {}, q_len {}, heads {}/{}, head_dim {}, {}; {}{}\n", p.batch,
                  p.q_len, p.heads, p.kv_heads, p.head_dim, tilewright::to_string(p.dtype),
                  cache_text(p), details_text(p));
  text += fmt::format("kernel     {}: {} rows of a KV head in tiles of {}\n", kernel,
                      p.heads / p.kv_heads * p.q_len, tile_rows);
  if (launches.empty()) text += "launches   none: there are no queries\n";
  for (const AttentionDecodeLaunch& l : launches) text += launch_text(*this, l);
  text += p.splits > 0 ? fmt::format("schedule   {} parts of every sequence\n", p.splits)
                       : "schedule   by the lengths, on the device\n";
  text += fmt::format("workspace  {} bytes\n", workspace_bytes);
  text += fmt::format("work       {:.6g} GFLOP, {:.6g} MB with full caches\n", flops * 1e-9,
                      bytes * 1e-6);
  for (const AttentionDecodeCandidate& candidate : candidates) {
    if (candidate.name != kernel)
      text += fmt::format("not {}: it {}\n", candidate.name, candidate.reason);
  }
  return text;
}

}  // namespace tilewright
