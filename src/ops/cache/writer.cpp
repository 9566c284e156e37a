// Writing, reading and listing rows of paged caches: checks and launches.
#include "tilewright/cache_writer.h"

#include "device/internal.h"
#include "device/kernel_registry.h"
#include "kernels/sparse_attention/cache/cache_write.h"
#include "ops/cache/kv_cache.h"
#include "ops/operator/arguments.h"
#include "ops/operator/ceil_div.h"
#include "ops/operator/operator.h"
#include "ops/operator/problem_checks.h"
#include "ops/operator/rotary_checks.h"
#include "ops/operator/sequence_checks.h"

#include <algorithm>
#include <utility>

namespace tilewright {

namespace {

constexpr std::int64_t kMaxWarps = std::int64_t{1} << 31;
constexpr std::size_t kAlignment = kKvPageAlignment;
constexpr std::int64_t kElems = 8;  // bf16 of 16 bytes

constexpr std::int32_t narrow(std::int64_t x) {
  return static_cast<std::int32_t>(x);
}

device::LaunchConfig warps_of(std::int64_t warps, int warps_per_cta) {
  const std::int64_t ctas = (warps + warps_per_cta - 1) / warps_per_cta;
  return {.grid = {static_cast<std::uint32_t>(ctas)},
          .block = {static_cast<std::uint32_t>(warps_per_cta) * 32},
          .is_dependent_launch = true};
}

std::int64_t write_warps(std::int64_t tokens, std::int64_t heads, bool has_kv) {
  return tokens * (heads + (has_kv ? 1 : 0));
}

device::LaunchConfig list_launch(std::int64_t tokens, std::int32_t list_len) {
  const std::int64_t threads = tokens * kernels::cache_list_lanes(narrow(tokens), list_len);
  return {.grid = {ops::ctas_for(threads, kernels::kCacheListThreads)},
          .block = {kernels::kCacheListThreads},
          .is_dependent_launch = true};
}

void check_work(ops::ProblemChecks& checks, const KvCacheWork& w) {
  if (ops::all_held(
          {checks.range("tokens", w.tokens, 0), checks.range("heads", w.heads, 0, 1 << 20)}))
    checks
        .expect(w.tokens * (w.heads + 1) < kMaxWarps, "tokens", w.tokens,
                "fewer than 2^31 rows in one call, with heads = {}", w.heads)
        .remedy("Split them.");
  checks.range("list_len", w.list_len, 0);
  checks.range("read_rows", w.read_rows, 0);
}

double work_bytes(const KvCacheLayout& layout, const KvCacheWork& w) {
  constexpr double kVectorBytes = 2 * kKvDims;
  const auto number = [](std::int64_t x) { return static_cast<double>(x); };
  const double row = number(kv_row_bytes(layout.format));
  return number(w.tokens) *
             (2 * kVectorBytes * number(w.heads) + kVectorBytes + row + 4 * number(w.list_len)) +
         number(w.read_rows) * (row + kVectorBytes);
}

KvCachePlan make_plan(const device::DeviceInfo& device, const KvCacheLayout& layout,
                      const KvCacheWork& work) {
  ops::ProblemChecks checks("cache");
  KvCachePlan plan;
  plan.layout = ops::complete_layout(checks, layout);
  plan.work = work;
  check_work(checks, work);
  checks.finish();
  const auto add = [&](const char* step, const char* entry, const device::LaunchConfig& config) {
    plan.launches.push_back(ops::planned_launch(step, entry, config));
  };
  if (work.list_len > 0 && work.tokens > 0)
    add("list", "cache_lists", list_launch(work.tokens, narrow(work.list_len)));
  if (work.tokens > 0)
    add("write", "cache_write",
        warps_of(write_warps(work.tokens, work.heads, true), kernels::kCacheWriteWarps));
  if (work.read_rows > 0)
    add("read", "cache_read", warps_of(work.read_rows, kernels::kCacheReadWarps));
  ops::require_built("cache", device, plan.launches);
  plan.bytes = work_bytes(plan.layout, work);
  plan.notes = {
      {"cache",
       fmt::format("{} rows of {} bytes, {} pages of {}", to_string(plan.layout.format),
                   kv_row_bytes(plan.layout.format), plan.layout.num_pages, plan.layout.page_size)},
      {"call", fmt::format("{} tokens, {} heads of queries, lists of {}, {} rows read", work.tokens,
                           work.heads, work.list_len, work.read_rows)}};
  return plan;
}

}  // namespace

struct KvCache::State {
  Device handle;  // keeps the device open
  KvCacheLayout layout;
  device::Kernel write, read, list;

