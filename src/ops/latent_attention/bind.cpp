#include "ops/latent_attention/bind.h"

#include "device/tensor_map.h"
#include "kernels/sparse_attention/latent/latent.h"
#include "kernels/sparse_attention/sparse_schedule.h"
#include "ops/latent_attention/problem.h"
#include "ops/operator/arguments.h"
#include "ops/operator/box_map.h"
#include "ops/operator/make_fast_divisor.h"
#include "ops/operator/operator.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace tilewright::ops {

namespace {

constexpr ArgumentChecks kChecks("latent attention");
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::int64_t kElemBytes = 2;

kernels::SparseStrides to_kernel(const Strides& s) {
  return {s.batch, s.row, s.head};
}

kernels::LatentRows to_kernel(const void* at, const Strides& s) {
  return {static_cast<const std::uint8_t*>(at), s.batch * kElemBytes, s.row * kElemBytes,
          s.head * kElemBytes};
}

struct LatentParamsMaker {
  const LatentPlanned& planned;
  const LatentAttentionArguments& a;
  const LatentAttentionProblem& p = planned.plan.problem;
  const LatentWorkspace& at = planned.workspace;

  template <class T>
  T* in_workspace(std::size_t offset) const {
    return planned.plan.has_schedule ? part_of<T>(a.workspace, offset) : nullptr;
  }

  kernels::LatentCache cache() const {
    const bool has_pages = p.page_size > 0;
    // Without pages a sequence is a page; one of no keys still has a size to divide by.
    const std::int64_t page = has_pages ? p.page_size : std::max<std::int64_t>(p.max_len, 1);
    return {.k = to_kernel(a.k, p.k_strides),
            .v = to_kernel(a.v, p.v_strides),
            .table = has_pages ? a.block_table : nullptr,
            .table_stride = p.table_stride,
            .page_divisor = make_fast_divisor(static_cast<std::uint32_t>(page)),
            .page_size = narrow(page),
            .num_pages = narrow(has_pages ? p.num_pages : p.batch),
            .capacity = narrow(latent_capacity(p))};
  }
  // Rows that a tensor copy takes at a time: those of a CTA, or of a page.
  int box_rows() const {
    const std::int64_t of_cta = kernels::kSparseBlockKeys / planned.cluster;
    return narrow(p.page_size > 0 ? std::min(of_cta, p.page_size) : of_cta);
  }
  kernels::LatentParams attend() const {
    const std::int64_t group = p.heads / p.kv_heads;
    return {.q = static_cast<const std::uint16_t*>(a.q),
            .qv = p.has_qv ? static_cast<const std::uint16_t*>(a.qv) : nullptr,
            .out = static_cast<std::uint16_t*>(a.out),
            .lse = p.has_lse ? a.lse : nullptr,
            .sink = p.has_sink ? a.sink : nullptr,
            .lengths = a.lengths,
            .q_strides = to_kernel(p.q_strides),
            .qv_strides = to_kernel(p.qv_strides),
            .out_strides = to_kernel(p.out_strides),
            .lse_strides = to_kernel(p.lse_strides),
            .cache = cache(),
            .scale_log2 = static_cast<float>(*p.scale * kLog2e),
            .empty_lse = p.positive_empty_lse ? kInfinity : -kInfinity,
            .batch = narrow(p.batch),
            .q_len = narrow(p.q_len),
            .heads = narrow(p.heads),
            .kv_heads = narrow(p.kv_heads),
            .group = narrow(group),
            .ctas = planned.ctas,
            .tiles = planned.plan.tiles,
            .is_causal = p.causal ? 1 : 0,
            .groups = planned.plan.groups,
            .group_divisor = make_fast_divisor(static_cast<std::uint32_t>(group)),
            .work = in_workspace<kernels::SparseWork>(at.work),
            .work_begin = in_workspace<std::int32_t>(at.work_begin),
            .partial_out = in_workspace<float>(at.partial_out),
            .partial_lse = in_workspace<float>(at.partial_lse),
            .box_rows = box_rows(),
            .k_map = {},
            .v_map = {},
            .lists = {},
            .max_logits = nullptr};
  }
  // [page, head, slot, dims]. A tensor of no pages still has a size: nothing of it is copied.
  void map_cache(const device::Device& device, const char* name, const kernels::LatentRows& rows,
                 std::int64_t dims, std::uint8_t (&map)[128]) const {
    const kernels::LatentCache of = cache();
    const arch::SmemBox box = {.rows = box_rows(),
                               .row_bytes = static_cast<int>(dims * kElemBytes),
                               .swizzle = arch::SmemSwizzle::k128B};
    const auto size = [](auto x) {
      return static_cast<std::uint64_t>(std::max<decltype(x)>(x, 1));
    };
    const auto stride = [](std::int64_t x) {
      return static_cast<std::uint64_t>(std::max<std::int64_t>(x, 16));
    };
    const device::abi::CUtensorMap encoded = device::encode_tensor_map(
        device, {.name = name,
                 .type = device::TensorMapType::kBfloat16,
                 .address = reinterpret_cast<device::abi::CUdeviceptr>(rows.data),
                 .dims = {size(dims), size(of.page_size), size(p.kv_heads), size(of.num_pages)},
                 .strides_bytes = {stride(rows.row_stride), stride(rows.head_stride),
                                   stride(rows.page_stride)},
                 .box = {map_columns(box, 2), map_rows(box), 1, 1},
                 .swizzle = map_swizzle(box),
                 .l2_promotion = device::TensorMapL2Promotion::k256B});
    static_assert(sizeof(encoded) == sizeof(map));
    std::memcpy(map, &encoded, sizeof(map));
  }

