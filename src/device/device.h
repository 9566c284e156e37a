// One GPU, real or simulated, with its primary context.
#pragma once

#include "device/context.h"
#include "device/driver.h"

#include <cstddef>
#include <memory>
#include <string>

namespace tilewright::device {

/// What the driver says about a GPU. Asking needs no context.
struct DeviceInfo {
  std::string name;            ///< "NVIDIA H200"
  std::string uuid;            ///< "GPU-" and 32 hexadecimal digits in the usual groups
  int ordinal = 0;             ///< among the GPUs of its driver
  int compute_capability = 0;  ///< 10 * major + minor: 90, 100, 103
  int num_sms = 0;
  std::size_t memory_bytes = 0;
  int l2_bytes = 0;
  int shared_per_sm_bytes = 0;
  int shared_per_block_bytes = 0;           ///< without asking for more
  int shared_per_block_optin_bytes = 0;     ///< static + dynamic, after asking
  int shared_per_block_reserved_bytes = 0;  ///< taken by the system from every block
  int registers_per_sm = 0;                 ///< of 32 bits
  int threads_per_sm = 0;
  int clock_khz = 0;
  int memory_clock_khz = 0;
  int memory_bus_bits = 0;
  bool has_clusters = false;
  bool has_tensor_maps = false;
};

/// Errors   DeviceError if the driver has no such GPU
DeviceInfo query_device(const Driver& driver, int ordinal);

struct MemoryInfo {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
};

/// A handle: copies share one retained primary context, and everything made on a device holds a
/// copy, so the context outlives what lives in it. The last one releases it.
///
/// Thread   safe. Every function of this module makes the context current for its own duration and
///          restores what was current before (CurrentContext); no thread has to set anything up,
///          and a thread may use several devices in turn. Objects made on a device may be used by
///          any thread, but by one at a time unless their comment says otherwise.
class Device {
 public:
  /// Retains the primary context of that GPU, the one that the CUDA runtime uses as well. `spec` is
  /// what a user writes to get this device ("cuda:0"), `why` how it was chosen; both only go into
  /// messages. Users call open_device() instead.
  Device(const Driver& driver, int ordinal, std::string spec, std::string why);
  /// One that plans alone: it has facts, and neither a driver nor a context.
  Device(DeviceInfo info, std::string spec);

  bool has_driver() const noexcept;
  /// Errors   Unsupported on a device that plans alone
  const Driver& driver() const;
  const abi::DriverFunctions& cu() const { return driver().cu; }
  abi::CUcontext context() const noexcept;  ///< null on a device that plans alone
  const DeviceInfo& info() const noexcept;
  const std::string& spec() const noexcept;
  const std::string& why() const noexcept;
  bool is_simulated() const noexcept { return has_driver() && driver().is_simulator(); }

  /// "cuda:0 (NVIDIA H200)"
  std::string label() const;
  /// The label and what matters for performance, in one line for logs.
  std::string describe() const;

  /// Makes the context current until the returned object dies.
  CurrentContext make_current() const { return {driver(), context()}; }

  /// As Driver::check; the message also names the device.
  void check(abi::CUresult result, const char* function) const {
    if (result != abi::CUresult::kSuccess) raise(result, function, "");
  }
  template <class... Args>
  void check(abi::CUresult result, const char* function, fmt::format_string<Args...> details,
             Args&&... args) const {
    if (result != abi::CUresult::kSuccess) {
      raise(result, function, fmt::format(details, std::forward<Args>(args)...));
    }
  }

  [[noreturn]] void raise(abi::CUresult result, const char* function,
                          const std::string& details) const;

  MemoryInfo memory() const;
  int attribute(abi::CUdevice_attribute attribute) const;
  /// Waits for all work on the device. Errors of kernels that ran until now are reported here.
  void synchronize() const;

 private:
  struct Retained;

  std::shared_ptr<const Retained> retained_;
};

}  // namespace tilewright::device
