#include "ops/attention/bind.h"

#include "device/tensor_map.h"
#include "ops/attention/fp8.h"
#include "ops/attention/padding.h"
#include "ops/attention/plan.h"
#include "ops/attention/problem.h"
#include "ops/attention/sm100.h"
#include "ops/operator/arguments.h"
#include "ops/operator/box_map.h"
#include "ops/operator/make_fast_divisor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

namespace tilewright::ops {

namespace {

using kernels::AttentionParams;

constexpr std::uint32_t kSwizzledBoxColumns = 64;  // of 2 bytes: the span of the swizzle

kernels::AttentionStrides to_kernel(const Strides& s) {
  return {s.batch, s.row, s.head};
}

std::int32_t to_window(std::int64_t keys) {
  constexpr std::int64_t kMax = kernels::kUnboundedWindow;
  return static_cast<std::int32_t>(keys < 0 ? kMax : std::min(keys, kMax));
}

// One tensor as [batch, head, row, head_dim], or [batch, row, head, head_dim] with the heads that
// share keys in a box. A map may not be empty: of no rows it claims one, which is never read.
struct MapRequest {
  const char* name;
  const void* address;
  std::int64_t rows, heads;
  const Strides& strides;
  std::uint32_t box_rows;
  std::int64_t batch;
  std::uint32_t box_heads =
      0;  ///< heads that lie in a box of rows, beside each other; 0: rows of one
  DType dtype = DType::kBF16;
  /// Elements of a row, and of the part of it that is a box, a span of the swizzle; 0: head_dim,
  /// and what fits 128 bytes.
  std::int64_t row_elems = 0;
  std::uint32_t box_elems = 0;
};

std::uint32_t elem_bytes_of(DType dtype) {
  return dtype == DType::kF8_E4M3 ? 1 : 2;
}

device::TensorMapType map_type(DType dtype) {
  if (dtype == DType::kF8_E4M3) return device::TensorMapType::kUint8;
  return dtype == DType::kF16 ? device::TensorMapType::kFloat16 : device::TensorMapType::kBfloat16;
}

// By measurement on an H200: with 256 bytes, one query each over keys of 128 numbers of 16 bits
// took 8 % longer, other shapes as long. e4m3 was up to 1 % faster with 256. Why is not known.
device::TensorMapL2Promotion l2_promotion(std::uint32_t elem_bytes) {
  return elem_bytes == 1 ? device::TensorMapL2Promotion::k256B
                         : device::TensorMapL2Promotion::k128B;
}

void encode_map(const device::Device& device, AttentionMaps kind, const MapRequest& request,
                std::uint8_t (&map)[128]) {
  const auto positive = [](std::int64_t x) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(x, 1));
  };
  const std::uint32_t elem_bytes = elem_bytes_of(request.dtype);
  const auto bytes = [&](std::int64_t elems) {
    return elem_bytes * static_cast<std::uint64_t>(elems);
  };
  const Strides& s = request.strides;
  const auto box_bytes = static_cast<int>(request.box_elems * elem_bytes);
  arch::SmemBox box = {.rows = static_cast<int>(request.box_rows),
                       .row_bytes = box_bytes,
                       .swizzle = arch::swizzle_of_span(box_bytes)};
  if (kind != AttentionMaps::kSwizzled) box.swizzle = arch::SmemSwizzle::kNone;
  device::TensorMapSpec spec = {
      .name = request.name,
      .type = map_type(request.dtype),
      .address = reinterpret_cast<device::abi::CUdeviceptr>(request.address),
      .dims = {positive(request.row_elems), positive(request.rows), positive(request.heads),
               positive(request.batch)},
      .strides_bytes = {bytes(s.row), bytes(s.head), bytes(s.batch)},
      .box = {map_columns(box, elem_bytes), map_rows(box), 1, 1},
      .swizzle = map_swizzle(box),
      .l2_promotion = l2_promotion(elem_bytes)};
  if (request.box_heads > 0) {
    std::swap(spec.dims[1], spec.dims[2]);
    std::swap(spec.strides_bytes[0], spec.strides_bytes[1]);
    spec.box = {spec.box[0], request.box_heads, spec.box[1], 1};
  }
  const device::abi::CUtensorMap encoded = device::encode_tensor_map(device, spec);
  static_assert(sizeof encoded == sizeof map);
  std::memcpy(map, &encoded, sizeof map);
}

