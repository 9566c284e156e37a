// What kernels with several tiles of rows in flight share, stages E and H: roles and the barriers
// between them, columns of Tensor Memory, the keys of all tiles, and what every role does that does
// not depend on the format of the operands.
#pragma once

#include "kernels/attention_sm100/tensor_attention.h"

#include <cstdint>

namespace tilewright::tile {

/// For store_results(): one of several stores, by barriers of their own, with registers for all
/// columns of a row. At the end shared memory has been read, and may be given back.
template <int Columns>
struct StoreOfTile {
  static constexpr bool kHasLengths = false;
  int tile;

  static constexpr int kChunks = Columns / 32;
  __device__ void sync() const { ptx::bar_sync<kRowThreads>(kRowBarrier + tile); }
  __device__ void wait() const { ptx::cp_async_bulk_wait_group_read<0>(); }
};

/// How rows and keys of a CTA are found where the grid is (tiles of queries, heads of keys, batch).
/// The last queries come first: under a causal mask they see the most keys.
template <class ParamsType>
struct GridWork {
  using Params = ParamsType;
  using Rows = GroupWork<1, 1>;  // all value columns
  template <int Columns>
  using Store = StoreOfTile<Columns>;
  /// What a CTA looks up before all else, in shared memory.
  struct Found {};
  static constexpr bool kLoadsByWarp = false;  ///< by one thread
  static constexpr int kLoadWarps = 1;         ///< who load, each of which arrives at the ring

  /// Tile t of the `tiles` of the CTA; it may have no rows.
  static __device__ Rows rows_of(const kernels::AttentionParams& params, const Found& /*found*/,
                                 int tiles, int t) {
    const std::int32_t of_cta = params.q_tiles - 1 - static_cast<std::int32_t>(blockIdx.x);
    return {params, params.heads / params.kv_heads, of_cta * tiles + t};
  }
  static __device__ VisibleKeys visible(const kernels::AttentionParams& params, const Rows& rows,
                                        std::int32_t row) {
    return {params, rows.query(row) + rows.shift(), rows.sequence.kv_len};
  }
  /// What scores are multiplied with: before a softcap, if there is one, and then.
  static __device__ float softcap_scale(const kernels::AttentionParams& params,
                                        const Found& /*found*/) {
    return params.softcap_scale;
  }
  static __device__ float scale_log2(const kernels::AttentionParams& params,
                                     const Found& /*found*/) {
    return params.scale_log2;
  }
  /// Whether anything but zeros may lie behind the last key.
  static __device__ bool has_values_behind(const kernels::AttentionParams& params) {
    return params.cu_kv != nullptr;
  }
};

/// Kernel, which derives from this, has the rest of the roles: begin_loading and load (the loading
/// thread or warp, before the CTA has its columns and then), multiply (the multiplying thread),
/// weigh with its Softmax, finish_row and store (a softmax thread with a row), store_zeros (P of
/// one without); and clears what no copy may leave (clear_rows_behind, clear_values_behind).
template <class Kernel, int Tiles, int ValueDim, class Work>
struct TilesInFlight {
  using Params = typename Work::Params;
  using Rows = typename Work::Rows;
  using Found = typename Work::Found;
  /// Warps 0-3 and 4-7 have a tile each, where there are two.
  static constexpr std::uint32_t kCorrectionWarp = 8, kMmaWarp = 12, kLoadWarp = 13;
  static constexpr int kColumns = 512;

  /// In shared memory; of tile t: s_full, its scores are there; factor, factors of its rows;
  /// p_ready, the first part of P and O may be used by the next product; o_full, its results are
  /// complete; p_rest, the rest of P may be used.
  struct Barriers {
    std::uint64_t q_full, s_full[Tiles], factor[Tiles], p_ready[Tiles], o_full[Tiles],
        p_rest[Tiles];

