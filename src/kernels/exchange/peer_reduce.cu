// targets: sm_90a sm_100f
//
// A sum over ranks in one step: every rank writes its words into the memory of every other, and
// adds what the others have written into its own, in the order of the ranks, so that all have the
// same bits.
//
// Flags    none: words are preset to a NaN that no sender sends, and a word is there when none of
//          its four numbers is that. So nothing has to be ordered, not even the halves of a word
// Buffers  three in turns. A call writes one, reads it, and presets the one of the call before. A
//          rank that is ahead has got what this rank sent in the same call, so it is one call
//          ahead at most, and writes a buffer that was preset a call ago. A CTA has its words and
//          its turn for itself
//
// Limit: a store to another GPU is seen there after about 1 us, the poll costs a round trip of L2.
// 16 KB are 44 ns at 370 GB/s.
#include "kernels/exchange/peer_numbers.h"
#include "kernels/exchange/peer_reduce.h"
#include "kernels/exchange/peer_word.h"
#include "ptx/grid_dependency.h"
#include "ptx/system_memory.h"

extern "C" __global__ void __launch_bounds__(tilewright::kernels::kPeerThreads)
    peer_reduce(const __grid_constant__ tilewright::kernels::PeerReduceParams params) {
  using namespace tilewright;
  using namespace tilewright::kernels;
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  const PeerReducePart& part = params.parts[blockIdx.y];
  const int rank = params.first_rank + static_cast<int>(blockIdx.y);
  const int word = static_cast<int>(blockIdx.x) * kPeerThreads + static_cast<int>(threadIdx.x);
  auto* const own = static_cast<uint4*>(params.memory[rank]);
  auto* const turn = reinterpret_cast<std::uint32_t*>(own + peer_words(params.ranks)) + blockIdx.x;
  const peer::Turn of(*turn);
  __syncthreads();  // all have read it
  if (threadIdx.x == 0) *turn = static_cast<std::uint32_t>(of.next);
  const auto place = [&](int of_buffer, int from) {
    return (of_buffer * params.ranks + from) * kPeerWords + word;
  };
  // All words of the CTA, also where this call has fewer than the one that wrote them.
  for (int r = 0; r < params.ranks; ++r)
    if (r != rank) ptx::st_relaxed_sys_v4_u32(own + place(of.last, r), peer::empty_word());
  if (word >= params.words) return;
  const uint4 mine = peer::sendable(static_cast<const uint4*>(part.in)[word]);
  for (int r = 0; r < params.ranks; ++r)
    if (r != rank)
      ptx::st_relaxed_sys_v4_u32(static_cast<uint4*>(params.memory[r]) + place(of.buffer, rank),
                                 mine);
  peer::Numbers sum = {};
  for (int r = 0; r < params.ranks; ++r) {
    const uint4 theirs =
        r == rank ? mine : peer::wait_for(own + place(of.buffer, r), params.given_up);
    const peer::Numbers numbers = peer::numbers_of(theirs, params.is_bf16);
    for (int i = 0; i < 8; ++i) sum.v[i] = r == 0 ? numbers.v[i] : sum.v[i] + numbers.v[i];
  }
  static_cast<uint4*>(part.out)[word] = peer::word_of(sum, params.is_bf16);
}
