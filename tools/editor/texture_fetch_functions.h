// Clang 14's CUDA mode includes a file of this name, which CUDA 13 has no more. It is read for
// editors only (tools/compile_commands.py), and holds what that clang does not declare.
#pragma once

#ifndef __noinline__
#define __noinline__ __attribute__((noinline))
#endif

__device__ unsigned __reduce_add_sync(unsigned mask, unsigned value);
__device__ unsigned __reduce_max_sync(unsigned mask, unsigned value);
__device__ unsigned __reduce_min_sync(unsigned mask, unsigned value);
__device__ unsigned __reduce_xor_sync(unsigned mask, unsigned value);
template <class T>
__device__ T __ldcg(const T* address);
template <class T>
__device__ void __stcg(T* address, T value);
