// A kernel of a loaded module: what it needs, and how it is launched.
#pragma once

#include "device/owned.h"
#include "device/stream.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>

namespace tilewright::device {

using LoadedModule = Owned<abi::CUmodule, &abi::DriverFunctions::module_unload>;

struct Dim3 {
  std::uint32_t x = 1, y = 1, z = 1;

  constexpr std::uint64_t count() const noexcept { return std::uint64_t{x} * y * z; }
  friend bool operator==(const Dim3&, const Dim3&) = default;
};

struct LaunchConfig {
  Dim3 grid = {};                              ///< in blocks
  Dim3 block = {};                             ///< in threads
  std::optional<Dim3> cluster = std::nullopt;  ///< in blocks; divides the grid
  std::uint32_t dynamic_shared_bytes = 0;
  /// The kernel may start before the previous one on the stream has ended, and must then wait
  /// itself (griddepcontrol.wait) before it touches that one's results.
  bool is_dependent_launch = false;
  /// All blocks run at the same time, so that they can wait for each other (grid barriers); the
  /// driver refuses a grid that does not fit.
  bool is_cooperative = false;
};

/// CTAs of a cluster that every device of the architecture takes.
inline constexpr std::uint64_t kMaxPortableCluster = 8;

/// What the compiler made of a kernel on this device.
struct KernelAttributes {
  int registers = 0;            ///< per thread
  int local_bytes = 0;          ///< per thread: spills and arrays
  int static_shared_bytes = 0;  ///< per block
  int const_bytes = 0;
  int max_block_threads = 0;             ///< by registers and .maxntid
  int ptx_version = 0;                   ///< of the virtual architecture, e.g. 90
  int binary_version = 0;                ///< of the machine code, e.g. 90
  std::optional<Dim3> required_cluster;  ///< compiled in with .reqnctapercluster
  /// Size of the one argument; unknown if the driver is older than CUDA 12.4.
  std::optional<std::size_t> params_bytes;
};

/// A handle: copies mean the same kernel. Keeps its module loaded. From Module::kernel().
///
/// Thread   launching from several threads is safe, but not while another one changes a limit
class Kernel {
 public:
  const std::string& name() const noexcept;
  const KernelAttributes& attributes() const noexcept;
  const Device& device() const noexcept;
  abi::CUfunction handle() const noexcept;
  /// What the driver says now, for what attributes() lacks or what may have changed.
  int attribute(abi::CUfunction_attribute attribute) const;

  /// Lets launches use that much dynamic shared memory per block; needed from 48 KiB on. A larger
  /// limit that was set before stays.
  /// Errors   InvalidArgument if the device cannot give it beside the static shared memory
  void allow_dynamic_shared_bytes(std::uint32_t bytes) const;
  /// Lets launches use clusters of up to 16 blocks instead of 8.
  void allow_nonportable_cluster() const;

  /// Enqueues the kernel with its one argument, `const __grid_constant__ Params`, which is copied
  /// before this returns.
  /// Errors   InvalidArgument, before the driver is called, if a size breaks a limit of the kernel
  ///          (the message says which) or sizeof(Params) is not what the kernel was compiled with;
  ///          DeviceError if the driver refuses. Failures of the running kernel show up later, in
  ///          Stream::synchronize() or any other call.
  template <class Params>
  void launch(const LaunchConfig& config, const Params& params, const Stream& stream) const {
    static_assert(std::is_trivially_copyable_v<Params>, "kernel arguments are copied byte by byte");
    static_assert(!std::is_pointer_v<Params>, "pass the Params itself, not a pointer to it");
    launch_bytes(config, &params, sizeof(Params), stream);
  }
  void launch_bytes(const LaunchConfig& config, const void* params, std::size_t params_bytes,
                    const Stream& stream) const;

  /// Blocks of this size that fit on one SM at a time.
  int max_active_blocks_per_sm(std::uint32_t block_threads,
                               std::uint32_t dynamic_shared_bytes) const;
  /// Clusters of this launch that fit on the device at a time; 0 if it can never run. The launch or
  /// the kernel must say the size of a cluster.
  int max_active_clusters(LaunchConfig config) const;

 private:
  friend class Module;
  struct State;
  explicit Kernel(std::shared_ptr<const State> state) noexcept : state_(std::move(state)) {}
  static Kernel find(const std::shared_ptr<const LoadedModule>& module,
                     const std::string& module_name, const std::string& name);
  void require_cluster(const LaunchConfig& config) const;
  void require_launchable(const LaunchConfig& config) const;
  void require_dynamic_shared(std::uint32_t bytes) const;

  std::shared_ptr<const State> state_;
};

}  // namespace tilewright::device
