// Roles of stage H (stage_h_e4m3.cu explains them) whatever keys lie in: keys and values come
// through one ring, of every step an item of each.
#pragma once

#include "arch/tcgen05_descriptors.h"
#include "kernels/attention_sm100/descale.h"
#include "kernels/attention_sm100/polynomial.h"
#include "kernels/attention_sm100/stage_h_e4m3.h"
#include "kernels/attention_sm100/tiles_in_flight.h"
#include "ptx/convert_fp8.h"
#include "ptx/store_shared.h"
#include "ptx/tcgen05_mma.h"

#include <cstdint>
#include <type_traits>

namespace tilewright::tile {

inline constexpr float kWeightAtMaximum = 7.0f, kLargestWeight = 8.8f;  // k7/softmax.h

// Weights of a row, relative to a reference in log2 that is kWeightAtMaximum below the maximum that
// moved it.
struct CodeSoftmax {
  float base = -INFINITY, sum = 0.0f;

  // All rows of a warp or none: true if results so far are to be multiplied with `factor`.
  __device__ bool raise(const float (&s)[4][32], float scale, float& factor) {
    const float largest = largest_of(s, -INFINITY) * scale;
    const bool grows = largest > base + kLargestWeight;
    if (!__any_sync(0xffffffffu, grows)) return false;
    if (grows) {
      const float raised = largest - kWeightAtMaximum;
      factor = ptx::ex2_approx_ftz_f32(base - raised);
      sum *= factor, base = raised;
    }
    return true;
  }
  // s becomes 2^(scale * s - base + value_log2); the sum is that without value_log2.
  template <class Polynomial, int Chunks>
  __device__ void exponentiate(float (&s)[Chunks][32], float scale, float value_log2) {
    const float from = value_log2 - (base == -INFINITY ? 0.0f : base);
    const float added = exponentiate_row<Polynomial>(s, scale, from);
    sum = fmaf(added, ptx::ex2_approx_ftz_f32(-value_log2), sum);
  }
};

/// A kernel of e4m3, but for who loads: Kernel derives from this. Work is how rows and keys are
/// found: GridWork, or that of pages.
template <class Kernel, int HeadDim, class Work>
struct E4m3Tiles : TilesInFlight<Kernel, kernels::stage_h_tiles(HeadDim), HeadDim, Work> {
  static constexpr int kStages = kernels::stage_h_stages(HeadDim);
  static constexpr int kTiles = kernels::stage_h_tiles(HeadDim);
  static constexpr int kSpan = kernels::stage_h_span(HeadDim), kBoxes = HeadDim / kSpan;
  static constexpr int kItemBytes = kKeys * HeadDim, kSpanBoxBytes = kKeys * kSpan;
  static constexpr int kOutBoxes = HeadDim / kBoxElems;
  static constexpr int kSoftmaxRegisters = 192, kCorrectionRegisters = 80, kOtherRegisters = 48;
  static constexpr int kEarlyKeys = 64;  // of P: their products begin under the last powers
  using Polynomial = std::conditional_t<HeadDim == 256, NoPolynomial, EveryPairByPolynomial<4>>;
  static constexpr std::uint32_t kStepBytes = 32;  // of the reduction index in one instruction
  static constexpr auto kSwizzle = arch::swizzle_of_span(kSpan);
  using Softmax = CodeSoftmax;
  using Base = TilesInFlight<Kernel, kTiles, HeadDim, Work>;
  using Params = typename Work::Params;
  using Base::results, Base::rows_of, Base::scores;
  using typename Base::KeyRange;
  using typename Base::Rows;
  using KeyItem = Box<kKeys, HeadDim, kSwizzle>;  // queries too

  struct Shared {
    static constexpr int kStages = E4m3Tiles::kStages, kItemBoxes = E4m3Tiles::kBoxes;
    static constexpr int kBoxElems = kSpan, kBoxRowBytes = kSpan;

