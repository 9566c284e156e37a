// The few functions of the CUDA driver that exchanges need beside kernels.
#pragma once

#include "tilewright/device.h"

#include <cstddef>
#include <cstdint>

namespace tilewright::comm {

/// Of the driver that the device runs on, real or simulated. Every call has its context current.
///
/// Errors   DeviceError with the function and the driver's name of the result; Unsupported if the
///          driver lacks a function, or the device plans alone
class DriverCalls {
 public:
  explicit DriverCalls(const Device& device);

  const Device& device() const noexcept { return device_; }

  void copy_to_host(void* to, const void* from, std::size_t bytes, void* stream) const;
  void copy_to_device(void* to, const void* from, std::size_t bytes, void* stream) const;
  /// Calls function(data) on the host when the stream comes to it. It may not throw or call CUDA.
  void call_on_host(void (*function)(void*), void* data, void* stream) const;
  /// Page-locked memory, so that copies are in the order of the stream.
  void* allocate_host(std::size_t bytes) const;
  void free_host(void* memory) const noexcept;

  struct IpcHandle {
    char bytes[64];
  };
  /// A handle by which another process maps an allocation; false where there is none.
  bool export_memory(void* memory, IpcHandle& handle) const noexcept;
  /// The allocation of another process, for this device to read and write; null where that cannot
  /// be.
  void* open_peer(const IpcHandle& handle) const noexcept;
  void close_peer(void* memory) const noexcept;
  /// Lets this device read and write what was allocated in another context of this process.
  bool reach_context(void* context) const noexcept;

  /// Makes the context current until it dies: for libraries that use what is current.
  class Current {
   public:
    explicit Current(const DriverCalls& calls);
    ~Current();
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;

   private:
    const DriverCalls& calls_;
  };

 private:
  using Result = int;
  void check(Result result, const char* function) const;

  Device device_;
  Result (*push_)(void* context);
  Result (*pop_)(void** context);
  Result (*to_host_)(void* to, std::uint64_t from, std::size_t bytes, void* stream);
  Result (*to_device_)(std::uint64_t to, const void* from, std::size_t bytes, void* stream);
  Result (*on_host_)(void* stream, void (*function)(void*), void* data);
  Result (*host_alloc_)(void** memory, std::size_t bytes, unsigned flags);
  Result (*free_host_)(void* memory);
  // What only memory of other ranks needs: null where the driver lacks it.
  Result (*ipc_get_)(IpcHandle* handle, std::uint64_t memory) = nullptr;
  Result (*ipc_open_)(std::uint64_t* memory, IpcHandle handle, unsigned flags) = nullptr;
  Result (*ipc_close_)(std::uint64_t memory) = nullptr;
  Result (*enable_peer_)(void* context, unsigned flags) = nullptr;
  Result (*error_name_)(Result result, const char** name);
};

}  // namespace tilewright::comm
