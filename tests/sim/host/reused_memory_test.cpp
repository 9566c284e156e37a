#include "sim/host/reused_memory.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

constexpr std::size_t kLarge = 300'000;

TEST(ReusedMemory, IsAlignedAndWhole) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{100}, std::size_t{16'384}, kLarge}) {
    const ReusedBytes block = take_bytes(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.get()) % 64, 0U) << bytes;
    std::memset(block.get(), 1, bytes);
  }
}

TEST(ReusedMemory, IsGivenToTheNextThatAsksForAsMuch) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "nothing is kept under an address sanitizer";
#endif
  void* const first = take_memory(kLarge);
  void* const second = take_memory(kLarge);
  EXPECT_NE(first, second);
  give_memory(first, kLarge);
  void* const other = take_memory(2 * kLarge);
  EXPECT_NE(other, first);
  EXPECT_EQ(take_memory(kLarge), first);
  for (void* const block : {first, second}) give_memory(block, kLarge);
  give_memory(other, 2 * kLarge);
}

TEST(ReusedMemory, VectorsBeginWithValuesOfTheirOwn) {
  for (int round = 0; round < 3; ++round) {
    std::vector<int, Reused<int>> numbers(kLarge);
    EXPECT_TRUE(std::ranges::all_of(numbers, [](int number) { return number == 0; }));
    std::ranges::fill(numbers, 7);
  }
}

TEST(ReusedMemory, TwoThreadsNeverHaveTheSame) {
  const auto use = [](std::uint8_t mark) {
    for (std::size_t round = 0; round < 200; ++round) {
      const std::size_t bytes = 20'000 + 16'384 * (round % 3);
      const ReusedBytes block = take_bytes(bytes);
      std::memset(block.get(), mark, bytes);
      std::this_thread::yield();
      const auto* const seen = reinterpret_cast<const std::uint8_t*>(block.get());
      ASSERT_TRUE(std::all_of(seen, seen + bytes, [&](std::uint8_t byte) { return byte == mark; }));
    }
  };
  std::thread other(use, std::uint8_t{1});
  use(2);
  other.join();
}

TEST(ReusedMemory, OfMoreThanIsKeptTheLatestIs) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "nothing is kept under an address sanitizer";
#endif
  constexpr std::size_t kForty = std::size_t{40} << 20;
  void* const old = take_memory(kForty);
  void* const late = take_memory(kForty);
  give_memory(old, kForty);
  give_memory(late, kForty);
  EXPECT_EQ(take_memory(kForty), late);
  give_memory(late, kForty);
}

}  // namespace
}  // namespace tilewright::sim
