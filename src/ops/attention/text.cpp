// How a plan reads.
#include "ops/attention/kernels.h"
#include "ops/attention/plan.h"
#include "ops/attention/problem.h"

#include <fmt/format.h>

namespace tilewright {

namespace {

// How e4m3 operands lie.
std::string fp8_text(const AttentionProblem& p) {
  return fmt::format(", scales per {}, values in {}, to {}", tilewright::to_string(p.fp8.scales),
                     p.fp8.v_layout == Fp8ValueLayout::kColumns ? "columns" : "rows",
                     ops::attention_type_name(ops::attention_out_dtype(p)));
}

std::string problem_text(const AttentionProblem& p) {
  std::string text =
      fmt::format("{}{}, batch {}, heads {}", ops::attention_type_name(p.dtype),
                  ops::attention_widens(p) ? " over keys of e4m3" : "", p.batch, p.heads);
  if (p.kv_heads != p.heads) text += fmt::format("/{}", p.kv_heads);
  text += fmt::format(", queries {}, keys {}, {}", p.q_len, p.kv_len, ops::attention_dims_text(p));
  if (p.page_size > 0) {
    if (p.is_packed) text += fmt::format(", packed ({} rows)", p.total_q);
    text += fmt::format(", {} pages of {} keys", p.num_pages, p.page_size);
  } else if (p.is_packed) {
    text += fmt::format(", packed ({} and {} rows)", p.total_q, p.total_kv);
  }
  if (p.has_q_lengths) text += ", lengths of queries";
  if (p.has_kv_lengths) text += ", lengths of keys";
  if (p.causal) text += ", causal";
  if (p.window_left >= 0) text += fmt::format(", window {} back", p.window_left);
  if (p.window_right >= 0 && !p.causal) text += fmt::format(", window {} ahead", p.window_right);
  if (p.chunk > 0) text += fmt::format(", chunks of {}", p.chunk);
  if (p.softcap > 0) text += fmt::format(", softcap {:g}", p.softcap);
  if (p.has_sink) text += ", sink";
  if (p.has_lse) text += ", lse";
  if (ops::attention_is_e4m3(p)) text += fp8_text(p);
  if (ops::attention_widens(p))
    text += fmt::format(", scales per {}", tilewright::to_string(p.fp8.scales));
  return text + fmt::format(", scale {:.6g}", p.scale.value_or(0));
}

std::string pages_text(const AttentionPlan& plan) {
  const ops::AttentionKernel& kernel = ops::find_attention_kernel(plan.kernel);
  if (ops::attention_widens(plan.problem))
    return kernel.capability == 100 ? "three warps read a tile of keys row by row"
                                    : "four warps read a tile of keys row by row";
  const kernels::PageCopies copies = ops::attention_page_copies(kernel, plan.problem);
  if (kernel.capability == 100)
    return copies == kernels::PageCopies::kRows ? "a warp gathers a tile of keys, four rows a copy"
                                                : "a warp copies the parts of a tile of keys";
  const bool is_e4m3 = kernel.computes_in_e4m3();  // values are transposed by the other warps
  switch (copies) {
    case kernels::PageCopies::kThread:
      return "one thread copies the parts of a tile of keys";
    case kernels::PageCopies::kWarps:
      return is_e4m3 ? "one warp copies the parts of a tile of keys"
                     : "four warps copy the parts of a tile of keys";
    case kernels::PageCopies::kRows:
      return is_e4m3 ? "one warp gathers a tile of keys row by row"
                     : "four warps gather a tile of keys row by row";
  }
  return "";
}

// What a head_dim between those of kernels costs.
std::string padding_text(const AttentionPlan& plan) {
  const auto dims = static_cast<double>(plan.problem.head_dim + plan.problem.value_dim);
  std::string as = std::to_string(plan.padded_head_dim);
  if (plan.padded_value_dim != plan.padded_head_dim)
    as += fmt::format(" and {}", plan.padded_value_dim);
  std::string text =
      fmt::format("{} as {}: {:.3g} times the products", ops::attention_dims_text(plan.problem), as,
                  (plan.padded_head_dim + plan.padded_value_dim) / dims);
  const bool trims = !plan.launches.empty() && plan.launches.back().step == std::string("trim");
  return text + (trims ? ", results trimmed from the workspace" : "");
}

}  // namespace

std::string ops::attention_dims_text(const AttentionProblem& p) {
  const std::string text = fmt::format("head_dim {}", p.head_dim);
  const std::int64_t value_dim = attention_value_dim(p);
  return value_dim == p.head_dim ? text : text + fmt::format(", value_dim {}", value_dim);
}

std::vector<PlanNote> ops::attention_notes(const AttentionPlan& plan) {
  std::vector<PlanNote> notes = {
      {"attention", problem_text(plan.problem)},
      {"kernel", fmt::format("{}: tiles of {} queries by {} keys", plan.kernel, plan.tile_queries,
                             plan.tile_keys)}};
  if (plan.padded_head_dim > plan.problem.head_dim ||
      plan.padded_value_dim > plan.problem.value_dim)
    notes.push_back({"padding", padding_text(plan)});
  if (plan.problem.page_size > 0 && !plan.launches.empty())
    notes.push_back({"pages", pages_text(plan)});
  if (attention_widens(plan.problem) && !plan.launches.empty())
    notes.push_back(
        {"e4m3", fmt::format("keys and values are widened to {}, exactly, on their way to shared "
                             "memory: no product is of e4m3",
                             attention_type_name(plan.problem.dtype))});
  if (plan.accumulation != Fp8Accumulation::kAuto) {
    const bool is_two_level = plan.accumulation == Fp8Accumulation::kTwoLevel;
    notes.push_back(
        {"sums", fmt::format("{}: {}",
                             is_two_level ? "the tensor core's over 256 keys, fp32 over those"
                                          : "the tensor core's over all keys",
                             plan.accumulation_reason)});
  }
  if (plan.launches.empty()) notes.push_back({"launches", "none: there are no queries"});
  return notes;
}

}  // namespace tilewright