    __device__ void initialise() {
      ptx::mbarrier_init(ptx::shared_address(&q_full), 1);
      for (int t = 0; t < Tiles; ++t) {
        ptx::mbarrier_init(ptx::shared_address(&s_full[t]), 1);
        ptx::mbarrier_init(ptx::shared_address(&factor[t]), kRowThreads);
        ptx::mbarrier_init(ptx::shared_address(&p_ready[t]), 2 * kRowThreads);
        ptx::mbarrier_init(ptx::shared_address(&o_full[t]), 1);
        ptx::mbarrier_init(ptx::shared_address(&p_rest[t]), kRowThreads);
      }
    }
  };

  static __device__ std::uint32_t scores(std::uint32_t columns, int t) {
    return columns + t * kKeys;
  }
  static __device__ std::uint32_t results(std::uint32_t columns, int t) {
    return columns + Tiles * kKeys + t * ValueDim;
  }

  template <class Shared>
  static __device__ Rows rows_of(const Params& params, const Shared& shared, int t) {
    return Work::rows_of(params, shared.found, Tiles, t);
  }
  /// The keys of all tiles.
  struct KeyRange {
    std::int32_t begin, end;

    template <class Shared>
    __device__ KeyRange(const Params& params, const Shared& shared) {
      const Rows first = rows_of(params, shared, 0), last = rows_of(params, shared, Tiles - 1);
      begin = first.tiles.begin;
      end = last.rows() > 0 ? max(first.tiles.end, last.tiles.end) : first.tiles.end;
      end = max(end, begin);
    }
    __device__ std::int32_t count() const { return end - begin; }
  };

  /// A correction thread: multiplies its row's results with the factors that softmax threads leave.
  template <class Shared>
  static __device__ void correct(Shared& shared, std::uint32_t columns, std::int32_t steps) {
    const std::uint32_t row = threadIdx.x % kRowThreads;
    for (std::int32_t step = 0; step < steps; ++step) {
#pragma unroll 1
      for (int t = 0; t < Tiles; ++t) {
        wait_for_tensor_memory(ptx::shared_address(&shared.barriers.factor[t]), step & 1);
        const float factor = shared.factors[t][row];
        if (step > 0 && __any_sync(0xffffffffu, factor != 1.0f)) {
          scale_row<ValueDim>(own_lanes(results(columns, t)), factor);
          ptx::tcgen05_wait_st_sync_aligned();
        }
        hand_over_tensor_memory(ptx::shared_address(&shared.barriers.p_ready[t]));
      }
    }
  }

  /// The multiplying thread: products of a step with P of tile t, and scores of the next. All that
  /// it may have to wait for but P comes first: from P on the tensor core waits for what this
  /// thread does.
  template <class Multiplier>
  static __device__ void add_step(const Multiplier& multiplier, std::int32_t step, int t,
                                  bool is_last) {
    auto& barriers = multiplier.shared.barriers;
    if (t == 0) {
      multiplier.wait_values(step);
      if (!is_last) multiplier.wait_keys(step + 1);
    }
    wait_for_tensor_memory(ptx::shared_address(&barriers.p_ready[t]), step & 1);
    multiplier.template add_values<0, Kernel::kEarlyKeys>(step, t);
    wait_for_tensor_memory(ptx::shared_address(&barriers.p_rest[t]), step & 1);
    multiplier.template add_values<Kernel::kEarlyKeys, kKeys>(step, t);
    if (!is_last) {
      multiplier.score(step + 1, t);
    } else {
      ptx::tcgen05_commit(ptx::shared_address(&barriers.o_full[t]));
    }
    // Nobody waits for the last: its commit might come when the CTA has ended.
    if (t == Tiles - 1 && !is_last) multiplier.release_values(step);
  }

  /// The softmax threads of a warp without rows: zeros.
  template <class Shared>
  static __device__ void weigh_nothing(const Params& params, Shared& shared, const Rows& rows,
                                       const KeyRange& keys, std::uint32_t own, int t) {
#pragma unroll 1
    for (std::int32_t n = keys.begin; n < keys.end; ++n) {
      wait_for_tensor_memory(ptx::shared_address(&shared.barriers.s_full[t]), n - keys.begin & 1);
      shared.factors[t][threadIdx.x % kRowThreads] = 1.0f;
      hand_over_tensor_memory(ptx::shared_address(&shared.barriers.factor[t]));
      Kernel::store_zeros(own);
      if (t == 0 && n + 1 == keys.end)
        Kernel::clear_values_behind(params, shared, rows.sequence.kv_len, keys);
      hand_over_tensor_memory(ptx::shared_address(&shared.barriers.p_ready[t]));
      hand_over_tensor_memory(ptx::shared_address(&shared.barriers.p_rest[t]));
    }
  }

