// The kernels that are embedded in the library: PTX for the simulator, cubin for the GPU, one pair
// per entry and target.
#pragma once

#include "device/kernel.h"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace tilewright::device {

/// What ptxas said of a kernel (-v).
struct KernelFacts {
  int registers = 0;     ///< per thread
  int shared_bytes = 0;  ///< static shared memory
  int stack_bytes = 0;   ///< per thread, local memory
  int spill_store_bytes = 0;
  int spill_load_bytes = 0;
  int barriers = 0;  ///< named barriers
  bool uses_tensor_cores = false;
};

/// Bytes as zlib packs them: PTX and line tables are a tenth of their size then.
struct PackedBytes {
  std::string_view packed;
  std::size_t size_bytes = 0;  ///< unpacked

  /// Errors   Internal if they are not what was packed
  std::string unpack() const;
};

struct KernelImage {
  std::string_view name;    ///< of the entry, unique per target
  std::string_view source;  ///< file below src/kernels, without ".cu"
  std::string_view target;  ///< "sm_90a", "sm_100f"
  PackedBytes ptx;          ///< text; the entries of a file share it
  PackedBytes cubin;        ///< ELF image, assembled from that text
  KernelFacts facts;
};

/// All embedded images, sorted by name and target. Empty if the library was built without kernels.
std::span<const KernelImage> kernel_images();

/// Version of the compiler that made them, e.g. "13.0.88"; empty without kernels.
const char* kernel_toolkit();

/// The image of a kernel for a target.
/// Errors  Unsupported: no such kernel (the message names those with a similar name), or not for
///         that target (the message names the targets it has)
const KernelImage& find_kernel(std::string_view name, std::string_view target);

/// The target whose images a compute capability runs: "sm_90a" for 9.0, "sm_100f" for 10.0 and
/// 10.3, which are of one family; empty for any other.
constexpr std::string_view kernel_target(int compute_capability) noexcept {
  if (compute_capability == 90) return "sm_90a";
  return compute_capability == 100 || compute_capability == 103 ? "sm_100f" : "";
}

/// The same of a device.
/// Errors  Unsupported if there is none
std::string kernel_target(const Device& device);

/// PTX text in which `name` is the only entry; the text as it is if it has no such one. Of the
/// others the ends of their lines stay, so that lines keep their numbers.
std::string only_entry(std::string text, std::string_view name);

/// Loads an embedded kernel on a device: the cubin on a GPU, where the kernels of one file share a
/// module, and its own part of the PTX on the simulator. A module stays loaded as long as one of
/// its kernels is in use.
/// Errors  as find_kernel and Module
Kernel load_kernel(const Device& device, std::string_view name);

/// While one of these exists, modules stay loaded that no kernel in use needs: for programs that
/// make plan after plan with the same kernels, on the simulator above all, which compiles a module
/// when it is loaded. What was kept goes with the last of them.
class KeptModules {
 public:
  KeptModules();
  ~KeptModules();
  KeptModules(const KeptModules&) = delete;
  KeptModules& operator=(const KeptModules&) = delete;
};

}  // namespace tilewright::device
