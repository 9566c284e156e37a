// Operands for sweeps of test programs, the same words as tools/ptx/ptx_sweep.py makes: random,
// about one, small integers, ties, and the special values of floats of 16, 32 and 64 bits.
#pragma once

#include "tests/sim/insn/ptx_case.h"

#include <cstdint>
#include <span>
#include <vector>

namespace tilewright::sim {

inline constexpr std::size_t kSweepSets = 2048;  ///< sets of operands, one for a lane of a launch
inline constexpr std::size_t kSweepLaunches = kSweepSets / kPtxLanes;

/// The end of splitmix64.
inline std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

template <class T>
std::uint64_t digest(std::span<const T> words) {
  std::uint64_t sum = 0;
  for (const T word : words) sum = mix(sum * 3 + word + 0x9e3779b97f4a7c15);
  return sum;
}

inline constexpr std::uint64_t kSpecial16[] = {
    0x0,    0x8000, 0x1,    0x8001, 0x3ff,  0x400,  0x3c00, 0xbc00, 0x7bff,
    0x7c00, 0xfc00, 0x7e00, 0x7c01, 0xffff, 0x7fff, 0x3f80, 0xbf80, 0x7f7f,
    0x7f80, 0xff80, 0x7fc0, 0x80,   0x7f,   0x3c01, 0x6400, 0x5800};
inline constexpr std::uint64_t kSpecial32[] = {
    0x0,        0x80000000, 0x1,        0x80000001, 0x7fffff,   0x800000,   0x807fffff, 0x3f800000,
    0xbf800000, 0x3f800001, 0x3f7fffff, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000,
    0x7f800001, 0xffffffff, 0x7fffffff, 0x4b000000, 0x4b800001, 0x4effffff, 0x4f000000, 0xcf000000,
    0x4f800000, 0x5f000000, 0x3f000000, 0x3effffff, 0x33800000, 0x477fe000, 0x477ff000, 0x38800000,
    0x337fffff, 0x43e00000, 0x47600000, 0x7f7f8000};
inline constexpr std::uint64_t kSpecial64[] = {0x0,
                                               0x8000000000000000,
                                               0x1,
                                               0xfffffffffffff,
                                               0x10000000000000,
                                               0x3ff0000000000000,
                                               0xbff0000000000000,
                                               0x3ff0000000000001,
                                               0x3fefffffffffffff,
                                               0x7fefffffffffffff,
                                               0x7ff0000000000000,
                                               0xfff0000000000000,
                                               0x7ff8000000000000,
                                               0x7ff0000000000001,
                                               0xffffffffffffffff,
                                               0x7fffffffffffffff,
                                               0x4330000000000000,
                                               0x41e0000000000000,
                                               0xc1e0000000200000,
                                               0x43e0000000000000,
                                               0x47efffffe0000000,
                                               0x47effffff0000000,
                                               0x3810000000000000,
                                               0x36a0000000000000,
                                               0x3690000000000001,
                                               0x3fe0000000000000};

/// A word of so many bits, as for a float with such a mantissa.
inline std::uint64_t pick(std::uint64_t r, std::span<const std::uint64_t> special, int bits,
                          int mantissa) {
  const std::uint64_t kind = r & 15, mask = bits == 64 ? ~0ULL : (1ULL << bits) - 1;
  const std::uint64_t word = (r >> 4) & mask;
  if (kind < 5) return special[(r >> 16) % special.size()];
  const std::uint64_t sign = word >> (bits - 1) << (bits - 1);
  const std::uint64_t one = ((1ULL << (bits - mantissa - 2)) - 1) << mantissa;
  const std::uint64_t near = ((r >> 58) % 25 - 12) << mantissa;
  if (kind < 8) return (sign | (one + near + (word & ((1ULL << mantissa) - 1)))) & mask;
  if (kind < 10) return ((r >> 8 & 255) - 128) & mask;
  if (kind < 12) return (sign | (one + near + ((r >> 8 & 31) << (mantissa - 5)))) & mask;
  return word;
}

/// Operand k of a set.
inline std::uint64_t sweep_operand(std::uint64_t set, std::uint64_t k) {
  std::uint64_t r = mix(set * 8 + k + 0x9e3779b97f4a7c15);
  if (set % 8 == 7 && k > 0) {  // near the first operand: cancellation, equality
    const std::uint64_t flips = (r >> 8 & 1) << 31 | (r >> 9 & 1) << 63 | (r >> 10 & 1) << 15;
    return (sweep_operand(set, 0) ^ flips) + r % 5 - 2;
  }
  std::uint64_t word = 0;
  switch (set >> 9) {
    case 1:
      return pick(r, kSpecial32, 32, 23) | pick(mix(r), kSpecial32, 32, 23) << 32;
    case 2:
      return pick(r, kSpecial64, 64, 52);
    case 3:
      for (int half = 0; half < 4; ++half, r = mix(r)) {
        word |= pick(r, kSpecial16, 16, 10) << (16 * half);
      }
      return word;
    default:
      return r;
  }
}

/// What a launch of a sweep finds in memory: operand 0 of all lanes, operand 1, and so on.
inline std::vector<std::uint64_t> sweep_operands(std::size_t launch, std::size_t count) {
  std::vector<std::uint64_t> words;
  for (std::size_t k = 0; k < count; ++k) {
    for (std::size_t lane = 0; lane < kPtxLanes; ++lane) {
      words.push_back(sweep_operand(launch * kPtxLanes + lane, k));
    }
  }
  return words;
}

}  // namespace tilewright::sim
