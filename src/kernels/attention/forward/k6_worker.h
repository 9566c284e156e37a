// K6's consumers: what a warpgroup does with the tiles that are dealt to it. The file of the
// entries says in which order, and why.
#pragma once

#include "kernels/attention/barriers.h"
#include "kernels/attention/forward/k6_variant.h"
#include "kernels/attention/rings.h"
#include "ptx/load_store.h"
#include "ptx/warp_roles.h"
#include "tile/dealt_tiles.h"
#include "tile/online_softmax.h"
#include "tile/warpgroup_mma.h"

#include <cstdint>

namespace tilewright::kernels {

template <class C>
struct K6Shared {
  typename C::Shared rings;
  tile::TileTable table;
  float zero;  ///< see pass_turn_here
};

// The tile that a consumer works on.
template <class C>
struct K6Work {
  tile::DealtTile tile;
  typename C::Tiles tiles;
  bool has_keys;
  bool is_idle = false;  ///< a warpgroup: no row of it is a query's
  bool is_half = false;  ///< a warpgroup's: it sees nothing of the second half of the last keys

  __device__ K6Work(const AttentionParams& params, const tile::DealtTile& dealt)
      : tile(dealt),
        tiles(C::key_tiles(params, dealt)),
        has_keys(dealt.is_last == 0 && tiles.begin < tiles.end) {}
};

template <class C>
struct K6Worker : C::Consumer {
  using Base = typename C::Consumer;
  using Base::index;
  using Base::params;
  using typename Base::Results;
  using typename Base::Rows;
  using typename Base::Scores;
  using typename Base::Weights;
  static constexpr int kKeys = C::kKeys;
  static constexpr bool kCuts = C::kVariant.cuts_diagonal;
  static_assert(!kCuts || C::kQStages == 1);

  std::uint32_t zero_at;  ///< address of Shared::zero

  // The others come after the first, and what it has seen landed they see too.
  __device__ bool polls() const { return !C::kVariant.first_polls || index == 0; }
  __device__ void await_turn() const { ptx::bar_sync<256>(tile::kTurnBarrier + index); }
  __device__ void pass_turn() const {
    ptx::bar_arrive<256>(tile::kTurnBarrier + (index + 1) % C::kConsumers);
  }

  // Passes the turn when `after` is known and before anything that depends on the result, 0: ptxas
  // moves an arrival freely, from here to behind all exponentials. The barrier's number depends on
  // `after` (whose bits are never those of this NaN: arithmetic gives 0x7fffffff), and the load of
  // a zero keeps its place among instructions with side effects. The price is that load.
  __device__ float pass_turn_here(float after) const {
    const std::uint32_t never = __float_as_uint(after) == 0x7fc12345u;
    ptx::bar_arrive<256>(tile::kTurnBarrier + (index + 1) % C::kConsumers + never);
    return ptx::ld_volatile_shared_f32(zero_at);
  }

  // One tile of keys while the previous one's values are still being multiplied: all of them, or
  // the first half.
  template <bool IsPlain, bool IsHalf = false>
  __device__ void step(Scores& s, Results& o, Weights& p, tile::OnlineSoftmax& softmax,
                       float (&correction)[2], const Rows& rows, std::int32_t n) {
    float base[2];
    if (polls()) this->wait_step();
    await_turn();
    this->issue_scores(s);
    if (polls() && !Base::kWaitsForBoth) this->wait_v();
    this->template issue_values<IsHalf ? kKeys / 2 : kKeys>(o, p);
    this->template await_scores<1>(s);
    float zero = 0.0f;
    if constexpr (C::kVariant.pass == K6Pass::kAfterScores) zero = pass_turn_here(0);
    this->template adjust<IsPlain>(s, rows, n);
    const bool has_moved =
        softmax.template raise_reference<!IsPlain>(s, params.scale_log2, base, correction);
    if constexpr (C::kVariant.pass == K6Pass::kAfterMaximum) zero = pass_turn_here(base[1]);
    base[0] += zero;
    base[1] += zero;
    softmax.exponentiate(s, params.scale_log2, base, correction);
    this->template await_values<0>(o);
    tile::pack_operand<typename C::Element, kKeys>(p, s);
    if (has_moved) tile::scale_rows(o, correction);
  }

