#include "tilewright/attention_decode.h"

#include "tilewright/tilewright_decode.h"

#include "base/error.h"
#include "ops/c_api/device.h"
#include "ops/c_api/status.h"

#include <string>
#include <utility>

using tilewright::c_api::guarded;
using tilewright::c_api::require_address;

struct tw_attention_decode {
  tilewright::AttentionDecode decode;
  std::string plan_text;
};

namespace {

using tilewright::AttentionDecodeProblem;
using tilewright::DType;
using tilewright::ErrorKind;
using tilewright::require;

constexpr const char* kCreateDecode = "tw_attention_decode_create";

DType to_decode_dtype(const char* field, std::int32_t dtype, bool may_be_codes) {
  require(dtype == TW_BF16 || dtype == TW_F16 || (may_be_codes && dtype == TW_E4M3),
          ErrorKind::kInvalidArgument, "{}: problem.{} = {}; expected TW_BF16 = 0, TW_F16 = 1{}",
          kCreateDecode, field, dtype, may_be_codes ? " or TW_E4M3 = 3" : "");
  if (dtype == TW_E4M3) return DType::kF8_E4M3;
  return dtype == TW_F16 ? DType::kF16 : DType::kBF16;
}

template <class Enum>
Enum to_decode_enum(const char* field, std::int32_t value) {
  require(value >= 0 && value <= 2, ErrorKind::kInvalidArgument,
          "{}: problem.{} = {}; expected 0 to 2", kCreateDecode, field, value);
  return static_cast<Enum>(value);
}

AttentionDecodeProblem::Strides to_decode_strides(const tw_strides& s) {
  return {s.batch, s.row, s.head};
}

AttentionDecodeProblem to_decode_problem(const tw_attention_decode_problem& c) {
  require(c.struct_bytes == sizeof c, ErrorKind::kInvalidArgument,
          "{}: problem.struct_bytes = {}; expected {}. Fill it with "
          "tw_attention_decode_problem_init() of the same version of the library.",
          kCreateDecode, c.struct_bytes, sizeof c);
  AttentionDecodeProblem p = {
      .dtype = to_decode_dtype("dtype", c.dtype, false),
      .kv_dtype = to_decode_dtype("kv_dtype", c.kv_dtype, true),
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
      .descale = to_decode_enum<tilewright::DecodeDescale>("descale", c.descale),
      .has_sink = c.has_sink != 0,
      .has_lse = c.has_lse != 0,
      .append = {.is_wanted = c.appends != 0,
                 .rotary = to_decode_enum<tilewright::RotaryPairs>("rotary", c.rotary),
                 .rotary_dim = c.rotary_dim,
                 .max_position = c.max_position},
      .q_strides = to_decode_strides(c.q_strides),
      .out_strides = to_decode_strides(c.out_strides),
      .new_k_strides = to_decode_strides(c.new_k_strides),
      .new_v_strides = to_decode_strides(c.new_v_strides),
      .cache_strides = {c.cache_strides.batch, c.cache_strides.row, c.cache_strides.head},
      .splits = c.splits};
  if (c.scale != 0) p.scale = c.scale;
  if (c.kernel != nullptr) p.kernel = c.kernel;
  return p;
}

tilewright::AttentionDecodeArguments to_decode_arguments(const tw_attention_decode_arguments& a) {
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
  if (problem == nullptr) return;
  *problem = {};
  problem->struct_bytes = sizeof *problem;
  problem->batch = problem->q_len = problem->heads = problem->kv_heads = 1;
  problem->causal = 1;
  problem->window_left = -1;
}

tw_status tw_attention_decode_create(const tw_device* device,
                                     const tw_attention_decode_problem* problem,
                                     tw_attention_decode** decode) {
  return guarded([&] {
    require_address(decode, kCreateDecode, "decode");
    *decode = nullptr;
    require_address(device, kCreateDecode, "device");
    require_address(problem, kCreateDecode, "problem");
    tilewright::AttentionDecode made(device->device, to_decode_problem(*problem));
    std::string text = made.plan().to_string();
    *decode = new tw_attention_decode{std::move(made), std::move(text)};
  });
}

void tw_attention_decode_destroy(tw_attention_decode* decode) {
  delete decode;
}

const char* tw_attention_decode_plan_text(const tw_attention_decode* decode) {
  return decode == nullptr ? "" : decode->plan_text.c_str();
}

size_t tw_attention_decode_workspace_bytes(const tw_attention_decode* decode) {
  return decode == nullptr ? 0 : decode->decode.plan().workspace_bytes;
}

tw_status tw_attention_decode_run(const tw_attention_decode* decode,
                                  const tw_attention_decode_arguments* arguments) {
  return guarded([&] {
    require_address(decode, "tw_attention_decode_run", "decode");
    require_address(arguments, "tw_attention_decode_run", "arguments");
    decode->decode.run(to_decode_arguments(*arguments));
  });
}
