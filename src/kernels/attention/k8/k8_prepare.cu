// targets: sm_90a sm_100f
//
// K8's first kernel: Q and K rotated by random signs and a Hadamard transform, so that outliers
// spread over all elements of a head before they meet the four bits of e4m3; scales; V turned so
// that K7 can read it as a WGMMA operand.
//
//   persistent CTA, part = 128 tokens of one head of q, k or v; thread = a row of 64 or 128
//   numbers, a quarter of one of 256; with RoPE 32 numbers
//
//   part n + 1   cp.async to the other buffer ..........................................
//   part n       rows: RoPE, signs, butterflies    | amax -# codes -> shared -> 16 B a lane
//                columns: 4 keys x 16, 32 elements | amax -# codes -> shared -# 16 B a lane -#
//
//   -#  a barrier of the CTA. Warps read and write what they have copied themselves: nothing else
//       needs one.
//
// A scale of a tensor or a head needs a pass over everything before (attention_k8_amax).
//
// Rows change hands twice through shared memory, 16 bytes at a time, instead of once a butterfly
// through shuffles: those pass a quarter of the numbers per cycle that additions do.
//
// Limit: memory, 3 bytes an element in one pass, 5 in two. Of instructions, at d = 128: 1 to
// unpack, 0.5 for signs, 7 for butterflies, 1 amax, 1 scale, 1 to convert, 1 to copy: 12.5 an
// element, where 4 TB/s leave time for 23.
// Measured: docs/04-kernels.md, "K8: the preparation".
// Sources: FlashAttention-3, section 3.3.
#include "kernels/attention/k8/k8_prepare.h"
#include "kernels/attention/k8/lanes.h"
#include "kernels/attention/k8/part.h"
#include "ptx/address.h"
#include "ptx/cp_async.h"
#include "ptx/grid.h"
#include "ptx/grid_dependency.h"
#include "tile/element.h"
#include "tile/element_chunk.h"

namespace tilewright::kernels {
namespace {

using tile::kChunk;
using tile::kKeyGroup;
using tile::lane_of_warp;
using tile::PrepareColumns;
using tile::PreparePart;
using tile::PrepareRow;
using tile::PrepareScale;
using tile::PrepareSpan;
using tile::PrepareWork;
using tile::thread;
using tile::warp_of_cta;

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
constexpr bool kIsBlackwell = true;
#else
constexpr bool kIsBlackwell = false;
#endif

template <int HeadDim, bool HasRope>
struct Shared {
  static constexpr int kThreads = k8_threads(HeadDim, HasRope),
                       kStages = k8_form(HeadDim, HasRope).stages;
  static constexpr int kParts =
      kStages + 2;  // the last one, this one, those on their way, the next
  std::uint8_t landed[kStages]
                     [k8_part_bytes(HeadDim, HasRope)];  // a share of every warp; then its codes
  uint4 signs[HeadDim / kChunk];                         // sign bits of 16-bit numbers
  std::uint32_t maxima[2][kThreads / 32];
  PreparePart parts[kParts];
};

template <class Element, int HeadDim, bool HasRope>
struct Preparer {
  using Rows = PrepareRow<HeadDim, HasRope>;
  using Place = PrepareColumns<HeadDim, HasRope>;
  using SharedHere = Shared<HeadDim, HasRope>;
  static constexpr int kThreads = k8_threads(HeadDim, HasRope), kHeld = Rows::kHeld;
  static constexpr int kStages = SharedHere::kStages, kParts = SharedHere::kParts;
  static constexpr int kCopies = kHeld / kChunk;  // of a lane

  const K8PrepareParams& params;
  SharedHere& shared;
  int step = 0;  // number of the part
  tile::PrepareAngles<HeadDim, HasRope> angles;

  __device__ const PreparePart& part(int ahead) const {
    return shared.parts[static_cast<std::uint32_t>(step + ahead) % kParts];
  }
  __device__ PrepareWork work(int ahead = 0) const { return {params, part(ahead)}; }

