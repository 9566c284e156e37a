// targets: sm_90a
//
// K2, one fused kernel: the scores of 64 queries by 64 keys at a time, and a softmax that corrects
// itself.
//
// New against K1: the scores never leave the SM. A CTA keeps 64 queries and walks over
// all keys in tiles of 64. It does not know the largest score of a row before the last tile, so it
// keeps the largest so far, m: when a tile raises it to m', all that was summed up relative to m is
// multiplied by exp(m - m'). That makes three launches one, and instead of 28 kv_len bytes of
// scores a query, 2 kv_len * head_dim / 64 numbers of K and V are read, mostly from the L2 cache:
// 8 kv_len bytes at head_dim 128. Four neighbouring threads share a query: each has 16 of a tile's
// 64 scores and a quarter of the result.
//
//   256 threads   | load K | q k^T, softmax -> p | load V | o += p v | load K | ...
//   barriers      ^        ^                     ^        ^          ^
//   shared memory   Q, one tile of K and then of V, p in f32
//
// Limit: 4 * 64 * 64 * head_dim flops a tile. The scalar units would do 67 TFLOP/s, but every
// 16-bit operand is converted on its way from shared memory, for one fused multiply-add each: the
// integer pipe is half as wide, and bounds this at about 27 TFLOP/s. Loads take turns with
// arithmetic here; two CTAs an SM (110 registers a thread) hide most of it. Causal: all
// tiles are visited.
// Measured: see the table in README.md of this folder.
// Sources: the worklog's K2; FlashAttention-2, algorithm 1.
#include "kernels/attention/k2_online_softmax.h"
#include "kernels/attention/scalar_attention.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

constexpr int kThreads = k2_tile(64).threads, kRows = tile::kTileRows;
constexpr int kThreadsPerRow = kThreads / kRows;

template <int HeadDim>
struct Shared {
  std::uint16_t q[kRows * HeadDim], kv[kRows * HeadDim];
  float p[tile::kScoreElems];
};

// Rows [first, first + 64) of one head to shared memory; zeros where there are none.
template <int HeadDim>
__device__ void load_tile(std::uint16_t* to, const std::uint16_t* head, std::int64_t row_stride,
                          std::int32_t first, std::int32_t num_rows) {
  constexpr std::uint32_t kRowChunks = HeadDim / tile::kChunkElems;
#pragma unroll
  for (std::uint32_t i = 0; i < kRows * kRowChunks / kThreads; ++i) {
    const std::uint32_t chunk = i * kThreads + threadIdx.x;
    const std::uint32_t row = chunk / kRowChunks, column = chunk % kRowChunks;
    const std::int32_t at = first + static_cast<std::int32_t>(row);
    const uint4 elems =
        at < num_rows ? tile::load_chunk(head + at * row_stride, column) : make_uint4(0, 0, 0, 0);
    tile::store_chunk(to + row * HeadDim, column, elems);
  }
}

template <class Element, int HeadDim>
__device__ void attend(const AttentionParams& params) {
  extern __shared__ __align__(1024) std::uint8_t dynamic[];
  auto& shared = *reinterpret_cast<Shared<HeadDim>*>(dynamic);
  static_assert(sizeof(shared) == k2_tile(HeadDim).shared_bytes);
  constexpr Layout kTile = tile::kPlainTile<HeadDim>;

  const auto first_query = static_cast<std::int32_t>(blockIdx.x * kRows);
  const auto head = static_cast<std::int32_t>(blockIdx.y);
  const auto batch = static_cast<std::int32_t>(blockIdx.z);
  const std::int32_t kv_head = head / (params.heads / params.kv_heads);
  tile::ScalarRow<Element, HeadDim, kThreadsPerRow> row;
  const std::int32_t query = first_query + static_cast<std::int32_t>(row.row);
  const tile::VisibleKeys visible(params, query + params.kv_len - params.q_len, params.kv_len);

  const std::uint16_t* const q = tile::find_row(params.q, params.q_strides, batch, 0, head);
  const std::uint16_t* const k = tile::find_row(params.k, params.k_strides, batch, 0, kv_head);
  const std::uint16_t* const v = tile::find_row(params.v, params.v_strides, batch, 0, kv_head);
  load_tile<HeadDim>(shared.q, q, params.q_strides.row, first_query, params.q_len);
  for (std::int32_t start = 0; start < params.kv_len; start += kRows) {
    load_tile<HeadDim>(shared.kv, k, params.k_strides.row, start, params.kv_len);
    __syncthreads();
    float s[row.kScores];
    row.template multiply_scores<kTile>(s, shared.q, shared.kv);
    row.mask(s, visible, params.scale_log2, start);
    row.update(s, shared.p);
    __syncthreads();
    load_tile<HeadDim>(shared.kv, v, params.v_strides.row, start, params.kv_len);
    __syncthreads();
    row.template add_values<kTile>(shared.p, shared.kv);
    __syncthreads();
  }
  row.store(params, batch, head, query);
}

}  // namespace

#define TILEWRIGHT_K2(TYPE, ELEMENT, HEAD_DIM)                          \
  TILEWRIGHT_KERNEL(attention_k2_##TYPE##_d##HEAD_DIM, AttentionParams, \
                    __launch_bounds__(kThreads), attend<tile::ELEMENT, HEAD_DIM>)

TILEWRIGHT_K2(bf16, Bf16, 64)
TILEWRIGHT_K2(bf16, Bf16, 128)
TILEWRIGHT_K2(f16, Fp16, 64)
TILEWRIGHT_K2(f16, Fp16, 128)

}  // namespace tilewright::kernels
