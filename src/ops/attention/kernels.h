// The attention kernels of the operator: what each can do, how fast it is, and which one to take.
#pragma once

#include "tilewright/attention.h"

#include "device/device.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/forward/k6_paged.h"
#include "kernels/attention/support.h"

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
  kE4m3Operands = 1 << 6,
  kPages = 1 << 7,
  kDeviceLengths = 1 << 8,
  kOwnValueDim = 1 << 9,
  kChunks = 1 << 10,
  kWideQueries = 1 << 11,
};

/// Kernels that compute in e4m3, and what they do to operands of 16 bits before.
enum class AttentionFp8 {
  kNone,
  kPlain,    ///< round them, with factors per head
  kRotated,  ///< rotate q and k, round them with factors per block
};

/// How a kernel reads its operands.
enum class AttentionMaps { kNone, kPlain, kSwizzled };

/// One form of a kernel: its entry is attention_RUNG_TYPE_VARIANT.
struct AttentionVariant {
  int head_dim;
  const char* name;  ///< "d128"
  kernels::AttentionTile tile;
  /// Results leave by tensor copies, so that the map keeps padded columns back; of packed sequences
  /// only where a box never runs over the end of one.
  bool writes_boxes = false;
  int value_dim = head_dim;
  bool clips = false;            ///< the kernel itself writes no column that does not exist
  bool has_wide_queries = true;  ///< kWideQueries: this form has one that widens
  bool is_tall = false;          ///< tiles of more rows, of two forms: for many queries
};

/// One kernel, for some head dimensions.
struct AttentionKernel {
  using GroupTile = kernels::AttentionTile (*)(int head_dim, int group);

  std::string name;   ///< of the candidate: "k3_2", "k6_long", "sm100_e"
  std::string entry;  ///< its entries begin with that: "attention_k6"
  std::string idea;   ///< for tables
  std::uint32_t features;
  AttentionMaps maps;
  std::vector<AttentionVariant> variants;  ///< one for each head_dim that exists
  bool has_scores = false;                 ///< K1: three launches, scores in global memory
  AttentionFp8 fp8 = AttentionFp8::kNone;  ///< never chosen for 16 bits unless named
  bool is_short = false;                   ///< e4m3: the forms for short sequences
  bool is_e4m3_only = false;               ///< takes nothing else
  bool is_step = false;  ///< on the way to K6, to be read and measured; never chosen unless named
  /// Computes a head_dim between its own as the next one: tensor maps read zeros beyond head_dim.
  bool pads = false;
  /// Takes keys in pages, lengths that only the device knows, chunks of keys, nothing else; rows
  /// of its tiles are queries times heads that share keys.
  bool has_pages = false;
  int capability = 90;
  /// sm_100f: a tile has all heads that share keys, so it depends on their number, and boxes of
  /// queries have those heads in them.
  GroupTile group_tile = nullptr;
  int (*ctas)(int head_dim) = nullptr;  ///< sm_100f: of a tile of queries
  /// sm_100f: rows of the boxes of k and v, at most; null: those of a step.
  int (*box_keys)(int head_dim) = nullptr;

  bool computes_in_e4m3() const noexcept { return is_e4m3_only || fp8 != AttentionFp8::kNone; }
  /// It first rounds the operands of this problem.
  bool prepares(const AttentionProblem& problem) const noexcept {
    return fp8 != AttentionFp8::kNone && !is_e4m3_only && problem.dtype != DType::kF8_E4M3;
  }
  /// The one of that head_dim, or that pads it to its own: by less than twice, or to 64. Where
  /// value_dim is another, the narrowest that has room for both. nullptr if there is none.
  const AttentionVariant* find_variant(const AttentionProblem& problem) const noexcept;
};

/// The ladder for Hopper, first rung first.
std::span<const AttentionKernel> hopper_attention_kernels();

/// Those for devices of a compute capability; Hopper's where there are none.
std::span<const AttentionKernel> attention_kernels_for(int capability);

/// Hopper's, then Blackwell's.
std::span<const AttentionKernel> all_attention_kernels();

/// Errors   InvalidArgument; the message lists all names
const AttentionKernel& find_attention_kernel(const std::string& name);

std::uint32_t attention_features(const kernels::AttentionSupport& support);

/// How a kernel that can do a problem cuts it.
kernels::AttentionTile find_attention_tile(const AttentionKernel& kernel,
                                           const AttentionProblem& problem);

/// log2 of the heads that a kernel has in a tile, where those are rows: of the largest power of two
/// that divides the heads that share keys, up to 64. Rows of a sequence are numbered with 31 bits.
int attention_group_shift(const AttentionKernel& kernel, const AttentionProblem& problem);

/// Tiles of queries of the longest sequence, and the heads or groups of heads that have them.
struct AttentionTiles {
  std::int64_t of_head, heads;
};
AttentionTiles attention_tiles(const AttentionKernel& kernel, const AttentionProblem& problem);

/// Words of the workspace, zeros at the launch, that a kernel counts in which tiles it has drawn.
std::size_t attention_counters(const AttentionKernel& kernel);

/// Whether tiles of more rows are faster over pages, measured on an H200: from 4096 keys and five
/// rounds of tiles on; with fewer the last round costs what they save.
bool attention_fills_tall_tiles(const AttentionProblem& problem);
/// For tests on the simulator, where so many queries would take hours: always, while this is true.
bool& forces_tall_tiles() noexcept;

/// Rows of the boxes of k and v, where pages do not cut them.
int attention_box_keys(const AttentionKernel& kernel, const AttentionProblem& problem);

/// Rows of a part of a tile of keys that lies in one page.
std::int32_t attention_page_box(const AttentionKernel& kernel, const AttentionProblem& problem);

kernels::PageCopies attention_page_copies(const AttentionKernel& kernel,
                                          const AttentionProblem& problem);
/// Why the kernel cannot read a cache of e4m3 in these pages; empty if it can, or there is none.
std::string attention_cache_obstacle(const AttentionKernel& kernel,
                                     const AttentionProblem& problem);

/// The entries of a kernel for that type and head dimension, in the order of their launches.
std::vector<std::string> attention_entries(const AttentionKernel& kernel,
                                           const AttentionProblem& problem);

/// Why a kernel cannot do a complete problem on a device; empty if it can.
std::string attention_obstacle(const AttentionKernel& kernel, const device::DeviceInfo& device,
                               const AttentionProblem& problem);

/// Expected microseconds from the table of measured rates (attention_rates.h), or from counts
/// (attention_sm100.h). Only its order among kernels means something.
double attention_cost_us(const AttentionKernel& kernel, const device::DeviceInfo& device,
                         const AttentionProblem& problem);

}  // namespace tilewright::ops
