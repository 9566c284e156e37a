// The device that operators run on: a GPU through the CUDA driver, or Tilewright's simulator of
// one, which is itself a CUDA driver.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace tilewright {

namespace device {
class Device;  // src/device/device.h
}
struct Internal;  // src/device/internal.h

/// A handle: copies mean the same device and share its context, which is the primary context of the
/// GPU and so the one that the CUDA runtime and the usual frameworks use in this process. Their
/// streams and device pointers can be passed to Tilewright as they are.
///
/// Thread   safe. No call needs a current context or changes which one is current for its thread
class Device {
 public:
  /// Opens a device by its specification:
  ///
  ///     auto       the first usable GPU; without one, the simulated H200
  ///     cuda       the first usable GPU, and an error without one
  ///     cuda:N     GPU number N, counted after CUDA_VISIBLE_DEVICES
  ///     sim:h200   the simulator as an H200
  ///     sim:b200   the simulator as a B200
  ///     sim:b300   the simulator as a B300
  ///     plan:h200  the facts of an H200, and no device: plans can be made and read, without a GPU
  ///                and without the simulator; everything else is refused (Unsupported)
  ///     plan:b200  likewise of a B200
  ///     plan:b300  likewise of a B300
  ///
  /// An empty text means what the environment variable TILEWRIGHT_DEVICE says, and auto if it is
  /// not set. A GPU is usable if its compute capability is 9.0 (Hopper) or 10.x (Blackwell). Its
  /// driver is what the dynamic loader finds as libcuda.so.1. The simulator is the library
  /// libcuda.so.1 that is installed or built beside this one, in a folder `sim`, or the one that
  /// TILEWRIGHT_SIM_LIBRARY names.
  ///
  /// Errors   InvalidArgument if the text is none of these; Unsupported if there is no such device
  ///          (the message lists what was tried and found); DeviceError if the driver fails
  static Device open(const std::string& spec = "");

  /// The exact specification of this device: "cuda:0", "sim:b200"; never "auto".
  const std::string& spec() const noexcept;
  /// How it was chosen, e.g. "auto: the first usable GPU", or why it fell back on the simulator.
  const std::string& why() const noexcept;
  /// "NVIDIA H200"
  const std::string& name() const noexcept;
  /// One line for logs: name, compute capability, SMs, memory, driver and its path if there is one.
  std::string description() const;

  /// Whether kernels run on the CPU. Their run time then says nothing about a GPU.
  bool is_simulated() const noexcept;
  /// Whether there is memory, and kernels can be launched; false if it was opened to plan alone.
  bool can_run() const noexcept;
  /// 10 * major + minor: 90 for an H200, 100 for a B200, 103 for a B300.
  int compute_capability() const noexcept;
  int num_sms() const noexcept;
  std::size_t memory_bytes() const noexcept;
  std::size_t l2_bytes() const noexcept;
  /// Of an SM, at most, in kHz; 0 if the driver does not say.
  int clock_khz() const noexcept;
  /// "GPU-" and 32 hexadecimal digits in groups, as `nvidia-smi -L` prints them.
  const std::string& uuid() const noexcept;
  /// Number of the device among those of its driver.
  int ordinal() const noexcept;
  /// CUDA version of the driver: 1000 * major + 10 * minor; 0 if there is none.
  int driver_version() const noexcept;

  /// Waits for all work on the device, of every stream and thread.
  /// Errors   DeviceError if a kernel failed meanwhile
  void synchronize() const;

  /// For programs that call the driver themselves: the CUcontext, alive as long as this handle, and
  /// the address of a driver function by its exported name ("cuMemAlloc_v2"), null if the library
  /// lacks it. It comes from the library that this device runs on, real or simulated. Both are null
  /// on a device that plans alone.
  void* context() const noexcept;
  void* driver_function(const std::string& exported_name) const noexcept;

 private:
  friend struct Internal;
  explicit Device(std::shared_ptr<const device::Device> state) noexcept;

  std::shared_ptr<const device::Device> state_;
};

}  // namespace tilewright
