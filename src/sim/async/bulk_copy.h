// Bulk copies without a tensor map: runs of bytes, whole, masked or reduced.
#pragma once

#include "sim/async/reduction.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace tilewright::sim {

/// Addresses and size of cp.async.bulk, cp.reduce.async.bulk and the prefetch must be multiples of
/// 16. Returns which is not, "" if all are. A prefetch has no destination: give 0.
std::string check_bulk(std::uint64_t destination, std::uint64_t source, std::uint32_t size_bytes);

/// The memory must not overlap.
void bulk_copy(std::byte* destination, const std::byte* source, std::uint32_t size_bytes);

/// .cp_mask: byte i of every 16 is copied if bit i of the mask is set.
void bulk_copy_masked(std::byte* destination, const std::byte* source, std::uint32_t size_bytes,
                      std::uint16_t byte_mask);

/// Which reductions cp.reduce.async.bulk has: to global memory all of check_reduction(), to
/// shared::cluster those on 32-bit integers and the addition of u64.
std::string check_bulk_reduction(ReduceOp op, ReduceType type, bool is_to_global);

/// reduce_into(), under the name that goes with the others.
void bulk_reduce(ReduceOp op, ReduceType type, std::byte* destination, const std::byte* source,
                 std::uint32_t size_bytes);

}  // namespace tilewright::sim
