// 8x8 matrices of 16-bit elements between shared memory and registers. PTX ISA: "ldmatrix",
// "stmatrix". Fragments: arch/fragments/matrix_copy.h.
#pragma once

#include <cstdint>

namespace tilewright::ptx {

// The four forms of a count differ in the spelled operand lists only.
#define TILEWRIGHT_LDMATRIX(COUNT, TRANS, DESTINATION, ADDRESS, ...)                              \
  asm volatile("ldmatrix.sync.aligned.m8n8." COUNT TRANS ".shared.b16 " DESTINATION ", [" ADDRESS \
               "];"                                                                               \
               : __VA_ARGS__                                                                      \
               : "r"(address)                                                                     \
               : "memory")

/// Loads Count matrices; lane 8j + r gives the address of row r of matrix j. One register a matrix.
template <int Count, bool Transposed = false>
__device__ inline void ldmatrix(std::uint32_t (&d)[Count], std::uint32_t address) {
  static_assert(Count == 1 || Count == 2 || Count == 4, "ldmatrix loads 1, 2 or 4 matrices");
  if constexpr (Count == 1 && !Transposed) {
    TILEWRIGHT_LDMATRIX("x1", "", "{%0}", "%1", "=r"(d[0]));
  } else if constexpr (Count == 1) {
    TILEWRIGHT_LDMATRIX("x1", ".trans", "{%0}", "%1", "=r"(d[0]));
  } else if constexpr (Count == 2 && !Transposed) {
    TILEWRIGHT_LDMATRIX("x2", "", "{%0, %1}", "%2", "=r"(d[0]), "=r"(d[1]));
  } else if constexpr (Count == 2) {
    TILEWRIGHT_LDMATRIX("x2", ".trans", "{%0, %1}", "%2", "=r"(d[0]), "=r"(d[1]));
  } else if constexpr (!Transposed) {
    TILEWRIGHT_LDMATRIX("x4", "", "{%0, %1, %2, %3}", "%4", "=r"(d[0]), "=r"(d[1]), "=r"(d[2]),
                        "=r"(d[3]));
  } else {
    TILEWRIGHT_LDMATRIX("x4", ".trans", "{%0, %1, %2, %3}", "%4", "=r"(d[0]), "=r"(d[1]),
                        "=r"(d[2]), "=r"(d[3]));
  }
}
#undef TILEWRIGHT_LDMATRIX

#define TILEWRIGHT_STMATRIX(COUNT, TRANS, SOURCE, ...)                               \
  asm volatile("stmatrix.sync.aligned.m8n8." COUNT TRANS ".shared.b16 [%0], " SOURCE \
               ";" ::"r"(address),                                                   \
               __VA_ARGS__                                                           \
               : "memory")

/// Stores Count matrices; the inverse of ldmatrix.
template <int Count, bool Transposed = false>
__device__ inline void stmatrix(std::uint32_t address, const std::uint32_t (&s)[Count]) {
  static_assert(Count == 1 || Count == 2 || Count == 4, "stmatrix stores 1, 2 or 4 matrices");
  if constexpr (Count == 1 && !Transposed) {
    TILEWRIGHT_STMATRIX("x1", "", "{%1}", "r"(s[0]));
  } else if constexpr (Count == 1) {
    TILEWRIGHT_STMATRIX("x1", ".trans", "{%1}", "r"(s[0]));
  } else if constexpr (Count == 2 && !Transposed) {
    TILEWRIGHT_STMATRIX("x2", "", "{%1, %2}", "r"(s[0]), "r"(s[1]));
  } else if constexpr (Count == 2) {
    TILEWRIGHT_STMATRIX("x2", ".trans", "{%1, %2}", "r"(s[0]), "r"(s[1]));
  } else if constexpr (!Transposed) {
    TILEWRIGHT_STMATRIX("x4", "", "{%1, %2, %3, %4}", "r"(s[0]), "r"(s[1]), "r"(s[2]), "r"(s[3]));
  } else {
    TILEWRIGHT_STMATRIX("x4", ".trans", "{%1, %2, %3, %4}", "r"(s[0]), "r"(s[1]), "r"(s[2]),
                        "r"(s[3]));
  }
}
#undef TILEWRIGHT_STMATRIX

}  // namespace tilewright::ptx
