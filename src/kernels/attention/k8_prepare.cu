// targets: sm_90a
//
// K8's first kernel: Q and K rotated by random signs and a Hadamard transform, so that outliers
// spread over all elements of a head before they meet the four bits of e4m3; scales; V turned so
// that K7 can read it as a WGMMA operand.
//
//   CTA = 128 tokens of one head of q, k or v; thread = 32 numbers, in registers from load to store
//     rows       4 x 16 B of a row | RoPE | signs, butterflies: 5 in registers, log2(d/32) by lanes
//                | amax: warp, CTA | 448 / amax | 32 codes | 4 x 8 B
//     transposed 4 keys x 16 B | amax | 8 words of 4 neighbouring slots -> shared -> 2 x 16 B
//
// A scale of a tensor or a head needs a pass over everything before (attention_k8_amax).
//
// Limit: memory, 3 bytes an element in one pass, 5 in two. Of instructions, at d = 128: 1 to unpack,
// 0.5 for signs (folded into the first butterfly), 7 for butterflies, 2 shuffles, 1 amax, 1 scale,
// 0.75 to convert: 13 an element, where 4.3 TB/s leave time for 20.
// Measured: docs/04-kernels.md, "K8".
// Sources: FlashAttention-3, section 3.3.
#include "kernels/attention/k8_prepare.h"
#include "ptx/convert_fp8.h"
#include "ptx/grid_dependency.h"
#include "ptx/math.h"
#include "tile/cta_max.h"
#include "tile/element.h"
#include "tile/hadamard.h"

namespace tilewright::kernels {
namespace {

constexpr std::uint32_t kInfinityBits = 0x7f800000u, kNanBits = 0x7fffffffu;
constexpr int kChunk = 8, kChunks = 4, kHeld = kChunk * kChunks;  // numbers of a thread
constexpr int kKeyGroup = 16;  // keys whose columns are permuted among each other

// What a CTA works on. In shared memory, where it takes no registers from 32 numbers a thread.
struct Part {
  std::int32_t operand, batch, head, tile;
  std::int32_t begin, len;      // of the sequence
  std::int32_t first_position;  // of its first row

  __device__ void find(const K8PrepareParams& params, std::uint32_t cta) {
    const auto first = [&](int i) {
      return static_cast<std::uint32_t>(params.operands[i].first_cta);
    };
    operand = cta >= first(2) ? 2 : cta >= first(1) ? 1 : 0;
    const K8Operand& of = params.operands[operand];
    const std::uint32_t idx = cta - first(operand);
    const auto heads = static_cast<std::uint32_t>(of.heads);
    const auto tiles = static_cast<std::uint32_t>(of.tiles);
    head = static_cast<std::int32_t>(idx % heads);
    tile = static_cast<std::int32_t>(idx / heads % tiles);
    batch = static_cast<std::int32_t>(idx / heads / tiles);
    begin = of.cu != nullptr ? of.cu[batch] : 0;
    len = of.cu != nullptr ? of.cu[batch + 1] - begin : of.rows;
    const std::int32_t other =
        of.other_cu != nullptr ? of.other_cu[batch + 1] - of.other_cu[batch] : of.other_rows;
    first_position = other - len;
  }
};

// A CTA's shared memory but for transposed values.
template <int HeadDim>
struct Shared {
  alignas(16) float signs[HeadDim];
  alignas(16) Part part;
};

// The view of a part that all functions share.
struct Work {
  const K8PrepareParams& params;
  const Part& part;
  const float* signs;

