#include "sim/host/reused_memory.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <new>

namespace tilewright::sim {
namespace {

constexpr std::align_val_t kAlign{64};
/// Sizes are multiples of it; less is not kept.
constexpr std::size_t kStep = std::size_t{16} << 10;
constexpr std::size_t kMostKeptBytes = std::size_t{64} << 20;
constexpr std::size_t kMostKeptBlocks = 512;  ///< that are looked through

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kKeeps = false;  // so that it sees who uses memory that was given back
#else
constexpr bool kKeeps = true;
#endif

std::size_t rounded(std::size_t bytes) {
  return (bytes + kStep - 1) / kStep * kStep;
}

void* allocate(std::size_t bytes) {
  return ::operator new(bytes, kAlign);
}

void release(void* memory) noexcept {
  ::operator delete(memory, kAlign);
}

class Store {
 public:
  /// nullptr if there is none of this size.
  void* take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto at = std::find_if(blocks_.rbegin(), blocks_.rend(),
                                 [bytes](const Block& block) { return block.bytes == bytes; });
    if (at == blocks_.rend()) return nullptr;
    void* const memory = at->memory;
    blocks_.erase(std::next(at).base());
    sum_ -= bytes;
    return memory;
  }
  void give(void* memory, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    blocks_.push_back({memory, bytes});
    sum_ += bytes;
    while (sum_ > kMostKeptBytes || blocks_.size() > kMostKeptBlocks) {
      sum_ -= blocks_.front().bytes;
      release(blocks_.front().memory);
      blocks_.pop_front();
    }
  }

 private:
  struct Block {
    void* memory;
    std::size_t bytes;
  };
  std::mutex mutex_;
  std::deque<Block> blocks_;  ///< the oldest first
  std::size_t sum_ = 0;
};

/// Never destroyed: memory is still given back by what is destroyed when the process ends.
Store& store() {
  static Store& only = *new Store;
  return only;
}

}  // namespace

void* take_memory(std::size_t bytes) {
  if (!kKeeps || bytes < kStep) return allocate(bytes);
  const std::size_t size = rounded(bytes);
  void* const kept = store().take(size);
  return kept != nullptr ? kept : allocate(size);
}

void give_memory(void* memory, std::size_t bytes) noexcept {
  if (!kKeeps || bytes < kStep) return release(memory);
  store().give(memory, rounded(bytes));
}

}  // namespace tilewright::sim
