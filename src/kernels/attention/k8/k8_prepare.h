// Contract of what runs before K7 in rung K8: Q, K and V of 16 bits to e4m3, rotated, scaled,
// values transposed and permuted, in one pass over memory (two where a scale spans several tiles).
//
//   attention_k8_amax_{bf16,f16}_{d64,d128,d256}[_rope]      largest magnitudes of a tensor or its
//                                                            heads
//   attention_k8_prepare_{bf16,f16}_{d64,d128,d256}[_rope]   codes and descales
//
// The arithmetic, in fp32, each operation rounded to nearest even; reference/attention/prepare.h
// has the same:
//   x        the number; rows whose position is not in the table of angles are NaN
//   RoPE     (a, b) -> (fma(-b, s, a * c), fma(b, c, a * s)), pairs as RotaryPairs says
//   rotation x * sign, then butterflies over distances 1, 2, 4, .. head_dim / 2
//   amax     largest |x| of the block, head or tensor, raised to kK8MinAmax
//            v in blocks: to a power of two, so that factors of blocks differ by such, and
//            multiplying weights by their ratio rounds nothing; beyond 2^127 it is infinite
//   descale  amax * descale_factor
//   code     e4m3(x * (448 / amax)), to nearest even, saturating
// head_dim^-0.5, which makes the rotation orthogonal, is part of descale_factor. Where a NaN or an
// infinity turns up, the descale is NaN and its codes are 0.
//
// Launched plainly or as a dependent launch: nothing is read or written before griddepcontrol.wait.
#pragma once

#include "kernels/attention/k7/k7_fp8.h"

#include <cstdint>

namespace tilewright::kernels {

/// What shares a scale; see AttentionPrepareProblem.
enum class K8Scales : std::int32_t { kTensor, kHead, kBlock };

/// Which elements of the first rotary_dim turn together.
enum class K8Rope : std::int32_t {
  kNone,
  kInterleaved,  ///< 2 i and 2 i + 1
  kHalves,       ///< i and i + rotary_dim / 2
};

/// One of q, k, v.
struct K8Operand {
  const void* in;       ///< rows 16-byte aligned
  std::uint8_t* out;    ///< rows 16-byte aligned
  float* descale;       ///< [1], [batch, kv_heads] or [batch, heads, blocks]; or null
  std::uint32_t* amax;  ///< fp32 patterns [1] or [batch, kv_heads], 0 before; not of blocks
  float* descale_ref;   ///< v in blocks: [batch, kv_heads] largest of a sequence, 0 before; or null
  const std::int32_t* cu;         ///< [batch + 1] of packed sequences, or null
  const std::int32_t* positions;  ///< of every row, for RoPE; null: those of the sequence
  AttentionStrides in_strides;
  AttentionStrides out_strides;  ///< transposed: `row` is the distance between dimensions
  std::int64_t columns;          ///< transposed: of the key axis
  std::uint32_t first_part;      ///< parts of the operands follow each other
  std::int32_t heads, rows;      ///< rows of every sequence; of the longest if packed
  std::int32_t tiles;            ///< of kK8TileRows, of the longest sequence; at least 1
  std::int32_t blocks;           ///< with scales, of the longest sequence
  std::int32_t block_rows;       ///< 64 or 128
  float descale_factor;
  std::int32_t is_pow2;                               ///< amax is raised to a power of two
  std::int32_t is_rotated, is_turned, is_transposed;  ///< turned: by RoPE
  std::int32_t other_rows;  ///< q: kv_len, for positions without a list; k: rows
  const std::int32_t* other_cu;
};

struct K8PrepareParams {
  K8Operand operands[3];   ///< q, k, v
  const float* rope;       ///< [num_positions, rotary_dim]: cosines, then sines; 16-byte aligned
  std::uint32_t signs[8];  ///< bit i: element i changes its sign
  K8Scales scales;
  K8Rope rope_pairs;
  std::int32_t rotary_dim;  ///< head_dim or half of it
  std::int32_t num_positions;
  std::int32_t batch, kv_heads;
  std::uint32_t num_parts;  ///< tiles of all heads of all operands; any grid works them off
  std::uint32_t run;        ///< so many that follow each other are one CTA's
};

inline constexpr int kK8TileRows = 128;  ///< of a part: one head
/// A smaller amax is raised to it: 448 / amax stays finite.
inline constexpr float kK8MinAmax = 0x1p-100f;
inline constexpr float kK8MaxCode = 448;
inline constexpr std::uint32_t kK8NanBits = 0x7fffffffu;

/// How a head dimension is cut. A thread holds so many numbers of a part, so that most butterflies
/// stay in its registers; CTAs share an SM; parts have `stages` buffers. With RoPE rows are spread
/// over more lanes, which then read neighbouring angles, and at head_dim 64 keep them for the other
/// heads of their tokens.
struct K8Form {
  int held, ctas_per_sm, stages;
};
constexpr K8Form k8_form(int head_dim, bool has_rope) {
  if (has_rope) return head_dim == 64 ? K8Form{32, 2, 4} : K8Form{32, 256 / head_dim, 2};
  return head_dim == 64 ? K8Form{64, 5, 2} : head_dim == 128 ? K8Form{128, 3, 2} : K8Form{64, 1, 3};
}
constexpr bool k8_holds_angles(int head_dim, bool has_rope) {
  return has_rope && head_dim == 64;
}
constexpr int kK8MostRun = 8;  ///< of K8PrepareParams::run, where angles are held; else 1
constexpr int k8_threads(int head_dim, bool has_rope) {
  return kK8TileRows * head_dim / k8_form(head_dim, has_rope).held;
}
/// A part as it comes: rows of 16 bytes more for every thread, so that columns meet no bank twice.
constexpr int k8_part_bytes(int head_dim, bool has_rope) {
  return k8_threads(head_dim, has_rope) * (2 * k8_form(head_dim, has_rope).held + 16);
}
/// Parts as they come; signs, maxima of warps, and parts' numbers.
constexpr int k8_shared_bytes(int head_dim, bool has_rope) {
  const K8Form form = k8_form(head_dim, has_rope);
  const int bytes = form.stages * k8_part_bytes(head_dim, has_rope) + 2 * head_dim +
                    2 * 4 * k8_threads(head_dim, has_rope) / 32 + (form.stages + 2) * 28;
  return (bytes + 15) / 16 * 16;
}

}  // namespace tilewright::kernels
