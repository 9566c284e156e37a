// Sums over ranks that write into each other's memory. One launch plays all ranks, so that they
// wait for each other on one device; and what a graph says of its launches.
#include "tilewright/peer_reduce.h"

#include "tilewright/graph.h"

#include "formats/minifloat.h"
#include "tests/ops/operator_test.h"
#include "tests/reference/inputs.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include <gmock/gmock.h>

namespace tilewright {
namespace {

class PeerReduceTest : public ChipTest<PeerReduceTest> {
 protected:
  // The ranks of a device, and the buffers that they keep from call to call.
  struct PeerRanks {
    PeerRanks(const Device& device_, int size_) : device(device_), size(size_) {
      for (int r = 0; r < size; ++r) memory.push_back(PeerReduce::memory(device, size));
    }
    // Every rank's numbers become their sum.
    void add_up(std::vector<Buffer>& numbers, std::int64_t count, DType dtype) {
      PeerReduceArguments a = {.num_parts = size};
      for (std::size_t r = 0; r < memory.size(); ++r) {
        a.parts[r] = {numbers[r].data(), numbers[r].data()};
        a.memory[r] = memory[r].data();
      }
      PeerReduce(device, {.ranks = size, .count = count, .dtype = dtype}).run(a);
      device.synchronize();
    }

