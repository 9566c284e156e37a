#include "ops/sparse_attention/bind.h"

#include "kernels/sparse_attention/latent/latent.h"
#include "kernels/sparse_attention/pair/combine_tiles.h"
#include "kernels/sparse_attention/pair/union_lists.h"
#include "kernels/sparse_attention/sparse_schedule.h"
#include "kernels/sparse_attention/wgmma/sm90_decode_wgmma.h"
#include "ops/cache/kv_cache.h"
#include "ops/operator/arguments.h"
#include "ops/operator/ceil_div.h"
#include "ops/operator/make_fast_divisor.h"
#include "ops/operator/operator.h"
#include "ops/sparse_attention/problem.h"

#include <algorithm>
#include <limits>

namespace tilewright::ops {

namespace {

constexpr ArgumentChecks kChecks("sparse attention");
constexpr float kInfinity = std::numeric_limits<float>::infinity();

void check_list(const std::string& name, const SparseList& list, const SparseListArguments& a) {
  if (list.topk == 0) return;
  const auto need = [&](bool is_needed, const char* field, const void* at, std::size_t alignment) {
    kChecks.address_if(is_needed, (name + field).c_str(), at, alignment);
  };
  need(list.cache.num_pages > 0, ".pages", a.pages, kKvPageAlignment);
  need(true, ".indices", a.indices, kWordAlignment);
  need(list.lengths != SparseLengths::kFull, ".lengths", a.lengths, kWordAlignment);
}

kernels::SparseKeys bind_keys(const SparseList& list, const SparseListArguments& a,
                              std::int64_t q_len) {
  if (list.topk == 0) {
    kernels::SparseKeys none = {};
    none.page_divisor = make_fast_divisor(1);
    none.page_size = 1;
    return none;
  }
  const bool is_per_query = list.lengths == SparseLengths::kPerQuery;
  return {.pages = static_cast<const std::uint8_t*>(a.pages),
          .page_stride = list.cache.page_stride_bytes,
          .page_divisor = make_fast_divisor(static_cast<std::uint32_t>(list.cache.page_size)),
          .page_size = narrow(list.cache.page_size),
          .num_rows = narrow(list.cache.num_pages * list.cache.page_size),
          .indices = a.indices,
          .index_stride = list.index_stride,
          .topk = narrow(list.topk),
          .lengths = list.lengths == SparseLengths::kFull ? nullptr : a.lengths,
          .length_stride_batch = is_per_query ? narrow(q_len) : 1,
          .length_stride_query = is_per_query ? 1 : 0};
}

kernels::SparseStrides to_kernel(const Strides& s) {
  return {s.batch, s.row, s.head};
}

struct ParamsMaker {
  const SparsePlanned& planned;
  const SparseAttentionArguments& a;
  const SparseAttentionProblem& p = planned.plan.problem;
  const SparseWorkspace& at = planned.workspace;

  template <class T>
  T* in_workspace(std::size_t offset) const {
    if (!planned.plan.has_schedule) return nullptr;
    return part_of<T>(a.workspace, offset);
  }

  kernels::SparseDecodeParams decode() const {
    return {.q = static_cast<const std::uint16_t*>(a.q),
            .out = static_cast<std::uint16_t*>(a.out),
            .lse = p.has_lse ? a.lse : nullptr,
            .max_logits = p.has_max_logits ? a.max_logits : nullptr,
            .sink = p.has_sink ? a.sink : nullptr,
            .q_strides = to_kernel(p.q_strides),
            .out_strides = to_kernel(p.out_strides),
            .lse_strides = to_kernel(p.lse_strides),
            .keys = {bind_keys(p.window, a.window, p.q_len),
                     bind_keys(p.compressed, a.compressed, p.q_len)},
            .scale_log2 = static_cast<float>(*p.scale * kLog2e),
            .batch = narrow(p.batch),
            .q_len = narrow(p.q_len),
            .heads = narrow(p.heads),
            .groups = planned.plan.groups,
            .empty_lse = p.positive_empty_lse ? kInfinity : -kInfinity,
            .work = in_workspace<kernels::SparseWork>(at.work),
            .work_begin = in_workspace<std::int32_t>(at.work_begin),
            .partial_out = in_workspace<float>(at.partial_out),
            .partial_lse = in_workspace<float>(at.partial_lse)};
  }