    std::uint8_t q[kTiles][kOutBoxes][kBoxBytes];  // codes in the first half; then results
    std::uint8_t boxes[kStages][kItemBytes];
    float factors[kTiles][kRowThreads];
    RingBarriers<kStages> ring;
    typename Base::Barriers barriers;
    std::uint32_t tensor_memory;
    typename Base::Found found;

    __device__ void initialise() {
      ring.initialise(1);
      barriers.initialise();
    }
  };
  static_assert(sizeof(Shared) <= Work::shared_bytes(HeadDim));

  static __device__ void load_queries(const Params& params, Shared& shared, int t) {
    const Rows rows = rows_of(params, shared, t);
    for (int box = 0; box < kBoxes; ++box)
      ptx::cp_async_bulk_tensor_4d_shared_global(
          ptx::shared_address(shared.q[t]) + box * kSpanBoxBytes, params.q_map, box * kSpan,
          rows.kv_head * rows.group, rows.sequence.q_begin + rows.first_query,
          rows.stored_batch(params), ptx::shared_address(&shared.barriers.q_full));
  }

  struct Multiplier {
    Shared& shared;
    std::uint32_t columns;

    static constexpr std::uint32_t instruction(arch::Major b_major, int n) {
      constexpr auto kType = static_cast<std::uint32_t>(arch::MmaF8Type::kE4m3);
      return arch::encode_mma_instruction(arch::MmaInstruction{.a_type = kType,
                                                               .b_type = kType,
                                                               .b_major = b_major,
                                                               .m = kTensorRows,
                                                               .n = static_cast<std::uint32_t>(n)});
    }
    __device__ void wait_item(std::int32_t index) const {
      Ring<kStages>(shared.ring).wait_full(box_position<kStages>(index));
    }
    __device__ std::uint32_t item(std::int32_t index) const {
      return ptx::shared_address(shared.boxes[box_position<kStages>(index).stage]);
    }
    __device__ void release(std::int32_t index) const {
      ptx::tcgen05_commit(Ring<kStages>(shared.ring).empty(box_position<kStages>(index)));
    }
    __device__ void score(std::int32_t step, int t) const {
      const std::uint64_t a =
          arch::tcgen05_descriptor<KeyItem::kBox>(ptx::shared_address(shared.q[t]));
      const std::uint64_t b = arch::tcgen05_descriptor<KeyItem::kBox>(item(2 * step));
#pragma unroll
      for (std::uint32_t byte = 0; byte < HeadDim; byte += kStepBytes) {
        const std::uint32_t units = (byte / kSpan * kSpanBoxBytes + byte % kSpan) >> 4;
        ptx::tcgen05_mma_f8f6f4(scores(columns, t), a + units, b + units,
                                instruction(arch::Major::kK, kKeys), byte > 0);
      }
      ptx::tcgen05_commit(ptx::shared_address(&shared.barriers.s_full[t]));
      if (t == kTiles - 1) release(2 * step);
    }
    template <int First, int End>
    __device__ void add_values(std::int32_t step, int t) const {
      const std::uint64_t b =
          arch::tcgen05_descriptor<KeyItem::kBox, arch::Major::kMN>(item(2 * step + 1));
#pragma unroll
      for (std::uint32_t key = First; key < End; key += kStepBytes)
        ptx::tcgen05_mma_f8f6f4_tmem(
            results(columns, t), scores(columns, t) + arch::packed_columns(key, 8),
            b + (key * kSpan >> 4), instruction(arch::Major::kMN, HeadDim), step > 0 || key > 0);
    }
    __device__ void wait_keys(std::int32_t step) const {
      wait_item(2 * step);
    }
    __device__ void wait_values(std::int32_t step) const {
      wait_item(2 * step + 1);
    }
    __device__ void release_values(std::int32_t step) const {
      release(2 * step + 1);
    }
  };