// Elements of a row that are a box of q, k, v in rows, and out.
std::uint32_t box_elems(const AttentionKernel& kernel, const AttentionProblem& p, DType dtype) {
  const auto width = static_cast<std::uint32_t>(attention_width(kernel, p));
  if (kernel.maps != AttentionMaps::kSwizzled) return width;
  return std::min(width, dtype == DType::kF8_E4M3 ? 2 * kSwizzledBoxColumns : kSwizzledBoxColumns);
}

// On Blackwell rows are gathered by maps, which have the rows of all pages and heads.
bool gathers_by_maps(const AttentionKernel& kernel, const kernels::AttentionPages& pages) {
  return kernel.capability == 100 && kernel.has_pages && pages.copies == kernels::PageCopies::kRows;
}

// For tile::gather4: keys or values of `dim` columns as a matrix, in boxes of one row of `columns`.
void encode_row_map(const device::Device& device, const AttentionProblem& p, const char* name,
                    const void* address, const Strides& strides, std::int64_t dim,
                    std::uint32_t columns, std::uint8_t (&map)[128]) {
  const RowMatrix matrix = find_row_matrix(p, strides, dim).value();
  const std::uint32_t elem_bytes = elem_bytes_of(p.dtype);
  const auto box_bytes = static_cast<int>(columns * elem_bytes);
  const device::abi::CUtensorMap encoded = device::encode_tensor_map(
      device,
      {.name = name,
       .type = map_type(p.dtype),
       .address = reinterpret_cast<device::abi::CUdeviceptr>(address),
       .dims = {static_cast<std::uint64_t>(dim), static_cast<std::uint64_t>(matrix.rows)},
       .strides_bytes = {elem_bytes * static_cast<std::uint64_t>(matrix.row_elems)},
       .box = {columns, 1},
       .swizzle = map_swizzle(
           {.rows = 1, .row_bytes = box_bytes, .swizzle = arch::swizzle_of_span(box_bytes)}),
       .l2_promotion = device::TensorMapL2Promotion::k256B});
  std::memcpy(map, &encoded, sizeof map);
}

// Distances in rows of that matrix.
kernels::AttentionStrides row_strides(const AttentionProblem& p, const Strides& strides,
                                      std::int64_t dim) {
  const std::int64_t elems = find_row_matrix(p, strides, dim).value().row_elems;
  return {strides.batch / elems, strides.row / elems, strides.head / elems};
}

void encode_maps(const device::Device& device, const AttentionProblem& p,
                 const AttentionKernel& kernel, const kernels::AttentionTile& tile,
                 const AttentionArguments& a, AttentionNumbers& numbers) {
  AttentionParams& params = numbers.params;
  const std::int64_t q_rows = p.is_packed ? p.total_q : p.q_len;
  const std::int64_t q_batch = p.is_packed ? 1 : p.batch;
  const auto [kv_batch, kv_rows] = attention_kv_shape(p);
  std::uint32_t box_heads = 0;
  if (kernel.group_tile != nullptr) box_heads = static_cast<std::uint32_t>(p.heads / p.kv_heads);
  if (kernel.has_pages && kernel.group_tile == nullptr) box_heads = 1u << numbers.pages.group_shift;
  const auto q_box = static_cast<std::uint32_t>(tile.box_queries) >> numbers.pages.group_shift;
  const auto k_box = static_cast<std::uint32_t>(kernel.has_pages ? numbers.pages.page_box
                                                                 : attention_box_keys(kernel, p));
  // Without keys, k and v may be null; a map needs an address all the same.
  const bool has_keys = attention_kv_rows(p) > 0;
  const void* const k = has_keys ? a.k : a.q;
  const void* const v = has_keys ? a.v : a.q;
  const auto encode = [&](MapRequest request, DType dtype, std::uint8_t(&map)[128]) {
    request.dtype = dtype;
    if (request.row_elems == 0) request.row_elems = p.head_dim;
    if (request.box_elems == 0) request.box_elems = box_elems(kernel, p, dtype);
    encode_map(device, kernel.maps, request, map);
  };
  encode({"q", a.q, q_rows, p.heads, p.q_strides, q_box, q_batch, box_heads}, p.dtype,
         params.q_map);
  const bool is_gathered = gathers_by_maps(kernel, numbers.pages);
  const bool widens = attention_widens(p);  // then rows are read without maps
  if (is_gathered) {
    const std::uint32_t columns = box_elems(kernel, p, p.dtype);
    encode_row_map(device, p, "k", k, p.k_strides, p.head_dim, columns, params.k_map);
    encode_row_map(device, p, "v", v, p.v_strides, p.value_dim, columns, params.v_map);
  } else if (!widens) {
    encode({"k", k, kv_rows, p.kv_heads, p.k_strides, k_box, kv_batch}, p.dtype, params.k_map);
  }
  const kernels::AttentionStrides to = params.out_strides;
  const bool is_padded = trims(kernel, p);  // results are as wide as computed, and trimmed then
  const Strides out_strides = is_padded ? Strides{to.batch, to.row, to.head} : p.out_strides;
  MapRequest out = {"out", params.out, q_rows, p.heads, out_strides, q_box, q_batch, box_heads};
  out.row_elems = is_padded ? attention_value_width(kernel, p) : p.value_dim;
  encode(out, attention_out_dtype(p), params.out_map);
  if (is_gathered || widens) return;
  if (!attention_has_columns(p)) {
    MapRequest rows = {"v", v, kv_rows, p.kv_heads, p.v_strides, k_box, kv_batch};
    rows.row_elems = p.value_dim;
    return encode(rows, p.dtype, params.v_map);
  }
  const auto box_rows = static_cast<std::uint32_t>(attention_width(kernel, p));
  MapRequest columns = {"v", v, p.head_dim, p.kv_heads, p.v_strides, box_rows, kv_batch};
  columns.row_elems = attention_value_columns(p);
  columns.box_elems = static_cast<std::uint32_t>(choose_fp8(kernel, p).variant->value_box());
  encode(columns, p.dtype, params.v_map);
}