  kernels::SparseMerge* merge_of_slot() const {
    return planned.merges_parts ? in_workspace<kernels::SparseMerge>(at.merge_of_slot) : nullptr;
  }
  std::uint64_t* counters() const {
    return planned.merges_parts ? in_workspace<std::uint64_t>(at.counters) : nullptr;
  }
  kernels::SparseWgmmaParams wgmma() const {
    return {.decode = decode(), .merge_of_slot = merge_of_slot(), .counters = counters()};
  }

  // Queries as sequences of one query each.
  kernels::LatentParams latent() const {
    const kernels::SparseDecodeParams d = decode();
    const auto of_query = [](const kernels::SparseStrides& s) {
      return kernels::SparseStrides{s.query, 0, s.head};
    };
    kernels::LatentParams params = {};
    params.q = d.q + kKvDims;
    params.qv = d.q;
    params.out = d.out;
    params.lse = d.lse;
    params.sink = d.sink;
    params.lengths = d.keys[0].lengths;
    params.q_strides = params.qv_strides = of_query(d.q_strides);
    params.out_strides = of_query(d.out_strides);
    params.lse_strides = of_query(d.lse_strides);
    params.cache.page_divisor = make_fast_divisor(1);
    params.cache.page_size = 1;
    params.cache.capacity = d.keys[0].topk;
    params.scale_log2 = d.scale_log2;
    params.empty_lse = d.empty_lse;
    params.batch = d.batch * d.q_len;
    params.q_len = params.kv_heads = params.tiles = 1;
    params.heads = params.group = d.heads;
    params.ctas = planned.shape.group_ctas;
    params.groups = d.groups;
    params.group_divisor = make_fast_divisor(static_cast<std::uint32_t>(d.heads));
    params.work = d.work;
    params.work_begin = d.work_begin;
    params.partial_out = d.partial_out;
    params.partial_lse = d.partial_lse;
    params.lists = d.keys[0];
    params.max_logits = d.max_logits;
    return params;
  }

  int queries = planned.shape.queries;  // of a tile

  bool has_unions() const { return queries > 1; }
  std::int64_t tiles() const { return ceil_div(p.q_len, queries); }
  kernels::SparseUnion union_of(int i) const {
    const SparseWorkspace::Union& u = at.unions[i];
    return {.indices = part_of<std::int32_t>(a.workspace, u.indices),
            .masks = part_of<std::uint16_t>(a.workspace, u.masks),
            .lengths = part_of<std::int32_t>(a.workspace, u.lengths)};
  }
  kernels::SparseUnionParams unite() const {
    return {.keys = {bind_keys(p.window, a.window, p.q_len),
                     bind_keys(p.compressed, a.compressed, p.q_len)},
            .batch = narrow(p.batch),
            .q_len = narrow(p.q_len),
            .queries = queries,
            .unions = {union_of(0), union_of(1)}};
  }
  // Lists of tiles of queries.
  kernels::SparseKeys united_keys(int i) const {
    kernels::SparseKeys keys = i == 0 ? bind_keys(p.window, a.window, p.q_len)
                                      : bind_keys(p.compressed, a.compressed, p.q_len);
    if (keys.topk == 0) return keys;
    keys.topk *= queries;
    keys.indices = union_of(i).indices;
    keys.index_stride = keys.topk;
    keys.lengths = union_of(i).lengths;
    keys.length_stride_batch = narrow(tiles());
    keys.length_stride_query = 1;
    return keys;
  }
  kernels::SparsePairParams pair() const {
    kernels::SparsePairParams params = {};
    params.decode = decode();
    params.queries_of_cta = std::max(queries / 2, 1);
    params.queries = narrow(p.q_len);
    if (!has_unions()) return params;
    kernels::SparseDecodeParams& d = params.decode;
    params.q_step = d.q_strides.query;
    params.out_step = d.out_strides.query;
    params.lse_step = d.lse_strides.query;
    for (std::int64_t* stride : {&d.q_strides.query, &d.out_strides.query, &d.lse_strides.query})
      *stride *= queries;
    for (int i = 0; i < 2; ++i) {
      d.keys[i] = united_keys(i);
      params.masks[i] = union_of(i).masks;
    }
    d.q_len = narrow(tiles());
    return params;
  }

