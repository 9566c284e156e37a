// New keys and values written to caches: checks and launch.
#include "kernels/attention/decode/cache_append.h"

#include "tilewright/attention_decode.h"

#include "device/internal.h"
#include "ops/operator/arguments.h"
#include "ops/operator/cache_checks.h"
#include "ops/operator/ceil_div.h"
#include "ops/operator/make_fast_divisor.h"
#include "ops/operator/operator.h"
#include "ops/operator/problem_checks.h"
#include "ops/operator/rotary_checks.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace tilewright {

struct CacheAppend::State {
  ops::LoadedPlan<CacheAppendPlan> loaded;
};

namespace {

using ops::narrow;
using ops::ProblemChecks;
using Problem = CacheAppendProblem;

constexpr const char* kAppendName = "cache append";
constexpr std::int64_t kMaxAppendBatch = std::int64_t{1} << 20, kMaxAppendDim = 4096;
constexpr std::int64_t kMaxAppendStride = std::int64_t{1} << 50;
constexpr std::int64_t kMaxRows = std::numeric_limits<std::int32_t>::max();

std::int64_t element_bytes(DType type) {
  return type == DType::kF8_E4M3 ? 1 : 2;
}
std::int64_t new_rows(const Problem& p) {
  return p.is_packed ? p.total_new : p.batch * p.new_len;
}
std::int64_t query_rows(const Problem& p) {
  return p.heads == 0 ? 0 : p.is_q_packed ? p.total_q : p.batch * p.q_len;
}
std::int64_t capacity(const Problem& p) {
  return p.page_size > 0 ? p.max_pages * p.page_size : p.max_len;
}
double elems(const Problem& p) {
  return static_cast<double>(query_rows(p)) * static_cast<double>(p.heads * p.head_dim) +
         static_cast<double>(new_rows(p)) *
             static_cast<double>(p.kv_heads * (p.head_dim + p.value_dim));
}

void check_types(ProblemChecks& checks, const Problem& p) {
  const bool is_codes = p.dtype == DType::kF8_E4M3;
  checks
      .expect(p.dtype == DType::kBF16 || p.dtype == DType::kF16 || is_codes, "dtype", p.dtype,
              "BF16, F16 or F8_E4M3, the same for q and new tokens")
      .remedy("Convert first.");
  checks
      .expect(p.kv_dtype == p.dtype || p.kv_dtype == DType::kF8_E4M3, "kv_dtype", p.kv_dtype,
              "dtype = {} or F8_E4M3", to_string(p.dtype))
      .remedy("Convert the cache, or the new tokens.");
  const bool has_descale = p.descale == ScaleSharing::kTensor || p.descale == ScaleSharing::kHead;
  checks.expect(has_descale || p.descale == ScaleSharing::kNone, "descale", p.descale,
                "none, tensor or head");
  checks
      .expect(!has_descale || (p.kv_dtype == DType::kF8_E4M3 && !is_codes), "descale", p.descale,
              "none for {} in a cache of {}; scales belong to 16 bits in F8_E4M3",
              to_string(p.dtype), to_string(p.kv_dtype))
      .remedy("Set kNone.");
}

void check_rows(ProblemChecks& checks, const Problem& p) {
  const auto one_of = [&](bool is_packed, const char* length, std::int64_t each, const char* total,
                          std::int64_t all) {
    const char *const counted = is_packed ? total : length, *const other =
                                                                is_packed ? length : total;
    checks.range(counted, is_packed ? all : each, 0).remedy("Split them.");
    checks
        .expect((is_packed ? each : all) == 0, other, is_packed ? each : all, "0: {} counts {}",
                counted, is_packed ? "rows of packed tokens" : "tokens that are not packed")
        .remedy("Leave it out.");
  };
  one_of(p.is_packed, "new_len", p.new_len, "total_new", p.total_new);
  one_of(p.is_q_packed, "q_len", p.q_len, "total_q", p.total_q);
}

void check_rotary(ProblemChecks& checks, const Problem& p) {
  if (p.rotary == RotaryPairs::kNone) {
    for (const auto& [field, value] :
         {std::pair{"rotary_dim", p.rotary_dim}, std::pair{"max_position", p.max_position},
          std::pair{"heads", p.heads},
          std::pair{"has_rotary_lengths", std::int64_t{p.has_rotary_lengths}},
          std::pair{"is_one_position", std::int64_t{p.is_one_position}}})
      checks.expect(value == 0, field, value, "0 without rotary pairs").remedy("Set rotary?");
    return;
  }
  checks
      .expect(p.dtype != DType::kF8_E4M3, "rotary", p.dtype,
              "dtype BF16 or F16: codes are not turned")
      .remedy("Convert first.");
  checks
      .expect(p.rotary_dim > 0 && p.rotary_dim % 16 == 0 && p.rotary_dim <= p.head_dim,
              "rotary_dim", p.rotary_dim, "a multiple of 16 up to head_dim = {}", p.head_dim)
      .remedy("Turn before the call.");
  checks.range("max_position", p.max_position, 1, kMaxRows)
      .remedy("It counts rows of the tables of angles.");
}

// Whether later checks may compute with them.
bool check_numbers(ProblemChecks& checks, const Problem& p) {
  check_types(checks, p);
  check_rows(checks, p);
  const bool has_heads = ops::all_held(
      {checks.range("batch", p.batch, 0, kMaxAppendBatch).remedy("Run parts of the batch."),
       checks.range("kv_heads", p.kv_heads, 1, ops::kMaxCacheHeads)
           .remedy("Run parts of the heads."),
       checks.range("heads", p.heads, 0, ops::kMaxCacheHeads).remedy("Run parts of the heads.")});
  const auto check_dim = [&](const char* field, std::int64_t dim) {
    return checks
        .expect(dim >= 8 && dim <= kMaxAppendDim && dim % 8 == 0, field, dim,
                "a multiple of 8 from 8 to {}", kMaxAppendDim)
        .remedy("Pad with zeros.");
  };
  const bool has_dims =
      ops::all_held({check_dim("head_dim", p.head_dim), check_dim("value_dim", p.value_dim)});
  if (!has_heads || !has_dims) return false;
  check_rotary(checks, p);
  if (!checks.is_fine()) return false;
  constexpr double kMost = 0x1p31 * kernels::kCacheAppendElems;
  return bool(checks
                  .expect(elems(p) < kMost, "new_len", new_rows(p),
                          "so few new tokens and queries that they have fewer than 2^34 elements, "
                          "not {}",
                          elems(p))
                  .remedy("Split them."));
}

void complete_room(ProblemChecks& checks, Problem& p) {
  if (p.page_size == 0) return ops::check_no_pages(checks, p);
  const bool has_page_size = bool(checks.range("page_size", p.page_size, 1, ops::kMaxCacheKeys)
                                      .remedy("0 stands for no pages."));
  ops::complete_pages(checks, p, has_page_size, kMaxAppendStride);
}

void complete_all_strides(ProblemChecks& checks, Problem& p) {
  constexpr const char* kBounds = "from 0 on: rows are 16-byte aligned";
  const auto complete = [&](const char* field, DType type, std::int64_t rows, std::int64_t heads,
                            std::int64_t dim, Strides& s) {
    const std::int64_t granule = 16 / element_bytes(type);
    checks
        .expect(dim % granule == 0 || s.batch != 0 || s.row != 0 || s.head != 0, field, dim,
                "a head of a multiple of {} without gaps: rows are 16-byte aligned", granule)
        .remedy("Set strides of multiples of that, with a gap behind each row.");
    ops::complete_strides(checks, field, {granule, kMaxAppendStride, kBounds},
                          ops::without_gaps(checks, rows, heads, dim), s);
  };
  const std::int64_t slots = p.page_size > 0 ? p.page_size : p.max_len;
  complete("k_cache_strides", p.kv_dtype, slots, p.kv_heads, p.head_dim, p.k_cache_strides);
  complete("v_cache_strides", p.kv_dtype, slots, p.kv_heads, p.value_dim, p.v_cache_strides);
  complete("new_k_strides", p.dtype, p.new_len, p.kv_heads, p.head_dim, p.new_k_strides);
  complete("new_v_strides", p.dtype, p.new_len, p.kv_heads, p.value_dim, p.new_v_strides);
  if (p.heads == 0) return;
  complete("q_strides", p.dtype, p.q_len, p.heads, p.head_dim, p.q_strides);
  complete("turned_q_strides", p.dtype, p.q_len, p.heads, p.head_dim, p.turned_q_strides);
}

Problem complete_append(const Problem& problem) {
  ProblemChecks checks(kAppendName);
  Problem p = problem;
  if (p.value_dim == 0) p.value_dim = p.head_dim;
  if (!check_numbers(checks, p)) checks.finish();
  complete_room(checks, p);
  complete_all_strides(checks, p);
  checks.finish();
  return p;
}

kernels::AttentionStrides to_kernel(const Strides& s) {
  return {s.batch, s.row, s.head};
}
kernels::CacheAppendType to_kernel(DType type) {
  if (type == DType::kF8_E4M3) return kernels::CacheAppendType::kE4m3;
  return type == DType::kF16 ? kernels::CacheAppendType::kF16 : kernels::CacheAppendType::kBf16;
}

kernels::CacheAppendParams make_params(const Problem& p, const CacheAppendArguments& a) {
  const bool has_pages = p.page_size > 0, is_per_head = p.descale == ScaleSharing::kHead;
  // Without pages a sequence is a page; one of no keys still has a size to divide by.
  const std::int64_t page = has_pages ? p.page_size : std::max<std::int64_t>(p.max_len, 1);
  return {.q = a.q,
          .new_k = a.new_k,
          .new_v = a.new_v,
          .turned_q = a.turned_q,
          .k = a.k_cache,
          .v = a.v_cache,
          .cos = a.rope.cos,
          .sin = a.rope.sin,
          .lengths = a.lengths,
          .offsets = p.has_rotary_lengths ? a.rotary_lengths : a.lengths,
          .new_lengths = p.has_new_lengths ? a.new_lengths : nullptr,
          .block_table = has_pages ? a.block_table : nullptr,
          .k_descale = p.descale == ScaleSharing::kNone ? nullptr : a.k_descale,
          .v_descale = p.descale == ScaleSharing::kNone ? nullptr : a.v_descale,
          .table_stride = p.table_stride,
          .q_strides = to_kernel(p.q_strides),
          .turned_q_strides = to_kernel(p.turned_q_strides),
          .new_k_strides = to_kernel(p.new_k_strides),
          .new_v_strides = to_kernel(p.new_v_strides),
          .k_strides = to_kernel(p.k_cache_strides),
          .v_strides = to_kernel(p.v_cache_strides),
          .queries = {p.is_q_packed ? a.cu_q : nullptr, narrow(p.q_len), narrow(query_rows(p))},
          .keys = {p.is_packed ? a.cu_new : nullptr, narrow(p.new_len), narrow(new_rows(p))},
          .batch = narrow(p.batch),
          .heads = narrow(p.heads),
          .kv_heads = narrow(p.kv_heads),
          .head_dim = narrow(p.head_dim),
          .value_dim = narrow(p.value_dim),
          .page_size = narrow(page),
          .num_pages = narrow(has_pages ? p.num_pages : p.batch),
          .capacity = narrow(capacity(p)),
          .descale_batch = is_per_head ? narrow(p.kv_heads) : 0,
          .descale_head = is_per_head ? 1 : 0,
          .rotary_dim = narrow(p.rotary_dim),
          .max_position = narrow(p.max_position),
          .is_one_position = p.is_one_position ? 1 : 0,
          .type = to_kernel(p.dtype),
          .cache_type = to_kernel(p.kv_dtype),
          .pairs = static_cast<kernels::CacheAppendPairs>(p.rotary),
          .page_divisor = make_fast_divisor(static_cast<std::uint32_t>(page))};
}

std::string describe(const Problem& p) {
  const auto rows = [](bool is_packed, std::int64_t total, std::int64_t each) {
    return is_packed ? fmt::format("{} packed", total) : fmt::format("{} a sequence", each);
  };
  std::string text = fmt::format("{} of {} to {}, batch {}, kv_heads {}, head_dim {}",
                                 rows(p.is_packed, p.total_new, p.new_len), to_string(p.dtype),
                                 to_string(p.kv_dtype), p.batch, p.kv_heads, p.head_dim);
  if (p.value_dim != p.head_dim) text += fmt::format(", value_dim {}", p.value_dim);
  text += p.page_size > 0 ? fmt::format(", pages of {}", p.page_size)
                          : fmt::format(", room for {}", p.max_len);
  if (p.rotary != RotaryPairs::kNone)
    text += fmt::format(
        ", {} turned{}{}", p.rotary_dim, p.has_rotary_lengths ? " from offsets of their own" : "",
        p.heads == 0 ? ""
                     : fmt::format(", queries {} of {} heads",
                                   rows(p.is_q_packed, p.total_q, p.q_len), p.heads));
  return text;
}

CacheAppendPlan make_plan(const device::DeviceInfo& device, const Problem& problem) {
  CacheAppendPlan plan;
  plan.problem = complete_append(problem);
  const Problem& p = plan.problem;
  const std::int64_t threads = kernels::cache_append_threads(make_params(p, {}));
  plan.launches = {{.step = "append",
                    .entry = "cache_append",
                    .grid = {ops::ctas_for(threads, kernels::kCacheAppendThreads), 1, 1},
                    .block = {kernels::kCacheAppendThreads, 1, 1}}};
  ops::require_built(kAppendName, device, plan.launches);
  const bool is_idle = elems(p) == 0 && !(p.has_new_lengths && p.batch > 0);
  if (is_idle) plan.launches.clear();
  const double of_q =
      static_cast<double>(query_rows(p)) * static_cast<double>(p.heads * p.head_dim);
  const auto of_type = static_cast<double>(element_bytes(p.dtype));
  plan.bytes = of_q * 2 * of_type +
               (elems(p) - of_q) * (of_type + static_cast<double>(element_bytes(p.kv_dtype)));
  plan.notes = {{"append", describe(p)}};
  if (is_idle) plan.notes.push_back({"launches", "none: there are no rows"});
  return plan;
}

void check_arguments(const Problem& p, const CacheAppendArguments& a) {
  constexpr ops::ArgumentChecks inputs(kAppendName);
  const bool has_new = new_rows(p) > 0, has_queries = query_rows(p) > 0;
  const bool has_descale = p.descale != ScaleSharing::kNone;
  inputs.address_if(has_new, "new_k", a.new_k, ops::kRowAlignment);
  inputs.address_if(has_new, "new_v", a.new_v, ops::kRowAlignment);
  inputs.address_if(has_new, "k_cache", a.k_cache, ops::kRowAlignment);
  inputs.address_if(has_new, "v_cache", a.v_cache, ops::kRowAlignment);
  inputs.address_if(has_queries, "q", a.q, ops::kRowAlignment);
  inputs.address_if(has_queries, "turned_q", a.turned_q, ops::kRowAlignment);
  inputs.address("lengths", a.lengths, ops::kWordAlignment);
  inputs.address_if(p.has_rotary_lengths, "rotary_lengths", a.rotary_lengths, ops::kWordAlignment);
  inputs.address_if(p.has_new_lengths, "new_lengths", a.new_lengths, ops::kWordAlignment);
  inputs.address_if(has_new && p.page_size > 0, "block_table", a.block_table, ops::kWordAlignment);
  inputs.address_if(p.is_packed, "cu_new", a.cu_new, ops::kWordAlignment);
  inputs.address_if(p.is_q_packed, "cu_q", a.cu_q, ops::kWordAlignment);
  inputs.address_if(has_descale, "k_descale", a.k_descale, ops::kWordAlignment);
  inputs.address_if(has_descale, "v_descale", a.v_descale, ops::kWordAlignment);
  if (p.rotary == RotaryPairs::kNone) return;
  ops::check_two_tables(inputs, a.rope);
  ops::check_planned_positions(inputs, a.rope, p.max_position);
}

}  // namespace

CacheAppend::CacheAppend(const Device& device, const CacheAppendProblem& problem)
    : state_(std::make_unique<State>(State{{device, make_plan(opened(device).info(), problem)}})) {}
CacheAppend::~CacheAppend() = default;
CacheAppend::CacheAppend(CacheAppend&&) noexcept = default;
CacheAppend& CacheAppend::operator=(CacheAppend&&) noexcept = default;

const CacheAppendPlan& CacheAppend::plan() const noexcept {
  return state_->loaded.plan();
}

void CacheAppend::run(const CacheAppendArguments& a) const {
  const CacheAppendPlan& plan = state_->loaded.plan();
  if (plan.launches.empty()) return;
  check_arguments(plan.problem, a);
  state_->loaded.entries[0].launch(ops::plain_launch(plan.launches[0]),
                                   make_params(plan.problem, a), state_->loaded.stream(a.stream));
}

CacheAppendPlan plan_cache_append(const Device& device, const CacheAppendProblem& problem) {
  return make_plan(opened(device).info(), problem);
}

}  // namespace tilewright
