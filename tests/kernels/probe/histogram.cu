// targets: sm_90a sm_100f
//
// Atomics: shared and global, with and without a result, integer and float, a compare-and-swap
// loop, and the CTA that finishes last and therefore sees what all the others wrote.
#include "kernels/probe/histogram.h"

namespace tilewright::kernels {
namespace {

// The maximum of a word that began as 0, by compare and swap.
__device__ void raise_to(std::uint32_t* word, std::uint32_t value) {
  std::uint32_t seen = 0;
  while (seen < value) {
    const std::uint32_t before = atomicCAS(word, seen, value);
    if (before == seen) return;
    seen = before;
  }
}

__device__ bool is_last_to_finish(const HistogramParams& params) {
  __shared__ bool is_last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) is_last = atomicAdd(params.num_finished, 1u) == gridDim.x - 1;
  __syncthreads();
  __threadfence();
  return is_last;
}

}  // namespace
}  // namespace tilewright::kernels

extern "C" __global__ void __launch_bounds__(tilewright::kernels::kHistogramThreads)
    histogram(const __grid_constant__ tilewright::kernels::HistogramParams params) {
  using namespace tilewright::kernels;
  static_assert(kHistogramThreads == kHistogramBins, "a thread per bin");
  __shared__ std::uint32_t counts[kHistogramBins], last[kHistogramBins];
  __shared__ unsigned long long index_sum;
  const unsigned bin = threadIdx.x;
  counts[bin] = 0;
  last[bin] = 0;
  if (bin == 0) index_sum = 0;
  __syncthreads();
  for (std::uint32_t i = blockIdx.x * kHistogramThreads + threadIdx.x; i < params.count;
       i += gridDim.x * kHistogramThreads) {
    const std::uint32_t value = params.values[i];
    atomicAdd(&counts[value], 1u);
    raise_to(&last[value], i);
    atomicMin(&params.first_index[value], i);
    atomicAdd(&index_sum, static_cast<unsigned long long>(i + 1) * value);
  }
  __syncthreads();
  if (counts[bin] != 0) {
    atomicAdd(&params.counts[bin], counts[bin]);
    atomicAdd(&params.weights[bin], 0.5f * static_cast<float>(counts[bin]));
    atomicMax(&params.last_index[bin], last[bin]);
  }
  if (bin == 0) atomicAdd(params.index_sum, index_sum);

  if (!is_last_to_finish(params)) return;
  __shared__ std::uint32_t total;
  if (bin == 0) total = 0;
  __syncthreads();
  atomicAdd(&total, __ldcg(&params.counts[bin]));
  __syncthreads();
  if (bin == 0) *params.total = total;
}
