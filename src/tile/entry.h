// The entries of kernels.
#pragma once

/// Entry ENTRY, whose one struct of arguments stays in the constant bank: calls the device function
/// that the last argument names. LAUNCH is __launch_bounds__(...), after __cluster_dims__(...) if
/// CTAs come in clusters. It stands in the namespace of the kernel, behind the unnamed one.
#define TILEWRIGHT_KERNEL(ENTRY, PARAMS, LAUNCH, ...)                              \
  extern "C" __global__ void LAUNCH ENTRY(const __grid_constant__ PARAMS params) { \
    __VA_ARGS__(params);                                                           \
  }
