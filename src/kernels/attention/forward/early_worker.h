// K6's consumers where the next tile's queries come while this one's are used (q_stages 2): its
// first scores are computed while the results of this one are written.
#pragma once

#include "kernels/attention/forward/k6_worker.h"

namespace tilewright::kernels {

template <class C>
struct K6EarlyWorker : K6Worker<C> {
  using Base = K6Worker<C>;
  using typename Base::Results;
  using typename Base::Scores;
  static_assert(C::kQStages > 1 && !C::kVariant.stages_out);

  // As begin(), while the results of the last tile are finished and written.
  __device__ K6Work<C> begin_early(tile::TileTaker& taker, Scores& s, Results& o,
                                   const tile::OnlineSoftmax& softmax,
                                   const tile::DealtTile& last) {
    const K6Work<C> work(this->params, taker.take());
    if (work.has_keys) {
      this->wait_first();
      this->issue_scores(s);
      this->template await_values<1>(o);
      this->finish(o, softmax, last);
      this->template await_scores<0>(s);
    } else {
      this->template await_values<0>(o);
      this->finish(o, softmax, last);
    }
    return work;
  }

  __device__ void run(K6Shared<C>& shared) {
    if (this->index == C::kConsumers - 1) this->pass_turn();
    tile::TileTaker taker{shared.table};
    Scores s;
    K6Work<C> work = this->begin(taker, s);
    while (!work.tile.is_last) {
      Results o = {};
      tile::OnlineSoftmax softmax;
      taker.release();
      if (!work.has_keys) {
        this->finish(o, softmax, work.tile);
        work = this->begin(taker, s);
        continue;
      }
      this->attend(s, o, softmax, work);
      work = begin_early(taker, s, o, softmax, work.tile);
    }
  }
};

}  // namespace tilewright::kernels
