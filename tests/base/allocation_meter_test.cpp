#include "tests/base/allocation_meter.h"

#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <malloc.h>

namespace tilewright {
namespace {

std::atomic<std::size_t> live_bytes{0};
std::atomic<std::size_t> peak_bytes_{0};

void* allocate(std::size_t size) noexcept {
  void* const memory = std::malloc(std::max<std::size_t>(size, 1));
  if (memory == nullptr) return nullptr;
  const std::size_t now = live_bytes += ::malloc_usable_size(memory);
  std::size_t peak = peak_bytes_;
  while (now > peak && !peak_bytes_.compare_exchange_weak(peak, now)) {
  }
  return memory;
}

void* allocate_or_throw(std::size_t size) {
  void* const memory = allocate(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void deallocate(void* memory) noexcept {
  if (memory == nullptr) return;
  live_bytes -= ::malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace

AllocationMeter::AllocationMeter() : begin_bytes_(live_bytes) {
  peak_bytes_ = begin_bytes_;
}

std::size_t AllocationMeter::peak_bytes() const {
  return peak_bytes_ - begin_bytes_;
}

}  // namespace tilewright

// All forms are replaced, not only those that the others are made of: a sanitizer replaces each by
// its own and would mix them.
void* operator new(std::size_t size) {
  return tilewright::allocate_or_throw(size);
}
void* operator new[](std::size_t size) {
  return tilewright::allocate_or_throw(size);
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return tilewright::allocate(size);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return tilewright::allocate(size);
}
void operator delete(void* memory) noexcept {
  tilewright::deallocate(memory);
}
void operator delete[](void* memory) noexcept {
  tilewright::deallocate(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  tilewright::deallocate(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  tilewright::deallocate(memory);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept {
  tilewright::deallocate(memory);
}
void operator delete[](void* memory, const std::nothrow_t&) noexcept {
  tilewright::deallocate(memory);
}

namespace tilewright {
namespace {

TEST(AllocationMeter, SeesThePeakAndNotTheRest) {
  const std::vector<char> before(1'000'000);
  const AllocationMeter meter;
  EXPECT_LT(meter.peak_bytes(), 10'000u);
  { const std::vector<char> first(3'000'000); }
  const auto second = std::make_unique<char[]>(2'000'000);
  EXPECT_NE(second, nullptr);
  EXPECT_GE(meter.peak_bytes(), 3'000'000u);
  EXPECT_LT(meter.peak_bytes(), 3'100'000u);
}

TEST(AllocationMeter, SeesOtherThreads) {
  const AllocationMeter meter;
  std::thread([] { const std::vector<char> memory(1'000'000); }).join();
  EXPECT_GE(meter.peak_bytes(), 1'000'000u);
}

}  // namespace
}  // namespace tilewright