  __device__ const K8Operand& operand() const { return params.operands[part.operand]; }
  __device__ std::int32_t first_row() const { return part.tile * kK8TileRows; }
  __device__ std::int64_t kv_head() const {
    return std::int64_t{part.batch} * params.kv_heads +
           part.head / (operand().heads / params.kv_heads);
  }
  template <class T>
  __device__ T* at(T* tensor, const AttentionStrides& s, std::int64_t row) const {
    return tensor + (part.batch * s.batch + (part.begin + row) * s.row + part.head * s.head);
  }
};

template <int HeadDim>
__device__ Work begin_work(const K8PrepareParams& params, Shared<HeadDim>& shared) {
  ptx::griddepcontrol_wait();
  if (threadIdx.x == 0) shared.part.find(params, blockIdx.x);
  for (int i = static_cast<int>(threadIdx.x); i < HeadDim; i += static_cast<int>(blockDim.x))
    shared.signs[i] = (params.signs[i / 32] >> (i % 32) & 1) != 0 ? -1.0f : 1.0f;
  __syncthreads();
  return {params, shared.part, shared.signs};
}

// Four chunks of a row, chunk j of lane i being the row's chunk j * Lanes + i.
template <class Element, int HeadDim>
struct RowValues {
  static constexpr int kLanes = HeadDim / kHeld;
  float x[kHeld];

  static __device__ int lane() { return static_cast<int>(threadIdx.x) % kLanes; }
  static __device__ int row() { return static_cast<int>(threadIdx.x) / kLanes; }
  static __device__ int dim(int chunk) { return (chunk * kLanes + lane()) * kChunk; }
  __device__ float (&chunk(int j))[kChunk] {
    return *reinterpret_cast<float(*)[kChunk]>(x + j * kChunk);
  }

  __device__ void load(const Work& work) {
    const std::int32_t at = work.first_row() + row();
    uint4 words[kChunks] = {};
    if (at < work.part.len) {
      const auto* const from =
          work.at(static_cast<const std::uint16_t*>(work.operand().in), work.operand().in_strides, at);
#pragma unroll
      for (int j = 0; j < kChunks; ++j)
        words[j] = __ldg(reinterpret_cast<const uint4*>(from + dim(j)));
    }
#pragma unroll
    for (int j = 0; j < kChunks; ++j) tile::unpack_chunk<Element>(chunk(j), words[j]);
  }

  static __device__ void turn(float& a, float& b, float c, float s) {
    const float real = a, imaginary = b;
    a = __fmaf_rn(-imaginary, s, __fmul_rn(real, c));
    b = __fmaf_rn(imaginary, c, __fmul_rn(real, s));
  }
  // Four neighbouring angles from `angle` on turn four pairs, two at a time: the barrier keeps the
  // compiler from loading the next ones into registers that are not there.
  template <class Pair>
  static __device__ void turn_four(const float* table_row, int half, int angle, Pair pair) {
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
      const float2 c = __ldg(reinterpret_cast<const float2*>(table_row + angle + i));
      const float2 s = __ldg(reinterpret_cast<const float2*>(table_row + half + angle + i));
      pair(i, c.x, s.x);
      pair(i + 1, c.y, s.y);
      __syncwarp();
    }
  }

  // All lanes of a warp together: rows outside the tensor are zeros, which any angle leaves so.
  __device__ void apply_rope(const Work& work) {
    const std::int32_t at = work.first_row() + row();
    const std::int32_t position = at < work.part.len ? find_position(work, at) : 0;
    const bool is_known = position >= 0 && position < work.params.num_positions;
    const float* const angles =
        work.params.rope + (is_known ? std::int64_t{position} * work.params.rotary_dim : 0);
    const int half = work.params.rotary_dim / 2;
    if (work.params.rope_pairs == K8Rope::kInterleaved) {
      turn_neighbours(angles, half);
    } else if (work.params.rotary_dim == HeadDim) {  // the partner is in this lane
      turn_chunks(angles, half, 0, 2);
      turn_chunks(angles, half, 1, 3);
    } else {
      turn_chunks(angles, half, 0, 1);
    }
    if (is_known) return;
#pragma unroll
    for (float& value : x) value = __uint_as_float(kNanBits);
  }
  static __device__ std::int32_t find_position(const Work& work, std::int32_t at) {
    const K8Operand& operand = work.operand();
    if (operand.positions == nullptr) return work.part.first_position + at;
    const std::int64_t first = operand.cu != nullptr
                                   ? std::int64_t{work.part.begin}
                                   : std::int64_t{work.part.batch} * operand.rows;
    return operand.positions[first + at];
  }
  __device__ void turn_neighbours(const float* angles, int half) {
#pragma unroll
    for (int j = 0; j < kChunks; ++j) {
      if (j * kLanes * kChunk >= 2 * half) continue;
      float(&c)[kChunk] = chunk(j);
      turn_four(angles, half, dim(j) / 2, [&](int i, float cosine, float sine) {
        turn(c[2 * i], c[2 * i + 1], cosine, sine);
      });
    }
  }
  __device__ void turn_chunks(const float* angles, int half, int a, int b) {
#pragma unroll
    for (int four = 0; four < kChunk; four += 4) {
      turn_four(angles, half, dim(a) + four, [&](int i, float cosine, float sine) {
        turn(chunk(a)[four + i], chunk(b)[four + i], cosine, sine);
      });
    }
  }

