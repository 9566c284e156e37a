// targets: sm_90a
//
// K8's first kernel: Q and K rotated by random signs and a Hadamard transform, so that outliers
// spread over all elements of a head before they meet the four bits of e4m3; scales; V turned so
// that K7 can read it as a WGMMA operand.
//
//   persistent CTA, part = 128 tokens of one head of q, k or v; thread = 32 numbers
//
//   part n + 1   cp.async to the other buffer ..........................................
//   part n       own bytes | rows: RoPE, signs, butterflies | amax -# scale, codes -> 4 x 8 B
//                          | columns: 4 keys x 8 dimensions | amax -# codes -> shared -# 2 x 16 B
//
//   -#  a barrier of the CTA. Threads read what they have copied themselves: loads need none.
//
// A scale of a tensor or a head needs a pass over everything before (attention_k8_amax).
//
// Limit: memory, 3 bytes an element in one pass, 5 in two. Of instructions, at d = 128: 1 to
// unpack, 0.5 for signs (folded into the first butterfly), 7 for butterflies, 2 shuffles, 1 amax,
// 1 scale, 0.75 to convert: 13 an element, where 4 TB/s leave time for 22.
// Measured: docs/04-kernels.md, "K8".
// Sources: FlashAttention-3, section 3.3.
#include "kernels/attention/k8_prepare.h"
#include "ptx/address.h"
#include "ptx/convert_fp8.h"
#include "ptx/cp_async.h"
#include "ptx/grid_dependency.h"
#include "ptx/math.h"
#include "ptx/special_registers.h"
#include "tile/element.h"
#include "tile/hadamard.h"

namespace tilewright::kernels {
namespace {

constexpr std::uint32_t kInfinityBits = 0x7f800000u, kNanBits = 0x7fffffffu;
constexpr int kChunk = 8, kChunks = 4, kHeld = kChunk * kChunks;  // numbers of a thread
constexpr int kKeyGroup = 16;  // keys whose columns are permuted among each other
constexpr int kParts = 4;      // the last, this, the next and the one after

// What a CTA works on at a time.
struct Part {
  std::int32_t operand;  // -1: nothing is left
  std::int32_t batch, head, first_row;
  std::int32_t begin, len;      // of the sequence
  std::int32_t first_position;  // of its first row

  __device__ void find(const K8PrepareParams& params, std::uint32_t idx) {
    operand = -1;
    if (idx >= params.num_parts) return;
    const auto first = [&](int i) { return params.operands[i].first_part; };
    operand = idx >= first(2) ? 2 : idx >= first(1) ? 1 : 0;
    const K8Operand& of = params.operands[operand];
    idx -= first(operand);
    const auto heads = static_cast<std::uint32_t>(of.heads);
    const auto tiles = static_cast<std::uint32_t>(of.tiles);
    head = static_cast<std::int32_t>(idx % heads);
    first_row = static_cast<std::int32_t>(idx / heads % tiles) * kK8TileRows;
    batch = static_cast<std::int32_t>(idx / heads / tiles);
    begin = of.cu != nullptr ? of.cu[batch] : 0;
    len = of.cu != nullptr ? of.cu[batch + 1] - begin : of.rows;
    const std::int32_t other =
        of.other_cu != nullptr ? of.other_cu[batch + 1] - of.other_cu[batch] : of.other_rows;
    first_position = other - len;
  }
};

template <int HeadDim>
struct Shared {
  static constexpr int kThreads = k8_threads(HeadDim);
  uint4 landed[2][kChunks][kThreads];  // every thread's own
  uint4 columns[HeadDim][kK8TileRows / 16];
  float signs[HeadDim];
  std::uint32_t maxima[2][kThreads / 32];
  Part parts[kParts];
};

// What the numbers of a block have in common.
struct Scale {
  float factor, descale;
  std::uint32_t kept;  // of the bits of codes

