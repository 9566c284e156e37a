#include "tilewright/sparse_attention.h"

#include "ops/c_api/device.h"
#include "ops/c_api/operator.h"

namespace c_api = tilewright::c_api;

struct tw_sparse_attention : c_api::Planned<tilewright::SparseAttention> {
  using Planned::Planned;
};

namespace {

using tilewright::ErrorKind;
using tilewright::KvCacheFormat;
using tilewright::require;
using tilewright::SparseAttentionProblem;

tilewright::SparseList to_list(const tw_sparse_list& c) {
  const char* const function = "tw_sparse_attention_create";
  require(c.lengths >= TW_LENGTHS_FULL && c.lengths <= TW_LENGTHS_PER_QUERY,
          ErrorKind::kInvalidArgument, "{}: lengths = {}; expected a tw_sparse_lengths, 0 to 2",
          function, c.lengths);
  require(c.format >= TW_KV_BF16 && c.format <= TW_KV_NVFP4, ErrorKind::kInvalidArgument,
          "{}: format = {}; expected a tw_kv_format, 0 to 2", function, c.format);
  return {.cache = {.format = static_cast<KvCacheFormat>(c.format),
                    .page_size = c.page_size,
                    .num_pages = c.num_pages,
                    .page_stride_bytes = c.page_stride_bytes},
          .topk = c.topk,
          .index_stride = c.index_stride,
          .lengths = static_cast<tilewright::SparseLengths>(c.lengths)};
}

SparseAttentionProblem::Strides to_strides(const tw_strides& s) {
  return {s.batch, s.row, s.head};
}

SparseAttentionProblem to_problem(const tw_sparse_attention_problem& c) {
  SparseAttentionProblem p = {.batch = c.batch,
                              .q_len = c.q_len,
                              .heads = c.heads,
                              .window = to_list(c.window),
                              .compressed = to_list(c.compressed),
                              .has_sink = c.has_sink != 0,
                              .has_lse = c.has_lse != 0,
                              .has_max_logits = c.has_max_logits != 0,
                              .q_strides = to_strides(c.q_strides),
                              .out_strides = to_strides(c.out_strides),
                              .lse_strides = to_strides(c.lse_strides)};
  if (c.scale != 0) p.scale = c.scale;
  if (c.kernel != nullptr) p.kernel = c.kernel;
  return p;
}

tilewright::SparseAttentionArguments to_arguments(const tw_sparse_attention_arguments& a) {
  return {.q = a.q,
          .window = {a.window_pages, a.window_indices, a.window_lengths},
          .compressed = {a.compressed_pages, a.compressed_indices, a.compressed_lengths},
          .out = a.out,
          .lse = a.lse,
          .max_logits = a.max_logits,
          .sink = a.sink,
          .workspace = a.workspace,
          .keeps_schedule = a.keeps_schedule != 0,
          .stream = a.stream};
}

}  // namespace

void tw_sparse_attention_problem_init(tw_sparse_attention_problem* problem) {
  tw_sparse_attention_problem defaults = {};
  defaults.batch = defaults.q_len = 1;
  for (tw_sparse_list* list : {&defaults.window, &defaults.compressed}) {
    list->format = TW_KV_FP8;
    list->page_size = 64;
  }
  c_api::initialise(problem, defaults);
}

tw_status tw_sparse_attention_create(const tw_device* device,
                                     const tw_sparse_attention_problem* problem,
                                     tw_sparse_attention** attention) {
  const char* const function = "tw_sparse_attention_create";
  return c_api::create(function, "attention", attention, [&] {
    c_api::require_address(device, function, "device");
    return tilewright::SparseAttention(
        device->device, to_problem(c_api::checked(problem, function, "problem",
                                                  "tw_sparse_attention_problem_init")));
  });
}

void tw_sparse_attention_destroy(tw_sparse_attention* attention) {
  delete attention;
}

const char* tw_sparse_attention_plan_text(const tw_sparse_attention* attention) {
  return c_api::plan_text(attention);
}

const char* tw_sparse_attention_kernel(const tw_sparse_attention* attention) {
  return c_api::kernel_name(attention);
}

size_t tw_sparse_attention_workspace_bytes(const tw_sparse_attention* attention) {
  return c_api::of_plan(attention, &tilewright::SparseAttentionPlan::workspace_bytes);
}

tw_status tw_sparse_attention_run(const tw_sparse_attention* attention,
                                  const tw_sparse_attention_arguments* arguments) {
  return c_api::run("tw_sparse_attention_run", "attention", attention, arguments,
                    [](const auto& op, const auto& a) { op.run(to_arguments(a)); });
}
