#include "sim/state/global_memory.h"

#include "tests/base/expect_error.h"

#include <cstring>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kMiB = 1 << 20;

unsigned char byte_at(std::uint64_t address) {
  return *reinterpret_cast<const unsigned char*>(address);
}

TEST(GlobalMemory, AllocationsAreAlignedApartAndFilled) {
  GlobalMemory memory(64 * kMiB);
  std::set<std::uint64_t> starts;
  for (const std::uint64_t size : {1, 511, 512, 513, 70000}) {
    const std::uint64_t address = memory.allocate(size, "test");
    EXPECT_EQ(address % 512, 0u);
    EXPECT_TRUE(starts.insert(address).second);
    EXPECT_EQ(byte_at(address), 0xcd);
    EXPECT_EQ(byte_at(address + size - 1), 0xcd);
    EXPECT_EQ(memory.find(address + size - 1)->address, address);
    EXPECT_FALSE(memory.find(address + size)) << "behind " << size << " bytes";
  }
  EXPECT_EQ(memory.used_bytes(), 1 + 511 + 512 + 513 + 70000u);
  EXPECT_EQ(memory.allocate(10, "test", 1 << 16) % (1 << 16), 0u);
}

TEST(GlobalMemory, LargeAllocationsShowThePatternAndKeepWhatIsWritten) {
  GlobalMemory memory(1024 * kMiB);
  const std::uint64_t before = memory.allocate(100, "small");
  const std::uint64_t large = memory.allocate(200 * kMiB + 12345, "large");
  const std::uint64_t behind = memory.allocate(100, "small");
  std::memset(reinterpret_cast<void*>(behind), 7, 100);
  for (const std::uint64_t offset :
       {std::uint64_t{0}, 31 * kMiB, 32 * kMiB, 33 * kMiB + 5, 200 * kMiB + 12344}) {
    EXPECT_EQ(byte_at(large + offset), 0xcd) << offset;
  }
  std::memset(reinterpret_cast<void*>(large), 1, kMiB);
  EXPECT_EQ(byte_at(large + 5), 1);
  EXPECT_EQ(byte_at(large + 32 * kMiB + 5), 0xcd) << "the pattern is shared, writing is not";
  memory.free(large);
  EXPECT_EQ(byte_at(before), 0xcd);
  EXPECT_EQ(byte_at(behind), 7);
}

TEST(GlobalMemory, FreedAddressesAreRememberedAndNotReused) {
  GlobalMemory memory(64 * kMiB);
  const std::uint64_t first = memory.allocate(1000, "first");
  memory.free(first);
  const auto found = memory.find(first + 999);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->is_freed);
  EXPECT_EQ(found->origin, "first");
  EXPECT_EQ(found->id, 1u);
  for (int i = 0; i < 100; ++i) EXPECT_NE(memory.allocate(1000, "later"), first);
}

TEST(GlobalMemory, FreedAddressesAreReusedWhenNothingElseIsLeft) {
  GlobalMemory memory(8 * kMiB);
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t address = memory.allocate(3 * kMiB, "turn");
    EXPECT_EQ(byte_at(address + kMiB), 0xcd) << i;
    std::memset(reinterpret_cast<void*>(address), i, 3 * kMiB);
    memory.free(address);
  }
  EXPECT_EQ(memory.used_bytes(), 0u);
}

TEST(GlobalMemory, ReuseNeverOverlapsWhatIsLive) {
  GlobalMemory memory(kMiB);
  std::vector<std::uint64_t> live;
  for (int i = 0; i < 16; ++i) live.push_back(memory.allocate(kMiB / 16, "part"));
  for (std::size_t i = 0; i < live.size(); i += 2) memory.free(live[i]);
  for (std::size_t i = 1; i < live.size(); i += 2) {
    std::memset(reinterpret_cast<void*>(live[i]), 1, kMiB / 16);
  }
  for (int i = 0; i < 8; ++i) memory.allocate(kMiB / 16, "again");
  for (std::size_t i = 1; i < live.size(); i += 2) {
    EXPECT_EQ(byte_at(live[i]), 1);
    EXPECT_EQ(byte_at(live[i] + kMiB / 16 - 1), 1);
  }
  EXPECT_EQ(memory.used_bytes(), kMiB);
}