  // On sm_100 nvcc would keep it in a register, and spill that one.
  static __device__ std::uint32_t num_ctas() {
    return kIsBlackwell ? ptx::mov_nctaid_x() : gridDim.x;
  }
  // A second pass goes backwards: what the first one read last is in the second cache.
  __device__ void find_part(int ahead, bool is_prepare) {
    if (threadIdx.x == 0) {
      const auto number = static_cast<std::uint32_t>(step + ahead);
      const std::uint32_t run = decltype(angles)::kIsHeld ? params.run : 1;
      const std::uint32_t idx = (blockIdx.x + number / run * num_ctas()) * run + number % run;
      const bool is_reversed =
          is_prepare && params.scales != K8Scales::kBlock && idx < params.num_parts;
      shared.parts[number % kParts].find(params, is_reversed ? params.num_parts - 1 - idx : idx);
    }
  }

  __device__ void begin(bool is_prepare) {
    for (int i = 0; i < kStages; ++i) find_part(i, is_prepare);
    auto* const signs = reinterpret_cast<std::uint16_t*>(shared.signs);
    for (std::uint32_t i = thread(); i < HeadDim; i += kThreads)
      signs[i] = static_cast<std::uint16_t>((params.signs[i / 32] >> (i % 32) & 1) << 15);
    __syncthreads();
  }

  __device__ std::uint8_t* buffer(int ahead) const {
    return shared.landed[static_cast<std::uint32_t>(step + ahead) % kStages];
  }
  // A warp's share of it.
  __device__ std::uint8_t* landed(int ahead = 0) const {
    constexpr int kShare = 32 * (2 * kHeld + 16);
    static_assert(kShare >= Place::kKeys * 2 * Place::kWarpDims);
    return buffer(ahead) + warp_of_cta() * kShare;
  }

  // Begins to copy the part `ahead` of this one. Rows that are not there become zeros.
  template <bool HasColumns>
  __device__ void copy(int ahead) {
    const PrepareWork w = work(ahead);
    if (w.part.operand < 0) return ptx::cp_async_commit_group();
    if (HasColumns && w.operand().is_transposed != 0) {
      copy_columns(w, ptx::shared_address(landed(ahead)));
    } else {
      copy_rows(w, ptx::shared_address(landed(ahead)));
    }
    ptx::cp_async_commit_group();
  }
  // Lanes copy neighbouring chunks, Chunks of a row; all but the first row of a lane follow by
  // addition.
  template <std::uint32_t Chunks, class Slot>
  static __device__ void copy_rows_of(const PrepareWork& w, std::uint32_t first_row,
                                      std::uint32_t first_dim, Slot slot) {
    constexpr std::uint32_t kRows = 32 / Chunks;  // of all lanes at once
    const std::uint32_t lane_row = lane_of_warp() / Chunks, chunk = lane_of_warp() % Chunks;
    const std::int32_t row = w.part.first_row + static_cast<std::int32_t>(first_row + lane_row);
    const std::uint16_t* from = w.source(row) + first_dim + chunk * kChunk;
    const std::int64_t stride = kRows * w.operand().in_strides.row;
    const std::int32_t rows_left = w.part.len - row;
#pragma unroll
    for (std::uint32_t j = 0; j < kCopies; ++j) {
      const bool is_there = static_cast<std::int32_t>(j * kRows) < rows_left;
      ptx::cp_async_cg_shared_global_16(slot(lane_row + j * kRows, chunk), from, is_there ? 16 : 0);
      from += stride;
    }
  }
  static __device__ void copy_rows(const PrepareWork& w, std::uint32_t to) {
    copy_rows_of<HeadDim / kChunk>(w, warp_of_cta() * Rows::kWarpRows, 0,
                                   [&](std::uint32_t row, std::uint32_t chunk) {
                                     return to + row * Rows::kPitch + chunk * 16;
                                   });
  }
  static __device__ void copy_columns(const PrepareWork& w, std::uint32_t to) {
    const Place place;
    copy_rows_of<Place::kWarpDims / kChunk>(
        w, place.first_key, place.first_dim,
        [&](std::uint32_t key, std::uint32_t chunk) { return to + Place::slot(key, chunk) * 16; });
  }

