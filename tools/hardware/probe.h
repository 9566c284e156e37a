// Single instructions on chosen operands: what the layout library says must come out, and what a
// device does.
//
// Every case lays its operands out with the library's fragments, tiles and descriptors, has one
// embedded probe kernel execute the instruction, and reads the result back through the library's
// layout of the result. If any of these layouts were wrong, the numbers would differ. Values are
// small integers, so that nothing is rounded.
#pragma once

#include "tilewright/tensor.h"

#include "device/device.h"

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace tilewright::hardware {

/// Inputs of tests/kernels/probe/wgmma_probe.cu.
struct WgmmaInputs {
  std::vector<std::uint32_t> shared_image;
  std::vector<std::uint32_t> a_registers;  ///< [128][4], or empty
  std::uint64_t a_descriptor = 0, b_descriptor = 0;
};
/// Inputs of tests/kernels/probe/warp_probe.cu.
struct WarpInputs {
  std::vector<std::uint32_t> registers;  ///< [32][10]
  std::vector<std::uint32_t> shared;
  bool returns_shared = false;  ///< the result is shared memory, not registers
  int result_registers = 0;     ///< per lane
};
/// Inputs of tests/kernels/probe/tensor_copy_probe.cu: a row-major matrix and a box of it.
struct TensorCopyInputs {
  std::vector<std::uint32_t> matrix;
  int rows = 0, columns = 0, element_bits = 16;
  int box_rows = 0, box_columns = 0, swizzle_bytes = 0;  ///< swizzle 0, 32, 64 or 128
  int x = 0, y = 0;
};

struct ProbeCase {
  std::string name;
  std::string kernel;
  std::variant<WgmmaInputs, WarpInputs, TensorCopyInputs> inputs;
  /// What the layouts predict, word by word: registers thread by thread (accumulators as float
  /// bits), or shared memory.
  std::vector<std::uint32_t> expected;
};

/// All cases; the same on every machine.
std::vector<ProbeCase> probe_cases();

/// FNV-1a over everything that goes into the instruction: tells whether a recording is of these
/// inputs.
std::uint64_t digest(const ProbeCase& probe);

/// Runs the case on a device of compute capability 9.0.
std::vector<std::uint32_t> run_probe(const device::Device& device, const ProbeCase& probe);

/// Words as a recording keeps them: floats that are all whole numbers of a byte as kI8, anything
/// else as kU32.
struct StoredWords {
  DType dtype = DType::kU32;
  std::vector<std::byte> bytes;
};
StoredWords store_words(const std::vector<std::uint32_t>& words);
std::vector<std::uint32_t> load_words(const ConstTensorView& stored);

}  // namespace tilewright::hardware
