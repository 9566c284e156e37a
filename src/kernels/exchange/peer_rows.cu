// targets: sm_90a sm_100f
//
// Rows of tokens to all ranks, and parts of their sums back, in one step: every rank writes words
// into the memory of the others and takes what they have written into its own. Words tell by
// themselves whether they are there, and buffers come in turns, as in peer_reduce.cu. A rank's rows
// may be more or fewer than another's.
//
//   gather  | own words -> all ranks, out | words of all ranks -> out |
//   scatter | words of a rank's rows -> that rank | own + words of all ranks -> out |
//
// A CTA has the words of the same number on all ranks, and waits for nothing else: any number of
// them may be running.
//
// Limit: for few rows latency, as peer_reduce. 64 rows of 4096 bf16 are 1.4 us at 370 GB/s, of fp32
// 2.8.
#include "kernels/exchange/peer_numbers.h"
#include "kernels/exchange/peer_rows.h"
#include "kernels/exchange/peer_word.h"
#include "ptx/grid_dependency.h"
#include "ptx/system_memory.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

// A word of each rank's rows, as one rank sees them.
class RankWords {
 public:
  __device__ explicit RankWords(const PeerRowsParams& params)
      : params_(params),
        part_(params.parts[blockIdx.y]),
        rank_(params.first_rank + static_cast<int>(blockIdx.y)),
        word_(static_cast<int>(blockIdx.x) * kPeerThreads + static_cast<int>(threadIdx.x)),
        own_(static_cast<uint4*>(params.memory[rank_])),
        kept_(reinterpret_cast<std::uint32_t*>(own_ + std::int64_t{kPeerBuffers} * params.ranks *
                                                          params.room) +
              blockIdx.x),
        turn_(*kept_) {}

  // Once all threads of the CTA have one of these.
  __device__ void keep_next() const { *kept_ = static_cast<std::uint32_t>(turn_.next); }

  // All words of the CTA, also where this call has fewer than the one that wrote them.
  __device__ void preset() const {
    for (int r = 0; r < params_.ranks; ++r)
      if (r != rank_) ptx::st_relaxed_sys_v4_u32(own_ + place(turn_.last, r), peer::empty_word());
  }

  __device__ void gather() const {
    if (word_ < params_.words[rank_]) {
      const uint4 mine = in(0);
      for (int r = 0; r < params_.ranks; ++r)
        if (r != rank_) send(r, mine);
      out(first(rank_), mine);
    }
    for (int r = 0; r < params_.ranks; ++r)
      if (r != rank_ && word_ < params_.words[r]) out(first(r), receive(r));
  }

  __device__ void scatter() const {
    for (int r = 0; r < params_.ranks; ++r)
      if (r != rank_ && word_ < params_.words[r]) send(r, in(first(r)));
    if (word_ >= params_.words[rank_]) return;
    const uint4 mine = in(first(rank_));
    peer::Numbers sum = {};
    for (int r = 0; r < params_.ranks; ++r) {
      const peer::Numbers numbers =
          peer::numbers_of(r == rank_ ? mine : receive(r), params_.is_bf16);
      for (int i = 0; i < 8; ++i) sum.v[i] = r == 0 ? numbers.v[i] : sum.v[i] + numbers.v[i];
    }
    out(0, peer::word_of(sum, params_.is_bf16));
  }

 private:
  __device__ std::int64_t place(int buffer, int from) const {
    return (std::int64_t{buffer} * params_.ranks + from) * params_.room + word_;
  }
  // Words of the ranks before it.
  __device__ std::int64_t first(int rank) const {
    std::int64_t words = 0;
    for (int r = 0; r < rank; ++r) words += params_.words[r];
    return words;
  }
  __device__ uint4 in(std::int64_t first) const {
    return peer::sendable(static_cast<const uint4*>(part_.in)[first + word_]);
  }
  __device__ void out(std::int64_t first, const uint4& word) const {
    static_cast<uint4*>(part_.out)[first + word_] = word;
  }
  __device__ void send(int rank, const uint4& word) const {
    ptx::st_relaxed_sys_v4_u32(
        static_cast<uint4*>(params_.memory[rank]) + place(turn_.buffer, rank_), word);
  }
  __device__ uint4 receive(int rank) const {
    return peer::wait_for(own_ + place(turn_.buffer, rank), params_.given_up);
  }

  const PeerRowsParams& params_;
  const PeerReducePart& part_;
  int rank_, word_;
  uint4* own_;
  std::uint32_t* kept_;
  peer::Turn turn_;
};

__device__ void exchange(const PeerRowsParams& params) {
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  const RankWords words(params);
  __syncthreads();  // all have read the turn
  if (threadIdx.x == 0) words.keep_next();
  words.preset();
  if (params.is_scatter)
    words.scatter();
  else
    words.gather();
}

}  // namespace

TILEWRIGHT_KERNEL(peer_rows, PeerRowsParams, __launch_bounds__(kPeerThreads, 4), exchange)

}  // namespace tilewright::kernels
