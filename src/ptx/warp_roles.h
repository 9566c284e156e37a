// What warps with different roles need: barriers of a part of the CTA, registers handed from one
// warpgroup to another, one lane out of a warp. PTX ISA: "bar, barrier", "setmaxnreg",
// "elect.sync".
#pragma once

#include <cstdint>

namespace tilewright::ptx {

/// Barrier `Id` (1 to 15; 0 is __syncthreads) of `Threads` threads, whole warps. Orders their
/// accesses to shared and global memory, at CTA scope.
template <int Id, int Threads>
__device__ inline void bar_sync() {
  static_assert(Id >= 1 && Id < 16 && Threads % 32 == 0);
  asm volatile("bar.sync %0, %1;" ::"n"(Id), "n"(Threads) : "memory");
}

/// The same with the number in a register, for one barrier per warpgroup.
template <int Threads>
__device__ inline void bar_sync(std::uint32_t id) {
  static_assert(Threads % 32 == 0);
  asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(Threads) : "memory");
}

/// The same, of a number of threads that is known at the launch.
__device__ inline void bar_sync(std::uint32_t id, std::uint32_t threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/// Arrives at barrier `id` without waiting; `Threads` counts those that wait as well.
template <int Threads>
__device__ inline void bar_arrive(std::uint32_t id) {
  static_assert(Threads % 32 == 0);
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "n"(Threads) : "memory");
}

/// Gives registers beyond Count (24 to 256, a multiple of 8) back to the CTA. Whole warpgroups.
template <int Count>
__device__ inline void setmaxnreg_dec_sync_aligned() {
  static_assert(Count >= 24 && Count <= 256 && Count % 8 == 0);
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Count));
}

/// Waits until that many registers are free, and takes them. Whole warpgroups.
template <int Count>
__device__ inline void setmaxnreg_inc_sync_aligned() {
  static_assert(Count >= 24 && Count <= 256 && Count % 8 == 0);
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Count));
}

/// The same value, which all lanes of a converged warp hold, in a form that the compiler knows to
/// be one for the whole warp: addresses made of it, and loops that depend on it, stay in uniform
/// registers.
template <class T>
__device__ inline T uniform(T value) {
  return __shfl_sync(0xffffffffu, value, 0);
}

/// True in one lane of a converged warp, always the same one.
__device__ inline bool elect_sync() {
  std::uint32_t is_elected;
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "elect.sync _|p, 0xffffffff;\n"
      "selp.u32 %0, 1, 0, p;\n"
      "}\n"
      : "=r"(is_elected));
  return is_elected != 0;
}

}  // namespace tilewright::ptx
