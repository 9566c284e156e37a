// How a plan reads.
#include "ops/sparse_attention/plan.h"
#include "ops/sparse_attention/problem.h"

#include <fmt/format.h>

namespace tilewright::ops {

namespace {

std::string list_text(const char* name, const SparseList& list) {
  if (list.topk == 0) return fmt::format("no {}", name);
  std::string text =
      fmt::format("{} {} of {} {} pages of {}", name, list.topk, list.cache.num_pages,
                  to_string(list.cache.format), list.cache.page_size);
  if (list.lengths == SparseLengths::kPerBatch) text += ", lengths per sequence";
  if (list.lengths == SparseLengths::kPerQuery) text += ", lengths per query";
  return text;
}

}  // namespace

std::vector<PlanNote> sparse_notes(const SparseAttentionPlan& plan) {
  const SparseAttentionProblem& p = plan.problem;
  std::string kernel = plan.kernel;
  if (plan.head_slots > p.heads) kernel += fmt::format(", heads padded to {}", plan.head_slots);
  std::vector<PlanNote> notes = {
      {"sparse", fmt::format("batch {}, q_len {}, heads {}{}; {}; {}{}", p.batch, p.q_len, p.heads,
                             is_mla(p) ? " of 576" : "", list_text("window", p.window),
                             list_text("compressed", p.compressed), p.has_sink ? ", sinks" : "")},
      {"kernel", kernel}};
  if (plan.launches.empty()) notes.push_back({"launches", "none: there are no queries"});
  return notes;
}

}  // namespace tilewright::ops