// Without pages there is one, which has all keys of a sequence or of all packed ones.
kernels::AttentionPages page_numbers(const AttentionKernel& kernel, const AttentionProblem& p) {
  const int keys = find_attention_tile(kernel, p).keys;
  kernels::AttentionPages pages = {};
  pages.group_shift = attention_group_shift(kernel, p);
  const std::int64_t size =
      p.page_size > 0 ? p.page_size : std::numeric_limits<std::int32_t>::max();
  pages.table_stride = p.table_stride;
  pages.page_size = narrow(size);
  pages.page_box = p.page_size > 0 ? attention_page_box(kernel, p) : attention_box_keys(kernel, p);
  pages.tile_parts = keys / pages.page_box;
  pages.copies = attention_page_copies(kernel, p);
  pages.num_pages = narrow(p.num_pages);
  pages.tile_pages = narrow(keys / size);
  pages.tile_rows = narrow(keys % size);
  pages.chunk = p.chunk > 0 ? narrow(p.chunk) : kernels::kUnboundedWindow;
  pages.chunk_divisor = make_fast_divisor(static_cast<std::uint32_t>(pages.chunk));
  return pages;
}

}  // namespace

AttentionNumbers attention_numbers(const AttentionPlan& plan, const AttentionKernel& kernel,
                                   const device::DeviceInfo& device) {
  const AttentionProblem& p = plan.problem;
  const AttentionTiles tiles = attention_tiles(kernel, p);
  AttentionNumbers numbers = {};
  if (kernel.has_pages) {
    numbers.pages = page_numbers(kernel, p);
    numbers.page_divisor = make_fast_divisor(static_cast<std::uint32_t>(numbers.pages.page_size));
  }
  kernels::AttentionFp8Params& params = numbers.params;
  params.q_strides = to_kernel(p.q_strides);
  params.k_strides = to_kernel(p.k_strides);
  params.v_strides = to_kernel(p.v_strides);
  if (gathers_by_maps(kernel, numbers.pages)) {
    params.k_strides = row_strides(p, p.k_strides, p.head_dim);
    params.v_strides = row_strides(p, p.v_strides, p.value_dim);
  }
  params.out_strides = trims(kernel, p) ? padded_out_strides(kernel, p) : to_kernel(p.out_strides);
  params.lse_head_stride = p.is_packed ? p.total_q : p.q_len;
  params.lse_batch_stride = p.is_packed ? 0 : p.heads * p.q_len;
  params.batch = narrow(p.batch);
  params.heads = narrow(tiles.heads);
  params.kv_heads = narrow(p.kv_heads);
  params.q_len = narrow(p.q_len);
  params.kv_len = narrow(p.kv_len);
  params.head_dim = narrow(p.head_dim);
  params.value_dim = narrow(p.value_dim);
  params.q_tiles = narrow(tiles.of_head);
  params.section_heads =
      std::max(attention_section_heads(device, p) >> numbers.pages.group_shift, 1);
  params.window_left = to_window(p.window_left);
  params.window_right = p.causal ? 0 : to_window(p.window_right);
  const double scale = p.scale.value();
  const bool has_cap = p.softcap > 0;
  params.scale_log2 = static_cast<float>((has_cap ? p.softcap : scale) * kLog2e);
  params.softcap_scale = has_cap ? static_cast<float>(2 * kLog2e * scale / p.softcap) : 0.0f;
  if (attention_kv_dtype(p) == DType::kF8_E4M3) set_fp8_numbers(plan, kernel, params);
  return numbers;
}

