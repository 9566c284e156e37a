// K7's consumers: what a warpgroup does with its tiles. The entries' file says why in this order.
#pragma once

#include "kernels/attention/barriers.h"
#include "kernels/attention/k7/config.h"
#include "kernels/attention/k7/mma.h"
#include "kernels/attention/k7/softmax.h"
#include "ptx/bulk_tensor_copy.h"
#include "ptx/load_store.h"
#include "tile/accumulator_rows.h"
#include "tile/dealt_tiles.h"
#include "tile/element.h"

#include <type_traits>

namespace tilewright::kernels {

template <class C>
struct K7Work {
  tile::DealtTile tile;
  typename C::Tiles tiles;  ///< of keys, of the CTA
  typename C::Tiles own;    ///< of them, those that this warpgroup's rows see
  bool has_keys;            ///< the CTA
  float score_scale = 0.0f, result_scale = 0.0f;

  template <class Consumer>
  __device__ K7Work(const Consumer& consumer, const tile::DealtTile& dealt)
      : tile(dealt),
        tiles(C::key_tiles(consumer.params, dealt)),
        own(consumer.own_tiles(dealt, tiles)),
        has_keys(dealt.is_last == 0 && tiles.begin < tiles.end) {}
};

// Consumer: what a row of a tile is (query_consumer.h, paged_consumer.h).
template <class C, class Consumer>
struct K7Worker : Consumer {
  using Base = Consumer;
  using Base::index;
  using Base::params;
  using Base::shared;
  using typename Base::Results;
  using typename Base::Scores;
  using typename Base::Weights;
  static constexpr int kHeadDim = C::kHeadDim, kKeys = C::kKeys;

  std::uint32_t zero_at;  ///< address of Shared::zero

  // Products of weights and values so far. Two levels: `part` is the tensor core's, which goes over
  // into `total` when it holds those of flush_tiles tiles.
  struct OneLevelSums {
    Results total = {};
  };
  struct TwoLevelSums {
    Results total = {};
    Results part;
    std::int32_t tiles_in_part = 0;
  };
  static constexpr bool kAddsInSlices = C::kIsTwoLevel && (kHeadDim == 256 || C::kConsumers == 3);
  static constexpr bool kTakesTurns = !kAddsInSlices || kHeadDim == 64;
  using Sums = std::conditional_t<C::kIsTwoLevel && !kAddsInSlices, TwoLevelSums, OneLevelSums>;

  // What a warpgroup knows of its tile of queries while it walks over the keys.
  struct Row {
    tile::Fp8Softmax softmax;
    float correction[2];
    typename Base::Positions position;
    std::int32_t kv_len;
    float scale;      ///< of scores, in units of log2; without that of keys, if it is per block
    float cap_scale;  ///< what a softcap's argument is multiplied with; likewise
  };

  __device__ void await_turn() const { ptx::bar_sync<256>(tile::kTurnBarrier + index); }
  __device__ void pass_turn() const {
    ptx::bar_arrive<256>(tile::kTurnBarrier + (index + 1) % C::kConsumers);
  }

  // Passes the turn when `after` is known, before what depends on the result, 0: as in K6.
  __device__ float pass_turn_here(float after) const {
    const std::uint32_t never = __float_as_uint(after) == 0x7fc12345u;
    ptx::bar_arrive<256>(tile::kTurnBarrier + (index + 1) % C::kConsumers + never);
    return ptx::ld_volatile_shared_f32(zero_at);
  }

  // Scores of key tile n to weights. IsPlain: every row sees every key, and there is no softcap.
  template <bool IsPlain, bool PassesTurn>
  __device__ bool weigh(Scores& s, Row& row, std::int32_t n) {
    constexpr int kParts = C::kParts;
    tile::KeyTileScales<kParts> of_keys;
    float scale[kParts], from[2][kParts], zero = 0.0f;
#pragma unroll
    for (int i = 0; i < kParts; ++i) scale[i] = row.scale, of_keys.v_log2[i] = 0.0f;
    if constexpr (C::kHasBlockScales) of_keys = shared.key_scales[this->k_at.stage];
    this->release_k();
    if constexpr (PassesTurn && C::kVariant.pass == K7Pass::kAfterScores) zero = pass_turn_here(0);
    if constexpr (!IsPlain) {
      float cap_scale[kParts];
#pragma unroll
      for (int i = 0; i < kParts; ++i)
        cap_scale[i] = C::kHasBlockScales ? row.cap_scale * of_keys.k[i] : row.cap_scale;
      this->adjust(s, row.position, row.kv_len, n, cap_scale);
    }
    if constexpr (C::kHasBlockScales) {
#pragma unroll
      for (int i = 0; i < kParts; ++i)
        scale[i] *= params.softcap_scale == 0.0f ? of_keys.k[i] : 1.0f;
    }
    const bool has_moved = row.softmax.raise(s, scale, row.correction);
    if constexpr (PassesTurn && C::kVariant.pass == K7Pass::kAfterMaximum)
      zero = pass_turn_here(row.softmax.base[1]);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
#pragma unroll
      for (int i = 0; i < kParts; ++i) {
        from[h][i] = row.softmax.template base_of<!IsPlain>(h) + zero;
        if constexpr (C::kHasBlockScales) from[h][i] -= of_keys.v_log2[i];
      }
    }
    row.softmax.template exponentiate<C::kHasBlockScales>(s, scale, from, row.correction,
                                                          of_keys.v_log2);
    return has_moved;
  }