TEST(GlobalMemory, TheListenerHearsWhatNobodyUsesAnyMore) {
  GlobalMemory memory(64 * kMiB);
  using Range = std::pair<std::uint64_t, std::uint64_t>;
  std::vector<Range> heard;
  memory.set_free_listener([&](std::uint64_t address, std::uint64_t bytes) {
    heard.emplace_back(address, address + bytes);
  });
  const std::uint64_t a = memory.allocate(1000, "a", 4096);
  const std::uint64_t b = memory.allocate(1000, "b");
  const std::uint64_t c = memory.allocate(5000, "c");
  ASSERT_LT(c, a + 4096) << "they share a page";
  memory.free(b);
  memory.free(a);
  memory.free(c);
  EXPECT_EQ(heard, (std::vector<Range>{{a + 1000, c}, {a, c}, {a, a + 8192}}));
}

TEST(GlobalMemory, OnlySomeOfTheFreedAreRemembered) {
  GlobalMemory memory(1024 * kMiB);
  const std::uint64_t first = memory.allocate(100, "first");
  memory.free(first);
  for (int i = 0; i < 20000; ++i) memory.free(memory.allocate(100, "later"));
  EXPECT_FALSE(memory.find(first));
  const std::uint64_t last = memory.allocate(100, "last");
  memory.free(last);
  EXPECT_TRUE(memory.find(last) && memory.find(last)->is_freed);
}

TEST(GlobalMemory, Exhaustion) {
  GlobalMemory memory(kMiB);
  EXPECT_THAT(error_of(ErrorKind::kOutOfMemory, [&] { memory.allocate(2 * kMiB, "cuMemAlloc"); }),
              HasSubstr("cuMemAlloc: 2097152 bytes requested, 0 of 1048576 in use"));
  memory.allocate(kMiB, "all");
  error_of(ErrorKind::kOutOfMemory, [&] { memory.allocate(1, "more"); });
}

TEST(GlobalMemory, WrongFrees) {
  GlobalMemory memory(kMiB);
  const std::uint64_t address = memory.allocate(1024, "buffer");
  EXPECT_THAT(error_of(ErrorKind::kInvalidArgument, [&] { memory.free(address + 512); }),
              HasSubstr("not the start of an allocation"));
  memory.free(address);
  EXPECT_THAT(error_of(ErrorKind::kInvalidArgument, [&] { memory.free(address); }),
              HasSubstr("freed a second time"));
}

TEST(GlobalMemory, HostRanges) {
  GlobalMemory memory(kMiB);
  int values[4] = {};
  const auto address = reinterpret_cast<std::uint64_t>(values);
  EXPECT_FALSE(memory.find(address));
  const std::uint64_t version = memory.version();
  memory.add_host_range(address, sizeof values, "pinned");
  EXPECT_GT(memory.version(), version);
  ASSERT_TRUE(memory.find(address + 15));
  EXPECT_EQ(memory.find(address + 15)->origin, "pinned");
  EXPECT_FALSE(memory.find(address + 16));
  memory.remove_host_range(address);
  EXPECT_FALSE(memory.find(address));
}

TEST(GlobalMemory, TheWholeRangeCanBeTouched) {
  GlobalMemory memory(std::uint64_t{140} << 30);
  EXPECT_EQ(memory.capacity_bytes(), std::uint64_t{140} << 30);
  EXPECT_GE(memory.end() - memory.begin(), memory.capacity_bytes());
  *reinterpret_cast<char*>(memory.end() - 1) = 1;
  EXPECT_EQ(byte_at(memory.begin()), 0);
  EXPECT_EQ(byte_at(memory.end() - 1), 1);
}

}  // namespace
}  // namespace tilewright::sim