  __device__ Scale(const K8Operand& operand, std::uint32_t amax_bits) {
    if (operand.is_pow2 != 0) amax_bits = (amax_bits + 0x7fffffu) & ~0x7fffffu;
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

// One part, as all functions see it.
struct Work {
  const K8PrepareParams& params;
  const Part& part;

  __device__ const K8Operand& operand() const { return params.operands[part.operand]; }
  __device__ std::int64_t kv_head() const {
    return std::int64_t{part.batch} * params.kv_heads +
           part.head / (operand().heads / params.kv_heads);
  }
  __device__ std::int64_t offset(const AttentionStrides& s, std::int64_t row) const {
    return part.batch * s.batch + (part.begin + row) * s.row + part.head * s.head;
  }
  __device__ const std::uint16_t* source(std::int64_t row) const {
    return static_cast<const std::uint16_t*>(operand().in) + offset(operand().in_strides, row);
  }

  // The scale of a block of this part; its descale is written by one thread.
  __device__ Scale block_scale(std::uint32_t amax, int block_of_part, bool is_writer) const {
    const K8Operand& o = operand();
    const Scale scale(o, amax);
    const int block = part.first_row / o.block_rows + block_of_part;
    if (!is_writer || block >= o.blocks || o.descale == nullptr) return scale;
    o.descale[(std::int64_t{part.batch} * o.heads + part.head) * o.blocks + block] = scale.descale;
    if (o.descale_ref != nullptr) {
      atomicMax(reinterpret_cast<unsigned*>(o.descale_ref + kv_head()),
                __float_as_uint(scale.descale));
    }
    return scale;
  }
  // Index of the scale of this head or tensor.
  __device__ std::int64_t shared_idx() const {
    return params.scales == K8Scales::kTensor ? 0 : kv_head();
  }
  __device__ Scale shared_scale() const {
    const K8Operand& o = operand();
    const Scale scale(o, o.amax[shared_idx()]);
    const bool is_first = params.scales == K8Scales::kTensor
                              ? part.batch == 0 && part.head == 0
                              : part.head % (o.heads / params.kv_heads) == 0;
    if (threadIdx.x == 0 && part.first_row == 0 && is_first && o.descale != nullptr)
      o.descale[shared_idx()] = scale.descale;
    return scale;
  }
};

// Four chunks of a row, chunk j of lane i being the row's chunk j * Lanes + i.
template <int HeadDim>
struct RowValues {
  static constexpr int kLanes = HeadDim / kHeld;
  float x[kHeld];

  static __device__ int lane() { return ptx::mov_tid_x() % kLanes; }
  static __device__ int row() { return ptx::mov_tid_x() / kLanes; }
  static __device__ int dim(int chunk) { return (chunk * kLanes + lane()) * kChunk; }
  __device__ float (&chunk(int j))[kChunk] {
    return *reinterpret_cast<float(*)[kChunk]>(x + j * kChunk);
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
    const std::int32_t at = work.part.first_row + row();
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
    const std::int64_t first = operand.cu != nullptr ? std::int64_t{work.part.begin}
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

// A warp has 16 keys of 64 dimensions, a lane 8 of the four keys of columns 4 q .. 4 q + 3.
struct ColumnPlace {
  int quad, group, chunk;

  __device__ ColumnPlace() {
    const int lane = ptx::mov_tid_x() % 32, warp = ptx::mov_tid_x() / 32;
    quad = lane / 8;
    group = warp % 8;
    chunk = warp / 8 * 8 + lane % 8;
  }
  __device__ int key(int i) const { return group * kKeyGroup + 2 * quad + i % 2 + i / 2 * 8; }
};

// Where a sequence's columns begin, and how many are to be written: its keys, and zeros up to the
// next sequence.
struct ColumnSpan {
  std::int64_t begin = 0, count;

  __device__ explicit ColumnSpan(const Work& work) {
    const Part& part = work.part;
    std::int64_t end = work.operand().columns;
    if (work.operand().cu != nullptr) {
      begin = value_column(part.begin, part.batch);
      if (part.batch + 1 < work.params.batch)
        end = value_column(part.begin + part.len, part.batch + 1);
    }
    count = end - begin;
  }
};

template <class Element, int HeadDim>
struct Preparer {
  using Rows = RowValues<HeadDim>;
  static constexpr int kThreads = k8_threads(HeadDim);

  const K8PrepareParams& params;
  Shared<HeadDim>& shared;
  int step = 0;  // number of the part

  __device__ const Part& part(int ahead) const { return shared.parts[(step + ahead) % kParts]; }
  __device__ Work work(int ahead = 0) const { return {params, part(ahead)}; }

  __device__ void find_part(int ahead) {
    if (threadIdx.x == 0) {
      const auto number = static_cast<std::uint32_t>(step + ahead);
      shared.parts[number % kParts].find(params, blockIdx.x + number * gridDim.x);
    }
  }

  __device__ void begin() {
    find_part(0);
    find_part(1);
    for (int i = ptx::mov_tid_x(); i < HeadDim; i += kThreads)
      shared.signs[i] = (params.signs[i / 32] >> (i % 32) & 1) != 0 ? -1.0f : 1.0f;
    __syncthreads();
  }

  // Begins to copy the part `ahead` of this one. Rows that are not there become zeros.
  template <bool HasColumns>
  __device__ void copy(int ahead) {
    const Work w = work(ahead);
    if (w.part.operand < 0) return ptx::cp_async_commit_group();
    const int buffer = (step + ahead) % 2;
    const auto copy_chunk = [&](int j, const std::uint16_t* row, int chunk, bool is_there) {
      ptx::cp_async_cg_shared_global_16(
          ptx::shared_address(&shared.landed[buffer][j][ptx::mov_tid_x()]),
          is_there ? row + chunk * kChunk : nullptr, is_there ? 16 : 0);
    };
    if (HasColumns && w.operand().is_transposed != 0) {
      const ColumnPlace place;
#pragma unroll
      for (int j = 0; j < kChunks; ++j) {
        const int row = w.part.first_row + place.key(j);
        copy_chunk(j, w.source(row), place.chunk, row < w.part.len);
      }
    } else {
      const int row = w.part.first_row + Rows::row();
      const std::uint16_t* const from = w.source(row);
#pragma unroll
      for (int j = 0; j < kChunks; ++j)
        copy_chunk(j, from, Rows::dim(j) / kChunk, row < w.part.len);
    }
    ptx::cp_async_commit_group();
  }
  __device__ void unpack(float (&x)[kChunk], int j) const {
    tile::unpack_chunk<Element>(x, shared.landed[step % 2][j][ptx::mov_tid_x()]);
  }

  __device__ void load_rows(Rows& values) {
#pragma unroll
    for (int j = 0; j < kChunks; ++j) unpack(values.chunk(j), j);
    const Work w = work();
    if (w.operand().is_turned != 0) values.apply_rope(w);
    if (w.operand().is_rotated != 0) values.rotate(shared.signs);
  }

  // The largest of `warps` neighbouring warps; a barrier. Two arrays take turns, so that none is
  // overwritten that is still read.
  __device__ std::uint32_t max_of_warps(std::uint32_t x, int warps) {
    const int warp = ptx::mov_tid_x() / 32, lane = ptx::mov_tid_x() % 32;
    std::uint32_t* const maxima = shared.maxima[step % 2];
    x = __reduce_max_sync(~0u, x);
    if (lane == 0) maxima[warp] = x;
    __syncthreads();
    return __reduce_max_sync(~0u, lane < warps ? maxima[warp / warps * warps + lane] : 0);
  }
  // A barrier as well, behind which part 2 ahead is known.
  __device__ Scale find_scale(std::uint32_t amax) {
    find_part(2);
    const Work w = work();
    if (params.scales != K8Scales::kBlock) {
      __syncthreads();
      return w.shared_scale();
    }
    const int threads = kThreads / kK8TileRows * w.operand().block_rows;
    const int thread = ptx::mov_tid_x();
    return w.block_scale(max_of_warps(amax, threads / 32), thread / threads, thread % threads == 0);
  }

  __device__ void prepare_rows() {
    Rows values;
    load_rows(values);
    const Scale scale = find_scale(values.amax_bits());
    const Work w = work();
    const std::int32_t row = w.part.first_row + Rows::row();
    if (row >= w.part.len) return;
    std::uint8_t* const to = w.operand().out + w.offset(w.operand().out_strides, row);
#pragma unroll
    for (int j = 0; j < kChunks; ++j) {
      const float(&c)[kChunk] = values.chunk(j);
      *reinterpret_cast<uint2*>(to + Rows::dim(j)) =
          make_uint2(scale.codes(c[0], c[1], c[2], c[3]), scale.codes(c[4], c[5], c[6], c[7]));
    }
  }

  // The columns of a dimension are 8 groups of 16 bytes, exchanged so that neither side meets a
  // bank twice.
  __device__ void prepare_columns() {
    float x[kChunks][kChunk];
    float most = 0;
#pragma unroll
    for (int i = 0; i < kChunks; ++i) {
      unpack(x[i], i);
#pragma unroll
      for (const float value : x[i]) most = ptx::max_nan_f32(most, fabsf(value));
    }
    const Scale scale = find_scale(__float_as_uint(most));
    const ColumnPlace place;
#pragma unroll
    for (int e = 0; e < kChunk; ++e) {
      uint4& group = shared.columns[place.chunk * kChunk + e][place.group ^ (place.chunk % 8)];
      reinterpret_cast<std::uint32_t*>(&group)[place.quad] =
          scale.codes(x[0][e], x[1][e], x[2][e], x[3][e]);
    }
    __syncthreads();
    store_columns();
  }
  __device__ void store_columns() const {
    const Work w = work();
    const ColumnSpan span(w);
    const AttentionStrides& s = w.operand().out_strides;
    std::uint8_t* const to =
        w.operand().out + (w.part.batch * s.batch + w.part.head * s.head + span.begin);
#pragma unroll
    for (int i = 0; i < HeadDim * 8 / kThreads; ++i) {
      const int idx = ptx::mov_tid_x() + i * kThreads, group = idx % 8, dim = idx / 8;
      const std::int64_t column = w.part.first_row + group * kKeyGroup;
      if (column < span.count)
        *reinterpret_cast<uint4*>(to + dim * s.row + column) =
            shared.columns[dim][group ^ (dim / kChunk % 8)];
    }
  }

  template <bool HasColumns, class Process>
  __device__ void for_each_part(Process process) {
    begin();
    copy<HasColumns>(0);
    for (; part(0).operand >= 0; ++step) {
      copy<HasColumns>(1);
      ptx::cp_async_wait_group<1>();
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
      Rows values;
      load_rows(values);
      find_part(2);
      const std::uint32_t amax = max_of_warps(values.amax_bits(), kThreads / 32);
      if (threadIdx.x == 0) atomicMax(work().operand().amax + work().shared_idx(), amax);
    });
  }
};

extern __shared__ uint4 dynamic_shared[];

template <class Element, int HeadDim>
__device__ Preparer<Element, HeadDim> begin_kernel(const K8PrepareParams& params) {
  static_assert(sizeof(Shared<HeadDim>) == k8_shared_bytes(HeadDim));
  ptx::griddepcontrol_wait();
  return {params, *reinterpret_cast<Shared<HeadDim>*>(dynamic_shared)};
}

}  // namespace
}  // namespace tilewright::kernels

// At most 64 registers: two CTAs of 512 threads, or four of 256, on an SM.
#define TILEWRIGHT_ENTRIES(TYPE, ELEMENT, DIM)                                           \
  extern "C" __global__ void __launch_bounds__(tilewright::kernels::k8_threads(DIM),     \
                                               tilewright::kernels::k8_ctas_per_sm(DIM)) \
      attention_k8_amax_##TYPE##_d##DIM(                                                 \
          const __grid_constant__ tilewright::kernels::K8PrepareParams params) {         \
    using namespace tilewright;                                                          \
    kernels::begin_kernel<tile::ELEMENT, DIM>(params).find_amax();                       \
  }                                                                                      \
  extern "C" __global__ void __launch_bounds__(tilewright::kernels::k8_threads(DIM),     \
                                               tilewright::kernels::k8_ctas_per_sm(DIM)) \
      attention_k8_prepare_##TYPE##_d##DIM(                                              \
          const __grid_constant__ tilewright::kernels::K8PrepareParams params) {         \
    using namespace tilewright;                                                          \
    kernels::begin_kernel<tile::ELEMENT, DIM>(params).prepare();                         \
  }
TILEWRIGHT_ENTRIES(bf16, Bf16, 128)
#ifndef TILEWRIGHT_ONE_ENTRY
TILEWRIGHT_ENTRIES(bf16, Bf16, 64)
TILEWRIGHT_ENTRIES(bf16, Bf16, 256)
TILEWRIGHT_ENTRIES(f16, Fp16, 64)
TILEWRIGHT_ENTRIES(f16, Fp16, 128)
TILEWRIGHT_ENTRIES(f16, Fp16, 256)
#endif