  // Signs come with the first butterfly: a +- b of a = s0 x0, b = s1 x1.
  __device__ void apply_signs(const float* signs) {
#pragma unroll
    for (int j = 0; j < kChunks; ++j) {
      float(&c)[kChunk] = chunk(j);
#pragma unroll
      for (int i = 0; i < kChunk; i += 4) {
        const float4 s = *reinterpret_cast<const float4*>(signs + dim(j) + i);
        signed_butterfly(c[i], c[i + 1], s.x, s.y);
        signed_butterfly(c[i + 2], c[i + 3], s.z, s.w);
      }
    }
  }
  static __device__ void signed_butterfly(float& a, float& b, float sign_a, float sign_b) {
    const float first = __fmul_rn(a, sign_a), second = b;
    a = __fmaf_rn(second, sign_b, first);
    b = __fmaf_rn(second, -sign_b, first);
  }
  __device__ void rotate(const float* signs) {
    apply_signs(signs);
    tile::butterflies(x, 2);
    tile::butterflies(x, 4);
#pragma unroll
    for (int lanes = 1; lanes < kLanes; lanes *= 2) tile::lane_butterflies(x, lanes);
    tile::butterflies(x, 8);
    tile::butterflies(x, 16);
  }

  __device__ std::uint32_t amax_bits() const {
    float most = 0;
#pragma unroll
    for (const float value : x) most = ptx::max_nan_f32(most, fabsf(value));
    return __float_as_uint(most);
  }
};

// What the numbers of a block have in common.
struct Scale {
  float factor, descale;
  std::uint32_t kept;  // of the bits of codes

