// The kernels that decode, as a table: what each can do, and what it is expected to take.
#pragma once

#include "tilewright/attention_decode.h"

#include "device/device.h"
#include "kernels/attention/decode/decode.h"

#include <span>
#include <string>

namespace tilewright::ops {

struct DecodeKernel {
  const char* name;  ///< "r16_tma"
  int rows;
  bool has_boxes;   ///< keys always come by TMA
  double fixed_us;  ///< with the merging of its parts; 64 rows of 33 MB of keys on an H200
  /// Of Blackwell's, which multiply by tcgen05: what element sizes of caches it takes.
  int tensor_kv_bytes_from = 0, tensor_kv_bytes_to = 0;

  constexpr bool is_tensor() const { return tensor_kv_bytes_to > 0; }
};

std::span<const DecodeKernel> decode_kernels() noexcept;
/// nullptr if there is none of that name.
const DecodeKernel* find_decode_kernel(const std::string& name) noexcept;

/// Why it cannot do it; empty if it can.
std::string decode_obstacle(const DecodeKernel& kernel, const AttentionDecodeProblem& problem,
                            const device::DeviceInfo& device);

kernels::DecodeKv decode_kv(const AttentionDecodeProblem& problem) noexcept;
/// "bf16", "f16", "e4m3", as entries spell it.
const char* decode_kv_name(const AttentionDecodeProblem& problem) noexcept;
/// Is it for entries ..._any?
bool decode_is_any(const AttentionDecodeProblem& problem) noexcept;
/// Elements of a row that the kernel multiplies: head_dim of them exist.
int decode_width(const DecodeKernel& kernel, const AttentionDecodeProblem& problem) noexcept;
/// Name of the attending entry, and what a CTA of it has.
struct DecodeEntry {
  std::string name;
  int threads, shared_bytes;
  int residents;  ///< CTAs of an SM
};
DecodeEntry decode_entry(const DecodeKernel& kernel, const AttentionDecodeProblem& problem);

/// Do keys of this problem come by TMA?
bool decode_has_boxes(const DecodeKernel& kernel, const AttentionDecodeProblem& problem);

/// What a part of a tile costs beside its keys, below how many keys a part does not pay, and what
/// another part costs the group that merges them: in pieces, measured on an H200. And how many keys
/// a CTA asks for before it may read them.
struct DecodeRates {
  int tile_cost, least_share;
  double merge_cost;
  int ahead_keys;
};
/// Of a group of plan.cluster CTAs and tiles of plan.tile_rows.
DecodeRates decode_rates(const AttentionDecodePlan& plan) noexcept;

/// With full caches: keys and values once a pass, at what an H200 reads, and the launches; for
/// Blackwell by count.
double decode_cost_us(const DecodeKernel& kernel, const AttentionDecodeProblem& problem) noexcept;

}  // namespace tilewright::ops
