// A tensor map described in JSON, for kernels that take one as a parameter.
#pragma once

#include "base/json_node.h"
#include "base/tensor.h"

#include <cstddef>
#include <vector>

namespace tilewright::cli {

/// The 128 bytes of a tiled map over a buffer. Arrays count from the innermost dimension, as in the
/// driver: "box" (required), "dims", "strides_bytes" and "element_strides"; "swizzle" none, 32B,
/// 64B or 128B; "fill" zeros or nan. Without "dims" and "strides_bytes" it is the whole buffer.
/// Errors   ParseError with the JSON path; also for what the driver would refuse
std::vector<std::byte> parse_tensor_map(const JsonNode& node, std::uint64_t address,
                                        const HostTensor& buffer);

}  // namespace tilewright::cli
