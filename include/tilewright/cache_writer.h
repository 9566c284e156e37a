// What DeepSeek-V4 does between projections and attention: norms, rotary positions, writing and
// reading rows of paged caches, lists of rows for attention, and undoing the rotation of its
// result.
#pragma once

#include "tilewright/cache.h"
#include "tilewright/device.h"
#include "tilewright/plan.h"
#include "tilewright/rotary.h"
#include "tilewright/tensor.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace tilewright {

/// Angles of rotary positions, in radians: pair i of 32 turns by theta^(-i / 32) a position. With
/// YaRN a pair that makes fewer than beta_slow turns in original_positions turns `factor` times
/// slower, one that makes more than beta_fast as it did, those between by a linear ramp over their
/// numbers. The amplitude is not scaled.
///
/// Source   Peng et al., YaRN, 2023
struct RopeOptions {
  double theta = 10000;
  bool has_yarn = false;
  double factor = 16, original_positions = 65536, beta_fast = 32, beta_slow = 1;
};
/// DeepSeek-V4's two: layers with a window alone, and layers with a compressed cache.
inline constexpr RopeOptions kRopeWindowLayers = {};
inline constexpr RopeOptions kRopeCompressedLayers = {.theta = 160000, .has_yarn = true};

/// [positions, 64]: of each position from `first` on 32 cosines, then 32 sines; computed in fp64
/// and rounded once.
/// Errors   InvalidArgument naming field, value and rule
std::vector<float> rope_table(const RopeOptions& options, std::int64_t positions,
                              std::int64_t first = 0);

/// Tokens of a call, sequence after sequence. Device memory.
struct SequenceBatch {
  std::int64_t batch = 0;
  std::int64_t q_len = 0;                 ///< tokens of each sequence, if there are no offsets
  const std::int32_t* offsets = nullptr;  ///< [batch + 1] sequence b has tokens offsets[b] ..
  /// [batch] position of a sequence's first token; < 0: the sequence is skipped
  const std::int32_t* starts = nullptr;
};

/// Pages of sequences: logical row i of sequence b is row
/// pages[b, i / page_size] * page_size + i % page_size of a cache. Device memory.
struct SequencePages {
  const std::int32_t* pages = nullptr;  ///< [batch, blocks]; -1: none
  std::int64_t blocks = 0;
  std::int64_t stride = 0;  ///< elements from sequence to sequence; 0: blocks
};

/// q_out[t,h,:] = rotate(q[t,h,:] / rms(q[t,h,:]), positions[t])
/// row          = bf16(rotate(kv[t,:] / rms(kv[t,:]) * kv_weight, positions[t]))
/// cache[slots[t]] = encode(row), kv_out[t,:] = decode(encode(row))
///
/// rms(x) = sqrt(mean(x^2) + eps) of all 512; rotate() turns pairs (2i, 2i+1) of the last 64
/// Numbers  fp32, one rounding to bf16; quantised values and scales of a row are those of
///          format fp8_64_pow2, or nvfp4 under G = 1 (docs/02-formats.md), to the byte
/// Skipped  a slot outside the cache is not written. A position < 0 marks a token that does not
///          count: its q_out is 0, and nothing is written to cache and kv_out. One beyond the table
///          gives NaN in q_out, and nothing is written either
struct KvWriteArguments {
  std::int64_t tokens = 0, heads = 0;  ///< heads 0: no queries
  double eps = 1e-6;
  const void* q = nullptr;  ///< bf16 [tokens, heads, 512]
  void* q_out = nullptr;    ///< likewise; null: in place of q
  /// Elements, multiples of 8; 0: contiguous. Of q and q_out both.
  std::int64_t q_token_stride = 0, q_head_stride = 0;
  const void* kv = nullptr;                 ///< [tokens, 512]; null: queries alone
  DType kv_dtype = DType::kBF16;            ///< or kF32
  std::int64_t kv_stride = 0;               ///< elements, a multiple of 8; 0: 512
  const void* kv_weight = nullptr;          ///< bf16 [512]
  const std::int32_t* positions = nullptr;  ///< [tokens]
  RotaryTable rope = {};                    ///< one table, rope_table() from position 0
  const std::int32_t* slots = nullptr;  ///< [tokens] rows of the cache, all different but for -1
  void* pages = nullptr;                ///< the cache, 16-byte aligned
  void* kv_out = nullptr;               ///< bf16 [tokens, 512] or null
  void* stream = nullptr;               ///< CUstream; null: the default stream
};

/// out[i,:] = decode(cache[rows[i]]) in bf16, zeros where there is no such row.
struct KvReadArguments {
  std::int64_t count = 0;
  const std::int32_t* rows = nullptr;  ///< [count]
  const void* pages = nullptr;
  void* out = nullptr;          ///< bf16 [count, 512], 16-byte aligned
  std::int64_t out_stride = 0;  ///< elements, a multiple of 8; 0: 512
  void* stream = nullptr;
};