  __device__ Scale(const K8Operand& operand, std::uint32_t amax_bits) {
    const bool is_finite = amax_bits < kInfinityBits;
    const float amax = fmaxf(is_finite ? __uint_as_float(amax_bits) : 1.0f, kK8MinAmax);
    factor = __fdiv_rn(kK8MaxCode, amax);
    descale = is_finite ? __fmul_rn(amax, operand.descale_factor) : __uint_as_float(kNanBits);
    kept = is_finite ? ~0u : 0u;
  }
  __device__ std::uint32_t codes(float a, float b, float c, float d) const {
    return kept & ptx::cvt_rn_satfinite_e4m3x4_f32(__fmul_rn(a, factor), __fmul_rn(b, factor),
                                                   __fmul_rn(c, factor), __fmul_rn(d, factor));
  }
};

__device__ std::int64_t shared_scale_index(const Work& work) {
  return work.params.scales == K8Scales::kTensor ? 0 : work.kv_head();
}

// The scale of this thread's block, and where there is one, its descale written by its first thread.
template <int Threads>
__device__ Scale find_block_scale(const Work& work,
                                  std::uint32_t amax) {
  const K8Operand& operand = work.operand();
  const int threads = Threads / kK8TileRows * operand.block_rows;
  const int block_of_tile = static_cast<int>(threadIdx.x) / threads;
  const Scale scale(operand, tile::max_of_warps<Threads>(amax, static_cast<unsigned>(threads) / 32));
  const int block = work.first_row() / operand.block_rows + block_of_tile;
  if (static_cast<int>(threadIdx.x) % threads != 0 || block >= operand.blocks) return scale;
  if (operand.descale == nullptr) return scale;
  const std::int64_t row = std::int64_t{work.part.batch} * operand.heads + work.part.head;
  operand.descale[row * operand.blocks + block] = scale.descale;
  if (operand.descale_ref != nullptr) {
    atomicMax(reinterpret_cast<unsigned*>(operand.descale_ref + work.kv_head()),
              __float_as_uint(scale.descale));
  }
  return scale;
}

// The scale of a head or tensor, whose amax is known; its descale is written by one thread.
__device__ Scale find_shared_scale(const Work& work) {
  const std::int64_t idx = shared_scale_index(work);
  const Scale scale(work.operand(), work.operand().amax[idx]);
  const bool is_first_head = work.part.head % (work.operand().heads / work.params.kv_heads) == 0;
  const bool is_first =
      work.params.scales == K8Scales::kTensor ? work.part.batch == 0 && work.part.head == 0 : is_first_head;
  const bool is_writer = threadIdx.x == 0 && work.part.tile == 0 && is_first;
  if (is_writer && work.operand().descale != nullptr) work.operand().descale[idx] = scale.descale;
  return scale;
}

template <int Threads>
__device__ Scale find_scale(const Work& work, std::uint32_t amax) {
  return work.params.scales == K8Scales::kBlock ? find_block_scale<Threads>(work, amax)
                                           : find_shared_scale(work);
}

template <class Element, int HeadDim>
__device__ void load_rows(RowValues<Element, HeadDim>& values, const Work& work) {
  values.load(work);
  if (work.operand().is_turned != 0) values.apply_rope(work);
  if (work.operand().is_rotated != 0) values.rotate(work.signs);
}

template <class Element, int HeadDim>
__device__ void prepare_rows(const Work& work) {
  using Values = RowValues<Element, HeadDim>;
  Values values;
  load_rows(values, work);
  ptx::griddepcontrol_launch_dependents();
  const Scale scale = find_scale<k8_threads(HeadDim)>(work, values.amax_bits());
  const std::int32_t row = work.first_row() + Values::row();
  if (row >= work.part.len) return;
  std::uint8_t* const to = work.at(work.operand().out, work.operand().out_strides, row);
#pragma unroll
  for (int j = 0; j < kChunks; ++j) {
    const float(&c)[kChunk] = values.chunk(j);
    *reinterpret_cast<uint2*>(to + Values::dim(j)) =
        make_uint2(scale.codes(c[0], c[1], c[2], c[3]), scale.codes(c[4], c[5], c[6], c[7]));
  }
}

// Where a sequence's columns begin, and how many are to be written: its keys, and zeros up to the
// next sequence.
struct Columns {
  std::int64_t begin, count;

