#include "tilewright/compressor.h"
#include "tilewright/tilewright_cache.h"

#include "base/error.h"
#include "ops/c_api/checked.h"
#include "ops/c_api/device.h"
#include "ops/c_api/status.h"

#include <algorithm>

using tilewright::c_api::checked;
using tilewright::c_api::guarded;
using tilewright::c_api::require_address;

struct tw_kv_cache {
  tilewright::KvCache cache;
};
struct tw_inverse_rope {
  tilewright::InverseRope rope;
};
struct tw_compressor {
  tilewright::Compressor compressor;
};

namespace {

template <class T>
void initialise(T* given, const T& defaults) {
  if (given == nullptr) return;
  *given = defaults;
  given->struct_bytes = sizeof(T);
}

template <class Enum>
Enum to_enum(std::int32_t value, std::int32_t count, const char* field) {
  tilewright::require(value >= 0 && value < count, tilewright::ErrorKind::kInvalidArgument,
                      "{} = {}; expected 0 to {}", field, value, count - 1);
  return static_cast<Enum>(value);
}

tilewright::KvCacheLayout to_layout(const tw_kv_layout& layout) {
  return {to_enum<tilewright::KvCacheFormat>(layout.format, 3, "tw_kv_layout: format"),
          layout.page_size, layout.num_pages, layout.page_stride_bytes};
}
tilewright::SequenceBatch to_batch(const tw_sequence_batch& s) {
  return {s.batch, s.q_len, s.offsets, s.starts};
}
tilewright::SequencePages to_pages(const tw_sequence_pages& t) {
  return {t.pages, t.blocks, t.stride};
}

}  // namespace

tw_status tw_rope_table(const tw_rope_options* options, int64_t positions, int64_t first,
                        float* table) {
  return guarded([&] {
    require_address(options, "tw_rope_table", "options");
    require_address(table, "tw_rope_table", "table");
    tilewright::RopeOptions o = {.theta = options->theta, .has_yarn = options->has_yarn != 0};
    const auto given = [](double value, double& to) {
      if (value != 0) to = value;
    };
    given(options->factor, o.factor);
    given(options->original_positions, o.original_positions);
    given(options->beta_fast, o.beta_fast);
    given(options->beta_slow, o.beta_slow);
    std::ranges::copy(tilewright::rope_table(o, positions, first), table);
  });
}

tw_status tw_kv_cache_create(const tw_device* device, const tw_kv_layout* layout,
                             tw_kv_cache** cache) {
  return guarded([&] {
    require_address(cache, "tw_kv_cache_create", "cache");
    *cache = nullptr;
    require_address(device, "tw_kv_cache_create", "device");
    require_address(layout, "tw_kv_cache_create", "layout");
    *cache = new tw_kv_cache{tilewright::KvCache(device->device, to_layout(*layout))};
  });
}

void tw_kv_cache_destroy(tw_kv_cache* cache) {
  delete cache;
}

size_t tw_kv_cache_bytes(const tw_kv_cache* cache) {
  return cache == nullptr ? 0 : tilewright::kv_cache_bytes(cache->cache.layout());
}

void tw_kv_write_arguments_init(tw_kv_write_arguments* arguments) {
  tw_kv_write_arguments defaults = {};
  defaults.eps = 1e-6;
  initialise(arguments, defaults);
}

tw_status tw_kv_cache_write(const tw_kv_cache* cache, const tw_kv_write_arguments* arguments) {
  return guarded([&] {
    require_address(cache, "tw_kv_cache_write", "cache");
    const auto& a = checked(arguments, "tw_kv_cache_write", "tw_kv_write_arguments_init");
    tilewright::require(
        a.kv_dtype == TW_BF16 || a.kv_dtype == TW_F32, tilewright::ErrorKind::kInvalidArgument,
        "tw_kv_cache_write: kv_dtype = {}; expected TW_BF16 = 0 or TW_F32 = 2", a.kv_dtype);
    cache->cache.write(
        {.tokens = a.tokens,
         .heads = a.heads,
         .eps = a.eps,
         .q = a.q,
         .q_out = a.q_out,
         .q_token_stride = a.q_token_stride,
         .q_head_stride = a.q_head_stride,
         .kv = a.kv,
         .kv_dtype = a.kv_dtype == TW_F32 ? tilewright::DType::kF32 : tilewright::DType::kBF16,
         .kv_stride = a.kv_stride,
         .kv_weight = a.kv_weight,
         .positions = a.positions,
         .rope = a.rope,
         .rope_positions = a.rope_positions,
         .slots = a.slots,
         .pages = a.pages,
         .kv_out = a.kv_out,
         .stream = a.stream});
  });
}

