// The element-wise reductions into memory that bulk and tensor copies perform.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tilewright::sim {

enum class ReduceOp : std::uint8_t { kAdd, kMin, kMax, kInc, kDec, kAnd, kOr, kXor };
enum class ReduceType : std::uint8_t { kU32, kS32, kU64, kS64, kF16, kBf16, kF32, kF64 };

/// Why there is no such reduction; "" if there is one. Bitwise ones (.b32, .b64) take the integer
/// types of that size. f32 and f64 have only add, f64 not in tensor copies.
/// Source   PTX ISA, cp.reduce.async.bulk and cp.reduce.async.bulk.tensor
std::string check_reduction(ReduceOp op, ReduceType type);

std::uint32_t size_of(ReduceType type) noexcept;

/// memory[i] = op(memory[i], values[i]) for size_bytes of elements, each one atomic on its own.
///
///   inc, dec   memory >= value ? 0 : memory + 1;  memory == 0 || memory > value ? value : memory -
///   1 f32 add    subnormal operands and results become zeros of their sign; f16, bf16, f64 keep
///   them rounding   to nearest even; a NaN result is the positive one with all bits set, but f64's
///              keeps what the host's addition gives
///   min, max   of f16 and bf16: the number if one is NaN; -0 < +0
///
/// Layout   memory aligned to the element, values need not be; size a multiple of the element's
/// Thread   safe against itself and other atomic accesses to the memory
void reduce_into(ReduceOp op, ReduceType type, std::byte* memory, const std::byte* values,
                 std::size_t size_bytes);

const char* name_of(ReduceOp op) noexcept;
const char* name_of(ReduceType type) noexcept;

}  // namespace tilewright::sim
