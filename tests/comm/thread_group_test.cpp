// Every exchange between threads on simulated devices, and every way in which a rank can fail.
#include "comm/thread_group.h"

#include "tilewright/buffer.h"
#include "tilewright/graph.h"

#include "base/error.h"
#include "device/kernel_registry.h"

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

// Exchanges launch no kernels: the program has none.
namespace tilewright::device {
std::span<const KernelImage> kernel_images() {
  return {};
}
const char* kernel_toolkit() {
  return "";
}
}  // namespace tilewright::device

namespace tilewright::comm {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

using Counts = std::vector<std::int64_t>;
using Bytes = std::vector<std::uint8_t>;

// On one simulated device for all ranks, under all checks of the simulator.
class ThreadGroupTest : public ::testing::TestWithParam<int> {
 protected:
  static void SetUpTestSuite() {
    ::setenv("TILEWRIGHT_SIM_CHECK", "all", 0);
    device_.emplace(Device::open("sim:h200"));
  }
  static void TearDownTestSuite() { device_.reset(); }

  // What each rank has after `body(communicator, stream)`.
  template <class Result, class Body>
  std::vector<Result> on_ranks(int size, const Body& body) {
    std::vector<Result> results(static_cast<std::size_t>(size));
    ThreadGroup group(size, 20s);
    group.run([&](int rank) {
      const auto comm = group.join(rank, *device_);
      const Stream stream(*device_);
      results[static_cast<std::size_t>(rank)] = body(*comm, stream);
    });
    return results;
  }
  // The sentence that the ranks end with, which has to come within seconds.
  std::string sentence(int size, const std::function<void(Communicator&, const Stream&)>& body,
                       std::chrono::milliseconds timeout = 20s) {
    const auto begin = std::chrono::steady_clock::now();
    ThreadGroup group(size, timeout);
    std::string text = "no error";
    try {
      group.run([&](int rank) {
        const auto comm = group.join(rank, *device_);
        const Stream stream(*device_);
        body(*comm, stream);
      });
    } catch (const Error& error) {
      text = error.what();
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
    return text;
  }

  static inline std::optional<Device> device_;
};

// A number that tells rank and place.
float value(int rank, std::int64_t i) {
  return static_cast<float>(rank + 1) + 0.1F * static_cast<float>(i);
}

std::vector<float> values(int rank, std::int64_t count) {
  std::vector<float> all;
  for (std::int64_t i = 0; i < count; ++i) all.push_back(value(rank, i));
  return all;
}

// In fp32 from left to right, as the interface promises.
float sum(int size, std::int64_t i) {
  float total = value(0, i);
  for (int r = 1; r < size; ++r) total += value(r, i);
  return total;
}

Bytes bytes(int rank, std::int64_t count) {
  Bytes all(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = static_cast<std::uint8_t>(100 * rank + static_cast<int>(i) + 1);
  return all;
}

// 3, 0, 5, ...: one rank gives nothing.
Counts uneven(int size) {
  Counts counts = {3, 0, 5};
  counts.resize(static_cast<std::size_t>(size));
  return counts;
}

TEST_P(ThreadGroupTest, AllReduceAddsInTheOrderOfTheRanks) {
  const auto results = on_ranks<std::vector<float>>(GetParam(), [&](auto& comm, auto& stream) {
    Buffer data = Buffer::from(*device_, values(comm.rank(), 50));
    comm.all_reduce(data.data(), data.data(), 50, DType::kF32, stream.handle());
    comm.synchronize(stream);
    return data.template to_vector<float>();
  });
  for (const auto& result : results)
    for (std::int64_t i = 0; i < 50; ++i)
      EXPECT_EQ(result[static_cast<std::size_t>(i)], sum(GetParam(), i));
}

TEST_P(ThreadGroupTest, AllReduceOfBf16RoundsOnce) {
  // 1 + 2^-8 + 2^-8 is 1 if every addition is rounded, and 1 + 2^-7 if the sum is.
  const auto results =
      on_ranks<std::vector<std::uint16_t>>(GetParam(), [&](auto& comm, auto& stream) {
        const std::vector<std::uint16_t> mine = {comm.rank() == 0 ? std::uint16_t{0x3f80}
                                                                  : std::uint16_t{0x3b80}};
        const Buffer in = Buffer::from(*device_, mine);
        Buffer out(*device_, 2);
        comm.all_reduce(in.data(), out.data(), 1, DType::kBF16, stream.handle());
        comm.synchronize(stream);
        return out.template to_vector<std::uint16_t>();
      });
  for (const auto& result : results) EXPECT_EQ(result[0], GetParam() == 3 ? 0x3f81 : 0x3f80);
}

TEST_P(ThreadGroupTest, AllGatherOfUnevenParts) {
  const Counts counts = uneven(GetParam());
  Bytes want;
  for (int r = 0; r < GetParam(); ++r)
    for (const std::uint8_t byte : bytes(r, counts[static_cast<std::size_t>(r)]))
      want.push_back(byte);
  const auto results = on_ranks<Bytes>(GetParam(), [&](auto& comm, auto& stream) {
    const Buffer in =
        Buffer::from(*device_, bytes(comm.rank(), counts[static_cast<std::size_t>(comm.rank())]));
    Buffer out(*device_, want.size());
    comm.all_gather(in.data(), out.data(), counts, stream.handle());
    comm.synchronize(stream);
    return out.template to_vector<std::uint8_t>();
  });
  for (const Bytes& result : results) EXPECT_EQ(result, want);
}

TEST_P(ThreadGroupTest, ReduceScatterOfUnevenParts) {
  const Counts counts = uneven(GetParam());
  const std::int64_t all = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  const auto results = on_ranks<std::vector<float>>(GetParam(), [&](auto& comm, auto& stream) {
    const Buffer in = Buffer::from(*device_, values(comm.rank(), all));
    const auto mine = static_cast<std::size_t>(counts[static_cast<std::size_t>(comm.rank())]);
    Buffer out(*device_, 4 * mine);
    comm.reduce_scatter(in.data(), out.data(), counts, DType::kF32, stream.handle());
    comm.synchronize(stream);
    return out.template to_vector<float>();
  });
  std::int64_t i = 0;
  for (std::size_t r = 0; r < results.size(); ++r) {
    ASSERT_EQ(results[r].size(), static_cast<std::size_t>(counts[r]));
    for (const float x : results[r]) EXPECT_EQ(x, sum(GetParam(), i++));
  }
}

// Rank r sends r + 2 q bytes to rank q, so also none.
TEST_P(ThreadGroupTest, AllToAllWithCounts) {
  const int size = GetParam();
  const auto count = [](int from, int to) { return std::int64_t{from} + 2 * to; };
  const auto results = on_ranks<Bytes>(size, [&](auto& comm, auto& stream) {
    Counts sent, received;
    for (int q = 0; q < size; ++q) {
      sent.push_back(count(comm.rank(), q));
      received.push_back(count(q, comm.rank()));
    }
    const auto sum_of = [](const Counts& c) {
      return std::accumulate(c.begin(), c.end(), std::int64_t{0});
    };
    const Buffer in = Buffer::from(*device_, bytes(comm.rank(), sum_of(sent)));
    Buffer out(*device_, static_cast<std::size_t>(sum_of(received)));
    comm.all_to_all(in.data(), out.data(), sent, received, stream.handle());
    comm.synchronize(stream);
    return out.template to_vector<std::uint8_t>();
  });
  for (int to = 0; to < size; ++to) {
    Bytes want;
    for (int from = 0; from < size; ++from) {
      std::int64_t first = 0;
      for (int q = 0; q < to; ++q) first += count(from, q);
      const Bytes all = bytes(from, first + count(from, to));
      want.insert(want.end(), all.begin() + first, all.end());
    }
    EXPECT_EQ(results[static_cast<std::size_t>(to)], want) << to;
  }
}

TEST_P(ThreadGroupTest, BroadcastFromTheLastRank) {
  const int root = GetParam() - 1;
  const auto results = on_ranks<Bytes>(GetParam(), [&](auto& comm, auto& stream) {
    Buffer data = Buffer::from(*device_, bytes(comm.rank(), 7));
    comm.broadcast(data.data(), 7, root, stream.handle());
    comm.synchronize(stream);
    comm.barrier();
    return data.template to_vector<std::uint8_t>();
  });
  for (const Bytes& result : results) EXPECT_EQ(result, bytes(root, 7));
}

// Recorded once, launched often; two exchanges of one shape share what is kept for them.
TEST_P(ThreadGroupTest, ExchangesInAGraph) {
  const auto results = on_ranks<std::vector<float>>(GetParam(), [&](auto& comm, auto& stream) {
    Buffer data = Buffer::from(*device_, std::vector<float>(8, 1.0F));
    const auto twice = [&] {
      for (int i = 0; i < 2; ++i)
        comm.all_reduce(data.data(), data.data(), 8, DType::kF32, stream.handle());
    };
    twice();
    const Graph graph = Graph::capture(stream, twice);
    graph.launch(stream);
    graph.launch(stream);
    comm.synchronize(stream);
    return data.template to_vector<float>();
  });
  for (const auto& result : results)
    EXPECT_EQ(result[7], std::pow(static_cast<float>(GetParam()), 6.0F));
}

INSTANTIATE_TEST_SUITE_P(Ranks, ThreadGroupTest, ::testing::Values(1, 2, 3));

// A suite of its own for what does not depend on the number of ranks.
using ThreadGroupFailureTest = ThreadGroupTest;
INSTANTIATE_TEST_SUITE_P(Ranks, ThreadGroupFailureTest, ::testing::Values(2));

TEST_P(ThreadGroupFailureTest, SizesThatDoNotFit) {
  const auto reduce = [&](Communicator& comm, const Stream& stream) {
    const Buffer in = Buffer::from(*device_, std::vector<float>(8, 1.0F));
    Buffer out(*device_, 32);
    comm.all_reduce(in.data(), out.data(), comm.rank() == 0 ? 8 : 4, DType::kF32, stream.handle());
    comm.synchronize(stream);
  };
  EXPECT_EQ(sentence(2, reduce),
            "rank 0 calls all_reduce of 8 F32, rank 1 calls all_reduce of 4 F32; all ranks make "
            "the same calls in the same order, with the same sizes");
  const auto send = [&](Communicator& comm, const Stream& stream) {
    const Buffer in(*device_, 8);
    Buffer out(*device_, 8);
    const Counts sent = {1, 2}, received = {1, 1};
    comm.all_to_all(in.data(), out.data(), sent, received, stream.handle());
    comm.synchronize(stream);
  };
  EXPECT_THAT(sentence(2, send),
              AllOf(HasSubstr("rank 0 calls all_to_all of 1, 2 U8, 1, 1 received"),
                    HasSubstr("what one sends has to be what the other receives")));
}

TEST_P(ThreadGroupFailureTest, AnotherCall) {
  const auto text = sentence(3, [&](Communicator& comm, const Stream& stream) {
    Buffer data = Buffer::from(*device_, std::vector<float>(3, 1.0F));
    if (comm.rank() == 2)
      comm.broadcast(data.data(), 12, 0, stream.handle());
    else
      comm.all_reduce(data.data(), data.data(), 3, DType::kF32, stream.handle());
    comm.synchronize(stream);
  });
  EXPECT_THAT(text, HasSubstr("rank 2 calls broadcast of 12 U8 from rank 0"));
}

TEST_P(ThreadGroupFailureTest, ARankThatThrowsEndsTheOthers) {
  std::string of_others;
  const auto text = sentence(3, [&](Communicator& comm, const Stream& stream) {
    Buffer data = Buffer::from(*device_, std::vector<float>(3, 1.0F));
    if (comm.rank() == 1) {
      comm.tell_failure("planted");
      fail(ErrorKind::kUnsupported, "planted");
    }
    comm.all_reduce(data.data(), data.data(), 3, DType::kF32, stream.handle());
    try {
      comm.synchronize(stream);
    } catch (const Error& error) {
      if (comm.rank() == 0) of_others = error.what();
      throw;
    }
  });
  EXPECT_EQ(text, "planted");
  EXPECT_EQ(of_others, "rank 1 of 3 failed: planted");
}

TEST_P(ThreadGroupFailureTest, ARankThatLeavesWithoutAWord) {
  const auto text = sentence(2, [&](Communicator& comm, const Stream& stream) {
    if (comm.rank() == 1) return;
    Buffer data = Buffer::from(*device_, std::vector<float>(3, 1.0F));
    comm.all_reduce(data.data(), data.data(), 3, DType::kF32, stream.handle());
    comm.synchronize(stream);
  });
  EXPECT_EQ(text,
            "rank 1 of 2 has ended, and rank 0 waits for it in all_reduce of 3 F32; all have "
            "to make the same calls");
}

TEST_P(ThreadGroupFailureTest, ARankThatDoesNotCome) {
  ThreadGroup group(2, 100ms);
  const auto comm = group.join(0, *device_), other = group.join(1, *device_);
  const Stream stream(*device_);
  Buffer data = Buffer::from(*device_, std::vector<float>(3, 1.0F));
  comm->all_reduce(data.data(), data.data(), 3, DType::kF32, stream.handle());
  try {
    comm->synchronize(stream);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 0 has waited 0.1 s in all_reduce of 3 F32"));
  }
  EXPECT_THROW(other->barrier(), Error);  // told to all, at once
}

TEST_P(ThreadGroupFailureTest, WrongArguments) {
  ThreadGroup group(2);
  const auto comm = group.join(0, *device_);
  const Stream stream(*device_);
  Buffer data(*device_, 64);
  const auto text = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(text([&] { group.join(0, *device_); }), HasSubstr("joins for the second time"));
  EXPECT_THAT(text([&] { group.join(2, *device_); }), HasSubstr("expected a rank from 0 to 1"));
  EXPECT_THAT(text([] { ThreadGroup none(0); }), HasSubstr("0 threads; expected from 1 to 64"));
  const auto reduce = [&](void* out, std::int64_t count, DType dtype) {
    return text([&] { comm->all_reduce(data.data(), out, count, dtype, stream.handle()); });
  };
  EXPECT_THAT(reduce(data.data(), -1, DType::kF32), HasSubstr("a count of -1; expected 0 or more"));
  EXPECT_THAT(reduce(nullptr, 4, DType::kF32), HasSubstr("address of the result is null"));
  EXPECT_THAT(reduce(data.data(), 4, DType::kI32), HasSubstr("sums are of F32 or BF16"));
  const Counts three = {1, 2, 3};
  EXPECT_THAT(text([&] { comm->all_gather(data.data(), data.data(), three, stream.handle()); }),
              HasSubstr("3 counts; expected 2, one for each rank"));
  EXPECT_THAT(text([&] { comm->broadcast(data.data(), 4, 2, stream.handle()); }),
              HasSubstr("from rank 2: expected a rank from 0 to 1"));
}

}  // namespace
}  // namespace tilewright::comm
