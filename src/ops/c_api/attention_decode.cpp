#include "tilewright/attention_decode.h"

#include "tilewright/tilewright_decode.h"

#include "ops/c_api/attention_fields.h"
#include "ops/c_api/device.h"
#include "ops/c_api/operator.h"

namespace c_api = tilewright::c_api;
using tilewright::AttentionDecodeProblem;

struct tw_attention_decode : c_api::Planned<tilewright::AttentionDecode> {
  using Planned::Planned;
};

namespace {

constexpr const char* kCreate = "tw_attention_decode_create";

AttentionDecodeProblem to_problem(const tw_attention_decode_problem& c) {
  constexpr auto to_strides = c_api::to_strides<AttentionDecodeProblem::Strides>;
  AttentionDecodeProblem p = {
      .dtype = c_api::to_attention_dtype(kCreate, "dtype", c.dtype, false),
      .kv_dtype = c_api::to_attention_dtype(kCreate, "kv_dtype", c.kv_dtype, true),
      .batch = c.batch,
      .q_len = c.q_len,
      .heads = c.heads,
      .kv_heads = c.kv_heads,
      .head_dim = c.head_dim,
      .max_len = c.max_len,
      .page_size = c.page_size,
      .num_pages = c.num_pages,
      .max_pages = c.max_pages,
      .table_stride = c.table_stride,
      .causal = c.causal != 0,
      .window_left = c.window_left,
      .softcap = c.softcap,
      .descale = c_api::to_enum(kCreate, "descale", c.descale, tilewright::DecodeDescale::kPerHead),
      .has_sink = c.has_sink != 0,
      .has_lse = c.has_lse != 0,
      .append = {.is_wanted = c.appends != 0,
                 .rotary =
                     c_api::to_enum(kCreate, "rotary", c.rotary, tilewright::RotaryPairs::kHalves),
                 .rotary_dim = c.rotary_dim,
                 .max_position = c.max_position},
      .q_strides = to_strides(c.q_strides),
      .out_strides = to_strides(c.out_strides),
      .new_k_strides = to_strides(c.new_k_strides),
      .new_v_strides = to_strides(c.new_v_strides),
      .cache_strides = c_api::to_strides<AttentionDecodeProblem::CacheStrides>(c.cache_strides),
      .splits = c.splits};
  if (c.scale != 0) p.scale = c.scale;
  if (c.kernel != nullptr) p.kernel = c.kernel;
  return p;
}

tilewright::AttentionDecodeArguments to_arguments(const tw_attention_decode_arguments& a) {
  return {.q = a.q,
          .k_cache = a.k_cache,
          .v_cache = a.v_cache,
          .lengths = a.lengths,
          .block_table = a.block_table,
          .k_descale = a.k_descale,
          .v_descale = a.v_descale,
          .new_k = a.new_k,
          .new_v = a.new_v,
          .cos = a.cos,
          .sin = a.sin,
          .out = a.out,
          .lse = a.lse,
          .sink = a.sink,
          .workspace = a.workspace,
          .stream = a.stream};
}

}  // namespace

void tw_attention_decode_problem_init(tw_attention_decode_problem* problem) {
  tw_attention_decode_problem defaults = {};
  defaults.batch = defaults.q_len = defaults.heads = defaults.kv_heads = 1;
  defaults.causal = 1;
  defaults.window_left = -1;
  c_api::initialise(problem, defaults);
}

tw_status tw_attention_decode_create(const tw_device* device,
                                     const tw_attention_decode_problem* problem,
                                     tw_attention_decode** decode) {
  return c_api::create(kCreate, "decode", decode, [&] {
    c_api::require_address(device, kCreate, "device");
    return tilewright::AttentionDecode(
        device->device, to_problem(c_api::checked(problem, kCreate, "problem",
                                                  "tw_attention_decode_problem_init")));
  });
}

void tw_attention_decode_destroy(tw_attention_decode* decode) {
  delete decode;
}

const char* tw_attention_decode_plan_text(const tw_attention_decode* decode) {
  return c_api::plan_text(decode);
}

size_t tw_attention_decode_workspace_bytes(const tw_attention_decode* decode) {
  return c_api::of_plan(decode, &tilewright::AttentionDecodePlan::workspace_bytes);
}

tw_status tw_attention_decode_run(const tw_attention_decode* decode,
                                  const tw_attention_decode_arguments* arguments) {
  return c_api::run("tw_attention_decode_run", "decode", decode, arguments,
                    [](const auto& op, const auto& a) { op.run(to_arguments(a)); });
}
