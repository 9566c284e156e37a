// The kernels of the attention ladder: what each can do, how fast it is, and which one to take.
#pragma once

#include "tilewright/attention.h"

#include "device/device.h"
#include "kernels/attention/attention.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tilewright::ops {

/// What a problem may ask for beyond one full square of scores. Bits of AttentionKernel::features.
enum AttentionFeature : std::uint32_t {
  kCausalMask = 1 << 0,
  kWindow = 1 << 1,
  kSoftcap = 1 << 2,
  kSink = 1 << 3,
  kLse = 1 << 4,
  kPackedSequences = 1 << 5,
  kGroupedHeads = 1 << 6,
  kUnequalLengths = 1 << 7,  ///< q_len != kv_len
  kRaggedLengths = 1 << 8,   ///< no multiples of its tile
  kNoKeys = 1 << 9,          ///< kv_len = 0
  kStrides = 1 << 10,  ///< other than those of [batch, heads, rows, head_dim] or its transpose
  kFloat16 = 1 << 11,
};

/// How a kernel reads its operands.
enum class AttentionMaps { kNone, kPlain, kSwizzled };

/// What a kernel reaches on an H200, causal or not; picks among kernels that could do it.
struct AttentionRate {
  int head_dim;
  double full, causal;  ///< TFLOP/s on long sequences
};

/// One kernel, for some head dimensions. Its entries are ENTRY_TYPE_dDIM.
struct AttentionKernel {
  const char* name;
  const char* entry;
  const char* idea;  ///< for tables
  kernels::AttentionTile (*tile)(int head_dim);
  std::uint32_t features;
  AttentionMaps maps;
  std::vector<AttentionRate> rates;  ///< one for each head_dim that exists
  /// K1 only: three launches, scores in global memory.
  bool has_scores = false;
};

/// All kernels, first rung first.
std::span<const AttentionKernel> attention_kernels();

/// Errors   InvalidArgument; the message lists all names
const AttentionKernel& find_attention_kernel(const std::string& name);

/// The entries of a kernel for that type and head dimension, in the order of their launches.
std::vector<std::string> attention_entries(const AttentionKernel& kernel,
                                           const AttentionProblem& problem);

/// Why a kernel cannot do a complete problem on a device; empty if it can.
std::string attention_obstacle(const AttentionKernel& kernel, const device::DeviceInfo& device,
                               const AttentionProblem& problem);

/// Expected microseconds from the table of rates, with what tiles add and a share of idle
/// multiprocessors. Only its order among kernels means something.
double attention_cost_us(const AttentionKernel& kernel, const device::DeviceInfo& device,
                         const AttentionProblem& problem);

}  // namespace tilewright::ops
