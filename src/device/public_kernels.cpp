// The public face of the kernel registry.
#include "tilewright/kernels.h"

#include "device/internal.h"
#include "device/kernel_registry.h"

#include <algorithm>
#include <vector>

namespace tilewright {

namespace {

EmbeddedKernel public_kernel(const device::KernelImage& image) {
  return {
      .name = image.name,
      .source = image.source,
      .target = image.target,
      .registers = image.facts.registers,
      .shared_bytes = image.facts.shared_bytes,
      .stack_bytes = image.facts.stack_bytes,
      .spill_store_bytes = image.facts.spill_store_bytes,
      .spill_load_bytes = image.facts.spill_load_bytes,
      .barriers = image.facts.barriers,
      .uses_tensor_cores = image.facts.uses_tensor_cores,
      .packed_ptx = image.ptx.packed,
      .packed_cubin = image.cubin.packed,
      .ptx_bytes = image.ptx.size_bytes,
      .cubin_bytes = image.cubin.size_bytes,
  };
}

}  // namespace

std::string EmbeddedKernel::ptx() const {
  return device::PackedBytes{packed_ptx, ptx_bytes}.unpack();
}

std::span<const EmbeddedKernel> embedded_kernels() {
  static const std::vector<EmbeddedKernel> kernels = [] {
    std::vector<EmbeddedKernel> all;
    for (const device::KernelImage& image : device::kernel_images()) {
      all.push_back(public_kernel(image));
    }
    return all;
  }();
  return kernels;
}

std::string kernel_target(const Device& device) {
  return device::kernel_target(opened(device));
}

const EmbeddedKernel& find_kernel(std::string_view name, std::string_view target) {
  device::find_kernel(name, target);  // throws if there is none
  return *std::ranges::find_if(embedded_kernels(), [&](const EmbeddedKernel& kernel) {
    return kernel.name == name && kernel.target == target;
  });
}

const char* kernel_compiler() noexcept {
  return device::kernel_toolkit();
}

}  // namespace tilewright