  kernels::SparseScheduleParams schedule() const {
    kernels::SparseKeys none = {};
    none.page_divisor = make_fast_divisor(1);
    none.page_size = 1;
    kernels::SparseKeys keys = none;
    keys.topk = narrow(latent_capacity(p));
    keys.lengths = a.lengths;
    keys.length_stride_batch = 1;
    return {.keys = {keys, none},
            .batch = narrow(p.batch),
            .q_len = narrow(p.kv_heads * planned.plan.tiles),
            .groups = planned.plan.groups,
            .piece_cost = planned.piece_cost,
            .partial_cost = planned.partial_cost,
            .combine_cost = planned.combine_cost,
            .work = in_workspace<kernels::SparseWork>(at.work),
            .work_begin = in_workspace<std::int32_t>(at.work_begin),
            .merges = in_workspace<kernels::SparseMerge>(at.merges),
            .merge_of_slot = nullptr,
            .counters = nullptr};
  }
};

}  // namespace

void check_latent_arguments(const LatentAttentionPlan& plan, const LatentAttentionArguments& a) {
  const LatentAttentionProblem& p = plan.problem;
  if (plan.launches.empty()) return;
  const bool has_keys = p.page_size > 0 ? p.num_pages > 0 : p.max_len > 0;
  kChecks.address("q", a.q, kRowAlignment);
  kChecks.address_if(p.has_qv, "qv", a.qv, kRowAlignment);
  kChecks.address("out", a.out, kRowAlignment);
  kChecks.address_if(has_keys, "k", a.k, kRowAlignment);
  kChecks.address_if(has_keys, "v", a.v, kRowAlignment);
  kChecks.address("lengths", a.lengths, kWordAlignment);
  kChecks.address_if(p.page_size > 0 && p.max_pages > 0, "block_table", a.block_table,
                     kWordAlignment);
  kChecks.address_if(p.has_lse, "lse", a.lse, kWordAlignment);
  kChecks.address_if(p.has_sink, "sink", a.sink, kWordAlignment);
  kChecks.workspace(a.workspace, plan.workspace_bytes);
}

void launch_latent(const device::Device& device, const LatentPlanned& planned,
                   const LatentAttentionArguments& arguments, std::size_t index,
                   const device::Kernel& kernel, const device::Stream& stream) {
  const Launch& l = planned.plan.launches[index];
  if (l.step == "schedule" && arguments.reuses_schedule) return;
  const device::LaunchConfig config = dependent_launch(l);
  const LatentParamsMaker make = {planned, arguments};
  if (l.step == "schedule") return kernel.launch(config, make.schedule(), stream);
  kernels::LatentParams params = make.attend();
  if (l.step == "combine") {
    const kernels::LatentCombineParams combine = {
        .latent = params,
        .merges = make.in_workspace<kernels::SparseMerge>(planned.workspace.merges)};
    return kernel.launch(config, combine, stream);
  }
  const bool has_maps = planned.has_maps && params.cache.k.data != nullptr;
  if (has_maps) {
    make.map_cache(device, "k", params.cache.k, kernels::kLatentKeyDims, params.k_map);
    make.map_cache(device, "v", params.cache.v, planned.plan.problem.value_dim, params.v_map);
  }
  kernel.launch(config, params, stream);
}

}  // namespace tilewright::ops