  static __device__ void multiply(Shared& shared, std::uint32_t columns, std::int32_t steps) {
    if (steps == 0) return;
    const Multiplier multiplier = {shared, columns};
    ptx::mbarrier_wait_parity(ptx::shared_address(&shared.barriers.q_full), 0);
    multiplier.wait_keys(0);
    for (int t = 0; t < kTiles; ++t) multiplier.score(0, t);
#pragma unroll 1
    for (std::int32_t step = 0; step < steps; ++step) {
#pragma unroll 1
      for (int t = 0; t < kTiles; ++t) Base::add_step(multiplier, step, t, step + 1 == steps);
    }
  }

  // Four codes a cell.
  template <int Chunks>
  static __device__ void store_codes(std::uint32_t address, const float (&p)[Chunks][32]) {
    std::uint32_t cells[8 * Chunks];
#pragma unroll
    for (int i = 0; i < 8 * Chunks; ++i) {
      const float* const x = &p[i / 8][i % 8 * 4];
      cells[i] = ptx::cvt_rn_satfinite_e4m3x4_f32(x[0], x[1], x[2], x[3]);
    }
    ptx::tcgen05_st_32x32b(address, cells);
    ptx::tcgen05_wait_st_sync_aligned();
  }

  // As clear_values_behind.
  static __device__ void clear_values_behind(const Params& params, Shared& shared,
                                             std::int32_t kv_len, const KeyRange& keys) {
    const std::int32_t first = kv_len - (keys.end - 1) * kKeys;
    if (!Work::has_values_behind(params) || first >= kKeys) return;
    const auto at = box_position<kStages>(2 * keys.count() - 1);
    Ring<kStages>(shared.ring).wait_full(at);
    const auto key = static_cast<std::int32_t>(threadIdx.x % kRowThreads);
    constexpr std::uint32_t kZeros[4] = {};
    if (key >= first) {
      const auto row = static_cast<std::uint32_t>(key);
#pragma unroll 1
      for (std::uint32_t byte = 0; byte < HeadDim; byte += 16)
        ptx::st_shared_v4_u32(ptx::shared_address(shared.boxes[at.stage]) +
                                  byte / kSpan * kSpanBoxBytes +
                                  arch::swizzle_address(kSwizzle, row * kSpan + byte % kSpan),
                              kZeros);
    }
    ptx::fence_proxy_async_shared_cta();
  }

  static __device__ float finish_row(const Params& params, const Shared& /*shared*/,
                                     const Rows& rows, const CodeSoftmax& softmax) {
    const auto row = static_cast<std::int32_t>(threadIdx.x % kRowThreads);
    if (row >= rows.rows()) return 0.0f;
    const std::int32_t head = rows.head(row);
    const float* const sink = params.sink == nullptr ? nullptr : params.sink + head;
    const RowEnd finished(softmax.base, NoScale(), softmax.sum, sink);
    if (params.lse != nullptr)
      params.lse[rows.stored_batch(params) * params.lse_batch_stride +
                 head * params.lse_head_stride + rows.sequence.q_begin + rows.query(row)] =
          finished.lse;
    if (rows.sequence.kv_len <= 0) return 0.0f;  // no scales either
    const bool is_per_block = params.v_scales.block_stride != 0;
    return finished.factor * find_scale(is_per_block ? params.v_reference : params.v_scales,
                                        rows.batch, rows.kv_head, 0);
  }

  // Scales of a row and of tiles of keys.
  struct CodeScales {
    const Params& params;
    std::int32_t batch, kv_head;
    float row, reference = 1.0f;

    __device__ CodeScales(const Params& p, const Rows& rows, std::int32_t row_index, bool exists)
        : params(p), batch(rows.batch), kv_head(rows.kv_head), row(0.0f) {
      if (!exists) return;
      row = find_scale(p.q_scales, batch, rows.head(row_index) / p.q_scales.heads_per_scale,
                       rows.query(row_index) / kernels::kQueryScaleBlock) *
            (p.softcap_scale != 0.0f ? p.softcap_scale : p.scale_log2);
      if (p.v_scales.block_stride != 0) reference = find_scale(p.v_reference, batch, kv_head, 0);
    }
    __device__ float of_scores(std::int32_t n) const {
      return row * find_scale(params.k_scales, batch, kv_head, n);
    }
    __device__ float value_log2(std::int32_t n) const {
      if (params.v_scales.block_stride == 0) return 0.0f;
      return log2f(find_scale(params.v_scales, batch, kv_head, n) / reference);
    }
  };