  __device__ bool has_tokens_of_last() const {
    if (step == 0) return false;
    const PreparePart &last = part(-1), &now = part(0);
    return last.operand == now.operand && last.batch == now.batch &&
           last.first_row == now.first_row;
  }
  __device__ void load_rows(Rows& values) {
    const PrepareWork w = work();
    const bool is_rotated = w.operand().is_rotated != 0;
    const std::uint8_t* const row = landed() + Rows::row_of_warp() * Rows::kPitch;
    const auto chunk_at = [&](const Rows& to, int j) {
      return *reinterpret_cast<const uint4*>(row + 2 * to.dim(j));
    };
    if (HasRope && w.operand().is_turned != 0) {
      if (!decltype(angles)::kIsHeld || !has_tokens_of_last()) angles.find(w);
      values.load_turned(params, angles, [&](Rows& to, int j) {
        tile::unpack_chunk<Element>(to.chunk(j), chunk_at(to, j));
      });
      if (is_rotated) values.apply_signs(shared.signs);
    } else {
      const std::uint32_t kept = is_rotated ? ~0u : 0u;  // of signs
#pragma unroll
      for (int j = 0; j < Rows::kChunks; ++j) {
        uint4 chunk = chunk_at(values, j);
        const uint4 signs = shared.signs[values.dim(j) / kChunk];
        chunk.x ^= signs.x & kept;
        chunk.y ^= signs.y & kept;
        chunk.z ^= signs.z & kept;
        chunk.w ^= signs.w & kept;
        tile::unpack_chunk<Element>(values.chunk(j), chunk);
        // Keeps sm_100's ptxas from loading so much ahead that it spills.
        if (kIsBlackwell && Rows::kLanes == 1 && j % 4 == 3) __syncwarp();
      }
    }
    if (is_rotated) values.rotate();
  }

  // The largest of `warps` neighbouring warps; a barrier. Two arrays take turns, so that none is
  // overwritten that is still read.
  __device__ std::uint32_t max_of_warps(std::uint32_t x, std::uint32_t warps) {
    const std::uint32_t warp = warp_of_cta(), lane = lane_of_warp();
    std::uint32_t* const maxima = shared.maxima[step % 2];
    x = __reduce_max_sync(~0u, x);
    if (lane == 0) maxima[warp] = x;
    __syncthreads();
    return __reduce_max_sync(~0u, lane < warps ? maxima[warp / warps * warps + lane] : 0);
  }
  // A barrier as well, behind which part kStages ahead is known.
  __device__ PrepareScale find_scale(std::uint32_t amax) {
    find_part(kStages, true);
    const PrepareWork w = work();
    if (params.scales != K8Scales::kBlock) {
      __syncthreads();
      return w.shared_scale();
    }
    const bool is_half = w.operand().block_rows < kK8TileRows;
    const std::uint32_t threads = is_half ? kThreads / 2 : kThreads;
    const std::uint32_t block = is_half ? thread() / (kThreads / 2) : 0;
    return w.block_scale(max_of_warps(amax, threads / 32), static_cast<int>(block),
                         thread() == block * (kThreads / 2));
  }

