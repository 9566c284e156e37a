// Copies of blocks, as the driver takes them.
#pragma once

#include "sim/runtime/abi.h"

namespace tilewright::sim::runtime {

/// Errors   cudaErrorInvalidMemcpyDirection, cudaErrorInvalidPitchValue
CUDA_MEMCPY3D driver_copy(const cudaMemcpy3DParms& copy);
/// bytes in a row, in the same form.
CUDA_MEMCPY3D driver_copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind);

/// A part of a variable on the device.
/// Errors   as find_variable(); cudaErrorInvalidValue if it goes beyond the end
void* part_of(const void* symbol, std::size_t bytes, std::size_t offset);

}  // namespace tilewright::sim::runtime
