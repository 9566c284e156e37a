// How a plan reads.
#include "ops/attention/problem.h"

#include <fmt/format.h>

namespace tilewright {

namespace {

// How e4m3 operands lie.
std::string fp8_text(const AttentionProblem& p) {
  constexpr const char* kScales[] = {"tensor", "head", "block"};
  return fmt::format(", scales per {}, values in {}, to {}",
                     kScales[static_cast<int>(p.fp8.scales)],
                     p.fp8.v_layout == Fp8ValueLayout::kColumns ? "columns" : "rows",
                     ops::attention_type_name(ops::attention_out_dtype(p)));
}

std::string problem_text(const AttentionProblem& p) {
  std::string text =
      fmt::format("{}, batch {}, heads {}", ops::attention_type_name(p.dtype), p.batch, p.heads);
  if (p.kv_heads != p.heads) text += fmt::format(" (keys {})", p.kv_heads);
  text += fmt::format(", queries {}, keys {}, head_dim {}", p.q_len, p.kv_len, p.head_dim);
  if (p.is_packed) text += fmt::format(", packed ({} and {} rows)", p.total_q, p.total_kv);
  if (p.causal) text += ", causal";
  if (p.window_left >= 0) text += fmt::format(", window {} back", p.window_left);
  if (p.window_right >= 0 && !p.causal) text += fmt::format(", window {} ahead", p.window_right);
  if (p.softcap > 0) text += fmt::format(", softcap {:g}", p.softcap);
  if (p.has_sink) text += ", sink";
  if (p.has_lse) text += ", lse";
  if (ops::attention_is_e4m3(p)) text += fp8_text(p);
  return text + fmt::format(", scale {:.6g}", p.scale.value_or(0));
}

std::string dims_text(const std::array<std::uint32_t, 3>& dims) {
  if (dims[2] != 1) return fmt::format("{} x {} x {}", dims[0], dims[1], dims[2]);
  return dims[1] != 1 ? fmt::format("{} x {}", dims[0], dims[1]) : fmt::format("{}", dims[0]);
}

}  // namespace

std::string AttentionPlan::to_string() const {
  std::string text = fmt::format("attention  {}\n", problem_text(problem));
  text += fmt::format("kernel     {}: tiles of {} queries by {} keys\n", kernel, tile_queries,
                      tile_keys);
  if (accumulation != Fp8Accumulation::kAuto) {
    text += fmt::format("sums       {}: {}\n",
                        accumulation == Fp8Accumulation::kTwoLevel
                            ? "the tensor core's over 256 keys, fp32 over those"
                            : "the tensor core's over all keys",
                        accumulation_reason);
  }
  if (launches.empty()) text += "launches   none: there are no queries\n";
  for (const AttentionLaunch& launch : launches) {
    text +=
        fmt::format("launch     {}: grid {}, block {}, {} bytes of shared memory\n", launch.entry,
                    dims_text(launch.grid), dims_text(launch.block), launch.shared_bytes);
  }
  text += fmt::format("workspace  {} bytes\n", workspace_bytes);
  text += fmt::format("work       {:.6g} GFLOP, {:.6g} MB\n", flops * 1e-9, bytes * 1e-6);
  for (const AttentionCandidate& candidate : candidates) {
    if (candidate.name == kernel) continue;
    text += fmt::format("not {}: it {}\n", candidate.name, candidate.reason);
  }
  return text;
}

}  // namespace tilewright