    const Device& device;
    int size;
    std::vector<Buffer> memory;
  };
};
TILEWRIGHT_ON_EVERY_CHIP(PeerReduceTest);

std::vector<float> some_floats(std::uint64_t seed, std::int64_t count) {
  reference::Random random(seed);
  std::vector<float> numbers;
  for (std::int64_t i = 0; i < count; ++i)
    numbers.push_back(static_cast<float>(random.uniform(-1, 1)));
  return numbers;
}

// Long and short calls in turn, until each of the three buffers has been written by a long one,
// cleared in a short one, and used by a long one again. Sums are in the order of the ranks, to the
// bit, and the same on all.
TEST_P(PeerReduceTest, AddsInTheOrderOfTheRanks) {
  for (const int size : {2, 3}) {
    PeerRanks ranks(*device_, size);
    for (std::uint64_t call = 0; call < 11; ++call) {
      const std::int64_t count = call % 2 == 0 ? 1028 : 8;  // two CTAs, the last word of one
      std::vector<Buffer> buffers;
      std::vector<float> sum;
      for (int r = 0; r < size; ++r) {
        const auto own = some_floats(10 * call + static_cast<std::uint64_t>(r), count);
        buffers.push_back(Buffer::from(*device_, own));
        if (sum.empty()) sum.assign(own.size(), -0.0f);
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += own[i];
      }
      ranks.add_up(buffers, count, DType::kF32);
      for (const Buffer& buffer : buffers) ASSERT_EQ(buffer.to_vector<float>(), sum) << call;
    }
  }
}

TEST_P(PeerReduceTest, RoundsBf16Once) {
  PeerRanks ranks(*device_, 3);
  constexpr std::int64_t kCount = 40;
  std::vector<Buffer> buffers;
  std::vector<float> sum(kCount, -0.0f);
  for (std::uint64_t r = 0; r < 3; ++r) {
    std::vector<std::uint16_t> codes;
    for (const float x : some_floats(r, kCount))
      codes.push_back(static_cast<std::uint16_t>(encode(kBf16, static_cast<double>(x))));
    for (std::size_t i = 0; i < sum.size(); ++i)
      sum[i] += static_cast<float>(decode(kBf16, codes[i]));
    buffers.push_back(Buffer::from(*device_, codes));
  }
  ranks.add_up(buffers, kCount, DType::kBF16);
  std::vector<std::uint16_t> want;
  for (const float x : sum)
    want.push_back(static_cast<std::uint16_t>(encode(kBf16, static_cast<double>(x))));
  for (const Buffer& buffer : buffers) EXPECT_EQ(buffer.to_vector<std::uint16_t>(), want);
}

// What stands for "nothing yet" is a NaN that may be sent all the same; signs of zeros stay.
TEST_P(PeerReduceTest, SendsEveryNumber) {
  PeerRanks ranks(*device_, 2);
  const float empty = std::bit_cast<float>(0xffffffffu);
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> first = {empty, 1, -0.0f, infinity};
  const std::vector<float> second = {1, empty, -0.0f, -1};
  std::vector<Buffer> buffers;
  buffers.push_back(Buffer::from(*device_, first));
  buffers.push_back(Buffer::from(*device_, second));
  ranks.add_up(buffers, 4, DType::kF32);
  for (const Buffer& buffer : buffers) {
    const auto got = buffer.to_vector<float>();
    EXPECT_TRUE(std::isnan(got[0]) && std::isnan(got[1]));
    EXPECT_EQ(std::bit_cast<std::uint32_t>(got[2]), 0x80000000u);
    EXPECT_EQ(got[3], infinity);
  }
}

// A rank whose peers do not come ends when the host says so.
TEST_P(PeerReduceTest, EndsWhenTheHostGivesUp) {
  const Buffer own = PeerReduce::memory(*device_, 2), other = PeerReduce::memory(*device_, 2);
  const Buffer given_up = Buffer::from(*device_, std::vector<std::uint32_t>{1});
  const Buffer numbers = Buffer::from(*device_, some_floats(1, 4));
  PeerReduceArguments a = {.given_up = given_up.as<std::uint32_t>()};
  a.parts[0] = {numbers.data(), numbers.data()};
  a.memory = {own.data(), other.data()};
  PeerReduce(*device_, {.ranks = 2, .count = 4}).run(a);
  EXPECT_NO_THROW(device_->synchronize());
}

TEST_P(PeerReduceTest, RefusesWhatMakesNoSense) {
  const auto refused = [&](const PeerReduceProblem& problem, const char* text) {
    reference::expect_invalid([&] { plan_peer_reduce(*device_, problem); }, {text});
  };
  refused({.ranks = 1, .count = 4}, "ranks = 1; expected 2 to 8");
  refused({.ranks = 9, .count = 4}, "ranks = 9; expected 2 to 8");
  refused({.count = 6}, "count = 6; expected a multiple of 4 from 0 to 16384");
  refused({.count = 16388}, "count = 16388");
  refused({.count = 12, .dtype = DType::kBF16}, "a multiple of 8 from 0 to 32768");
  refused({.count = 4, .dtype = DType::kF16}, "dtype = F16; expected BF16 or F32");
  const PeerReduce sum(*device_, {.ranks = 2, .count = 4});
  reference::expect_invalid([&] { sum.run({}); }, {"the address of in is null"});
  reference::expect_invalid([&] { sum.run({.rank = 2}); }, {"rank = 2; expected 0 to 1"});
  reference::expect_invalid([&] { sum.run({.rank = 1, .num_parts = 2}); }, {"rank = 1"});
  EXPECT_NO_THROW(PeerReduce(*device_, {.count = 0}).run({}));
}

TEST_P(PeerReduceTest, GraphsSayWhatTheyLaunch) {
  const Stream stream(*device_);
  const Buffer own = PeerReduce::memory(*device_, 2), numbers(*device_, 64);
  Buffer filled(*device_, 64);
  const PeerReduce sum(*device_, {.ranks = 2, .count = 4});
  const Graph graph = Graph::capture(stream, [&] {
    filled.fill(std::byte{1}, stream);
    copy_on_device(stream, filled.data(), numbers.data(), 64);
    PeerReduceArguments a = {.stream = stream.handle()};
    a.parts[0] = {numbers.data(), numbers.data()};
    a.memory = {own.data(), own.data()};
    sum.run(a);  // recorded, never launched
  });
  EXPECT_THAT(graph.nodes(), ::testing::ElementsAre("memset", "memcpy", "peer_reduce"));
}

}  // namespace
}  // namespace tilewright
