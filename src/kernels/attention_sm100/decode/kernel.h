// The body of the decode kernels on Blackwell's tensor core: see decode_16bit.cu.
#pragma once

#include "kernels/attention_sm100/decode/finish.h"
#include "kernels/attention_sm100/decode/loader.h"
#include "kernels/attention_sm100/decode/multiply.h"
#include "ptx/grid_dependency.h"

#include <cstdint>

namespace tilewright::tile {

/// Warps 0-3: all segments of the agenda as it is.
template <class Decode>
__device__ void attend(const Decode& d, DecodeAttender<Decode>& attender,
                       DecodeFinisher<Decode>& finisher) {
#pragma unroll 1
  for (std::int32_t i = 0; i < d.state.agenda.count(); ++i) {
    const DecodeSegment& segment = d.state.agenda[i];
    const std::int32_t steps = Decode::steps(segment);
    const unsigned long long seen = finisher.look(segment);
    attender.begin(segment, steps > 0);
#pragma unroll 1
    for (std::int32_t step = 0; step < steps; ++step) attender.add_step(segment, step);
    finisher.store(segment, steps > 0, seen);
  }
}

template <bool IsCodes, int Rows>
__device__ void decode_by_tensor_core(const kernels::TensorDecodeParams& params) {
  using Decode = TensorDecode<IsCodes, Rows>;
  extern __shared__ __align__(1024) std::uint8_t dynamic[];
  const kernels::TensorDecodeShape shape = {params.width, IsCodes, Rows};
  std::uint8_t* const queries = dynamic + shape.stages() * shape.item_bytes();
  std::uint8_t* const weights = queries + shape.query_bytes();
  auto& state = *reinterpret_cast<TensorDecodeState*>(weights + shape.weight_or_exchange_bytes());
  const bool has_boxes = params.has_boxes != 0;
  const std::uint32_t columns = open_tensor_memory<Decode::kAllocated>(state.tensor_memory, [&] {
    state.initialise(shape.stages(), has_boxes ? 1 : 32 * kDecodeGatherWarps);
  });
  const Decode d = {params,
                    params.decode,
                    state,
                    ptx::shared_address(dynamic),
                    ptx::shared_address(queries),
                    ptx::shared_address(weights),
                    static_cast<std::uint32_t>(shape.stages()),
                    columns};
  const std::uint32_t warp = ptx::uniform(threadIdx.x / 32);
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();

  DecodeAttender<Decode> attender(d);
  DecodeFinisher<Decode> finisher = {d, attender, reinterpret_cast<float*>(weights)};
  DecodeMultiplier<Decode> multiplier(d);
  TensorDecodeBoxes<Decode> boxes(d);
  TensorDecodeGather<Decode> gather(d);
  if (warp == 0) state.agenda.begin(d.p, d.p.lengths, static_cast<std::int32_t>(blockIdx.x), 0, 0);
  if (warp < kDecodeMmaWarp) attender.clear_unused_lanes();
  while (true) {
    __syncthreads();
    if (warp < kDecodeMmaWarp) {
      attend(d, attender, finisher);
    } else if (warp == kDecodeMmaWarp) {
      if (ptx::elect_sync()) multiplier.run();
      __syncwarp();
    } else if (warp == kDecodeBoxWarp) {
      if (has_boxes) boxes.run();
    } else if (!has_boxes) {
      gather.run();
    }
    if (state.agenda.is_last()) break;
    __syncthreads();
    if (threadIdx.x == 0) state.agenda.fill(d.p.lengths, 0, 0);
  }
  __syncwarp();
  close_tensor_memory<Decode::kAllocated>(columns);
}

}  // namespace tilewright::tile

#define TILEWRIGHT_TENSOR_DECODE_ENTRY(NAME, IS_CODES, ROWS)                                 \
  extern "C" __global__ void __launch_bounds__(tilewright::kernels::kTensorDecodeThreads, 1) \
      decode_tensor_##NAME##_r##ROWS(                                                        \
          const __grid_constant__ tilewright::kernels::TensorDecodeParams params) {          \
    tilewright::tile::decode_by_tensor_core<IS_CODES, ROWS>(params);                         \
  }
