// Tensor maps of the indexer's codes: those of keys, and on Blackwell those of queries.
#pragma once

#include "device/device.h"
#include "device/tensor_map.h"
#include "kernels/sparse_attention/indexer/indexer_logits.h"
#include "kernels/sparse_attention/indexer/sm100/sm100_indexer_logits.h"
#include "ops/indexer/plan.h"

#include <cstdint>
#include <cstring>

namespace tilewright::ops {

/// Rows of codes in pages; keys without pages are one page.
struct IndexKeyRows {
  std::int64_t page_size, num_pages, stride_bytes;
  int box_rows;
};

/// How rows of codes lie in shared memory: as an operand of the tensor cores, or, what Hopper's
/// kernel of MXFP4 converts first, one behind another.
inline device::TensorMapSwizzle swizzle_of_codes(const device::Device& device, IndexFormat format) {
  if (format == IndexFormat::kFp8) return device::TensorMapSwizzle::k128B;
  return has_tensor_memory(device.info()) ? device::TensorMapSwizzle::k64B
                                          : device::TensorMapSwizzle::kNone;
}

inline void encode_map(const device::Device& device, const device::TensorMapSpec& spec,
                       std::uint8_t (&to)[128]) {
  const device::abi::CUtensorMap map = device::encode_tensor_map(device, spec);
  static_assert(sizeof map == sizeof to);
  std::memcpy(to, &map, sizeof map);
}

/// Sets box_rows and the map of the codes of keys: rows of a page, pages.
inline void encode_index_keys(const device::Device& device, kernels::IndexerLogitsParams& params,
                              const void* keys, const IndexKeyRows& rows) {
  const auto row_bytes = static_cast<std::uint32_t>(index_data_bytes(params.keys.format));
  params.box_rows = rows.box_rows;
  encode_map(device,
             {.name = "keys",
              .type = device::TensorMapType::kUint8,
              .address = reinterpret_cast<device::abi::CUdeviceptr>(keys),
              .dims = {row_bytes, static_cast<std::uint64_t>(rows.page_size),
                       static_cast<std::uint64_t>(rows.num_pages)},
              .strides_bytes = {row_bytes, static_cast<std::uint64_t>(rows.stride_bytes)},
              .box = {row_bytes, static_cast<std::uint32_t>(rows.box_rows), 1},
              .swizzle = swizzle_of_codes(device, params.keys.format),
              .l2_promotion = device::TensorMapL2Promotion::k128B},
             params.key_map);
}

/// What Blackwell's kernel takes besides: the codes of queries, heads of a token, tokens.
template <class Logits>
kernels::TensorIndexerParamsOf<Logits> tensor_indexer_params(const device::Device& device,
                                                             const Logits& logits,
                                                             std::int64_t q_len) {
  const IndexFormat format = logits.keys.format;
  kernels::TensorIndexerParamsOf<Logits> t = {};
  t.logits = logits;
  t.head_slots = indexer_head_slots(logits.heads);
  t.columns = indexer_columns(t.head_slots, q_len);
  t.stages = kernels::TensorIndexerMemory(format, t.columns).stages;
  const auto row_bytes = static_cast<std::uint32_t>(index_data_bytes(format));
  encode_map(device,
             {.name = "queries",
              .type = device::TensorMapType::kUint8,
              .address = reinterpret_cast<device::abi::CUdeviceptr>(logits.q),
              .dims = {row_bytes, static_cast<std::uint64_t>(logits.heads),
                       static_cast<std::uint64_t>(logits.tokens)},
              .strides_bytes = {row_bytes, static_cast<std::uint64_t>(logits.heads) * row_bytes},
              .box = {row_bytes, static_cast<std::uint32_t>(t.head_slots), 1},
              .swizzle = swizzle_of_codes(device, format)},
             t.q_map);
  return t;
}

}  // namespace tilewright::ops
