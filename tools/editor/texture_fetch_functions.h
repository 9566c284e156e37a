// Clang 14's CUDA mode includes a file of this name, which CUDA 13 has no more. It is read for
// editors only (tools/compile_commands.py), and holds what that clang does not declare.
#pragma once

__device__ unsigned __reduce_add_sync(unsigned mask, unsigned value);
__device__ unsigned __reduce_max_sync(unsigned mask, unsigned value);
__device__ unsigned __reduce_min_sync(unsigned mask, unsigned value);
