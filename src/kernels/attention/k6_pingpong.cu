// targets: sm_90a
#include "kernels/attention/k6_pingpong.cuh"

#define ENTRY(NAME, ...)                                                           \
  extern "C" __global__ void __launch_bounds__((Config<__VA_ARGS__>::kThreads), 1) \
      NAME(const __grid_constant__ tilewright::kernels::AttentionParams params) {  \
    tilewright::kernels::attention_forward<Config<__VA_ARGS__>>(params);           \
  }
using tilewright::kernels::Config;
using tilewright::tile::Bf16;
using tilewright::tile::Fp16;
ENTRY(attention_k6_bf16_d64, Bf16, 64, 3, 128, 0, false, true, 2)
ENTRY(attention_k6_bf16_d128, Bf16, 128, 2, 128, 0, true, true, 1)
ENTRY(attention_k6_bf16_d256, Bf16, 256, 2, 80, 0, true, true, 1)
ENTRY(attention_k6_f16_d64, Fp16, 64, 3, 128, 0, false, true, 2)
