// The end of a segment in a tensor-core decode kernel, by warps 0-3: sums of all keys' threads, and
// results from Tensor Memory, where a lane is a dimension, through shared memory to rows; 16 rows
// at a time. Whole tiles leave as results, others as parts, which the CTA with the last one merges.
#pragma once

#include "kernels/attention/decode/parts.h"
#include "kernels/attention_sm100/decode/attend.h"

#include <cstdint>

namespace tilewright::tile {

template <class Decode>
struct DecodeFinisher {
  static constexpr int kThreads = kernels::kTensorDecodeRowThreads;

  const Decode& d;
  DecodeAttender<Decode>& attender;
  float* exchange;  ///< [16 rows, head_dim]
  std::uint32_t dims = d.dims();

  __device__ static void meet() { ptx::bar_sync<kDecodeRowBarrier, kThreads>(); }
  __device__ DecodeCounter counter(const DecodeSegment& segment) const {
    return {d.p, segment.merge.first_slot};
  }
  /// What store() will want to know of a part's counter: on its way meanwhile.
  __device__ unsigned long long look(const DecodeSegment& segment) const {
    return segment.slot >= 0 && threadIdx.x == 0 ? counter(segment).look() : 0;
  }

  __device__ void store(const DecodeSegment& segment, bool has_results, unsigned long long seen) {
    if (has_results) attender.wait_results();
    add_sums();
#pragma unroll 1
    for (int chunk = 0; chunk < attender.chunks; ++chunk) {
      put_results(chunk, has_results);
      meet();
      for_each_quad(segment, chunk, chunk + 1,
                    [&](std::uint32_t at, const DecodeRow& row, std::uint32_t dim) {
                      store_quad(segment, at, row, dim);
                    });
      meet();
    }
    if (segment.slot >= 0) finish_part(segment, seen);
  }

 private:
  __device__ void add_sums() {
#pragma unroll
    for (int c = 0; c < Decode::kChunks; ++c) {
      if (c >= attender.chunks) break;
      const float sum = combine_lanes(attender.sums[c], [](float a, float b) { return a + b; });
      const std::uint32_t lane = attender.lane();
      if (lane % 2 == 0) d.state.part[attender.warp()][16 * c + lane / 2] = sum;
    }
    meet();
    if (threadIdx.x < Decode::kRows) {
      const auto& part = d.state.part;
      const std::uint32_t row = threadIdx.x;
      d.state.sum[row] = (part[0][row] + part[1][row]) + (part[2][row] + part[3][row]);
    }
  }

  /// A chunk's results to [row, dimension]. With 64 dimensions a warp has 16 of them.
  __device__ void put_results(int chunk, bool has_results) const {
    const std::uint32_t lane = attender.lane(), of_warp = dims < 128 ? 16 : 32;
#pragma unroll 1
    for (std::uint32_t tile = 0; tile * 128 < dims; ++tile) {
      float o[16] = {};
      if (has_results)
        attender.load_columns(o, own_lanes(d.columns + Decode::kResults + tile * Decode::kColumns),
                              chunk);
      if (lane >= of_warp) continue;
#pragma unroll
      for (int i = 0; i < 16; ++i)
        exchange[static_cast<std::uint32_t>(i) * dims + tile * 128 + attender.warp() * of_warp +
                 lane] = o[i];
    }
  }

  /// `body(row of the tile, which query and head that is, first of four dimensions)`.
  template <class Body>
  __device__ void for_each_quad(const DecodeSegment& segment, int begin, int end,
                                const Body& body) const {
    const std::uint32_t quads = dims / 4;
#pragma unroll 1
    for (std::uint32_t i = 16u * static_cast<std::uint32_t>(begin) * quads + threadIdx.x;
         i < 16u * static_cast<std::uint32_t>(end) * quads; i += kThreads) {
      const std::uint32_t at = i / quads;
      const DecodeRow row(d.p, segment.kv_head,
                          segment.m_tile * Decode::kRows + static_cast<std::int32_t>(at));
      if (row.exists) body(at, row, i % quads * 4);
    }
  }

  __device__ void store_quad(const DecodeSegment& segment, std::uint32_t at, const DecodeRow& row,
                             std::uint32_t dim) const {
    const float4 x = *reinterpret_cast<const float4*>(exchange + at % 16 * dims + dim);
    // Weights and their sums are relative to that: -inf stays.
    const float reference = d.state.reference[at] - DecodeAttender<Decode>::kShift;
    const float sum = d.state.sum[at];
    if (segment.slot >= 0) {
      *reinterpret_cast<float4*>(part_values(segment.slot, at, dim)) = x;
      if (dim == 0) *part_sums(segment.slot, at) = make_float2(reference, sum);
      return;
    }
    DecodeSum all;
    all.reference = reference, all.total = sum;
    all.x[0] = x.x, all.x[1] = x.y, all.x[2] = x.z, all.x[3] = x.w;
    all.store(d.p, segment, row, dim);
  }

  /// Counts a part, and merges all if it is the last one.
  __device__ void finish_part(const DecodeSegment& segment, unsigned long long seen) const {
    if (threadIdx.x == 0) {  // behind a barrier since the last store
      const DecodeCounter of_tile = counter(segment);
      of_tile.validate(seen);
      d.state.is_last_part = of_tile.add(segment.merge.parts);
    }
    meet();
    if (!d.state.is_last_part) return;
    const DecodeMerge merge = segment.merge;
    for_each_quad(segment, 0, attender.chunks,
                  [&](std::uint32_t at, const DecodeRow& row, std::uint32_t dim) {
                    DecodeSum all;
                    all.add<8>(merge.parts, [&](std::int32_t part, float2& s, float4& x) {
                      s = *part_sums(merge.slot(part), at);
                      x = *reinterpret_cast<const float4*>(part_values(merge.slot(part), at, dim));
                    });
                    all.store(d.p, segment, row, dim);
                  });
  }

  __device__ float* part_values(std::int32_t slot, std::uint32_t row, std::uint32_t dim) const {
    return d.p.partial_out + (std::int64_t{slot} * Decode::kRows + row) * dims + dim;
  }
  __device__ float2* part_sums(std::int32_t slot, std::uint32_t row) const {
    return reinterpret_cast<float2*>(d.p.partial_sums) + std::int64_t{slot} * Decode::kRows + row;
  }
};

}  // namespace tilewright::tile
