// Rows of ranks that write into each other's memory: to all of them, and parts of sums back. One
// launch plays all ranks, so that they wait for each other on one device.
#include "tilewright/peer_reduce.h"

#include "formats/minifloat.h"
#include "tests/ops/operator_test.h"
#include "tests/reference/inputs.h"

#include <cstring>
#include <numeric>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tilewright {
namespace {

using Counts = std::vector<std::int64_t>;
constexpr std::int64_t kMostBytes = 16384;

std::int64_t sum_of(const Counts& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

// Four bytes each, of any bits but those of "nothing yet".
std::vector<std::uint32_t> some_words(std::uint64_t seed, std::int64_t count) {
  reference::Random random(seed);
  std::vector<std::uint32_t> words;
  for (std::int64_t i = 0; i < count; ++i)
    words.push_back(static_cast<std::uint32_t>(random.uniform(0, 4e9)));
  return words;
}
std::vector<float> some_numbers(std::uint64_t seed, std::int64_t count) {
  reference::Random random(seed);
  std::vector<float> numbers;
  for (std::int64_t i = 0; i < count; ++i)
    numbers.push_back(static_cast<float>(random.uniform(-1, 1)));
  return numbers;
}

class PeerRowsTest : public ChipTest<PeerRowsTest> {
 protected:
  // The ranks of a device, and the buffers that they keep from call to call.
  struct Ranks {
    Ranks(const Device& of_all, std::size_t size) : device(of_all) {
      for (std::size_t r = 0; r < size; ++r)
        memory.push_back(PeerRows::memory(device, static_cast<int>(size), kMostBytes));
    }
    // What all ranks get, `out_bytes` of each.
    std::vector<Buffer> run(PeerRowsKind kind, const Counts& counts, DType dtype,
                            const std::vector<Buffer>& in,
                            const std::vector<std::int64_t>& out_bytes) const {
      const int size = static_cast<int>(memory.size());
      PeerRowsArguments a = {.num_parts = size};
      std::vector<Buffer> out;
      for (std::size_t r = 0; r < memory.size(); ++r) {
        out.emplace_back(device, static_cast<std::size_t>(out_bytes[r] + 16));
        out.back().poison();
        a.parts[r] = {in[r].data(), out[r].data()};
        a.memory[r] = memory[r].data();
      }
      PeerRows(device, {.kind = kind, .counts = counts, .dtype = dtype, .most_bytes = kMostBytes})
          .run(a);
      device.synchronize();
      return out;
    }

    const Device& device;
    std::vector<Buffer> memory;
  };
};
TILEWRIGHT_ON_EVERY_CHIP(PeerRowsTest);

template <class T>
std::vector<T> first_of(const Buffer& buffer, std::int64_t count) {
  std::vector<T> all = buffer.to_vector<T>();
  all.resize(static_cast<std::size_t>(count));
  return all;
}

// Behind its first `bytes` bytes a result of Ranks::run() is as it was.
void expect_poison_behind(const Device& device, const Buffer& result, std::int64_t bytes) {
  Buffer untouched(device, static_cast<std::size_t>(bytes + 16));
  untouched.poison();
  const auto got = result.download(), poison = untouched.download();
  EXPECT_EQ(std::memcmp(got.data() + bytes, poison.data() + bytes, 16), 0);
}

// Long, short and uneven calls of both kinds in turn, so that each of the three buffers is written,
// cleared by a call with fewer words, and used again. Nothing behind what is to be written changes.
TEST_P(PeerRowsTest, GathersAndScattersInTurn) {
  const std::vector<std::vector<Counts>> calls = {
      {{1028, 1028}, {8, 1100}, {4, 4}, {1100, 0}, {2048, 4}, {12, 8}},
      {{1028, 4, 260}, {4, 0, 4}, {0, 1200, 1028}, {8, 8, 8}}};
  for (const std::vector<Counts>& of_size : calls) {
    const std::size_t size = of_size[0].size();
    const Ranks ranks(*device_, size);
    for (std::uint64_t call = 0; call < 2 * of_size.size(); ++call) {
      const Counts& counts = of_size[call % of_size.size()];
      SCOPED_TRACE(fmt::format("call {}", call));
      std::vector<std::uint32_t> all;
      std::vector<Buffer> rows, parts;
      std::vector<std::int64_t> bytes_of_all, bytes_of_own;
      std::vector<float> sum;
      for (std::size_t r = 0; r < size; ++r) {
        const auto own = some_words(100 * call + r, counts[r] + 4);
        all.insert(all.end(), own.begin(), own.begin() + counts[r]);
        rows.push_back(Buffer::from(*device_, own));
        const auto part = some_numbers(100 * call + 50 + r, sum_of(counts));
        parts.push_back(Buffer::from(*device_, part));
        if (r == 0) sum = part;
        for (std::size_t i = 0; r > 0 && i < sum.size(); ++i) sum[i] += part[i];
        bytes_of_all.push_back(4 * sum_of(counts));
        bytes_of_own.push_back(4 * counts[r]);
      }
      const auto gathered =
          ranks.run(PeerRowsKind::kGather, counts, DType::kF32, rows, bytes_of_all);
      const auto summed =
          ranks.run(PeerRowsKind::kScatter, counts, DType::kF32, parts, bytes_of_own);
      std::int64_t first = 0;
      for (std::size_t r = 0; r < size; ++r) {
        SCOPED_TRACE(fmt::format("rank {}", r));
        ASSERT_EQ(first_of<std::uint32_t>(gathered[r], sum_of(counts)), all);
        const std::vector<float> want(sum.begin() + first, sum.begin() + first + counts[r]);
        ASSERT_EQ(first_of<float>(summed[r], counts[r]), want);
        expect_poison_behind(*device_, gathered[r], bytes_of_all[r]);
        expect_poison_behind(*device_, summed[r], bytes_of_own[r]);
        first += counts[r];
      }
    }
  }
}

TEST_P(PeerRowsTest, RoundsSumsOfBf16Once) {
  const Ranks ranks(*device_, 3);
  const Counts counts = {40, 8, 0};
  std::vector<Buffer> parts;
  std::vector<float> sum(48, -0.0f);
  for (std::uint64_t r = 0; r < 3; ++r) {
    std::vector<std::uint16_t> codes;
    for (const float x : some_numbers(r, 48))
      codes.push_back(static_cast<std::uint16_t>(encode(kBf16, static_cast<double>(x))));
    for (std::size_t i = 0; i < sum.size(); ++i)
      sum[i] += static_cast<float>(decode(kBf16, codes[i]));
    parts.push_back(Buffer::from(*device_, codes));
  }
  const auto got = ranks.run(PeerRowsKind::kScatter, counts, DType::kBF16, parts, {80, 16, 0});
  std::vector<std::uint16_t> want;
  for (const float x : sum)
    want.push_back(static_cast<std::uint16_t>(encode(kBf16, static_cast<double>(x))));
  EXPECT_EQ(first_of<std::uint16_t>(got[0], 40),
            std::vector<std::uint16_t>(want.begin(), want.begin() + 40));
  EXPECT_EQ(first_of<std::uint16_t>(got[1], 8),
            std::vector<std::uint16_t>(want.begin() + 40, want.end()));
}

// A rank whose peers do not come ends when the host says so.
TEST_P(PeerRowsTest, EndsWhenTheHostGivesUp) {
  const Buffer own = PeerRows::memory(*device_, 2, 64), other = PeerRows::memory(*device_, 2, 64);
  const Buffer given_up = Buffer::from(*device_, std::vector<std::uint32_t>{1});
  const Buffer rows = Buffer::from(*device_, some_numbers(1, 4)), all(*device_, 64);
  PeerRowsArguments a = {.given_up = given_up.as<std::uint32_t>()};
  a.parts[0] = {rows.data(), all.data()};
  a.memory = {own.data(), other.data()};
  PeerRows(*device_, {.counts = {4, 4}, .most_bytes = 64}).run(a);
  EXPECT_NO_THROW(device_->synchronize());
}

TEST_P(PeerRowsTest, RefusesWhatMakesNoSense) {
  const auto refused = [&](const PeerRowsProblem& problem, const char* text) {
    reference::expect_invalid([&] { plan_peer_rows(*device_, problem); }, {text});
  };
  refused({.counts = {4}, .most_bytes = 64}, "ranks = 1; expected 2 to 8");
  refused({.counts = Counts(9, 4), .most_bytes = 64}, "ranks = 9; expected 2 to 8");
  refused({.counts = {4, 6}, .most_bytes = 64}, "counts = 6; expected multiples of 4 from 0 to 16");
  refused({.counts = {20, 4}, .most_bytes = 64}, "counts = 20");
  refused({.counts = {4, 4}, .dtype = DType::kF16, .most_bytes = 64}, "dtype = F16");
  refused({.counts = {4, 4}}, "most_bytes = 0; expected 1 to 4194304");
  reference::expect_invalid([&] { PeerRows::memory(*device_, 2, 0); }, {"most_bytes = 0"});
  const PeerRows rows(*device_, {.counts = {4, 4}, .most_bytes = 64});
  reference::expect_invalid([&] { rows.run({}); }, {"the address of in is null"});
  reference::expect_invalid([&] { rows.run({.rank = 2}); }, {"rank = 2; expected 0 to 1"});
  EXPECT_NO_THROW(PeerRows(*device_, {.counts = {0, 0}, .most_bytes = 64}).run({}));
}

}  // namespace
}  // namespace tilewright
