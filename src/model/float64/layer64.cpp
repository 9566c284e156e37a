#include "model/float64/layer64.h"

#include "reference/rotation/rope.h"

#include <algorithm>

namespace tilewright::model {

Doubles layer_frequencies(const Config& config, LayerKind kind) {
  if (kind == LayerKind::kWindow)
    return reference::rope_frequencies(config.rope_dim, config.rope_theta);
  const YarnConfig& yarn = config.yarn;
  return reference::yarn_frequencies(
      config.rope_dim, config.compress_rope_theta,
      {yarn.factor, yarn.original_max_pos, yarn.beta_fast, yarn.beta_slow});
}

reference::CompressorParams compressor_params(LayerKind kind, std::int64_t dim) {
  return {.ratio = static_cast<std::int64_t>(kind), .dim = dim, .overlap = kind == LayerKind::kCsa};
}

const BlockFormat* index_blocks(IndexFormat format) {
  return format == IndexFormat::kMxfp4 ? &kMxfp4Ceil
         : format == IndexFormat::kFp8 ? &kFp8Block1x128Ue8m0
                                       : nullptr;
}

std::vector<std::int32_t> all_entries(std::span<const std::int32_t> positions, std::int64_t ratio,
                                      std::int64_t& width) {
  width = positions.empty() ? 0 : reference::visible_entries(positions.back(), ratio);
  std::vector<std::int32_t> lists;
  for (const std::int32_t position : positions) {
    for (std::int32_t j = 0; j < width; ++j)
      lists.push_back(j < reference::visible_entries(position, ratio) ? j : -1);
  }
  return lists;
}

reference::SparseAttentionResult attend64(const Config& config, const Rows& threads,
                                          std::span<const double> sink, std::span<const double> q,
                                          std::span<const std::int32_t> positions,
                                          const AttendedRows& attended) {
  const std::int64_t heads = config.heads, dim = config.head_dim, window = config.window;
  const auto tokens = static_cast<std::int64_t>(positions.size());
  const std::int64_t first_row =
      tokens == 0 ? 0 : std::max<std::int64_t>(0, positions.front() - window + 1);
  // One array of rows: what the windows reach, then the compressed rows.
  Doubles rows(attended.kv.begin() + first_row * dim, attended.kv.end());
  const std::int64_t num_window = static_cast<std::int64_t>(rows.size()) / dim;
  rows.insert(rows.end(), attended.compressed.begin(), attended.compressed.end());
  const auto row_count = static_cast<std::size_t>(tokens * heads);
  const auto numbers = row_count * static_cast<std::size_t>(dim);
  reference::SparseAttentionResult all = {Doubles(numbers), Doubles(row_count), Doubles(row_count),
                                          Doubles(attended.has_magnitudes ? numbers : 0),
                                          Doubles(attended.has_magnitudes ? row_count : 0)};
  threads.each(tokens, [&](std::int64_t first, std::int64_t last) {
    const auto near =
        reference::window_indices(Rows::part(positions, 1, first, last), window, first_row);
    std::vector<std::int32_t> indices;
    for (std::int64_t t = 0; t < last - first; ++t) {
      indices.insert(indices.end(), near.begin() + t * window, near.begin() + (t + 1) * window);
      for (const std::int32_t j :
           Rows::part(attended.entries, attended.width, first + t, first + t + 1))
        indices.push_back(j < 0 ? -1 : static_cast<std::int32_t>(num_window + j));
    }
    const auto part = reference::sparse_attention(
        {.queries = last - first,
         .heads = heads,
         .head_dim = dim,
         .sink = sink,
         .magnitudes = attended.has_magnitudes},
        Rows::part(q, heads * dim, first, last),
        {.rows = rows, .indices = indices, .topk = window + attended.width});
    std::ranges::copy(part.out, all.out.begin() + first * heads * dim);
    std::ranges::copy(part.lse, all.lse.begin() + first * heads);
    std::ranges::copy(part.row_max, all.row_max.begin() + first * heads);
    if (!attended.has_magnitudes) return;
    std::ranges::copy(part.out_magnitude, all.out_magnitude.begin() + first * heads * dim);
    std::ranges::copy(part.score_magnitude, all.score_magnitude.begin() + first * heads);
  });
  return all;
}

}  // namespace tilewright::model
