// Large blocks of host memory that are needed again and again, for as long as a CTA of a simulated
// launch lives: what was given back is kept for the next that asks for as much. The system takes
// longer to hand out fresh pages, and an address sanitizer to watch over them, than a short CTA
// takes to run.
#pragma once

#include <cstddef>
#include <memory>

namespace tilewright::sim {

/// At least so many bytes, for objects of any alignment up to 64; they hold whatever they held
/// before. Of what was given back up to 64 MiB are kept, the oldest of it being freed. Under an
/// address sanitizer nothing is kept.
/// Thread   safe
void* take_memory(std::size_t bytes);
/// What take_memory(bytes) gave.
void give_memory(void* memory, std::size_t bytes) noexcept;

/// The allocator of vectors whose memory is used again.
template <class T>
struct Reused {
  using value_type = T;

  Reused() = default;
  template <class Other>
  Reused(const Reused<Other>&) noexcept {}  // as allocators convert
  T* allocate(std::size_t count) { return static_cast<T*>(take_memory(count * sizeof(T))); }
  void deallocate(T* memory, std::size_t count) noexcept { give_memory(memory, count * sizeof(T)); }
  friend bool operator==(const Reused&, const Reused&) = default;
};

/// Bytes that nothing is written to at first.
struct GiveMemory {
  std::size_t bytes = 0;
  void operator()(std::byte* memory) const noexcept { give_memory(memory, bytes); }
};
using ReusedBytes = std::unique_ptr<std::byte[], GiveMemory>;
inline ReusedBytes take_bytes(std::size_t bytes) {
  return ReusedBytes(static_cast<std::byte*>(take_memory(bytes)), GiveMemory{bytes});
}

}  // namespace tilewright::sim
