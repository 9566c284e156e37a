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
namespace {

/// What load_kernel has loaded. A module holds its device's context, so that no other one can have
/// its handle meanwhile.
struct LoadedModules {
  std::mutex mutex;
  std::map<std::pair<abi::CUcontext, const char*>, Module::Memory> memories;
  std::vector<Module> kept;
  int num_keepers = 0;
};

LoadedModules& loaded_modules() {
  static LoadedModules modules;
  return modules;
}

}  // namespace

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
  const int capability = device.info().compute_capability;
  const std::string_view target = kernel_target(capability);
  require(!target.empty(), ErrorKind::kUnsupported,
          "{}: kernels exist for compute capability 9.0, 10.0 and 10.3, this is {}.{}",
          device.label(), capability / 10, capability % 10);
  return std::string(target);
}

Kernel load_kernel(const Device& device, std::string_view name) {
  const KernelImage& image = find_kernel(name, kernel_target(device));
  LoadedModules& modules = loaded_modules();
  const std::scoped_lock lock(modules.mutex);
  Module::Memory& memory = modules.memories[{device.context(), image.ptx.packed.data()}];
  std::optional<Module> module = Module::recall(image.source, memory);
  if (!module) {
    const std::string code = (device.is_simulated() ? image.ptx : image.cubin).unpack();
    module = device.is_simulated()
                 ? Module::from_ptx(device, image.source, code)
                 : Module::from_cubin(device, image.source, std::as_bytes(std::span(code)));
    memory = module->remember();
    if (modules.num_keepers > 0) modules.kept.push_back(*module);
  }
  return module->kernel(std::string(name));
}

KeptModules::KeptModules() {
  LoadedModules& modules = loaded_modules();
  const std::scoped_lock lock(modules.mutex);
  ++modules.num_keepers;
}

KeptModules::~KeptModules() {
  LoadedModules& modules = loaded_modules();
  std::vector<Module> unloaded;  // without the lock
  const std::scoped_lock lock(modules.mutex);
  if (--modules.num_keepers == 0) unloaded.swap(modules.kept);
}

}  // namespace tilewright::device
