// A launch described in JSON: docs/03-simulator.md says what may stand in it.
#pragma once

#include "base/json_node.h"
#include "cli/sim/buffer.h"
#include "sim/machine.h"

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace tilewright::cli {

struct LaunchSpec {
  std::string kernel;  ///< "" = the only one of the module
  sim::Dim3 grid, block, cluster;
  std::uint32_t dynamic_shared_bytes = 0;
  bool is_cooperative = false;
  std::vector<BufferSpec> buffers;
};

/// Errors   ParseError with the JSON path
LaunchSpec parse_launch(const JsonNode& root);

/// Where a buffer is on the device and its type and shape.
struct PlacedBuffer {
  std::uint64_t address = 0;
  const BufferSpec* spec = nullptr;
};

/// The bytes of the kernel's parameters.
/// Errors   ParseError with the JSON path: parameters that the kernel does not have or of another
///          size
std::vector<std::byte> parse_params(const JsonNode& root, const sim::KernelInfo& kernel,
                                    const std::vector<PlacedBuffer>& buffers);

}  // namespace tilewright::cli
