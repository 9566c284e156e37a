// The kernels inside the library: what the compiler made of them, and their code.
#pragma once

#include "tilewright/device.h"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace tilewright {

/// One kernel for one target.
struct EmbeddedKernel {
  std::string_view name;    ///< of the entry, as plans list it; unique for a target
  std::string_view source;  ///< file below src/kernels, without ".cu"
  std::string_view target;  ///< "sm_90a", or "sm_100f": of 10.0 and 10.3
  int registers = 0;        ///< per thread
  int shared_bytes = 0;     ///< static shared memory
  int stack_bytes = 0;      ///< per thread, local memory
  int spill_store_bytes = 0, spill_load_bytes = 0;
  int barriers = 0;  ///< named barriers
  bool uses_tensor_cores = false;
  /// Code as zlib packs it, and its bytes unpacked: PTX text, and the ELF image made of it. The
  /// kernels of one file share both.
  std::string_view packed_ptx, packed_cubin;
  std::size_t ptx_bytes = 0, cubin_bytes = 0;

  /// The PTX text of the kernel's file.
  /// Errors   Internal if the library is damaged
  std::string ptx() const;
};

/// All kernels, sorted by name and target. Empty if the library was built without kernels.
/// Thread   safe
std::span<const EmbeddedKernel> embedded_kernels();

/// The target whose kernels a device runs: "sm_90a" on an H200.
/// Errors   Unsupported if there are none for its compute capability
std::string kernel_target(const Device& device);

/// The kernel of that name for a target.
/// Errors   Unsupported if there is none; the message names the targets that it has, or kernels of
///          similar names
const EmbeddedKernel& find_kernel(std::string_view name, std::string_view target);

/// Version of the compiler that made them, e.g. "13.0.88"; empty without kernels.
const char* kernel_compiler() noexcept;

}  // namespace tilewright
