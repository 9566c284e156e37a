// Memory that the driver allocated or was given, by address: device, pinned, registered, managed.
#pragma once

#include "sim/driver/abi/abi.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

namespace tilewright::sim {

struct Context;
struct Device;
struct MemoryPool;

struct Block {
  enum class Kind : std::uint8_t { kDevice, kPinned, kRegistered, kManaged };
  Kind kind = Kind::kDevice;
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t id = 0;  ///< never used twice
  Device* device = nullptr;
  Context* context = nullptr;  ///< the block goes with it
  const MemoryPool* pool = nullptr;
  unsigned flags = 0;
  bool is_sync_memops = false;

  bool is_host() const noexcept { return kind != Kind::kDevice; }
  std::uint64_t end() const noexcept { return address + size_bytes; }
};

/// Thread    safe
class Blocks {
 public:
  void add(Block block);
  /// The block that holds the address.
  std::optional<Block> find(std::uint64_t address) const;
  /// The block that starts there, taken out; nothing if there is none.
  std::optional<Block> take(std::uint64_t address);
  std::vector<Block> take_of(const Context& context);
  std::vector<Block> of_host() const;
  bool overlaps(std::uint64_t address, std::uint64_t size_bytes) const;
  void set_sync_memops(std::uint64_t address, bool is_on);
  std::uint64_t bytes_of(const MemoryPool& pool) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::uint64_t, Block> blocks_;
  std::uint64_t next_id_ = 1;
};

}  // namespace tilewright::sim