  // Codes take the place of the numbers, and leave as rows.
  __device__ void prepare_rows() {
    Rows values;
    load_rows(values);
    const PrepareScale scale = find_scale(values.amax_bits());
    std::uint8_t* const rows = landed();
    std::uint8_t* const row = rows + Rows::row_of_warp() * Rows::kPitch;
    constexpr int kTogether = Rows::kLanes == 1 ? 16 : 8;
#pragma unroll
    for (int i = 0; i < kHeld; i += kTogether) {
      std::uint32_t words[kTogether / 4];
#pragma unroll
      for (int j = 0; j < kTogether / 4; ++j) {
        const float* const c = values.x + i + 4 * j;
        words[j] = scale.codes(c[0], c[1], c[2], c[3]);
      }
      std::uint8_t* const to = row + values.dim(i / kChunk);
      if constexpr (Rows::kLanes == 1) {
        *reinterpret_cast<uint4*>(to) = make_uint4(words[0], words[1], words[2], words[3]);
      } else {
        *reinterpret_cast<uint2*>(to) = make_uint2(words[0], words[1]);
      }
    }
    __syncwarp();
    store_rows(rows);
  }
  __device__ void store_rows(const std::uint8_t* rows) const {
    constexpr std::uint32_t kPieces = HeadDim / 16, kRowsAtOnce = 32 / kPieces;
    const PrepareWork w = work();
    const std::uint32_t first = lane_of_warp() / kPieces, at = lane_of_warp() % kPieces * 16;
    const std::int32_t row =
        w.part.first_row + static_cast<std::int32_t>(warp_of_cta() * Rows::kWarpRows + first);
    std::uint8_t* to = w.operand().out + w.offset(w.operand().out_strides, row) + at;
    const std::int64_t stride = kRowsAtOnce * w.operand().out_strides.row;
    const std::int32_t rows_left = w.part.len - row;
#pragma unroll
    for (std::uint32_t j = 0; j < kCopies / 2; ++j) {
      if (static_cast<std::int32_t>(j * kRowsAtOnce) < rows_left)
        *reinterpret_cast<uint4*>(to) =
            *reinterpret_cast<const uint4*>(rows + (first + j * kRowsAtOnce) * Rows::kPitch + at);
      to += stride;
    }
    __syncwarp();
  }

  // The columns of a dimension are 8 groups of 16 bytes, exchanged so that neither side meets a
  // bank twice; those of the next one are 8 groups further. They take the part's place.
  __device__ uint4* column_group(std::uint32_t chunk, std::uint32_t group) const {
    static_assert(k8_part_bytes(HeadDim, HasRope) >= HeadDim * kK8TileRows);
    return reinterpret_cast<uint4*>(buffer(0)) + chunk * kChunk * 8 + (group ^ chunk % 8);
  }
  __device__ void prepare_columns() {
    uint4 held[Place::kChunks][4];
    std::uint32_t most = 0;
    {
      const Place place;
      const auto* const chunks = reinterpret_cast<const uint4*>(landed());
#pragma unroll
      for (int j = 0; j < Place::kChunks; ++j) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          held[j][i] = chunks[Place::slot(place.key(i), place.first_chunk + j)];
          most = max_magnitudes(most, held[j][i]);
        }
      }
    }
    const PrepareScale scale = find_scale(amax_of_pair(most));
    const Place place;
    const std::uint32_t quad = place.first_key / 4 + place.quad;
    const std::uint32_t first_chunk = place.first_dim / kChunk + place.first_chunk;
#pragma unroll
    for (std::uint32_t j = 0; j < Place::kChunks; ++j) {
      float x[4][kChunk];
#pragma unroll
      for (int i = 0; i < 4; ++i) tile::unpack_chunk<Element>(x[i], held[j][i]);
      uint4* const group = column_group(first_chunk + j, quad / 4);
#pragma unroll
      for (int e = 0; e < kChunk; ++e)
        reinterpret_cast<std::uint32_t*>(group + e * 8)[quad % 4] =
            scale.codes(x[0][e], x[1][e], x[2][e], x[3][e]);
    }
    __syncthreads();
    store_columns();
    __syncthreads();  // the buffer is filled anew
  }
  // Magnitudes of 16 bits have the order of integers, NaNs at the top: pairs are compared as such.
  static __device__ std::uint32_t max_magnitudes(std::uint32_t most, const uint4& chunk) {
    constexpr std::uint32_t kMagnitude = 0x7fff7fffu;
    most = __vmaxu2(most, chunk.x & kMagnitude);
    most = __vmaxu2(most, chunk.y & kMagnitude);
    most = __vmaxu2(most, chunk.z & kMagnitude);
    return __vmaxu2(most, chunk.w & kMagnitude);
  }
  // As bits of fp32.
  static __device__ std::uint32_t amax_of_pair(std::uint32_t most) {
    const float2 pair = Element::unpack(most);
    return __float_as_uint(ptx::max_nan_f32(pair.x, pair.y));
  }
  __device__ void store_columns() const {
    const PrepareWork w = work();
    const PrepareSpan span(w);
    const AttentionStrides& s = w.operand().out_strides;
    std::uint8_t* const to =
        w.operand().out + (w.part.batch * s.batch + w.part.head * s.head + span.begin);
    const std::uint32_t group = thread() % 8;
    const std::int64_t column = w.part.first_row + group * kKeyGroup;
    if (column >= span.count) return;
#pragma unroll
    for (std::uint32_t i = 0; i < HeadDim * 8 / kThreads; ++i) {
      const std::uint32_t dim = thread() / 8 + i * (kThreads / 8);
      *reinterpret_cast<uint4*>(to + dim * s.row + column) =
          column_group(dim / kChunk, group)[dim % kChunk * 8];
    }
  }