  device::Stream stream(void* lent) const { return ops::lent_stream(opened(handle), lent); }
};

KvCache::KvCache(const Device& device, const KvCacheLayout& layout) {
  const KvCacheLayout whole = complete(layout);
  const device::Device& internal = opened(device);
  state_ = std::make_unique<State>(State{
      device, whole, device::load_kernel(internal, "cache_write"),
      device::load_kernel(internal, "cache_read"), device::load_kernel(internal, "cache_lists")});
}

KvCache::~KvCache() = default;
KvCache::KvCache(KvCache&&) noexcept = default;
KvCache& KvCache::operator=(KvCache&&) noexcept = default;

const KvCacheLayout& KvCache::layout() const noexcept {
  return state_->layout;
}

KvCachePlan KvCache::plan(const KvCacheWork& work) const {
  return make_plan(opened(state_->handle).info(), state_->layout, work);
}

KvCachePlan plan_kv_cache(const Device& device, const KvCacheLayout& layout,
                          const KvCacheWork& work) {
  return make_plan(opened(device).info(), layout, work);
}

kernels::CacheWriteParams ops::cache_write_params(const KvCacheLayout& layout,
                                                  const KvWriteArguments& a) {
  constexpr ops::ArgumentChecks kChecks("cache write");
  kChecks.range("tokens", a.tokens, 0);
  kChecks.range("heads", a.heads, 0, 1 << 20);
  kChecks.check(a.tokens * (a.heads + 1) < kMaxWarps,
                "{} tokens of {} heads are too many for one call; split them", a.tokens, a.heads);
  kChecks.eps("eps", a.eps);
  const bool has_q = a.heads > 0, has_kv = a.kv != nullptr;
  kernels::CacheWriteParams p = {};
  if (a.tokens == 0 || (!has_q && !has_kv)) return p;
  p.q_head_stride = kChecks.stride("q_head_stride", a.q_head_stride, kKvDims, kElems);
  p.q_token_stride = kChecks.stride("q_token_stride", a.q_token_stride, a.heads * kKvDims, kElems);
  p.kv_stride = kChecks.stride("kv_stride", a.kv_stride, kKvDims, kElems);
  kChecks.range("rope.positions", a.rope.positions, 1);
  kChecks.address("positions", a.positions, 4);
  ops::check_one_table(kChecks, a.rope, 4);
  if (has_q) kChecks.address("q", a.q, kAlignment);
  if (a.q_out != nullptr) kChecks.address("q_out", a.q_out, kAlignment);
  if (has_kv) {
    kChecks.check(a.kv_dtype == DType::kBF16 || a.kv_dtype == DType::kF32,
                  "kv_dtype = {}; expected BF16 or F32", to_string(a.kv_dtype));
    kChecks.address("kv", a.kv, kAlignment);
    kChecks.address("kv_weight", a.kv_weight, kElems);
    kChecks.address("slots", a.slots, 4);
    kChecks.address("pages", a.pages, kAlignment);
    if (a.kv_out != nullptr) kChecks.address("kv_out", a.kv_out, kAlignment);
  }
  p.q = static_cast<const std::uint16_t*>(a.q);
  p.q_out = static_cast<std::uint16_t*>(a.q_out != nullptr ? a.q_out : const_cast<void*>(a.q));
  p.kv = a.kv;
  p.kv_weight = static_cast<const std::uint16_t*>(a.kv_weight);
  p.positions = a.positions;
  p.rope = a.rope.angles;
  p.slots = a.slots;
  p.kv_out = static_cast<std::uint16_t*>(a.kv_out);
  p.q_out_token_stride = p.q_token_stride, p.q_out_head_stride = p.q_head_stride;
  p.kv_out_stride = kKvDims;
  p.cache = ops::to_kernel(layout, a.pages);
  p.tokens = narrow(a.tokens), p.heads = narrow(a.heads);
  p.num_positions = narrow(a.rope.positions);
  p.is_kv_f32 = a.kv_dtype == DType::kF32 ? 1 : 0;
  p.eps = static_cast<float>(a.eps);
  return p;
}

void KvCache::write(const KvWriteArguments& a) const {
  const kernels::CacheWriteParams p = ops::cache_write_params(state_->layout, a);
  const std::int64_t warps = write_warps(a.tokens, a.heads, a.kv != nullptr);
  if (warps == 0) return;
  state_->write.launch(warps_of(warps, kernels::kCacheWriteWarps), p, state_->stream(a.stream));
}

void KvCache::read(const KvReadArguments& a) const {
  constexpr ops::ArgumentChecks kChecks("cache read");
  kChecks.range("count", a.count, 0);
  if (a.count == 0) return;
  kChecks.address("rows", a.rows, 4);
  kChecks.address("pages", a.pages, kAlignment);
  kChecks.address("out", a.out, kAlignment);
  const kernels::CacheReadParams p = {
      ops::to_kernel(state_->layout, a.pages), a.rows, static_cast<std::uint16_t*>(a.out),
      kChecks.stride("out_stride", a.out_stride, kKvDims, kElems), narrow(a.count)};
  state_->read.launch(warps_of(a.count, kernels::kCacheReadWarps), p, state_->stream(a.stream));
}

void KvCache::list(const KvListArguments& a) const {
  constexpr ops::ArgumentChecks kChecks("cache list");
  const bool is_entries = a.kind == KvListKind::kEntries;
  kChecks.range("tokens", a.tokens, 0);
  if (a.tokens == 0) return;
  ops::check_sequences(kChecks, a.sequences);
  kChecks.range("ring", a.ring, 0);
  if (a.kind == KvListKind::kWindow) kChecks.range("window", a.window, 1);
  if (is_entries) kChecks.range("ratio", a.ratio, 1);
  kernels::CacheListsParams p = {};
  p.list_stride = a.list_stride != 0 ? a.list_stride : a.list_len;
  p.list_len = narrow(std::max<std::int64_t>(a.list_len, 1));
  if (a.lists != nullptr) {
    kChecks.range("list_len", a.list_len, 1);
    kChecks.check(p.list_stride >= a.list_len, "list_stride = {}; expected at least list_len = {}",
                  p.list_stride, a.list_len);
    ops::check_table(kChecks, a.table);
  }
  p.sequences = ops::to_kernel(a.sequences);
  p.table = ops::to_kernel(a.table);
  p.lists = a.lists;
  p.lengths = a.lengths;
  p.positions = a.positions;
  p.tokens = narrow(a.tokens);
  p.page_size = narrow(state_->layout.page_size);
  p.num_rows = narrow(state_->layout.num_pages * state_->layout.page_size);
  p.ring = is_entries ? 0 : narrow(a.ring);
  p.window = is_entries ? 0 : a.kind == KvListKind::kWrite ? 1 : narrow(a.window);
  p.ratio = narrow(a.ratio);
  kChecks.range("tokens * threads of each",
                a.tokens * kernels::cache_list_lanes(p.tokens, p.list_len), 1);
  state_->list.launch(list_launch(a.tokens, p.list_len), p, state_->stream(a.stream));
}

}  // namespace tilewright
