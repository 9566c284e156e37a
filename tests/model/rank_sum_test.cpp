// Small sums of a step's ranks: where they go through the memory of all, and that they are right
// there. Between GPUs if there are two.
#include "comm/peers/rank_sum.h"

#include "tilewright/buffer.h"
#include "tilewright/convert.h"
#include "tilewright/graph.h"
#include "tilewright/hyper_connection.h"

#include "base/error.h"
#include "comm/nccl.h"
#include "comm/peers/rank_rows.h"
#include "comm/thread_group.h"
#include "tests/reference/inputs.h"

#include <array>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

namespace tilewright::model {
namespace {

TEST(RankSum, SimulatedRanksSumThroughTheirCommunicator) {
  const Device device = Device::open("sim:h200");
  comm::ThreadGroup group(1);
  const std::shared_ptr<comm::Communicator> comm = group.join(0, device);
  EXPECT_EQ(comm::make_rank_sum(device, comm), nullptr);
  EXPECT_EQ(comm::make_rank_rows(device, comm), nullptr);
}

// Of a rank and a call; `sum` adds in the order of the ranks, as the kernel has to.
std::vector<float> numbers_of_rank(int rank, std::uint64_t call, std::int64_t count) {
  reference::Random random(100 * call + static_cast<std::uint64_t>(rank) + 1);
  std::vector<float> numbers;
  for (std::int64_t i = 0; i < count; ++i)
    numbers.push_back(static_cast<float>(random.uniform(-1, 1)));
  return numbers;
}
std::vector<float> sum_of_ranks(int size, std::uint64_t call, std::int64_t count) {
  std::vector<float> sum = numbers_of_rank(0, call, count);
  for (int rank = 1; rank < size; ++rank) {
    const auto more = numbers_of_rank(rank, call, count);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
  }
  return sum;
}

void add_up_on_rank(const Device& device, const std::shared_ptr<comm::Communicator>& comm) {
  const auto sum = comm::make_rank_sum(device, comm);
  if (sum == nullptr) GTEST_SKIP() << "the GPUs do not reach each other's memory";
  const Stream stream(device);
  // Of one process, a device that allocates waits for those that map its memory, and they for its
  // numbers: nothing is allocated between calls.
  constexpr std::int64_t kMost = 16384;
  Buffer data(device, 4 * kMost);
  const auto upload = [&](std::uint64_t call, std::int64_t count) {
    const std::vector<float> own = numbers_of_rank(comm->rank(), call, count);
    data.upload(std::as_bytes(std::span(own)));
  };
  const auto expect_sum = [&](std::uint64_t call, std::int64_t count) {
    std::vector<float> got = data.to_vector<float>();
    got.resize(static_cast<std::size_t>(count));
    ASSERT_EQ(got, sum_of_ranks(comm->size(), call, count)) << call;
  };
  comm->barrier();
  for (std::uint64_t call = 0; call < 50; ++call) {
    const std::int64_t count = call % 3 == 0 ? 4096 : call % 3 == 1 ? kMost : 4;
    upload(call, count);
    sum->run(data.data(), data.data(), count, DType::kF32, stream.handle());
    comm->synchronize(stream);
    expect_sum(call, count);
  }
  // Replayed, with new numbers.
  constexpr std::int64_t kCount = 4096;
  comm->barrier();
  const Graph graph = Graph::capture(
      stream, [&] { sum->run(data.data(), data.data(), kCount, DType::kF32, stream.handle()); });
  comm->barrier();
  for (std::uint64_t call = 0; call < 5; ++call) {
    upload(call, kCount);
    graph.launch(stream);
    comm->synchronize(stream);
    expect_sum(call, kCount);
  }
}

// The results of a rank, and their sum over ranks as one result.
struct RankResults {
  RankResults(const Device& device, std::int64_t tokens, std::int64_t hidden)
      : elements(tokens * hidden),
        own(device, static_cast<std::size_t>(8 * elements)),
        total(device, static_cast<std::size_t>(8 * elements)) {}

  void draw(int rank, int size, std::uint64_t call) {
    const auto of_rank = [&](int r) {
      auto numbers = numbers_of_rank(r, 2 * call, elements);
      const auto second = numbers_of_rank(r, 2 * call + 1, elements);
      numbers.insert(numbers.end(), second.begin(), second.end());
      return numbers;
    };
    const auto count = static_cast<std::size_t>(elements);
    std::vector<float> sums(2 * count);  // the second result is zeros
    for (int r = 0; r < size; ++r) {
      const std::vector<float> part = of_rank(r);
      for (std::size_t i = 0; i < count; ++i) sums[i] += part[i] + part[count + i];
    }
    const std::vector<float> mine = of_rank(rank);
    own.upload(std::as_bytes(std::span(mine)));
    total.upload(std::as_bytes(std::span(sums)));
  }

