#include "sim/async/bulk_copy.h"

#include <cstring>

#include <fmt/format.h>

namespace tilewright::sim {

namespace {

constexpr std::uint64_t kBulkAlignBytes = 16;

}  // namespace

std::string check_bulk(std::uint64_t destination, std::uint64_t source, std::uint32_t size_bytes) {
  if (destination % kBulkAlignBytes != 0) {
    return fmt::format("bulk copy: destination {:#x} is not a multiple of 16", destination);
  }
  if (source % kBulkAlignBytes != 0) {
    return fmt::format("bulk copy: source {:#x} is not a multiple of 16", source);
  }
  if (size_bytes % kBulkAlignBytes != 0) {
    return fmt::format("bulk copy: size = {} bytes; expected a multiple of 16", size_bytes);
  }
  return {};
}

void bulk_copy(std::byte* destination, const std::byte* source, std::uint32_t size_bytes) {
  if (size_bytes != 0) std::memcpy(destination, source, size_bytes);
}

void bulk_copy_masked(std::byte* destination, const std::byte* source, std::uint32_t size_bytes,
                      std::uint16_t byte_mask) {
  for (std::uint32_t i = 0; i < size_bytes; ++i) {
    if ((byte_mask >> (i % kBulkAlignBytes) & 1) != 0) destination[i] = source[i];
  }
}

std::string check_bulk_reduction(ReduceOp op, ReduceType type, bool is_to_global) {
  if (std::string problem = check_reduction(op, type); !problem.empty() || is_to_global) {
    return problem;
  }
  const bool is_32_bit_integer = type == ReduceType::kU32 || type == ReduceType::kS32;
  if (is_32_bit_integer || (op == ReduceOp::kAdd && type == ReduceType::kU64)) return {};
  return fmt::format("reduction: there is no .{} for {} elements in shared memory", name_of(op),
                     name_of(type));
}

void bulk_reduce(ReduceOp op, ReduceType type, std::byte* destination, const std::byte* source,
                 std::uint32_t size_bytes) {
  reduce_into(op, type, destination, source, size_bytes);
}

}  // namespace tilewright::sim
