// The kernels of the tool are those inside libtilewright.so: they are embedded once. What the tool
// has of the device module asks here for them.
#include "tilewright/kernels.h"

#include "device/kernel_registry.h"

#include <vector>

namespace tilewright::device {

std::span<const KernelImage> kernel_images() {
  static const std::vector<KernelImage> images = [] {
    std::vector<KernelImage> all;
    for (const EmbeddedKernel& k : embedded_kernels()) {
      all.push_back({.name = k.name,
                     .source = k.source,
                     .target = k.target,
                     .ptx = {k.packed_ptx, k.ptx_bytes},
                     .cubin = {k.packed_cubin, k.cubin_bytes},
                     .facts = {k.registers, k.shared_bytes, k.stack_bytes, k.spill_store_bytes,
                               k.spill_load_bytes, k.barriers, k.uses_tensor_cores}});
    }
    return all;
  }();
  return images;
}

const char* kernel_toolkit() {
  return kernel_compiler();
}

}  // namespace tilewright::device