  template <bool HasColumns, class Process>
  __device__ void for_each_part(Process process) {
    begin(HasColumns);
#pragma unroll
    for (int i = 0; i < kStages - 1; ++i) copy<HasColumns>(i);
    for (; part(0).operand >= 0; ++step) {
      copy<HasColumns>(kStages - 1);
      ptx::cp_async_wait_group<kStages - 1>();
      __syncwarp();  // others' copies
      if (part(1).operand < 0) ptx::griddepcontrol_launch_dependents();
      process();
    }
  }
  __device__ void prepare() {
    for_each_part<true>([&] {
      if (work().operand().is_transposed != 0) {
        prepare_columns();
      } else {
        prepare_rows();
      }
    });
  }
  __device__ void find_amax() {
    for_each_part<false>([&] {
      find_part(kStages, false);
      Rows values;
      load_rows(values);
      const std::uint32_t amax = max_of_warps(values.amax_bits(), kThreads / 32);
      if (threadIdx.x == 0) atomicMax(work().operand().amax + work().shared_idx(), amax);
    });
  }
};

extern __shared__ uint4 dynamic_shared[];

template <class Element, int HeadDim, bool HasRope>
__device__ Preparer<Element, HeadDim, HasRope> begin_kernel(const K8PrepareParams& params) {
  static_assert(sizeof(Shared<HeadDim, HasRope>) == k8_shared_bytes(HeadDim, HasRope));
  ptx::griddepcontrol_wait();
  return {params, *reinterpret_cast<Shared<HeadDim, HasRope>*>(dynamic_shared)};
}

}  // namespace
}  // namespace tilewright::kernels

#define TILEWRIGHT_ENTRY(NAME, PASS, ELEMENT, DIM, HAS_ROPE)                                     \
  extern "C" __global__ void __launch_bounds__(                                                  \
      tilewright::kernels::k8_threads(DIM, HAS_ROPE),                                            \
      tilewright::kernels::k8_form(DIM, HAS_ROPE).ctas_per_sm)                                   \
      attention_k8_##NAME(const __grid_constant__ tilewright::kernels::K8PrepareParams params) { \
    using namespace tilewright;                                                                  \
    kernels::begin_kernel<tile::ELEMENT, DIM, HAS_ROPE>(params).PASS();                          \
  }
#define TILEWRIGHT_ENTRIES(TYPE, ELEMENT, DIM)                                 \
  TILEWRIGHT_ENTRY(amax_##TYPE##_d##DIM, find_amax, ELEMENT, DIM, false)       \
  TILEWRIGHT_ENTRY(prepare_##TYPE##_d##DIM, prepare, ELEMENT, DIM, false)      \
  TILEWRIGHT_ENTRY(amax_##TYPE##_d##DIM##_rope, find_amax, ELEMENT, DIM, true) \
  TILEWRIGHT_ENTRY(prepare_##TYPE##_d##DIM##_rope, prepare, ELEMENT, DIM, true)
TILEWRIGHT_ENTRIES(bf16, Bf16, 128)
#ifndef TILEWRIGHT_ONE_ENTRY
TILEWRIGHT_ENTRIES(bf16, Bf16, 64)
TILEWRIGHT_ENTRIES(bf16, Bf16, 256)
TILEWRIGHT_ENTRIES(f16, Fp16, 64)
TILEWRIGHT_ENTRIES(f16, Fp16, 128)
TILEWRIGHT_ENTRIES(f16, Fp16, 256)
#endif
