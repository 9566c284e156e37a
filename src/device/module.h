// Loaded code: PTX text, which the driver compiles, or a cubin, which it takes as it is.
#pragma once

#include "device/kernel.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tilewright::device {

/// How the driver compiles PTX. Ignored for cubins.
struct JitOptions {
  int max_registers = 0;       ///< per thread; 0 leaves it to the PTX
  int optimization_level = 4;  ///< 0 to 4
  bool has_line_info = false;  ///< for profilers and compute-sanitizer
};

/// A global variable of a module.
struct ModuleGlobal {
  abi::CUdeviceptr address = 0;
  std::size_t size_bytes = 0;
};

/// A handle: copies mean the same module. It is unloaded when the last copy and the last Kernel
/// from it are gone.
///
/// Thread   safe
class Module {
 public:
  /// Compiles PTX for this device. `name` only goes into messages.
  /// Errors   ParseError with the driver's log, which names the line, if the PTX is wrong;
  ///          Unsupported if it needs a newer driver or another GPU; InvalidArgument if it is empty
  static Module from_ptx(const Device& device, std::string_view name, std::string_view text,
                         const JitOptions& options = {});
  /// Loads an ELF cubin or a fatbin.
  /// Errors   InvalidArgument if it is neither or is cut short; Unsupported if it has no code for
  ///          this GPU
  static Module from_cubin(const Device& device, std::string_view name,
                           std::span<const std::byte> image);

  /// Errors   DeviceError if there is no such entry; InvalidArgument if it takes no argument (seen
  ///          where the driver is CUDA 12.4 or newer)
  Kernel kernel(const std::string& name) const { return Kernel::find(loaded_, name_, name); }
  /// Errors   DeviceError if there is no such variable
  ModuleGlobal global(const std::string& name) const;

  const std::string& name() const noexcept { return name_; }

  /// Remembers a module without keeping it loaded.
  using Memory = std::weak_ptr<const LoadedModule>;
  Memory remember() const noexcept { return loaded_; }
  /// The module again, if it is still in use.
  static std::optional<Module> recall(std::string_view name, const Memory& memory) {
    auto loaded = memory.lock();
    if (loaded == nullptr) return std::nullopt;
    return Module(std::string(name), std::move(loaded));
  }

 private:
  Module(std::string name, std::shared_ptr<const LoadedModule> loaded) noexcept
      : name_(std::move(name)), loaded_(std::move(loaded)) {}

  std::string name_;
  std::shared_ptr<const LoadedModule> loaded_;
};

}  // namespace tilewright::device
