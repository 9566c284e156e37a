// Between the bytes of 32 lanes that lie side by side in memory, N elements of each, and N rows.
// Compilers turn the loops into element-wise moves where N is 4, hence the vectors.
#pragma once

#include "sim/state/insn.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <immintrin.h>

namespace tilewright::sim {

namespace lane_blocks {

inline __m256i load(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}
inline void store(void* to, __m256i value) {
  _mm256_storeu_si256(static_cast<__m256i*>(to), value);
}

struct Four {
  __m256i v[4];
  __m256i& operator[](int i) { return v[i]; }
};

/// Transposes 4 x 4 words in each half.
inline void transpose(Four& v) {
  const __m256i a = _mm256_unpacklo_epi32(v[0], v[1]), b = _mm256_unpackhi_epi32(v[0], v[1]);
  const __m256i c = _mm256_unpacklo_epi32(v[2], v[3]), d = _mm256_unpackhi_epi32(v[2], v[3]);
  v = {{_mm256_unpacklo_epi64(a, c), _mm256_unpackhi_epi64(a, c), _mm256_unpacklo_epi64(b, d),
        _mm256_unpackhi_epi64(b, d)}};
}

}  // namespace lane_blocks

/// rows[j][lane] = element j of lane's bytes.
template <class T, int N>
inline void rows_from_lanes(const std::byte* from, const std::array<T*, N>& rows) {
  if constexpr (N == 1) {
    std::memcpy(rows[0], from, sizeof(T) * kLanes);
  } else if constexpr (N == 4 && sizeof(T) == 4) {
    for (std::size_t lane = 0; lane < kLanes; lane += 8, from += 128) {
      lane_blocks::Four v;
      for (int i = 0; i < 4; ++i) {
        v[i] = _mm256_loadu2_m128i(reinterpret_cast<const __m128i*>(from + 64 + 16 * i),
                                   reinterpret_cast<const __m128i*>(from + 16 * i));
      }
      lane_blocks::transpose(v);
      for (int j = 0; j < 4; ++j) lane_blocks::store(rows[j] + lane, v[j]);
    }
  } else {
    T values[kLanes][N];
    std::memcpy(values, from, sizeof values);
    for (int j = 0; j < N; ++j) {
      T* row = rows[j];
      for (int lane = 0; lane < kLanes; ++lane) row[lane] = values[lane][j];
    }
  }
}

/// The other way.
template <class T, int N>
inline void lanes_from_rows(std::byte* to, const std::array<const T*, N>& rows) {
  if constexpr (N == 1) {
    std::memcpy(to, rows[0], sizeof(T) * kLanes);
  } else if constexpr (N == 4 && sizeof(T) == 4) {
    for (std::size_t lane = 0; lane < kLanes; lane += 8, to += 128) {
      lane_blocks::Four v;
      for (int j = 0; j < 4; ++j) v[j] = lane_blocks::load(rows[j] + lane);
      lane_blocks::transpose(v);
      for (int i = 0; i < 4; ++i) {
        _mm256_storeu2_m128i(reinterpret_cast<__m128i*>(to + 64 + 16 * i),
                             reinterpret_cast<__m128i*>(to + 16 * i), v[i]);
      }
    }
  } else {
    T values[kLanes][N];
    for (int j = 0; j < N; ++j) {
      const T* row = rows[j];
      for (int lane = 0; lane < kLanes; ++lane) values[lane][j] = row[lane];
    }
    std::memcpy(to, values, sizeof values);
  }
}

}  // namespace tilewright::sim
