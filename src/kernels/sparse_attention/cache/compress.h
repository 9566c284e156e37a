// Contract of the compressor of DeepSeek-V4: from projections of tokens to rows of the compressed
// caches, with a state that allows to take tokens back.
#pragma once

#include "formats/index_page.h"
#include "kernels/sparse_attention/kv_pages.h"

#include <cstdint>

namespace tilewright::kernels {

/// Entry j of a sequence pools the tokens j * ratio .. j * ratio + ratio - 1; with overlap (ratio
/// 4) also the `ratio` before them, whose first `dim` channels count, while of its own tokens the
/// last `dim` do (width = 2 * dim):
///
///   e_c    = sum_p kv[p,c] softmax_p(gate[p,c] + ape[p mod ratio, c])
///   entry  = bf16(rotate(bf16(bf16(e) / sqrt(mean(bf16(e)^2) + eps) * norm_weight), j * ratio))
///
/// and goes to logical row j of the sequence: encoded as formats/kv_page.h says (dim 512), or times
/// the Hadamard matrix, rounded to bf16, as formats/index_page.h says (dim 128). It is made by the
/// call that brings its last token.
///
/// Rows before position 0 do not count, whatever the state holds. Of a new token at position p the
/// state keeps kv and gate + ape in row p mod ring, so that of the call's tokens the last
/// ring - slots + 1 may be taken back (slots = 2 * ratio or ratio): go on with a smaller start.
///
/// Entries and state may be one launch if no sequence has more than ring - slots + 1 new tokens;
/// else two, entries first. The first entry_ctas CTAs of a launch make entries, the others copy new
/// tokens to the state.
struct CompressParams {
  const float* kv;                   ///< [tokens, width], 16-byte aligned rows
  const float* gate;                 ///< likewise
  const float* ape;                  ///< [ratio, width]
  const std::uint16_t* norm_weight;  ///< bf16 [dim], 16-byte aligned
  const float* rope;                 ///< [num_positions, 64]: 32 cosines, 32 sines; 16-byte aligned
  float* state;                      ///< [state_slots, ring, 2, width]
  const std::int32_t* state_slots;   ///< [batch] a sequence's slot; null: b. < 0: takes no part
  SequenceTokens sequences;
  BlockTable table;
  KvPages cache;                        ///< of dim 128 without its format
  IndexFormat index_format;             ///< of dim 128
  std::int64_t kv_stride, gate_stride;  ///< elements; multiples of 4
  std::int32_t num_positions, num_state_slots, ring;
  /// Entries that a sequence may complete: its most new tokens / ratio, rounded up.
  std::int32_t groups;
  std::int32_t keep;        ///< new tokens of a sequence, at most, that go to the state: its last
  std::int32_t entry_ctas;  ///< 0, or CompressShape::entry_ctas()
  float eps;
};

/// A CSA layer's rows and its indexer's keys of the same tokens, by compress_pair.
struct CompressPairParams {
  CompressParams rows, keys;
  std::int32_t row_ctas;  ///< of rows, entries and state; those of keys follow
};

/// How a kernel divides an entry: `ctas` of a cluster share its channels, a thread pools 8 tokens
/// of 4 channels, and a CTA does `rows` entries.
struct CompressShape {
  int dim, ratio;
  bool has_overlap;
  int ctas, rows;
  int ctas_per_sm;  ///< that the registers are to allow: a warp has 8 KB in flight

  constexpr int width() const { return has_overlap ? 2 * dim : dim; }
  constexpr int slots() const { return has_overlap ? 2 * ratio : ratio; }
  constexpr int channels() const { return dim / ctas; }
  constexpr int lanes() const { return channels() / 4; }
  constexpr int parts() const { return slots() / 8; }
  constexpr int row_threads() const { return lanes() * parts(); }
  constexpr int threads() const { return row_threads() * rows; }
  /// Float4 of a token's row of the state: values, then scores.
  constexpr int row_vectors() const { return width() / 2; }
  /// CTAs for so many entries. Clusters search entries for those that are complete, so that there
  /// need not be one for each.
  constexpr std::int64_t entry_ctas(std::int64_t entries, std::int64_t num_sms) const {
    const std::int64_t groups = (entries + rows - 1) / rows;
    if (ctas == 1) return groups;
    const std::int64_t most = num_sms / 2;
    return (groups < most ? groups : most) * ctas;
  }
  /// CTAs for so many rows of the state; with many each does several.
  constexpr std::int64_t state_ctas(std::int64_t state_rows) const {
    const std::int64_t most = 1024;
    return ((state_rows < most ? state_rows : most) + ctas - 1) / ctas * ctas;
  }
};

inline constexpr CompressShape kCompressCsa = {512, 4, true, 1, 1, 4};     ///< compress_csa
inline constexpr CompressShape kCompressHca = {512, 128, false, 8, 1, 2};  ///< compress_hca
inline constexpr CompressShape kCompressIndex = {128, 4, true, 1, 4, 4};   ///< compress_index
static_assert(kCompressCsa.threads() == kCompressIndex.threads());

}  // namespace tilewright::kernels