  kernels::SparseScheduleParams schedule() const {
    kernels::SparseScheduleParams params = {
        .keys = {bind_keys(p.window, a.window, p.q_len),
                 bind_keys(p.compressed, a.compressed, p.q_len)},
        .batch = narrow(p.batch),
        .q_len = narrow(p.q_len),
        .groups = planned.plan.groups,
        .piece_cost = planned.piece_cost,
        .partial_cost = planned.partial_cost,
        .combine_cost = planned.combine_cost,
        .work = in_workspace<kernels::SparseWork>(at.work),
        .work_begin = in_workspace<std::int32_t>(at.work_begin),
        .merges = in_workspace<kernels::SparseMerge>(at.merges),
        .merge_of_slot = merge_of_slot(),
        .counters = counters()};
    if (!has_unions()) return params;
    for (int i = 0; i < 2; ++i) params.keys[i] = united_keys(i);
    params.q_len = narrow(tiles());
    return params;
  }
  const kernels::SparseMerge* merges() const {
    return in_workspace<kernels::SparseMerge>(at.merges);
  }
};

}  // namespace

void check_sparse_arguments(const SparseAttentionPlan& plan, const SparseAttentionArguments& a) {
  const SparseAttentionProblem& p = plan.problem;
  if (plan.launches.empty()) return;
  kChecks.address("q", a.q, kRowAlignment);
  kChecks.address("out", a.out, kRowAlignment);
  check_list("window", p.window, a.window);
  check_list("compressed", p.compressed, a.compressed);
  kChecks.address_if(p.has_lse, "lse", a.lse, kWordAlignment);
  kChecks.address_if(p.has_max_logits, "max_logits", a.max_logits, kWordAlignment);
  kChecks.address_if(p.has_sink, "sink", a.sink, kWordAlignment);
  kChecks.workspace(a.workspace, plan.workspace_bytes);
}

void launch_sparse(const SparsePlanned& planned, const SparseAttentionArguments& arguments,
                   std::size_t index, const device::Kernel& kernel, const device::Stream& stream) {
  const Launch& l = planned.plan.launches[index];
  // Unions depend on the lists, and their schedule on them.
  if (l.step == "schedule" && arguments.reuses_schedule && planned.shape.queries == 1) return;
  device::LaunchConfig config = dependent_launch(l);
  const ParamsMaker make = {planned, arguments};
  if (l.step == "unite") return kernel.launch(config, make.unite(), stream);
  if (l.step == "schedule") return kernel.launch(config, make.schedule(), stream);
  if (l.step == "attend") {
    if (planned.shape.takes_pairs) return kernel.launch(config, make.pair(), stream);
    if (planned.shape.takes_latent) return kernel.launch(config, make.latent(), stream);
    if (planned.shape.takes_wgmma) {
      config.is_cooperative = planned.merges_parts;  // its CTAs wait for each other
      return kernel.launch(config, make.wgmma(), stream);
    }
    return kernel.launch(config, make.decode(), stream);
  }
  if (make.has_unions()) {
    const kernels::SparseTileCombineParams combine = {.pair = make.pair(), .merges = make.merges()};
    return kernel.launch(config, combine, stream);
  }
  const kernels::SparseCombineParams combine = {.decode = make.decode(), .merges = make.merges()};
  kernel.launch(config, combine, stream);
}

}  // namespace tilewright::ops