void check_attention_arguments(const AttentionPlan& plan, const AttentionArguments& a) {
  const AttentionProblem& p = plan.problem;
  const bool has_queries = !plan.launches.empty(), has_keys = attention_kv_rows(p) > 0;
  constexpr ArgumentChecks kChecks("attention");
  kChecks.address_if(has_queries, "q", a.q, kRowAlignment);
  kChecks.address_if(has_queries && has_keys, "k", a.k, kRowAlignment);
  kChecks.address_if(has_queries && has_keys, "v", a.v, kRowAlignment);
  kChecks.address_if(has_queries, "out", a.out, kRowAlignment);
  kChecks.address_if(has_queries && p.has_lse, "lse", a.lse, kWordAlignment);
  kChecks.address_if(has_queries && p.has_sink, "sink", a.sink, kWordAlignment);
  kChecks.address_if(has_queries && p.is_packed, "cu_q", a.cu_q, kWordAlignment);
  kChecks.address_if(has_queries && p.is_packed && p.page_size == 0, "cu_kv", a.cu_kv,
                     kWordAlignment);
  kChecks.address_if(has_queries && p.has_q_lengths, "q_lengths", a.q_lengths, kWordAlignment);
  kChecks.address_if(has_queries && p.has_kv_lengths, "kv_lengths", a.kv_lengths, kWordAlignment);
  kChecks.address_if(has_queries && p.page_size > 0 && p.max_pages > 0, "block_table",
                     a.block_table, kWordAlignment);
  const bool is_e4m3 = has_queries && attention_kv_dtype(p) == DType::kF8_E4M3;
  kChecks.address_if(has_queries && attention_is_e4m3(p), "q_descale", a.q_descale, kWordAlignment);
  kChecks.address_if(is_e4m3 && has_keys, "k_descale", a.k_descale, kWordAlignment);
  kChecks.address_if(is_e4m3 && has_keys, "v_descale", a.v_descale, kWordAlignment);
  kChecks.address_if(is_e4m3 && has_keys && p.fp8.scales == ScaleSharing::kBlock, "v_descale_max",
                     a.v_descale_max, kWordAlignment);
  kChecks.workspace(a.workspace, plan.workspace_bytes);
}

void bind_attention(const device::Device& device, const AttentionPlan& plan,
                    const AttentionKernel& kernel, const AttentionArguments& a,
                    AttentionNumbers& numbers) {
  kernels::AttentionFp8Params& params = numbers.params;
  const AttentionProblem& p = plan.problem;
  params.q = a.q;
  params.k = a.k;
  params.v = a.v;
  params.out = trims(kernel, p) ? padded_out(plan, kernel, a.workspace) : a.out;
  params.lse = p.has_lse ? a.lse : nullptr;
  params.sink = p.has_sink ? a.sink : nullptr;
  params.cu_q = p.is_packed ? a.cu_q : nullptr;
  params.cu_kv = p.is_packed && p.page_size == 0 ? a.cu_kv : nullptr;
  numbers.pages.q_lengths = p.has_q_lengths ? a.q_lengths : nullptr;
  numbers.pages.kv_lengths = p.has_kv_lengths ? a.kv_lengths : nullptr;
  numbers.pages.block_table = p.page_size > 0 ? a.block_table : nullptr;
  if (attention_kv_dtype(p) == DType::kF8_E4M3) bind_fp8_scales(a, params);
  const kernels::AttentionTile tile = find_attention_tile(kernel, p);
  if (kernel.has_scores) params.scores = static_cast<float*>(a.workspace);
  if (tile.is_persistent && plan.workspace_bytes > 0)
    params.next_tile = static_cast<std::uint32_t*>(a.workspace);
  if (kernel.maps != AttentionMaps::kNone) encode_maps(device, p, kernel, tile, a, numbers);
}

}  // namespace tilewright::ops
