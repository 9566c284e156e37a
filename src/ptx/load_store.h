// Loads that the compiler must leave where they are. PTX ISA: "ld", ".volatile".
#pragma once

#include <cstdint>

namespace tilewright::ptx {

/// Neither repeated, nor removed, nor moved across other memory operations and barriers.
__device__ inline float ld_volatile_shared_f32(std::uint32_t address) {
  float value;
  asm volatile("ld.volatile.shared.f32 %0, [%1];" : "=f"(value) : "r"(address) : "memory");
  return value;
}

/// 16 bytes at a multiple of 16.
__device__ inline float4 ld_shared_v4_f32(std::uint32_t address) {
  float4 v;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "r"(address)
               : "memory");
  return v;
}

/// 16, 8 and 4 bytes, aligned, from shared memory. They stay behind the barrier wait before them
/// and before the arrival after them; among other instructions they may move.
__device__ inline uint4 ld_shared_v4_u32(std::uint32_t address) {
  uint4 words;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
               : "r"(address));
  return words;
}
__device__ inline uint2 ld_shared_v2_u32(std::uint32_t address) {
  uint2 words;
  asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(words.x), "=r"(words.y) : "r"(address));
  return words;
}
__device__ inline std::uint32_t ld_shared_u32(std::uint32_t address) {
  std::uint32_t word;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(address));
  return word;
}

/// 16 and 8 aligned bytes that no thread writes meanwhile, from global memory past the first cache.
/// `policy` as createpolicy makes it.
__device__ inline uint4 ld_global_nc_no_allocate_v4_u32(const void* from, std::uint64_t policy) {
  uint4 words;
  asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
               : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
               : "l"(from), "l"(policy));
  return words;
}
__device__ inline uint2 ld_global_nc_no_allocate_v2_u32(const void* from, std::uint64_t policy) {
  uint2 words;
  asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.v2.u32 {%0, %1}, [%2], %3;"
               : "=r"(words.x), "=r"(words.y)
               : "l"(from), "l"(policy));
  return words;
}
__device__ inline std::uint32_t ld_global_nc_no_allocate_u32(const void* from,
                                                             std::uint64_t policy) {
  std::uint32_t word;
  asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.u32 %0, [%1], %2;"
               : "=r"(word)
               : "l"(from), "l"(policy));
  return word;
}

/// Four aligned bytes to shared memory.
__device__ inline void st_shared_u32(std::uint32_t address, std::uint32_t word) {
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(address), "r"(word) : "memory");
}

/// 16 and 8 aligned bytes without a policy.
__device__ inline uint4 ld_global_nc_no_allocate_v4_u32(const void* from) {
  uint4 words;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
               : "l"(from));
  return words;
}
__device__ inline uint2 ld_global_nc_no_allocate_v2_u32(const void* from) {
  uint2 words;
  asm volatile("ld.global.nc.L1::no_allocate.v2.u32 {%0, %1}, [%2];"
               : "=r"(words.x), "=r"(words.y)
               : "l"(from));
  return words;
}
/// Four aligned bytes that no thread writes meanwhile, from global memory; not moved behind waits
/// that follow.
__device__ inline std::uint32_t ld_global_nc_u32(const void* from) {
  std::uint32_t word;
  asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(word) : "l"(from));
  return word;
}

__device__ inline std::uint32_t ld_global_nc_no_allocate_u32(const void* from) {
  std::uint32_t word;
  asm volatile("ld.global.nc.L1::no_allocate.u32 %0, [%1];" : "=r"(word) : "l"(from));
  return word;
}

/// What the L2 cache has: another may be writing it.
__device__ inline std::int32_t ld_relaxed_gpu_s32(const std::int32_t* from) {
  std::int32_t value;
  asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
}

/// A flag in global memory between CTAs: what was written before it, also by threads that met the
/// writer at a barrier, is visible to its readers. PTX ISA: "st", ".release"; "ld", ".acquire".
__device__ inline void st_release_gpu_u64(std::uint64_t* to, std::uint64_t value) {
  asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
}
__device__ inline std::uint64_t ld_acquire_gpu_u64(const std::uint64_t* from) {
  std::uint64_t value;
  asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
  return value;
}

}  // namespace tilewright::ptx