  __device__ Columns(const Work& work) : begin(0) {
    const K8Operand& v = work.operand();
    std::int64_t end = v.columns;
    if (v.cu != nullptr) {
      begin = value_column(work.part.begin, work.part.batch);
      if (work.part.batch + 1 < work.params.batch)
        end = value_column(work.part.begin + work.part.len, work.part.batch + 1);
    }
    count = end - begin;
  }
};

// A warp has 16 keys of 64 dimensions: lane = 8 dimensions of the four keys of slots 4 q .. 4 q + 3.
// In shared memory the slots of a dimension are 8 groups of 16 bytes, exchanged so that neither
// side meets a bank twice.
template <class Element, int HeadDim>
__device__ void prepare_columns(const Work& work,
                                std::uint32_t* slots) {
  constexpr int kThreads = k8_threads(HeadDim), kKeys = 4, kWords = kK8TileRows / 4;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int quad = lane / 8, group = warp % 8, chunk = warp / 8 * 8 + lane % 8;
  const Columns columns(work);
  if (work.first_row() >= columns.count && work.params.scales != K8Scales::kBlock) return;
  float x[kKeys][kChunk];
  float most = 0;
#pragma unroll
  for (int i = 0; i < kKeys; ++i) {
    const int key = work.first_row() + group * kKeyGroup + 2 * quad + i % 2 + i / 2 * 8;
    uint4 words = {};
    if (key < work.part.len) {
      const auto* const from = work.at(static_cast<const std::uint16_t*>(work.operand().in),
                                       work.operand().in_strides, key);
      words = __ldg(reinterpret_cast<const uint4*>(from) + chunk);
    }
    tile::unpack_chunk<Element>(x[i], words);
#pragma unroll
    for (const float value : x[i]) most = ptx::max_nan_f32(most, fabsf(value));
  }
  ptx::griddepcontrol_launch_dependents();
  const Scale scale = find_scale<kThreads>(work, __float_as_uint(most));
#pragma unroll
  for (int e = 0; e < kChunk; ++e) {
    slots[(chunk * kChunk + e) * kWords + ((group ^ (chunk % 8)) * 4 + quad)] =
        scale.codes(x[0][e], x[1][e], x[2][e], x[3][e]);
  }
  __syncthreads();
  const K8Operand& v = work.operand();
  std::uint8_t* const to = v.out + (work.part.batch * v.out_strides.batch +
                                    work.part.head * v.out_strides.head + columns.begin);
#pragma unroll
  for (int i = 0; i < HeadDim * 8 / kThreads; ++i) {
    const int idx = static_cast<int>(threadIdx.x) + i * kThreads, unit = idx % 8, dim = idx / 8;
    const std::int64_t column = work.first_row() + unit * kKeyGroup;
    const auto* const from = reinterpret_cast<const uint4*>(slots + dim * kWords);
    if (column < columns.count)
      *reinterpret_cast<uint4*>(to + dim * v.out_strides.row + column) =
          from[unit ^ (dim / kChunk % 8)];
  }
}

template <class Element, int HeadDim>
__device__ void find_amax(const Work& work) {
  if (work.first_row() >= work.part.len) return;
  RowValues<Element, HeadDim> values;
  load_rows(values, work);
  ptx::griddepcontrol_launch_dependents();
  const std::uint32_t amax = tile::max_of_cta<k8_threads(HeadDim)>(values.amax_bits());
  if (threadIdx.x == 0) atomicMax(work.operand().amax + shared_scale_index(work), amax);
}

}  // namespace
}  // namespace tilewright::kernels

// At most 64 registers: two CTAs of 512 threads, or four of 256, on an SM.
#define TILEWRIGHT_ENTRIES(TYPE, ELEMENT, DIM)                                               \
  extern "C" __global__ void __launch_bounds__(tilewright::kernels::k8_threads(DIM),         \
                                               1024 / tilewright::kernels::k8_threads(DIM))  \
      attention_k8_amax_##TYPE##_d##DIM(                                                     \
          const __grid_constant__ tilewright::kernels::K8PrepareParams params) {             \
    using namespace tilewright;                                                              \
    __shared__ kernels::Shared<DIM> shared;                                                  \
    kernels::find_amax<tile::ELEMENT, DIM>(kernels::begin_work(params, shared));             \
  }                                                                                          \
  extern "C" __global__ void __launch_bounds__(tilewright::kernels::k8_threads(DIM),         \
                                               1024 / tilewright::kernels::k8_threads(DIM))  \
      attention_k8_prepare_##TYPE##_d##DIM(                                                  \
          const __grid_constant__ tilewright::kernels::K8PrepareParams params) {             \
    using namespace tilewright;                                                              \
    __shared__ kernels::Shared<DIM> shared;                                                  \
    __shared__ alignas(16) std::uint32_t slots[DIM * kernels::kK8TileRows / 4];              \
    const kernels::Work work = kernels::begin_work(params, shared);                          \
    if (work.operand().is_transposed != 0) {                                                 \
      kernels::prepare_columns<tile::ELEMENT, DIM>(work, slots);                             \
    } else {                                                                                 \
      kernels::prepare_rows<tile::ELEMENT, DIM>(work);                                       \
    }                                                                                        \
  }
TILEWRIGHT_ENTRIES(bf16, Bf16, 128)
#ifndef TILEWRIGHT_ONE_ENTRY
TILEWRIGHT_ENTRIES(bf16, Bf16, 64)
TILEWRIGHT_ENTRIES(bf16, Bf16, 256)
TILEWRIGHT_ENTRIES(f16, Fp16, 64)
TILEWRIGHT_ENTRIES(f16, Fp16, 128)
TILEWRIGHT_ENTRIES(f16, Fp16, 256)
#endif