  // All tiles of keys but for the last product, which is in flight at the end. The scores of the
  // first tile are there.
  __device__ void attend_tiles(Scores& s, Results& o, tile::OnlineSoftmax& softmax,
                               const Rows& rows, const typename C::Tiles& tiles,
                               const typename C::Tiles& own, bool is_half) {
    Weights p;
    float correction[2];
    std::int32_t n = tiles.end - 1;
    this->adjust_last(s, rows, n);
    softmax.template update<true>(s, params.scale_log2, correction);
    tile::pack_operand<typename C::Element, kKeys>(p, s);
    correction[0] = correction[1] = 1.0f;
    --n;
    if (kCuts && is_half && n >= tiles.begin && n >= own.plain_begin && n < own.plain_end) {
      step<true, kCuts>(s, o, p, softmax, correction, rows, n);
      --n;
    }
    for (; n >= tiles.begin; --n) {
      if (n >= own.plain_begin && n < own.plain_end) {
        step<true>(s, o, p, softmax, correction, rows, n);
      } else {
        step<false>(s, o, p, softmax, correction, rows, n);
      }
    }
    this->wait_v();
    this->issue_values(o, p);
  }

  __device__ void attend(Scores& s, Results& o, tile::OnlineSoftmax& softmax,
                         const K6Work<C>& work) {
    const std::int32_t shift = work.tile.kv_len - work.tile.q_len;
    const Rows rows = this->rows_of(work.tile.first_query, shift, work.tile.kv_len);
    const auto own = this->own_tiles(work.tile.first_query, shift, work.tile.kv_len);
    this->clear_values_behind(work.tile.kv_len, work.tiles.end);
    attend_tiles(s, o, softmax, rows, work.tiles, own, work.is_half);
    if constexpr (C::kVariant.keys_first) {
      this->q_at.advance();  // the last keys' release was the queries' as well
    } else {
      this->release_q();
    }
  }

  // An idle warpgroup's tile, whose last keys have been released: it takes its turns.
  __device__ void skip(const K6Work<C>& work) {
    this->clear_values_behind(work.tile.kv_len, work.tiles.end);
#pragma unroll 1
    for (std::int32_t n = work.tiles.end - 2; n >= work.tiles.begin; --n) {
      if (polls()) this->wait_k();
      await_turn();
      pass_turn();
      this->release_k();
      if (polls()) this->wait_v();
      this->release_v();
    }
    this->wait_v();
    this->release_v();
    this->q_at.advance();
  }

  // Until the queries of a tile and its last keys are there.
  __device__ void wait_first() const {
    this->wait_q();
    // All begin together: a head start of the first would last for the whole tile, and cost 3 %.
    if constexpr (C::kVariant.keys_first) this->wait_all_q();
    this->wait_k();
  }
  // Takes the next tile and computes its first scores.
  __device__ K6Work<C> begin(tile::TileTaker& taker, Scores& s) {
    K6Work<C> work(params, taker.take());
    if (!work.has_keys) return work;
    if constexpr (kCuts) work.is_half = this->sees_half(work.tile, work.tiles);
    wait_first();
    if constexpr (Base::kMayIdle) work.is_idle = this->is_idle(work.tile);
    if (Base::kMayIdle && work.is_idle) {
      this->release_k();
      return work;
    }
    if constexpr (kCuts) {
      if (work.is_half) {
        this->compute_half_scores(s);
        return work;
      }
    }
    this->issue_scores(s);
    this->template await_scores<0>(s);
    return work;
  }

  __device__ void run(K6Shared<C>& shared) {
    if (index == C::kConsumers - 1) pass_turn();  // the first one begins
    tile::TileTaker taker{shared.table};
    Scores s;
    K6Work<C> work = begin(taker, s);
    while (!work.tile.is_last) {
      Results o = {};
      tile::OnlineSoftmax softmax;
      taker.release();
      if (!work.has_keys || (Base::kMayIdle && work.is_idle)) {
        if (!work.has_keys) this->finish(o, softmax, work.tile);
        if (Base::kMayIdle && work.is_idle) skip(work);
        work = begin(taker, s);
        continue;
      }
      attend(s, o, softmax, work);
      this->template await_values<0>(o);
      this->finish(o, softmax, work.tile);
      work = begin(taker, s);
    }
  }
};

}  // namespace tilewright::kernels
