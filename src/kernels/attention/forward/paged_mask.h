// Which keys a query over pages sees: as mask.h has it, of sequences as long as only the device
// knows, and of these its own chunk's.
#pragma once

#include "kernels/attention/forward/pages.h"
#include "kernels/attention/mask.h"

#include <cstdint>

namespace tilewright::tile {

/// Lengths that only the device knows, as far as there is room for them.
__device__ inline AttentionSequence find_used_sequence(const kernels::AttentionPagedParams& params,
                                                       std::int32_t batch) {
  const kernels::AttentionPages& pages = params.pages;
  AttentionSequence s = find_sequence(params, batch);
  if (pages.q_lengths != nullptr) s.q_len = min(s.q_len, max(pages.q_lengths[batch], 0));
  if (pages.kv_lengths != nullptr) s.kv_len = min(s.kv_len, max(pages.kv_lengths[batch], 0));
  return s;
}

/// Keys [begin, end) of the chunk that a position lies in; none before the first key.
struct KeyChunk {
  std::int32_t begin, end;

  __device__ KeyChunk(const kernels::AttentionPages& pages, std::int32_t position) {
    const auto at = static_cast<std::uint32_t>(max(position, 0));
    begin = static_cast<std::int32_t>(pages.chunk_divisor.divide(at)) * pages.chunk;
    const bool is_before = position < 0 && pages.chunk < kernels::kUnboundedWindow;
    end = is_before ? 0 : begin + pages.chunk;
  }
};

__device__ inline VisibleKeys visible_of_chunk(const kernels::AttentionPagedParams& params,
                                               std::int32_t position, std::int32_t kv_len) {
  VisibleKeys visible(params, position, kv_len);
  const KeyChunk chunk(params.pages, position);
  visible.begin = max(visible.begin, chunk.begin);
  visible.end = min(visible.end, chunk.end);
  return visible;
}

/// As KeyTiles, whose plain tiles are those that every row sees whole.
template <int Keys>
struct ChunkTiles : KeyTiles<Keys> {
  using Base = KeyTiles<Keys>;

  __device__ ChunkTiles(const kernels::AttentionPagedParams& params, std::int32_t kv_len,
                        std::int32_t shift, std::int32_t first, std::int32_t last)
      : Base(params, kv_len, shift, first, last) {
    const KeyChunk of_first(params.pages, first + shift), of_last(params.pages, last + shift);
    Base::begin = max(Base::begin, of_first.begin / Keys);
    Base::end = max(min(Base::end, (of_last.end + Keys - 1) / Keys), Base::begin);
    Base::plain_begin = max(Base::plain_begin, (of_last.begin + Keys - 1) / Keys);
    Base::plain_end = min(Base::plain_end, of_first.end / Keys);
  }
};

}  // namespace tilewright::tile
