// How a plan reads.
#include "tilewright/sparse_attention.h"

#include <fmt/format.h>

namespace tilewright {

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

std::string launch_text(const SparseAttentionLaunch& l) {
  std::string text = fmt::format("{:<11}{}: grid {}", l.step, l.entry, l.grid[0]);
  if (l.grid[1] != 1) text += fmt::format(" x {}", l.grid[1]);
  text += fmt::format(", block {}", l.block[0]);
  if (l.cluster > 1) text += fmt::format(", clusters of {}", l.cluster);
  if (l.shared_bytes > 0) text += fmt::format(", {} bytes of shared memory", l.shared_bytes);
  return text + '\n';
}

}  // namespace

std::string SparseAttentionPlan::to_string() const {
  const SparseAttentionProblem& p = problem;
  std::string text =
      fmt::format("sparse     batch {}, q_len {}, heads {}; {}; {}{}\n", p.batch, p.q_len, p.heads,
                  list_text("window", p.window), list_text("compressed", p.compressed),
                  p.has_sink ? ", sinks" : "");
  text += fmt::format("kernel     {}", kernel);
  if (head_slots > p.heads) text += fmt::format(", heads padded to {}", head_slots);
  text += '\n';
  if (launches.empty()) text += "launches   none: there are no queries\n";
  for (const SparseAttentionLaunch& l : launches) text += launch_text(l);
  text += fmt::format("workspace  {} bytes\n", workspace_bytes);
  text += fmt::format("work       {:.6g} GFLOP, {:.6g} MB with full lists\n", flops * 1e-9,
                      bytes * 1e-6);
  for (const SparseAttentionCandidate& candidate : candidates) {
    if (candidate.name != kernel)
      text += fmt::format("not {}: it {}\n", candidate.name, candidate.reason);
  }
  return text;
}

}  // namespace tilewright
