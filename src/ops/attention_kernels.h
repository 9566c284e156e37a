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

/// What a problem may ask for beyond any lengths, a causal mask, grouped heads and strides. Bits of
/// AttentionKernel::features.
enum AttentionFeature : std::uint32_t {
  kWindow = 1 << 0,
  kSoftcap = 1 << 1,
  kSink = 1 << 2,
  kLse = 1 << 3,
  kPackedSequences = 1 << 4,
  kFloat16 = 1 << 5,
};

/// How a kernel reads its operands.
enum class AttentionMaps { kNone, kPlain, kSwizzled };

/// One form of a kernel: its entry is attention_RUNG_TYPE_VARIANT.
struct AttentionVariant {
  int head_dim;
  const char* name;  ///< "d128"
  kernels::AttentionTile tile;
};

/// One kernel, for some head dimensions.
struct AttentionKernel {
  std::string name;   ///< of the candidate: "k3_2", "k6_long"
  std::string entry;  ///< its entries begin with that: "attention_k6"
  std::string idea;   ///< for tables
  std::uint32_t features;
  AttentionMaps maps;
  std::vector<AttentionVariant> variants;  ///< one for each head_dim that exists
  bool has_scores = false;                 ///< K1: three launches, scores in global memory
  bool is_study = false;  ///< exists to show what an idea is worth; never chosen unless named

  /// nullptr if there is none.
  const AttentionVariant* find_variant(std::int64_t head_dim) const noexcept;
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

/// Expected microseconds from the table of measured rates (attention_rates.h). Only its order
/// among kernels means something.
double attention_cost_us(const AttentionKernel& kernel, const device::DeviceInfo& device,
                         const AttentionProblem& problem);

}  // namespace tilewright::ops
