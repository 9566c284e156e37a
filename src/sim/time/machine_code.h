// The machine code of a kernel as a cubin has it: instructions with what ptxas decided about them,
// and the lines of PTX that they came from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace tilewright::sim {

/// An instruction of 16 bytes. NVIDIA describes its fields nowhere; they are known by looking at
/// many, and public analyses of compute capability 7.0 to 9.0 agree.
struct MachineInsn {
  std::uint32_t line = 0;      ///< of PTX; 0: unknown
  std::uint16_t opcode = 0;    ///< its low 9 bits: which instruction, whatever its operands are
  std::uint8_t stall = 0;      ///< clocks until the warp may issue the next, 0 to 15
  bool yields = false;         ///< another warp goes first
  bool is_wide_fence = false;  ///< a MEMBAR of more than the CTA
  /// Of six counters: the one that a result makes ready, that a read operand makes ready (7: none),
  /// and those that are waited for
  std::uint8_t write_counter = 7, read_counter = 7, wait_mask = 0;
};

/// The instructions of a kernel in their order; without those of functions that it calls for rare
/// cases, which lie behind it.
/// Errors   ParseError if this is no whole cubin for a compute capability of 9 to 12, has no such
///          kernel, or no lines of PTX for it
std::vector<MachineInsn> read_machine_code(std::span<const std::byte> cubin,
                                           std::string_view kernel);

}  // namespace tilewright::sim
