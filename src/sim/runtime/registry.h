// What a program compiled by nvcc registers before main: its fat binaries, and the host's names for
// the kernels and variables in them. Code is loaded when the first of its kernels or variables is
// used.
#pragma once

#include "sim/runtime/abi.h"

namespace tilewright::sim::runtime {

struct Variable {
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
};

/// The kernel of a __global__ function's address, or the handle itself if it is one of the
/// driver's. Errors   cudaErrorInvalidDeviceFunction, and what is wrong with the code it stands in
CUfunction find_kernel(const void* function);

/// The device's copy of the variable whose host name stands at that address.
/// Errors   cudaErrorInvalidSymbol, and what is wrong with the code it stands in
Variable find_variable(const void* symbol);

/// Managed variables live in a context: tells the program where they are after a reset.
void renew_managed_variables();

}  // namespace tilewright::sim::runtime