/// What to list for each token: the rows of this cache that it sees, or the one to write it to.
enum class KvListKind {
  kWrite,    ///< its own row: the slots of KvWriteArguments
  kWindow,   ///< positions max(0, p - window + 1) .. p
  kEntries,  ///< entries 0 .. (p + 1) / ratio - 1 of a compressor
};
struct KvListArguments {
  KvListKind kind = KvListKind::kWrite;
  std::int64_t tokens = 0;
  SequenceBatch sequences = {};
  SequencePages table = {};
  /// kWrite, kWindow: position q is logical row q mod ring, 0: q. Positions that later tokens of
  /// the same call overwrite have no row (-1): a window needs ring >= window + new tokens - 1.
  std::int64_t ring = 0;
  std::int64_t window = 128;          ///< kWindow
  std::int64_t ratio = 4;             ///< kEntries
  std::int64_t list_len = 1;          ///< -1 behind the last; longer lists are cut
  std::int64_t list_stride = 0;       ///< elements; 0: list_len
  std::int32_t* lists = nullptr;      ///< [tokens, list_len] or null
  std::int32_t* lengths = nullptr;    ///< [tokens] or null
  std::int32_t* positions = nullptr;  ///< [tokens] or null: of each token; -1: skipped
  void* stream = nullptr;
};

/// The work of one step; 0: none of that kind.
struct KvCacheWork {
  std::int64_t tokens = 0, heads = 0;  ///< KvWriteArguments, with kv
  std::int64_t list_len = 0;           ///< KvListArguments: a list of so many rows for each token
  std::int64_t read_rows = 0;          ///< KvReadArguments
};

/// One launch for each function that has work; there is nothing to choose.
struct KvCachePlan : Plan {
  KvCacheLayout layout;  ///< with its stride filled in
  KvCacheWork work;
};

/// The kernels of caches with one layout; their memory is the caller's. Each function enqueues one
/// kernel, allocates nothing, waits for nothing, and may be captured in a CUDA graph.
///
/// Errors   InvalidArgument naming field, value and rule; DeviceError
/// Thread   safe if outputs differ
class KvCache {
 public:
  /// Errors   also Unsupported on a device without the kernels
  KvCache(const Device& device, const KvCacheLayout& layout);
  ~KvCache();
  KvCache(KvCache&&) noexcept;
  KvCache& operator=(KvCache&&) noexcept;

  const KvCacheLayout& layout() const noexcept;
  /// Errors   InvalidArgument for numbers below 0, or too many tokens for one call
  KvCachePlan plan(const KvCacheWork& work) const;
  void write(const KvWriteArguments& arguments) const;
  void read(const KvReadArguments& arguments) const;
  void list(const KvListArguments& arguments) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The plan alone. Errors as KvCache.
KvCachePlan plan_kv_cache(const Device& device, const KvCacheLayout& layout,
                          const KvCacheWork& work);

/// out[t,h,448:512] rotated back by positions[t] and rounded to bf16, in place. A token with a
/// position < 0 is left as it is. With codes, out stays as it is and the result is written as
/// quantised values and scales in format fp8_1x128(_ue8m0), blocks along [tokens, heads * 512].
struct InverseRopeArguments {
  std::int64_t tokens = 0, heads = 0;
  void* out = nullptr;                             ///< bf16 [tokens, heads, 512]
  std::int64_t token_stride = 0, head_stride = 0;  ///< elements, multiples of 8; 0: contiguous
  const std::int32_t* positions = nullptr;         ///< [tokens]
  RotaryTable rope = {};                           ///< as in KvWriteArguments
  void* codes = nullptr;   ///< e4m3 [tokens, heads * 512], 16-byte aligned; null: rotate alone
  void* scales = nullptr;  ///< [tokens, heads * 4] fp32, or ue8m0 bytes
  bool has_pow2_scales = false;
  bool has_block_major_scales = false;  ///< [heads * 4, tokens]
  bool has_operand_order = false;       ///< as in quantize.h
  void* stream = nullptr;
};

/// Thread   as KvCache
class InverseRope {
 public:
  explicit InverseRope(const Device& device);
  ~InverseRope();
  InverseRope(InverseRope&&) noexcept;
  InverseRope& operator=(InverseRope&&) noexcept;

  /// What run() launches for this many tokens; `has_codes`: the result is quantised. There is one
  /// kernel, so nothing to choose.
  /// Errors   InvalidArgument for numbers below 0
  Plan plan(std::int64_t tokens, std::int64_t heads, bool has_codes = false) const;
  /// Errors   as KvCache
  void run(const InverseRopeArguments& arguments) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The plan alone. Errors as InverseRope's constructor.
Plan plan_inverse_rope(const Device& device, std::int64_t tokens, std::int64_t heads,
                       bool has_codes = false);

}  // namespace tilewright