tw_status tw_kv_cache_read(const tw_kv_cache* cache, int64_t count, const int32_t* rows,
                           const void* pages, void* out, void* stream) {
  return guarded([&] {
    require_address(cache, "tw_kv_cache_read", "cache");
    cache->cache.read({.count = count, .rows = rows, .pages = pages, .out = out, .stream = stream});
  });
}

void tw_kv_list_arguments_init(tw_kv_list_arguments* arguments) {
  tw_kv_list_arguments defaults = {};
  defaults.window = 128;
  defaults.ratio = 4;
  defaults.list_len = 1;
  initialise(arguments, defaults);
}

tw_status tw_kv_cache_list(const tw_kv_cache* cache, const tw_kv_list_arguments* arguments) {
  return guarded([&] {
    require_address(cache, "tw_kv_cache_list", "cache");
    const auto& a = checked(arguments, "tw_kv_cache_list", "tw_kv_list_arguments_init");
    cache->cache.list({to_enum<tilewright::KvListKind>(a.kind, 3, "tw_kv_cache_list: kind"),
                       a.tokens, to_batch(a.sequences), to_pages(a.table), a.ring, a.window,
                       a.ratio, a.list_len, a.list_stride, a.lists, a.lengths, a.positions,
                       a.stream});
  });
}

void tw_inverse_rope_arguments_init(tw_inverse_rope_arguments* arguments) {
  initialise(arguments, {});
}

tw_status tw_inverse_rope_create(const tw_device* device, tw_inverse_rope** rope) {
  return guarded([&] {
    require_address(rope, "tw_inverse_rope_create", "rope");
    *rope = nullptr;
    require_address(device, "tw_inverse_rope_create", "device");
    *rope = new tw_inverse_rope{tilewright::InverseRope(device->device)};
  });
}

void tw_inverse_rope_destroy(tw_inverse_rope* rope) {
  delete rope;
}

tw_status tw_inverse_rope_run(const tw_inverse_rope* rope,
                              const tw_inverse_rope_arguments* arguments) {
  return guarded([&] {
    require_address(rope, "tw_inverse_rope_run", "rope");
    const auto& a = checked(arguments, "tw_inverse_rope_run", "tw_inverse_rope_arguments_init");
    rope->rope.run({a.tokens, a.heads, a.out, a.token_stride, a.head_stride, a.positions, a.rope,
                    a.rope_positions, a.codes, a.scales, a.has_pow2_scales != 0,
                    a.has_block_major_scales != 0, a.has_operand_order != 0, a.stream});
  });
}

void tw_compressor_problem_init(tw_compressor_problem* problem) {
  tw_compressor_problem defaults = {};
  defaults.cache.format = TW_KV_FP8;
  defaults.cache.page_size = 64;
  defaults.eps = 1e-6;
  initialise(problem, defaults);
}

void tw_compressor_arguments_init(tw_compressor_arguments* arguments) {
  tw_compressor_arguments defaults = {};
  defaults.max_tokens = 1;
  initialise(arguments, defaults);
}

tw_status tw_compressor_create(const tw_device* device, const tw_compressor_problem* problem,
                               tw_compressor** compressor) {
  return guarded([&] {
    require_address(compressor, "tw_compressor_create", "compressor");
    *compressor = nullptr;
    require_address(device, "tw_compressor_create", "device");
    const auto& p = checked(problem, "tw_compressor_create", "tw_compressor_problem_init");
    *compressor = new tw_compressor{tilewright::Compressor(
        device->device,
        {to_enum<tilewright::CompressorKind>(p.kind, 4, "tw_compressor_create: kind"),
         to_layout(p.cache), p.state_slots, p.ring, p.eps})};
  });
}

void tw_compressor_destroy(tw_compressor* compressor) {
  delete compressor;
}

size_t tw_compressor_state_bytes(const tw_compressor* compressor) {
  return compressor == nullptr ? 0 : compressor->compressor.state_bytes();
}

size_t tw_compressor_cache_bytes(const tw_compressor* compressor) {
  return compressor == nullptr ? 0 : compressor->compressor.cache_bytes();
}

tw_status tw_compressor_run(const tw_compressor* compressor,
                            const tw_compressor_arguments* arguments) {
  return guarded([&] {
    require_address(compressor, "tw_compressor_run", "compressor");
    const auto& a = checked(arguments, "tw_compressor_run", "tw_compressor_arguments_init");
    compressor->compressor.run({to_batch(a.sequences), a.max_tokens, a.kv, a.gate, a.kv_stride,
                                a.gate_stride, a.ape, a.norm_weight, a.rope, a.rope_positions,
                                a.state, a.state_slots, to_pages(a.table), a.pages, a.stream});
  });
}
