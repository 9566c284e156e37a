#include "ops/decode/bind.h"

#include "device/tensor_map.h"
#include "kernels/attention/decode/decode_append.h"
#include "kernels/attention/decode/limits.h"
#include "kernels/attention_sm100/decode/tensor_decode.h"
#include "ops/decode/kernels.h"
#include "ops/decode/problem.h"
#include "ops/operator/arguments.h"
#include "ops/operator/box_map.h"
#include "ops/operator/make_fast_divisor.h"
#include "ops/operator/operator.h"
#include "ops/operator/rotary_checks.h"

#include <bit>
#include <cstring>

namespace tilewright::ops {

namespace {

kernels::DecodeStrides to_kernel(const Strides& s) {
  return {s.batch, s.row, s.head};
}

struct DecodeParamsMaker {
  const DecodePlanned& planned;
  const AttentionDecodeArguments& a;
  const AttentionDecodeProblem& p = planned.plan.problem;
  const bool is_rotated = p.append.rotary != RotaryPairs::kNone;

  template <class T>
  T* in_workspace(std::size_t offset) const {
    return part_of<T>(a.workspace, offset);
  }

  kernels::DecodeCache cache() const {
    const std::int64_t bytes = decode_kv_elem_bytes(p);
    const bool has_pages = p.page_size > 0;
    // Without pages a sequence is a page; one of no keys still has a size to divide by.
    const std::int64_t page = has_pages ? p.page_size : std::max<std::int64_t>(p.max_len, 1);
    return {.k = static_cast<std::uint8_t*>(a.k_cache),
            .v = static_cast<std::uint8_t*>(a.v_cache),
            .page_stride = p.cache_strides.batch * bytes,
            .row_stride = p.cache_strides.row * bytes,
            .head_stride = p.cache_strides.head * bytes,
            .block_table = has_pages ? a.block_table : nullptr,
            .table_stride = p.table_stride,
            .page_size = narrow(page),
            .num_pages = narrow(has_pages ? p.num_pages : p.batch),
            .capacity = narrow(decode_capacity(p)),
            .page_divisor = make_fast_divisor(static_cast<std::uint32_t>(page))};
  }

  // [page, head, slot, head_dim] as bytes: other than elements, these swizzle all types alike.
  // Boxes are as wide as what is multiplied: zeros where a row has ended.
  void map_cache(const device::Device& device, const char* name, const void* at, int width,
                 std::uint8_t (&map)[128]) const {
    const kernels::DecodeCache c = cache();
    const std::int64_t row_bytes = p.head_dim * decode_kv_elem_bytes(p);
    const int width_bytes = width * static_cast<int>(decode_kv_elem_bytes(p));
    const int box_bytes = kernels::decode_box_bytes(width_bytes);
    const arch::SmemBox box = {.rows = kernels::kDecodePieceKeys,
                               .row_bytes = width_bytes,
                               .swizzle = arch::swizzle_of_span(box_bytes)};
    const auto size = [](auto x) { return static_cast<std::uint64_t>(x); };
    const device::abi::CUtensorMap encoded = device::encode_tensor_map(
        device, {.name = name,
                 .address = reinterpret_cast<device::abi::CUdeviceptr>(at),
                 .dims = {size(row_bytes), size(c.page_size), size(p.kv_heads), size(c.num_pages)},
                 .strides_bytes = {size(c.row_stride), size(c.head_stride), size(c.page_stride)},
                 .box = {map_columns(box, 1), map_rows(box), 1, 1},
                 .swizzle = map_swizzle(box),
                 .l2_promotion = device::TensorMapL2Promotion::k128B});
    static_assert(sizeof(encoded) == sizeof(map));
    std::memcpy(map, &encoded, sizeof(map));
  }

  kernels::DecodeDescale descale() const {
    if (p.descale == ScaleSharing::kNone) return {};
    const bool is_per_head = p.descale == ScaleSharing::kHead;
    return {a.k_descale, a.v_descale, is_per_head ? p.kv_heads : 0, is_per_head ? 1 : 0};
  }

  kernels::DecodeAppendParams append() const {
    return {
        .q = static_cast<const std::uint16_t*>(a.q),
        .new_k = static_cast<const std::uint16_t*>(a.new_k),
        .new_v = static_cast<const std::uint16_t*>(a.new_v),
        .rotated = is_rotated ? in_workspace<std::uint16_t>(planned.workspace.rotated) : nullptr,
        .cos = a.rope.cos,
        .sin = a.rope.sin,
        .lengths = a.lengths,
        .cache = cache(),
        .descale = descale(),
        .q_strides = to_kernel(p.q_strides),
        .k_strides = to_kernel(p.new_k_strides),
        .v_strides = to_kernel(p.new_v_strides),
        .batch = narrow(p.batch),
        .q_len = narrow(p.q_len),
        .heads = narrow(p.heads),
        .kv_heads = narrow(p.kv_heads),
        .head_dim = narrow(p.head_dim),
        .rotary_dim = narrow(p.append.rotary_dim),
        .max_position = narrow(p.append.max_position),
        .is_f16 = p.dtype == DType::kF16 ? 1 : 0,
        .pairs = static_cast<kernels::DecodePairs>(p.append.rotary)};
  }

