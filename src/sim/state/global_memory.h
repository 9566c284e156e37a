// The device's global memory: one range of host addresses, so that a device address is where the
// bytes are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace tilewright::sim {

/// Reserves its whole capacity as address space at once and touches it only as it is used. An
/// address in [begin(), end()) can always be read and written without a host fault, allocated or
/// not; whether it may be is for find() to say.
/// Thread    safe
class GlobalMemory {
 public:
  struct Allocation {
    std::uint64_t address = 0;
    std::uint64_t size_bytes = 0;
    std::uint64_t id = 0;  ///< from 1, in order of allocation
    /// Its addresses are not given out again before the capacity is used up. The latest 16384 of
    /// these are remembered
    bool is_freed = false;
    std::string origin;  ///< "cuMemAlloc", "global variable lut of gemm.ptx"
  };

  /// Errors   OutOfMemory if the address space cannot be reserved
  explicit GlobalMemory(std::uint64_t capacity_bytes);
  ~GlobalMemory();
  GlobalMemory(const GlobalMemory&) = delete;
  GlobalMemory& operator=(const GlobalMemory&) = delete;

  std::uint64_t begin() const noexcept { return begin_; }
  std::uint64_t end() const noexcept { return begin_ + reserved_bytes_; }

  /// 512-byte aligned at least, filled with a pattern that is no plausible number (0xcd).
  /// Errors   OutOfMemory
  std::uint64_t allocate(std::uint64_t size_bytes, std::string origin,
                         std::uint64_t align_bytes = 512);

  /// Gives its memory back to the system.
  /// Errors   InvalidArgument if the address is not the start of a live allocation
  void free(std::uint64_t address);

  /// Called by each free() with the addresses that are not used any more: those of the allocation,
  /// and what is left of its first and last page if nothing live is there. For what is kept beside
  /// each byte.
  void set_free_listener(std::function<void(std::uint64_t address, std::uint64_t bytes)> listener);

  /// The allocation, live or freed, that holds this address. Host memory registered or allocated by
  /// the driver (pinned, managed) counts when it was announced with add_host_range.
  std::optional<Allocation> find(std::uint64_t address) const;

  /// Allocations that were not freed, host memory left out.
  std::vector<Allocation> live() const;

  /// Host memory that kernels may use at its own address.
  void add_host_range(std::uint64_t address, std::uint64_t size_bytes, std::string origin);
  void remove_host_range(std::uint64_t address);

  std::uint64_t used_bytes() const;
  std::uint64_t capacity_bytes() const noexcept { return capacity_bytes_; }

  /// Grows with every allocate and free: caches of find() compare it.
  std::uint64_t version() const noexcept;

 private:
  struct State;
  std::uint64_t begin_ = 0;
  std::uint64_t capacity_bytes_ = 0;
  std::uint64_t reserved_bytes_ = 0;  ///< of addresses: more, for the room between allocations
  State* state_ = nullptr;
};

}  // namespace tilewright::sim
