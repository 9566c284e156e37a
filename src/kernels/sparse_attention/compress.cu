// targets: sm_90a
//
// The compressor: eight or 128 tokens become one row of a compressed cache, when the last of them
// arrives.
//
//   compress_csa     CTA of 128 threads = an entry of 512, 8 tokens
//   compress_index   CTA of 4 warps     = 4 entries of 128, 8 tokens each
//   compress_hca     cluster of 8 CTAs  = an entry of 512, 128 tokens; a CTA has 64 channels
//
//   thread = 8 tokens x 4 channels                 | warp 0 (of rank 0)
//     new tokens to the state                      |
//     16 loads of 16 B | max, exp2, sums           |
//     hca: partial sums of 16 parts, shared memory |
//     bf16 to the shared row (hca: of rank 0) ----barrier---- norm | rotate | Hadamard | codes
//
// A token comes from the call's input, or if it is older from the state; both give the same numbers
// in the same order, so that an entry does not depend on how the tokens were cut into calls.
//
// Limit: memory. A CSA token brings 8 KB (kv and score, 1024 floats each), an HCA token 4 KB, an
// indexer token 2 KB, read once by whom it completes and once, in decode, to be written to the
// state. 4096 tokens of a prompt: 33.6 MB, 7.8 us at 4.3 TB/s (CSA). HCA reads 512 KB for an entry
// that 128 tokens share: eight CTAs, so that one entry takes two rounds of loads, not 16.
// Measured: not run on hardware.
// Sources: the official DeepSeek-V4 inference code; a state of one row per token as in vLLM.
#include "kernels/sparse_attention/compress.h"
#include "ptx/address.h"
#include "ptx/cluster.h"
#include "ptx/grid_dependency.h"
#include "ptx/math.h"
#include "tile/cache_row.h"
#include "tile/index_row.h"
#include "tile/sequence_tokens.h"

namespace tilewright::kernels {
namespace {

constexpr int kPartSlots = 8;
constexpr float kLog2e = 1.4426950408889634f;

// What a row of threads does: the entry that it completes, if any, and tokens to keep.
struct Task {
  std::int32_t sequence = 0, group = 0, state_slot = -1;
  std::int32_t first = 0, count = 0, start = 0;  // tokens of the sequence
  std::int32_t entry = 0;
  bool has_entry = false;

  __device__ Task(const CompressParams& params, std::int64_t index, int ratio) {
    if (index >= std::int64_t{params.sequences.batch} * params.groups) return;
    sequence = static_cast<std::int32_t>(index / params.groups);
    group = static_cast<std::int32_t>(index) - sequence * params.groups;
    const tile::SequenceRange range(params.sequences, sequence);
    const std::int32_t slot =
        params.state_slots != nullptr ? params.state_slots[sequence] : sequence;
    if (range.start < 0 || slot < 0 || slot >= params.num_state_slots) return;
    state_slot = slot;
    first = range.first, count = range.count, start = range.start;
    entry = start / ratio + group;
    has_entry = params.does_pool != 0 && entry < (start + count) / ratio;
  }