  __device__ void issue_values(Sums& sums, const Weights& p) const {
    if constexpr (C::kIsTwoLevel) {
      Base::issue_values(sums.part, p, sums.tiles_in_part > 0);
    } else {
      Base::issue_values(sums.total, p, true);
    }
  }
  __device__ void await_values(Sums& sums, bool is_last) {
    if constexpr (C::kIsTwoLevel) {
      Base::template await_values<0>(sums.part);
      if (++sums.tiles_in_part < params.flush_tiles && !is_last) return;
      sums.tiles_in_part = 0;
#pragma unroll
      for (int i = 0; i < kHeadDim / 2; ++i) sums.total[i] += sums.part[i];
    } else {
      Base::template await_values<0>(sums.total);
    }
  }

  // One tile of keys while the previous one's values are multiplied.
  template <bool IsPlain>
  __device__ void step(Scores& s, Sums& sums, Weights& p, Row& row, std::int32_t n) {
    this->wait_k();
    await_turn();
    this->issue_scores(s);
    this->wait_v();
    issue_values(sums, p);
    if constexpr (C::kVariant.pass == K7Pass::kAtOnce) pass_turn();
    this->template await_scores<1>(s);
    const bool has_moved = weigh<IsPlain, true>(s, row, n);
    await_values(sums, false);
    tile::pack_operand_e4m3<kKeys>(p, s);
    if (!has_moved) return;
    tile::scale_rows(sums.total, row.correction);
    if constexpr (C::kIsTwoLevel) {
      if (sums.tiles_in_part > 0) tile::scale_rows(sums.part, row.correction);
    }
  }

  // Key tile n, which no row of this warpgroup sees: turns begin with the second one.
  __device__ void skip(const K7Work<C>& work, std::int32_t n) {
    this->wait_k();
    if (kTakesTurns && n < work.tiles.end - 1) {
      await_turn();
      pass_turn();
    }
    this->release_k();
    this->wait_v();
    this->release_v();
  }

  // All tiles of keys; scores of the first are there.
  __device__ void attend_overlapped(Scores& s, Sums& sums, Row& row, const typename C::Tiles& own) {
    Weights p;
    std::int32_t n = own.end - 1;
    weigh<false, false>(s, row, n);
    tile::pack_operand_e4m3<kKeys>(p, s);
    for (--n; n >= own.begin; --n) {
      if (n >= own.plain_begin && n < own.plain_end) {
        step<true>(s, sums, p, row, n);
      } else {
        step<false>(s, sums, p, row, n);
      }
    }
    this->wait_v();
    issue_values(sums, p);
    await_values(sums, true);
  }

  template <bool PassesTurn>
  __device__ bool weigh_own(Scores& s, Row& row, const typename C::Tiles& own, std::int32_t n) {
    return n >= own.plain_begin && n < own.plain_end ? weigh<true, PassesTurn>(s, row, n)
                                                     : weigh<false, PassesTurn>(s, row, n);
  }

