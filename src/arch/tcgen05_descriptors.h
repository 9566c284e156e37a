// The descriptors of tcgen05.mma: of operands in shared memory, and of the instruction. Source: PTX
// ISA, "tcgen05: Shared memory descriptor" and "Instruction descriptor".
#pragma once

#include "arch/smem_descriptor.h"

#include <cstdint>

namespace tilewright::arch {

/// As for wgmma, but bits 48..46 hold the constant 0b001 and bits 63..61 the swizzle (0 none, 1 128
/// B with 32 B atoms, 2 128 B, 4 64 B, 6 32 B). Bit 52 (absolute leading offset, sm_103a) stays 0.
constexpr std::uint64_t encode_tcgen05_descriptor(const SmemDescriptor& d) {
  std::uint64_t mode = 0;
  if (d.swizzle == SmemSwizzle::k128B32BAtom) mode = 1;
  if (d.swizzle == SmemSwizzle::k128B) mode = 2;
  if (d.swizzle == SmemSwizzle::k64B) mode = 4;
  if (d.swizzle == SmemSwizzle::k32B) mode = 6;
  return detail::encode_common(d) | std::uint64_t{1} << 46 | mode << 61;
}

/// The same of a box at a shared-memory address that is known at run time.
template <SmemBox Box, Major M = Major::kK>
constexpr std::uint64_t tcgen05_descriptor(std::uint32_t address) {
  constexpr std::uint64_t kAtZero = encode_tcgen05_descriptor(Box.describe(M));
  return kAtZero | address >> 4;
}

/// Codes of the operand formats; which table counts depends on the kind.
enum class MmaF16Type : std::uint32_t { kF16 = 0, kBf16 = 1 };  // kind::f16
enum class MmaF8Type : std::uint32_t { kE4m3 = 0, kE5m2 = 1, kE2m3 = 3, kE3m2 = 4, kE2m1 = 5 };
inline constexpr std::uint32_t kMmaF4TypeE2m1 = 1;  // kinds mxf4, mxf4nvf4
enum class MmaAccumulator : std::uint32_t { kF16 = 0, kF32 = 1, kS32 = 2 };
enum class MmaScaleType : std::uint32_t { kUe4m3 = 0, kUe8m0 = 1 };

/// Kinds f16, tf32, f8f6f4 and i8, dense:
///   bits 5..4 accumulator, 9..7 type of A, 12..10 type of B, 15 / 16 A / B is MN-major,
///   22..17 N / 8, 28..24 M / 16. M counts the rows of both CTAs of a pair.
struct MmaInstruction {
  MmaAccumulator accumulator = MmaAccumulator::kF32;
  std::uint32_t a_type = 0, b_type = 0;
  Major a_major = Major::kK, b_major = Major::kK;
  std::uint32_t m = 128, n = 128;
};

constexpr std::uint32_t encode_mma_instruction(const MmaInstruction& i) {
  return static_cast<std::uint32_t>(i.accumulator) << 4 | i.a_type << 7 | i.b_type << 10 |
         std::uint32_t{i.a_major == Major::kMN} << 15 |
         std::uint32_t{i.b_major == Major::kMN} << 16 | i.n >> 3 << 17 | i.m >> 4 << 24;
}

/// Kinds with block scales, dense; mxf8f6f4, mxf4 and mxf4nvf4 (whose types are both 1 and majors
/// K): as above without an accumulator type, and
///   bits 5..4 and 30..29 which byte of a cell the scales of B and A begin at, 23 their format.
struct BlockScaledMmaInstruction {
  std::uint32_t a_type = 0, b_type = 0;
  Major a_major = Major::kK, b_major = Major::kK;
  std::uint32_t m = 128, n = 128;
  MmaScaleType scale_type = MmaScaleType::kUe8m0;
  std::uint32_t a_scale_id = 0, b_scale_id = 0;
};

constexpr std::uint32_t encode_mma_instruction(const BlockScaledMmaInstruction& i) {
  return i.b_scale_id << 4 | i.a_type << 7 | i.b_type << 10 |
         std::uint32_t{i.a_major == Major::kMN} << 15 |
         std::uint32_t{i.b_major == Major::kMN} << 16 | i.n >> 3 << 17 |
         static_cast<std::uint32_t>(i.scale_type) << 23 | i.m >> 4 << 24 | i.a_scale_id << 29;
}

}  // namespace tilewright::arch
