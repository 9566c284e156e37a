// Small sums of a step's ranks: where they go through the memory of all, and that they are right
// there. Between GPUs if there are two.
#include "comm/peers/rank_sum.h"

#include "tilewright/graph.h"

#include "base/error.h"
#include "comm/nccl.h"
#include "comm/thread_group.h"
#include "tests/reference/inputs.h"

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
    sum->run(data.data(), count, DType::kF32, stream.handle());
    comm->synchronize(stream);
    expect_sum(call, count);
  }
  // Replayed, with new numbers.
  constexpr std::int64_t kCount = 4096;
  comm->barrier();
  const Graph graph =
      Graph::capture(stream, [&] { sum->run(data.data(), kCount, DType::kF32, stream.handle()); });
  comm->barrier();
  for (std::uint64_t call = 0; call < 5; ++call) {
    upload(call, kCount);
    graph.launch(stream);
    comm->synchronize(stream);
    expect_sum(call, kCount);
  }
}

TEST(OneShotGpu, RanksAddUpThroughEachOthersMemory) {
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
        add_up_on_rank(
            device,
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

}  // namespace
}  // namespace tilewright::model
