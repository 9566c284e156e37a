// A barrier of a part of the CTA that also votes. PTX ISA: "bar, barrier".
#pragma once

#include <cstdint>

namespace tilewright::ptx {

/// Barrier `id` (1 to 15) of `Threads` threads, whole warps, as bar_sync: and is `value` true in
/// any of them?
template <int Threads>
__device__ inline bool bar_red_or(std::uint32_t id, bool value) {
  static_assert(Threads % 32 == 0);
  std::uint32_t is_any;
  asm volatile(
      "{\n"
      ".reg .pred p, q;\n"
      "setp.ne.u32 p, %1, 0;\n"
      "bar.red.or.pred q, %2, %3, p;\n"
      "selp.u32 %0, 1, 0, q;\n"
      "}\n"
      : "=r"(is_any)
      : "r"(static_cast<std::uint32_t>(value)), "r"(id), "n"(Threads)
      : "memory");
  return is_any != 0;
}

}  // namespace tilewright::ptx