  kernels::DecodeParams attend() const {
    const AttentionDecodePlan& plan = planned.plan;
    const DecodeRates rates = decode_rates(plan);
    const bool is_capped = p.softcap > 0;
    const double scale = *p.scale * kLog2e;
    return {.q = is_rotated ? in_workspace<const void>(planned.workspace.rotated) : a.q,
            .out = a.out,
            .lse = p.has_lse ? a.lse : nullptr,
            .sink = p.has_sink ? a.sink : nullptr,
            .lengths = a.lengths,
            .cache = cache(),
            .descale = descale(),
            .q_strides = is_rotated ? kernels::DecodeStrides{p.q_len * p.heads * p.head_dim,
                                                             p.heads * p.head_dim, p.head_dim}
                                    : to_kernel(p.q_strides),
            .out_strides = to_kernel(p.out_strides),
            .batch = narrow(p.batch),
            .q_len = narrow(p.q_len),
            .heads = narrow(p.heads),
            .kv_heads = narrow(p.kv_heads),
            .group = narrow(p.heads / p.kv_heads),
            .rows = plan.tile_rows,
            .m_tiles = plan.passes,
            .added = narrow(p.append.is_wanted ? p.q_len : 0),
            .window_left = p.window_left < 0 ? kernels::kDecodeUnbounded : narrow(p.window_left),
            .is_causal = p.causal ? 1 : 0,
            .q_is_f16 = p.dtype == DType::kF16 ? 1 : 0,
            .scale_log2 = static_cast<float>(is_capped ? p.softcap * kLog2e : scale),
            .softcap_scale = is_capped ? static_cast<float>(2 * scale / p.softcap) : 0.0f,
            .guess = a.lengths,
            .ahead_keys = rates.ahead_keys,
            .deal = p.splits > 0 ? kernels::DecodeDeal::kFixed : kernels::DecodeDeal::kAuto,
            .splits = narrow(p.splits),
            .groups = plan.groups,
            .tile_cost = rates.tile_cost,
            .least_share = rates.least_share,
            .merge_cost = static_cast<float>(rates.merge_cost),
            .partial_out = in_workspace<float>(planned.workspace.partial_out),
            .partial_sums = in_workspace<float>(planned.workspace.partial_sums),
            .counters = in_workspace<std::uint64_t>(planned.workspace.counters),
            .counter_tag = planned.counter_tag,
            .group_divisor = make_fast_divisor(static_cast<std::uint32_t>(p.heads / p.kv_heads)),
            .k_map = {},
            .v_map = {}};
  }

  kernels::DecodeAnyParams any(const kernels::DecodeParams& params) const {
    const std::int32_t chunk = p.chunk > 0 ? narrow(p.chunk) : kernels::kDecodeUnbounded;
    return {params, narrow(p.head_dim), narrow(p.head_dim * decode_kv_elem_bytes(p)), chunk,
            make_fast_divisor(static_cast<std::uint32_t>(chunk))};
  }
};

}  // namespace

void check_decode_arguments(const AttentionDecodePlan& plan, const AttentionDecodeArguments& a) {
  constexpr ArgumentChecks kChecks("attention decode");
  const AttentionDecodeProblem& p = plan.problem;
  if (plan.launches.empty()) return;
  const bool has_keys = p.page_size > 0 ? p.num_pages > 0 : p.max_len > 0;
  const bool has_descale = p.descale != ScaleSharing::kNone;
  const bool is_rotated = p.append.rotary != RotaryPairs::kNone;
  kChecks.address("q", a.q, kRowAlignment);
  kChecks.address("out", a.out, kRowAlignment);
  kChecks.address_if(has_keys, "k_cache", a.k_cache, kRowAlignment);
  kChecks.address_if(has_keys, "v_cache", a.v_cache, kRowAlignment);
  kChecks.address("lengths", a.lengths, kWordAlignment);
  kChecks.address_if(p.page_size > 0 && p.max_pages > 0, "block_table", a.block_table,
                     kWordAlignment);
  kChecks.address_if(has_descale, "k_descale", a.k_descale, kWordAlignment);
  kChecks.address_if(has_descale, "v_descale", a.v_descale, kWordAlignment);
  kChecks.address_if(p.append.is_wanted, "new_k", a.new_k, kRowAlignment);
  kChecks.address_if(p.append.is_wanted, "new_v", a.new_v, kRowAlignment);
  if (is_rotated) {
    check_two_tables(kChecks, a.rope);
    check_planned_positions(kChecks, a.rope, p.append.max_position);
  }
  kChecks.address_if(p.has_lse, "lse", a.lse, kWordAlignment);
  kChecks.address_if(p.has_sink, "sink", a.sink, kWordAlignment);
  kChecks.workspace(a.workspace, plan.workspace_bytes);
}

void launch_decode(const device::Device& device, const DecodePlanned& planned,
                   const AttentionDecodeArguments& arguments, std::size_t index,
                   const device::Kernel& kernel, const device::Stream& stream,
                   const std::int32_t* guess) {
  const Launch& l = planned.plan.launches[index];
  const device::LaunchConfig config = dependent_launch(l);
  const DecodeParamsMaker make = {planned, arguments};
  if (l.step == "append") return kernel.launch(config, make.append(), stream);
  kernels::DecodeParams params = make.attend();
  if (guess != nullptr) params.guess = guess;
  const AttentionDecodeProblem& p = planned.plan.problem;
  const DecodeKernel& chosen = *find_decode_kernel(planned.plan.kernel);
  const bool has_boxes = decode_has_boxes(chosen, p);
  const int width = decode_width(chosen, p);
  if (has_boxes) {
    make.map_cache(device, "k_cache", arguments.k_cache, width, params.k_map);
    make.map_cache(device, "v_cache", arguments.v_cache, width, params.v_map);
  }
  if (!chosen.is_tensor() && !decode_is_any(p)) return kernel.launch(config, params, stream);
  const kernels::DecodeAnyParams any = make.any(params);
  if (!chosen.is_tensor()) return kernel.launch(config, any, stream);
  const kernels::TensorDecodeParams of_tensor = {any, width, p.dtype == DType::kF16 ? 1 : 0,
                                                 has_boxes ? 1 : 0};
  kernel.launch(config, of_tensor, stream);
}

}  // namespace tilewright::ops