  // The same where results, sums and scores do not fit beside each other: values in slices of
  // dimensions, in the scores' registers; one is added while the next one is multiplied.
  __device__ void attend_in_slices(Scores& first, Sums& sums, Row& row,
                                   const typename C::Tiles& own) {
    Scores s;
#pragma unroll
    for (int i = 0; i < kKeys / 2; ++i) s[i] = first[i];
    for (std::int32_t n = own.end - 1;; --n) {
      const bool has_moved = kTakesTurns && n < own.end - 1 ? weigh_own<kTakesTurns>(s, row, own, n)
                                                            : weigh_own<false>(s, row, own, n);
      Weights p;
      tile::pack_operand_e4m3<kKeys>(p, s);
      if (has_moved) tile::scale_rows(sums.total, row.correction);
      this->wait_v();
      add_slices(sums.total, p);
      this->release_v();
      if (n == own.begin) return;
      Scores next = {};  // otherwise the old ones would stay alive: see begin()
      this->wait_k();
      if constexpr (kTakesTurns) await_turn();
      this->issue_scores(next);
      this->template await_scores<0>(next);
#pragma unroll
      for (int i = 0; i < kKeys / 2; ++i) s[i] = next[i];
    }
  }
  template <int Slice>
  __device__ void add_slice(Results& o, float (&slice)[32]) const {
    ptx::wgmma_wait_group_sync_aligned<Slice == kHeadDim / 64 - 1 ? 0 : 1>();
    ptx::wgmma_fence_operand(slice);
#pragma unroll
    for (int i = 0; i < 32; ++i) o[Slice * 32 + i] += slice[i];
  }
  __device__ void add_slices(Results& o, const Weights& p) const {
    float even[32] = {};
    Base::template issue_values<0>(even, p, false);
    if constexpr (kHeadDim == 64) {
      add_slice<0>(o, even);
    } else {
      float odd[32] = {};
      Base::template issue_values<64>(odd, p, false);
      add_slice<0>(o, even);
      Base::template issue_values<128>(even, p, false);
      add_slice<1>(o, odd);
      Base::template issue_values<192>(odd, p, false);
      add_slice<2>(o, even);
      add_slice<3>(o, odd);
    }
  }

  __device__ void attend(Scores& s, Sums& sums, Row& row, const K7Work<C>& work) {
    const typename C::Tiles& own = work.own;
    if (own.end == work.tiles.end) this->clear_values_behind(work.tile.kv_len, own.end);
    if constexpr (kAddsInSlices) {
      attend_in_slices(s, sums, row, own);
    } else {
      attend_overlapped(s, sums, row, own);
    }
    for (std::int32_t n = own.begin - 1; n >= work.tiles.begin; --n) skip(work, n);
  }

  __device__ void finish(const Results& o, const tile::Fp8Softmax& softmax,
                         const K7Work<C>& work) const {
    if (params.is_f16_out) {
      this->template store<tile::Fp16>(o, softmax, work.tile, work.result_scale);
    } else {
      this->template store<tile::Bf16>(o, softmax, work.tile, work.result_scale);
    }
  }

  // Takes the next tile and computes its first scores. What `s` was does not matter any more: a
  // product writes registers that the compiler thinks it reads, so they are others.
  __device__ K7Work<C> begin(tile::TileTaker& taker, Scores& s) {
    K7Work<C> work(*this, taker.take());
    Scores first = {};
    if (work.has_keys) {
      const tile::QueryTileScales& scales = shared.tile_scales[taker.at.stage];
      work.score_scale = ptx::uniform(scales.scores[index]);
      work.result_scale = ptx::uniform(scales.results);
      this->wait_queries();
      const bool is_late = work.own.end < work.tiles.end;
      if (is_late) skip_first(work);
      if (work.own.begin < work.own.end) {
        this->wait_k();
        if (kTakesTurns && is_late) await_turn();
        this->issue_scores(first);
        this->template await_scores<0>(first);
        if (kTakesTurns && is_late) pass_turn();
      }
    }
#pragma unroll
    for (int i = 0; i < kKeys / 2; ++i) s[i] = first[i];
    return work;
  }
  __device__ void skip_first(const K7Work<C>& work) {
    this->clear_values_behind(work.tile.kv_len, work.tiles.end);
    for (std::int32_t n = work.tiles.end - 1; n >= work.own.end; --n) skip(work, n);
  }

  __device__ void run() {
    if (kTakesTurns && index == C::kConsumers - 1) pass_turn();  // the first one begins
    tile::TileTaker taker{shared.table};
    Scores s;
    K7Work<C> work = begin(taker, s);
    while (!work.tile.is_last) {
      Sums sums;
      Row row;
      taker.release();
      if (work.own.begin < work.own.end) {
        const bool has_cap = params.softcap_scale != 0.0f;
        row.position = this->position_of(work.tile.first_query, work.tile.kv_len - work.tile.q_len);
        row.kv_len = work.tile.kv_len;
        row.scale = params.scale_log2 * (has_cap ? 1.0f : work.score_scale);
        row.cap_scale = params.softcap_scale * work.score_scale;
        attend(s, sums, row, work);
      }
      if (work.has_keys) this->q_at.advance();  // the last keys' release was the queries' as well
      finish(sums.total, row.softmax, work);
      work = begin(taker, s);
    }
    if (C::kVariant.stages_out && threadIdx.x % 128 == 0) ptx::cp_async_bulk_wait_group<0>();
  }
};

}  // namespace tilewright::kernels