  std::int64_t elements;
  Buffer own, total;  // two results behind each other
};

// The same bits as of the sum on one device: what is merged, mixed and normed. Calls of other
// numbers of tokens between them, then a graph.
void connect_on_rank(const Device& device, const std::shared_ptr<comm::Communicator>& comm) {
  constexpr std::int64_t kHidden = 4096, kMost = 2;
  const auto sum = comm::make_rank_sum(device, comm, kHidden);
  if (sum == nullptr) GTEST_SKIP() << "the GPUs do not reach each other's memory";
  const Stream stream(device);
  const auto draw = [&](std::uint64_t seed, std::int64_t count) {
    return Buffer::from(device, numbers_of_rank(0, seed, count));
  };
  const auto draw_bf16 = [&](std::uint64_t seed, std::int64_t count) {
    return Buffer::from(device, encode(DType::kBF16, numbers_of_rank(0, seed, count)));
  };
  const Buffer x = draw_bf16(1000, kMost * 4 * kHidden), before = draw(1001, kMost * 24);
  const Buffer fn = draw(1002, 24 * 4 * kHidden), base = draw(1003, 24), scale = draw(1004, 3);
  const Buffer norm = draw_bf16(1005, kHidden);
  struct Outputs {
    Buffer merged, mix, out;
  };
  const auto outputs = [&] {
    return Outputs{Buffer(device, 8 * kMost * kHidden), Buffer(device, 96 * kMost),
                   Buffer(device, 2 * kMost * kHidden)};
  };
  Outputs got = outputs(), want = outputs();
  std::vector<HyperConnection> steps;
  std::vector<RankResults> results;
  const std::array<std::int64_t, 3> sizes = {1, kMost, 1};
  for (const std::int64_t tokens : sizes) {
    steps.emplace_back(device, HyperConnectionProblem{.tokens = tokens,
                                                      .hidden = kHidden,
                                                      .has_merge = true,
                                                      .has_second = true,
                                                      .result_dtype = DType::kF32,
                                                      .second_dtype = DType::kF32});
    results.emplace_back(device, tokens, kHidden);
  }
  const auto arguments = [&](const RankResults& of, const Buffer& result, const Outputs& to) {
    return HyperConnectionArguments{.streams = x.data(),
                                    .merged = to.merged.data(),
                                    .mix_before = before.as<float>(),
                                    .result = result.data(),
                                    .second_result = result.as<float>() + of.elements,
                                    .mix_weight = fn.as<float>(),
                                    .mix_bias = base.as<float>(),
                                    .mix_scale = scale.as<float>(),
                                    .norm_weight = norm.data(),
                                    .mix = to.mix.as<float>(),
                                    .out = to.out.data(),
                                    .stream = stream.handle()};
  };
  const auto check = [&](std::size_t i, std::uint64_t call, const auto& connect) {
    results[i].draw(comm->rank(), comm->size(), call);
    for (Outputs* to : {&got, &want})
      for (Buffer* buffer : {&to->merged, &to->mix, &to->out}) buffer->poison();
    steps[i].run(arguments(results[i], results[i].total, want));
    comm->synchronize(stream);
    connect();
    comm->synchronize(stream);
    ASSERT_EQ(got.merged.download(), want.merged.download()) << "call " << call;
    ASSERT_EQ(got.mix.download(), want.mix.download()) << "call " << call;
    ASSERT_EQ(got.out.download(), want.out.download()) << "call " << call;
  };
  const auto connect = [&](std::size_t i) {
    steps[i].run(arguments(results[i], results[i].own, got), sum->connection_ranks());
  };
  comm->barrier();
  for (std::uint64_t call = 0; call < 30; ++call) {
    const std::size_t i = call % sizes.size();
    check(i, call, [&] { connect(i); });
  }
  comm->barrier();
  const Graph graph = Graph::capture(stream, [&] { connect(0); });
  comm->barrier();
  for (std::uint64_t call = 30; call < 35; ++call) check(0, call, [&] { graph.launch(stream); });
}

// Rows of all ranks, and each rank's part of sums: few, uneven, more than there is room for; then a
// graph. As above, nothing is allocated between calls.
void move_rows_on_rank(const Device& device, const std::shared_ptr<comm::Communicator>& comm) {
  const auto rows = comm::make_rank_rows(device, comm);
  if (rows == nullptr) GTEST_SKIP() << "the GPUs do not reach each other's memory";
  const Stream stream(device);
  const int size = comm->size();
  constexpr std::int64_t kMost = 600000;  // of all ranks
  Buffer in(device, 4 * kMost), gathered(device, 4 * kMost), summed(device, 4 * kMost);
  struct Call {
    std::vector<std::int64_t> counts;
    std::vector<float> all, sum;  // what is gathered, and this rank's part of the sums
  };
  const auto draw = [&](std::uint64_t number, std::int64_t tokens) {
    Call call;
    for (int r = 0; r < size; ++r)
      call.counts.push_back(4096 * (r == static_cast<int>(number) % size ? tokens : 1));
    std::int64_t first = 0, total = 0;
    for (int r = 0; r < size; ++r) {
      const std::int64_t count = call.counts[comm::rank_idx(r)];
      const auto of_rank = numbers_of_rank(r, number, count);
      call.all.insert(call.all.end(), of_rank.begin(), of_rank.end());
      if (r < comm->rank()) first += count;
      total += count;
    }
    const auto sum = sum_of_ranks(size, 1000 + number, total);
    call.sum.assign(sum.begin() + first,
                    sum.begin() + first + call.counts[comm::rank_idx(comm->rank())]);
    return call;
  };
  const auto upload = [&](const std::vector<float>& numbers) {
    in.upload(std::as_bytes(std::span(numbers)));
  };
  const auto expect = [&](const Buffer& buffer, const std::vector<float>& want) {
    std::vector<float> got = buffer.to_vector<float>();
    got.resize(want.size());
    ASSERT_EQ(got, want);
  };
  const auto gather = [&](const Call& call) {
    rows->gather(in.data(), gathered.data(), call.counts, DType::kF32, stream.handle());
  };
  const auto scatter = [&](const Call& call) {
    rows->scatter(in.data(), summed.data(), call.counts, DType::kF32, stream.handle());
  };
  const auto check = [&](std::uint64_t number, const Call& call, const auto& to_all,
                         const auto& back) {
    upload(numbers_of_rank(comm->rank(), number, call.counts[comm::rank_idx(comm->rank())]));
    to_all();
    comm->synchronize(stream);
    expect(gathered, call.all);
    upload(numbers_of_rank(comm->rank(), 1000 + number, std::ssize(call.all)));
    back();
    comm->synchronize(stream);
    if (comm->in_order() || call.all.size() < 300000 || size == 2) expect(summed, call.sum);
  };
  comm->barrier();
  for (std::uint64_t number = 0; number < 12; ++number) {
    const Call call = draw(number, number % 4 == 3 ? 140 : number % 4 == 2 ? 64 : number + 1);
    check(
        number, call, [&] { gather(call); }, [&] { scatter(call); });
  }
  const Call call = draw(20, 2);
  check(
      20, call, [&] { gather(call); }, [&] { scatter(call); });
  comm->barrier();
  const Graph to_all = Graph::capture(stream, [&] { gather(call); });
  const Graph back = Graph::capture(stream, [&] { scatter(call); });
  comm->barrier();
  for (int i = 0; i < 5; ++i)
    check(
        20, call, [&] { to_all.launch(stream); }, [&] { back.launch(stream); });
}

using OnRank = void (*)(const Device&, const std::shared_ptr<comm::Communicator>&);

// On all GPUs of this host, up to four, a thread each.
void run_on_gpus(OnRank on_rank) {
  std::vector<Device> devices;
  std::shared_ptr<const comm::NcclLibrary> library;
  try {
    library = comm::NcclLibrary::open();
    for (int i = 0; i < 4; ++i) devices.push_back(Device::open("cuda:" + std::to_string(i)));
  } catch (const Error& error) {
    if (devices.size() < 2) GTEST_SKIP() << "fewer than two GPUs, or no NCCL: " << error.what();
  }
  if (devices[0].is_simulated()) GTEST_SKIP() << "no GPU";
  const int size = static_cast<int>(devices.size());
  const int port = 21000 + static_cast<int>(::getpid() % 8000);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        const Device& device = devices[comm::rank_idx(rank)];
        on_rank(device,
                comm::make_nccl_communicator(
                    device,
                    std::make_unique<comm::Rendezvous>(
                        comm::Launch{.rank = rank, .size = size, .host = "127.0.0.1", .port = port},
                        std::chrono::seconds(20)),
                    library, std::chrono::seconds(20)));
      } catch (const Error& error) {
        ADD_FAILURE() << "rank " << rank << ": " << error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(OneShotGpu, RanksAddUpThroughEachOthersMemory) {
  run_on_gpus(add_up_on_rank);
}
TEST(OneShotGpu, RowsGoToAllRanksAndBack) {
  run_on_gpus(move_rows_on_rank);
}
TEST(OneShotGpu, ConnectionsAddUpResultsOfRanks) {
  run_on_gpus(connect_on_rank);
}

}  // namespace
}  // namespace tilewright::model