  /// A softmax thread: weights of its row, factors of earlier results. Were there any keys?
  template <class Shared, class Softmax>
  static __device__ bool weigh_rows(const Params& params, Shared& shared, std::uint32_t columns,
                                    int t, Softmax& softmax) {
    const KeyRange keys(params, shared);
    const Rows rows = rows_of(params, shared, t);
    const std::uint32_t own = ptx::uniform(own_lanes(scores(columns, t)));
    if (ptx::uniform(static_cast<std::int32_t>(threadIdx.x % kRowThreads)) < rows.rows()) {
      Kernel::weigh(params, shared, rows, keys, own, t, softmax);
    } else {
      weigh_nothing(params, shared, rows, keys, own, t);
    }
    return keys.count() > 0;
  }
  /// All that it does; at the end the results out.
  template <class Shared>
  static __device__ void run_softmax(const Params& params, Shared& shared, std::uint32_t columns,
                                     int t) {
    typename Kernel::Softmax softmax;
    const bool has_keys = weigh_rows(params, shared, columns, t, softmax);
    if (has_keys) wait_for_tensor_memory(ptx::shared_address(&shared.barriers.o_full[t]), 0);
    // Once more: what can be found again needs no registers meanwhile.
    const Rows rows = rows_of(params, shared, t);
    const float factor = Kernel::finish_row(params, shared, rows, softmax);
    if (rows.rows() <= 0) return;
    Kernel::store(params, shared, rows, columns, factor, has_keys, t);
  }

  /// All threads of the CTA.
  static __device__ void run_roles(const Params& params) {
    extern __shared__ __align__(1024) std::uint8_t dynamic[];
    auto& shared = *reinterpret_cast<typename Kernel::Shared*>(dynamic);
    if (rows_of(params, shared, 0).rows() <= 0) return;  // a short one of packed sequences
    for (int t = 0; t < Tiles; ++t)
      Kernel::clear_rows_behind(shared, t, rows_of(params, shared, t).box_rows());
    const std::uint32_t warp = ptx::uniform(threadIdx.x / 32);
    const bool loads = warp == kLoadWarp && (Work::kLoadsByWarp || ptx::elect_sync());
    if (loads) {
      if (!Work::kLoadsByWarp || ptx::elect_sync()) {
        shared.initialise();
        ptx::fence_mbarrier_init_release_cluster();
      }
      if (Work::kLoadsByWarp) __syncwarp();
      Kernel::begin_loading(params, shared);
    }
    __syncwarp();
    const std::uint32_t columns = open_tensor_memory<kColumns>(shared.tensor_memory, [] {});
    if (warp < kCorrectionWarp) {
      ptx::setmaxnreg_inc_sync_aligned<Kernel::kSoftmaxRegisters>();
      const int t = static_cast<int>(warp / 4);
      if (t < Tiles) run_softmax(params, shared, columns, t);
    } else if (warp < kMmaWarp) {
      ptx::setmaxnreg_dec_sync_aligned<Kernel::kCorrectionRegisters>();
      correct(shared, columns, KeyRange(params, shared).count());
    } else {
      ptx::setmaxnreg_dec_sync_aligned<Kernel::kOtherRegisters>();
      if (warp == kMmaWarp && ptx::elect_sync()) {
        Kernel::multiply(shared, columns, KeyRange(params, shared).count());
      } else if (loads || (Work::kLoadWarps > 1 && warp > kLoadWarp)) {
        Kernel::load(params, shared);
      }
    }
    __syncwarp();
    close_tensor_memory<kColumns>(columns);
  }
};

}  // namespace tilewright::tile
