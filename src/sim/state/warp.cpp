#include "sim/state/warp.h"

#include <utility>

namespace tilewright::sim {

void fault(FaultKind kind, std::uint32_t lanes, const std::string& message) {
  throw FaultError(kind, message, lanes);
}

StoragePool::Storage StoragePool::take(const std::shared_ptr<StoragePool>& pool) {
  std::unique_ptr<std::byte[]> memory;
  {
    const std::lock_guard lock(pool->mutex_);
    if (!pool->free_.empty()) {
      memory = std::move(pool->free_.back());
      pool->free_.pop_back();
    }
  }
  if (memory == nullptr) memory = std::make_unique_for_overwrite<std::byte[]>(pool->bytes_);
  return Storage(memory.release(), Return{pool});
}

void StoragePool::give_back(std::byte* memory) {
  const std::lock_guard lock(mutex_);
  free_.emplace_back(memory);
}

}  // namespace tilewright::sim
