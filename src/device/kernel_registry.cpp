#include "device/kernel_registry.h"

#include "base/error.h"
#include "base/similar.h"
#include "device/module.h"

#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <zlib.h>

namespace tilewright::device {

std::string PackedBytes::unpack() const {
  std::string out(size_bytes, '\0');
  uLongf written = size_bytes;
  const int status = uncompress(reinterpret_cast<Bytef*>(out.data()), &written,
                                reinterpret_cast<const Bytef*>(packed.data()), packed.size());
  require(status == Z_OK && written == size_bytes, ErrorKind::kInternal,
          "an embedded image of {} bytes does not unpack: zlib's status {}, {} bytes of {}",
          packed.size(), status, written, size_bytes);
  return out;
}

const KernelImage& find_kernel(std::string_view name, std::string_view target) {
  std::vector<std::string_view> targets, names;
  for (const KernelImage& image : kernel_images()) {
    if (image.name == name && image.target == target) return image;
    if (image.name == name) targets.push_back(image.target);
    names.push_back(image.name);
  }
  require(!names.empty(), ErrorKind::kUnsupported,
          "kernel {}: this library was built without kernels; build with -DTILEWRIGHT_KERNELS=ON",
          name);
  require(targets.empty(), ErrorKind::kUnsupported,
          "kernel {} is not built for {}; it exists for {}", name, target,
          fmt::join(targets, ", "));
  fail(ErrorKind::kUnsupported, "kernel {} does not exist ({}); `tilewright kernels` lists all",
       name, similar_names(name, names));
}

std::string kernel_target(const Device& device) {
  switch (device.info().compute_capability) {
    case 90:
      return "sm_90a";
    case 100:
      return "sm_100a";
    default:
      break;
  }
  fail(ErrorKind::kUnsupported,
       "{}: kernels exist for compute capability 9.0 and 10.0, this is {}.{}", device.label(),
       device.info().compute_capability / 10, device.info().compute_capability % 10);
}

Kernel load_kernel(const Device& device, std::string_view name) {
  const KernelImage& image = find_kernel(name, kernel_target(device));
  // A module holds its device's context, so that no other one can have its handle meanwhile.
  static std::mutex mutex;
  static std::map<std::pair<abi::CUcontext, const char*>, Module::Memory> loaded;
  const std::scoped_lock lock(mutex);
  Module::Memory& memory = loaded[{device.context(), image.ptx.packed.data()}];
  std::optional<Module> module = Module::recall(image.source, memory);
  if (!module) {
    const std::string code = (device.is_simulated() ? image.ptx : image.cubin).unpack();
    module = device.is_simulated()
                 ? Module::from_ptx(device, image.source, code)
                 : Module::from_cubin(device, image.source, std::as_bytes(std::span(code)));
    memory = module->remember();
  }
  return module->kernel(std::string(name));
}

}  // namespace tilewright::device