  // Weights of a row and the factor of earlier results.
  static __device__ void weigh(const Params& params, Shared& shared, const Rows& rows,
                               const KeyRange& keys, std::uint32_t own, int t,
                               CodeSoftmax& softmax) {
    const auto row = static_cast<std::int32_t>(threadIdx.x % kRowThreads);
    const VisibleKeys visible = Work::visible(params, rows, row);
    const CodeScales scales(params, rows, row, row < rows.rows() && keys.count() > 0);
    for (std::int32_t n = keys.begin; n < keys.end; ++n) {
      wait_for_tensor_memory(ptx::shared_address(&shared.barriers.s_full[t]), n - keys.begin & 1);
      float s[4][32], factor = 1.0f;
      load_row(s, own);
      float scale = scales.of_scores(n);
      const float value_log2 = scales.value_log2(n);
      if (params.softcap_scale != 0.0f) {
        cap_row(s, scale);
        scale = params.scale_log2;
      }
      if (n < rows.tiles.plain_begin || n >= rows.tiles.plain_end)
        hide_row_keys(s, visible, n * kKeys);
      softmax.raise(s, scale, factor);
      shared.factors[t][row] = factor;
      hand_over_tensor_memory(ptx::shared_address(&shared.barriers.factor[t]));
      auto& early = reinterpret_cast<float(&)[2][32]>(s[0]);
      auto& late = reinterpret_cast<float(&)[2][32]>(s[2]);
      softmax.template exponentiate<Polynomial>(early, scale, value_log2);
      store_codes(own, early);
      if (t == 0 && n + 1 == keys.end)
        clear_values_behind(params, shared, rows.sequence.kv_len, keys);
      hand_over_tensor_memory(ptx::shared_address(&shared.barriers.p_ready[t]));
      softmax.template exponentiate<Polynomial>(late, scale, value_log2);
      store_codes(own + arch::packed_columns(kEarlyKeys, 8), late);
      hand_over_tensor_memory(ptx::shared_address(&shared.barriers.p_rest[t]));
    }
  }
  static __device__ void store_zeros(std::uint32_t own) {
    constexpr float kZeros[4][32] = {};
    store_codes(own, kZeros);
  }
  static __device__ void store(const Params& params, Shared& shared, const Rows& rows,
                               std::uint32_t columns, float factor, bool has_results, int t) {
    if (params.is_f16_out != 0)
      return store_as<Fp16>(params, shared, rows, columns, factor, has_results, t);
    store_as<Bf16>(params, shared, rows, columns, factor, has_results, t);
  }
  template <class Element>
  static __device__ void store_as(const Params& params, Shared& shared, const Rows& rows,
                                  std::uint32_t columns, float factor, bool has_results, int t) {
    constexpr int kAtOnce = HeadDim < 128 ? HeadDim : 128;
    store_results<Element, kOutBoxes, kTensorRows, typename Work::template Store<kAtOnce>>(
        params, shared.q[t], rows, results(columns, t), factor, has_results, {t});
  }

  // Rows of queries that no copy writes.
  static __device__ void clear_rows_behind(Shared& shared, int t, std::int32_t rows) {
    auto* const q = reinterpret_cast<uint4*>(shared.q[t]);
    for (int box = 0; box < kBoxes; ++box)
      for (std::int32_t i = rows * kSpan / 16 + static_cast<std::int32_t>(threadIdx.x);
           i < kSpanBoxBytes / 16; i += kernels::kStageHThreads)
        q[box * (kSpanBoxBytes / 16) + i] = make_uint4(0, 0, 0, 0);
    ptx::fence_proxy_async_shared_cta();
  }
};

}  // namespace tilewright::tile