  __device__ float* state_row(const CompressParams& params, std::int32_t position,
                              int width) const {
    const std::int64_t row = std::int64_t{state_slot} * params.ring + position % params.ring;
    return params.state + row * 2 * width;
  }
};

__device__ float4 load4(const float* from) {
  return *reinterpret_cast<const float4*>(from);
}
__device__ float4 add4(const float4& a, const float4& b) {
  return make_float4(__fadd_rn(a.x, b.x), __fadd_rn(a.y, b.y), __fadd_rn(a.z, b.z),
                     __fadd_rn(a.w, b.w));
}

// Four channels of a token: its values and scores.
struct Slot {
  float4 kv, score;
};

template <CompressShape S>
__device__ Slot new_token(const CompressParams& params, const Task& task, std::int32_t position,
                          int channel) {
  const std::int64_t token = task.first + position - task.start;
  const float4 gate = load4(params.gate + token * params.gate_stride + channel);
  const float4 ape = load4(params.ape + position % S.ratio * S.width() + channel);
  return {load4(params.kv + token * params.kv_stride + channel), add4(gate, ape)};
}

// The new tokens of this row's share to the state, as far as it is long enough.
template <CompressShape S>
__device__ void store_state(const CompressParams& params, const Task& task, int channel, int part) {
  const std::int32_t from = max(task.group * S.ratio, task.count - params.ring);
  const std::int32_t to = min(task.count, (task.group + 1) * S.ratio);
  for (std::int32_t i = from + part; i < to; i += S.parts()) {
    const std::int32_t position = task.start + i;
    float* const row = task.state_row(params, position, S.width());
#pragma unroll
    for (int half = 0; half < S.width(); half += S.dim) {
      const Slot slot = new_token<S>(params, task, position, half + channel);
      *reinterpret_cast<float4*>(row + half + channel) = slot.kv;
      *reinterpret_cast<float4*>(row + S.width() + half + channel) = slot.score;
    }
  }
}

// Softmax of a channel over some tokens: sum of exp2 above the maximum, and of that times values.
struct Pool {
  float most, sum, value;
};

template <CompressShape S>
__device__ void load_slots(Slot (&slots)[kPartSlots], const CompressParams& params,
                           const Task& task, int channel, int part) {
  const std::int32_t begin = (task.entry - (S.has_overlap ? 1 : 0)) * S.ratio + part * kPartSlots;
#pragma unroll
  for (int k = 0; k < kPartSlots; ++k) {
    const std::int32_t position = begin + k;
    const bool is_own = !S.has_overlap || k >= S.ratio;
    const int at = channel + (S.has_overlap && is_own ? S.dim : 0);
    if (position < 0) {
      const float none = -INFINITY;
      slots[k] = {make_float4(0, 0, 0, 0), make_float4(none, none, none, none)};
    } else if (position >= task.start) {
      slots[k] = new_token<S>(params, task, position, at);
    } else {
      const float* const row = task.state_row(params, position, S.width());
      slots[k] = {load4(row + at), load4(row + S.width() + at)};
    }
  }
}

template <float float4::*Member>
__device__ Pool pool_channel(const Slot (&slots)[kPartSlots]) {
  Pool pool = {slots[0].score.*Member, 0, 0};
#pragma unroll
  for (int k = 1; k < kPartSlots; ++k) pool.most = fmaxf(pool.most, slots[k].score.*Member);
#pragma unroll
  for (int k = 0; k < kPartSlots; ++k) {
    const float weight =
        ptx::ex2_approx_ftz_f32(__fmul_rn(__fadd_rn(slots[k].score.*Member, -pool.most), kLog2e));
    pool.sum = __fadd_rn(pool.sum, weight);
    pool.value = __fmaf_rn(weight, slots[k].kv.*Member, pool.value);
  }
  return pool;
}

// Parts of the same four channels, in order.
template <CompressShape S>
struct PartialPools {
  Pool pools[S.parts()][S.channels()];
};

template <CompressShape S>
__device__ float merge_channel(const PartialPools<S>& partial, int channel) {
  float most = partial.pools[0][channel].most;
#pragma unroll
  for (int part = 1; part < S.parts(); ++part)
    most = fmaxf(most, partial.pools[part][channel].most);
  float sum = 0, value = 0;
#pragma unroll
  for (int part = 0; part < S.parts(); ++part) {
    const Pool pool = partial.pools[part][channel];
    const float weight = ptx::ex2_approx_ftz_f32(__fmul_rn(__fadd_rn(pool.most, -most), kLog2e));
    sum = __fmaf_rn(weight, pool.sum, sum);
    value = __fmaf_rn(weight, pool.value, value);
  }
  return __fdiv_rn(value, sum);
}

__device__ float round_to_bf16(float x) {
  return __bfloat162float(__float2bfloat16_rn(x));
}

// The pooled channels of the CTA to `row`, rounded to bf16: of the first CTA of a cluster. All
// threads of a row of threads together; with parts, all of the CTA.
template <CompressShape S>
__device__ void pool_entry(const CompressParams& params, const Task& task, int channel, int lane,
                           int part, float* row) {
  Slot slots[kPartSlots];
  load_slots<S>(slots, params, task, channel, part);
  const Pool pools[4] = {pool_channel<&float4::x>(slots), pool_channel<&float4::y>(slots),
                         pool_channel<&float4::z>(slots), pool_channel<&float4::w>(slots)};
  if constexpr (S.parts() == 1) {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      row[channel + i] = round_to_bf16(__fdiv_rn(pools[i].value, pools[i].sum));
  } else {
    __shared__ PartialPools<S> partial;
#pragma unroll
    for (int i = 0; i < 4; ++i) partial.pools[part][4 * lane + i] = pools[i];
    __syncthreads();
    ptx::barrier_cluster_wait_aligned();  // the first CTA runs
    if (part == 0) {
      float merged[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) merged[i] = round_to_bf16(merge_channel(partial, 4 * lane + i));
      const std::uint32_t to = ptx::shared_address(row + channel);
      ptx::st_shared_cluster_v4_f32(ptx::mapa_shared_cluster(to, 0), merged);
    }
  }
}

// From pooled rows in shared memory to the cache: a warp, 16 numbers a lane.
template <CompressShape S>
__device__ void finish_rows(const CompressParams& params, const float* rows, std::int64_t index) {
  constexpr int kLanes = S.dim / tile::kRowElems;
  constexpr int kFirstRotated = (S.dim - kKvRopeDims) / tile::kRowElems;
  const auto lane = static_cast<int>(threadIdx.x % kLanes);
  const auto row_idx = static_cast<int>(threadIdx.x / kLanes);
  const Task task(params, index + row_idx, S.ratio);
  const std::int32_t position = task.entry * S.ratio;
  const bool has_entry = task.has_entry && position < params.num_positions;
  float x[tile::kRowElems];
  const float* const from = rows + row_idx * S.dim + lane * tile::kRowElems;
#pragma unroll
  for (int i = 0; i < tile::kRowElems; i += 4) {
    const float4 four = task.has_entry ? load4(from + i) : make_float4(0, 0, 0, 0);
    x[i] = four.x, x[i + 1] = four.y, x[i + 2] = four.z, x[i + 3] = four.w;
  }
  const float sum = tile::sum_of_squares<kLanes>(x);
  tile::scale_row(x, tile::inverse_rms(sum, S.dim, params.eps));
  tile::scale_row(x, params.norm_weight + lane * tile::kRowElems);
  tile::to_f32(x, tile::to_bf16(x));
  if (lane >= kFirstRotated && has_entry) {
    const float* const angles = params.rope + std::int64_t{position} * kKvRopeDims;
    tile::rotate_pairs(x, angles, (lane - kFirstRotated) * (tile::kRowElems / 2));
  }
  const std::int32_t to = has_entry
                              ? tile::physical_row(params.table, task.sequence, task.entry,
                                                   params.cache.page_size, params.cache.num_rows)
                              : -1;
  if constexpr (S.dim == kKvDims) {
    const tile::EncodedRow row(params.cache.format, tile::to_bf16(x));
    if (to >= 0) row.store(tile::KvAddress(params.cache, to), lane);
  } else {
    const auto page = static_cast<std::int32_t>(
        params.cache.page_divisor.divide(static_cast<std::uint32_t>(max(to, 0))));
    const std::int32_t slot = max(to, 0) - page * params.cache.page_size;
    const IndexPageLayout layout = {params.index_format, params.cache.page_size,
                                    params.cache.page_stride};
    tile::store_index_key(params.index_format, params.cache.pages + layout.data_offset(page, slot),
                          params.cache.pages + layout.scale_offset(page, slot),
                          tile::transform_index_row(tile::to_bf16(x)), to >= 0);
  }
}

template <CompressShape S>
__device__ void compress(const CompressParams& params) {
  __shared__ __align__(16) float rows[S.rows * S.dim];
  const std::uint32_t rank = S.ctas == 1 ? 0 : ptx::cluster_ctarank();
  const auto row_idx = static_cast<int>(threadIdx.x / S.row_threads());
  const auto lane = static_cast<int>(threadIdx.x % S.lanes());
  const auto part = static_cast<int>(threadIdx.x % S.row_threads() / S.lanes());
  const int channel = static_cast<int>(rank) * S.channels() + 4 * lane;
  const std::int64_t index = std::int64_t{blockIdx.x / S.ctas} * S.rows;
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  const Task task(params, index + row_idx, S.ratio);
  if constexpr (S.ctas > 1) {
    if (task.has_entry) ptx::barrier_cluster_arrive_aligned();
  }
  if (params.does_store != 0 && task.state_slot >= 0) store_state<S>(params, task, channel, part);
  if (task.has_entry) pool_entry<S>(params, task, channel, lane, part, rows + row_idx * S.dim);
  if constexpr (S.ctas > 1) {
    if (!task.has_entry) return;
    ptx::barrier_cluster_arrive_aligned();
    if (rank != 0) return;
    ptx::barrier_cluster_wait_aligned();
  } else if (__syncthreads_or(task.has_entry ? 1 : 0) == 0) {
    return;
  }
  if (threadIdx.x < 32) finish_rows<S>(params, rows, index);
}

}  // namespace
}  // namespace tilewright::kernels

#define TILEWRIGHT_ENTRY(NAME, SHAPE)                                                \
  extern "C" __global__ void __launch_bounds__(tilewright::kernels::SHAPE.threads()) \
      NAME(const __grid_constant__ tilewright::kernels::CompressParams params) {     \
    tilewright::kernels::compress<tilewright::kernels::SHAPE>(params);               \
  }
TILEWRIGHT_ENTRY(compress_csa, kCompressCsa)
TILEWRIGHT_ENTRY(compress_index, kCompressIndex)
TILEWRIGHT_ENTRY(compress_hca, kCompressHca)
