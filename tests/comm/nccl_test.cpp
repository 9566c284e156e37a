// What is asked of NCCL, with a stand-in for it over simulated memory; and what is said if there is
// no NCCL, or one of its ranks fails.
#include "comm/nccl.h"

#include "tilewright/buffer.h"
#include "tilewright/graph.h"

#include "base/error.h"
#include "tests/base/scoped_env.h"

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#ifdef TILEWRIGHT_HAS_NCCL_HEADER
#include <nccl.h>
#endif

namespace tilewright::comm {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

using Counts = std::vector<std::int64_t>;
using Bytes = std::vector<std::uint8_t>;

std::string fake_library(const std::string& folder) {
  return std::string(TILEWRIGHT_FAKE_NCCL) + "/" + folder + "/libnccl.so.2";
}

template <class Function>
Function* fake_function(const char* name) {
  void* const library = ::dlopen(fake_library("complete").c_str(), RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<Function*>(::dlsym(library, name));
}

// A port that is likely to be free.
int some_port() {
  static std::atomic<int> next = 0;
  return 20000 + static_cast<int>(::getpid() % 3000) * 4 + next++ % 64;
}

// Every rank a thread, as processes are each other's equals. Returns the sentences they end with.
using RankBody = std::function<void(Communicator&, const Device&, const Stream&)>;
std::vector<std::string> on_nccl_ranks(const std::vector<Device>& devices,
                                       const std::shared_ptr<const NcclLibrary>& library,
                                       const RankBody& body) {
  const int size = static_cast<int>(devices.size());
  const int port = some_port();
  std::vector<std::string> texts(static_cast<std::size_t>(size));
  const auto run = [&](int rank) {
    try {
      auto rendezvous = std::make_unique<Rendezvous>(
          Launch{.rank = rank, .size = size, .host = "127.0.0.1", .port = port}, 10s);
      const Device& device = devices[rank_idx(rank)];
      const auto comm = make_nccl_communicator(device, std::move(rendezvous), library, 20s);
      const Stream stream(device);
      body(*comm, device, stream);
    } catch (const std::exception& error) {
      texts[static_cast<std::size_t>(rank)] = error.what();
    }
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) threads.emplace_back(run, rank);
  for (std::thread& thread : threads) thread.join();
  return texts;
}

// With the stand-in, all on one simulated device.
std::vector<std::string> on_nccl_ranks(int size, const RankBody& body) {
  return on_nccl_ranks(std::vector<Device>(rank_idx(size), Device::open("sim:h200")),
                       NcclLibrary::open(fake_library("complete")), body);
}

float number(int rank, std::size_t i) {
  return static_cast<float>(10 * (rank + 1)) + static_cast<float>(i);
}

std::vector<float> numbers(int rank, std::size_t count) {
  std::vector<float> all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = number(rank, i);
  return all;
}

float number_sum(int size, std::size_t i) {
  float sum = 0;
  for (int r = 0; r < size; ++r) sum += number(r, i);  // whole numbers: in any order
  return sum;
}

class NcclTest : public ::testing::TestWithParam<int> {
 protected:
  void expect_no_errors(const std::vector<std::string>& texts) {
    for (const std::string& text : texts) EXPECT_EQ(text, "");
  }
};

TEST_P(NcclTest, SumsOfEvenAndUnevenParts) {
  const int size = GetParam();
  expect_no_errors(
      on_nccl_ranks(size, [&](Communicator& comm, const Device& device, const Stream& stream) {
        const auto rank = static_cast<std::size_t>(comm.rank());
        Buffer all = Buffer::from(device, numbers(comm.rank(), 6));
        Buffer reduced(device, 24);
        comm.all_reduce(all.data(), reduced.data(), 6, DType::kF32, stream.handle());
        const Counts even(static_cast<std::size_t>(size), 2);
        Buffer part(device, 8);
        comm.reduce_scatter(all.data(), part.data(), even, DType::kF32, stream.handle());
        Counts uneven = {4, 0, 2};
        uneven.resize(static_cast<std::size_t>(size));
        Buffer rest(device, 4 * static_cast<std::size_t>(uneven[rank]));
        comm.reduce_scatter(all.data(), rest.data(), uneven, DType::kF32, stream.handle());
        comm.barrier();
        comm.synchronize(stream);
        const auto sums = reduced.to_vector<float>(), two = part.to_vector<float>(),
                   some = rest.to_vector<float>();
        for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(sums[i], number_sum(size, i));
        for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(two[i], number_sum(size, 2 * rank + i));
        const std::size_t first = rank == 2 ? 4 : 0;
        for (std::size_t i = 0; i < some.size(); ++i)
          EXPECT_EQ(some[i], number_sum(size, first + i));
      }));
}

TEST_P(NcclTest, BytesOfEvenAndUnevenParts) {
  const int size = GetParam();
  expect_no_errors(
      on_nccl_ranks(size, [&](Communicator& comm, const Device& device, const Stream& stream) {
        const auto mark = [](int rank) { return static_cast<std::uint8_t>(rank + 1); };
        const auto gather = [&](const Counts& counts) {
          Bytes want;
          for (int r = 0; r < size; ++r)
            want.insert(want.end(), static_cast<std::size_t>(counts[rank_idx(r)]), mark(r));
          const Buffer in = Buffer::from(device, Bytes(8, mark(comm.rank())));
          Buffer out(device, want.size());
          comm.all_gather(in.data(), out.data(), counts, stream.handle());
          comm.synchronize(stream);
          EXPECT_EQ(out.to_vector<std::uint8_t>(), want);
        };
        gather(Counts(rank_idx(size), 3));
        Counts uneven = {0, 5, 1};
        uneven.resize(rank_idx(size));
        gather(uneven);
        Buffer data = Buffer::from(device, Bytes(9, mark(comm.rank())));
        comm.broadcast(data.data(), 9, size - 1, stream.handle());
        EXPECT_EQ(data.to_vector<std::uint8_t>(), Bytes(9, mark(size - 1)));
      }));
}

// Rank r sends r + q bytes to rank q: r and q as two digits.
TEST_P(NcclTest, AllToAll) {
  const int size = GetParam();
  expect_no_errors(
      on_nccl_ranks(size, [&](Communicator& comm, const Device& device, const Stream& stream) {
        const int me = comm.rank();
        Counts counts;
        Bytes sent, want;
        const auto digits = [](int from, int to) {
          return static_cast<std::uint8_t>(16 * (from + 1) + to);
        };
        for (int q = 0; q < size; ++q) {
          counts.push_back(me + q);
          sent.insert(sent.end(), rank_idx(me + q), digits(me, q));
          want.insert(want.end(), rank_idx(me + q), digits(q, me));
        }
        const Buffer in = Buffer::from(device, sent);
        Buffer out(device, want.size());
        comm.all_to_all(in.data(), out.data(), counts, counts, stream.handle());
        comm.synchronize(stream);
        EXPECT_EQ(out.to_vector<std::uint8_t>(), want);
      }));
}

INSTANTIATE_TEST_SUITE_P(Ranks, NcclTest, ::testing::Values(1, 2, 3));

TEST(Nccl, SaysWhatItIs) {
  on_nccl_ranks(2, [](Communicator& comm, const Device&, const Stream&) {
    EXPECT_THAT(comm.description(),
                AllOf(HasSubstr(" of 2, NCCL 2.28.9 ("), HasSubstr("complete/libnccl.so.2)")));
    EXPECT_FALSE(comm.in_order());
  });
}

TEST(Nccl, ARankThatFailsEndsTheOthers) {
  const auto begin = std::chrono::steady_clock::now();
  const int aborts_before = fake_function<int()>("fake_nccl_num_aborts")();
  const auto texts = on_nccl_ranks(3, [](Communicator& comm, const Device&, const Stream& stream) {
    if (comm.rank() == 2) {
      comm.tell_failure("out of memory");
      fail(ErrorKind::kOutOfMemory, "out of memory");
    }
    for (;;) {
      comm.synchronize(stream);
      std::this_thread::sleep_for(5ms);
    }
  });
  EXPECT_EQ(texts[0], "rank 2 of 3 failed: out of memory");
  EXPECT_EQ(texts[1], "rank 2 of 3 failed: out of memory");
  EXPECT_EQ(fake_function<int()>("fake_nccl_num_aborts")() - aborts_before, 3);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
}

TEST(Nccl, AnErrorOfNcclIsTold) {
  const auto plant = fake_function<void(int)>("fake_nccl_plant_error");
  const auto texts = on_nccl_ranks(2, [&](Communicator& comm, const Device&, const Stream& stream) {
    comm.barrier();
    if (comm.rank() == 0) plant(6);
    for (;;) {
      comm.synchronize(stream);
      std::this_thread::sleep_for(5ms);
    }
  });
  plant(0);
  for (const std::string& text : texts)
    EXPECT_THAT(text, HasSubstr("failed: NCCL: remote process exited"));
}

TEST(Nccl, SaysWhatIsWrongWithTheLibrary) {
  const auto text = [](const std::string& path) -> std::string {
    try {
      NcclLibrary::open(path);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
      return error.what();
    }
    return "no error";
  };
  const auto advice = HasSubstr("install it (Debian, Ubuntu: libnccl2; pip: nvidia-nccl-cu13)");
  EXPECT_THAT(text("/nowhere/libnccl.so.2"),
              AllOf(HasSubstr("NCCL: /nowhere/libnccl.so.2 cannot be loaded"), advice));
  EXPECT_THAT(text(fake_library("old")), AllOf(HasSubstr("is version 2.17.3. "), advice));
  EXPECT_THAT(text(fake_library("lacking")),
              AllOf(HasSubstr("has no function ncclGetLastError"), advice));
  const ScopedEnv named(NcclLibrary::kVariable, "/named/nccl.so");
  EXPECT_THAT(text(""), HasSubstr("/named/nccl.so cannot be loaded"));
}

// NCCL itself, on as many GPUs as there are, up to four.
class NcclGpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      library_ = NcclLibrary::open();
      for (int i = 0; i < 4; ++i) devices_.push_back(Device::open("cuda:" + std::to_string(i)));
    } catch (const Error& error) {
      if (devices_.size() < 2) GTEST_SKIP() << "fewer than two GPUs, or no NCCL: " << error.what();
    }
    if (devices_[0].is_simulated()) GTEST_SKIP() << "no GPU";
  }

  std::shared_ptr<const NcclLibrary> library_;
  std::vector<Device> devices_;
};

// Whole numbers, so that sums are exact in any order; run, recorded and replayed.
TEST_F(NcclGpuTest, EveryExchangeAlsoInAGraph) {
  const int size = static_cast<int>(devices_.size());
  const auto texts = on_nccl_ranks(
      devices_, library_, [&](Communicator& comm, const Device& device, const Stream& stream) {
        constexpr std::size_t kCount = 1000;
        const auto rank = rank_idx(comm.rank());
        const Buffer in = Buffer::from(device, numbers(comm.rank(), kCount));
        Buffer reduced(device, 4 * kCount), part(device, 4 * kCount), gathered(device, 4 * kCount);
        Buffer exchanged(device, 64 * devices_.size()), told = Buffer::from(device, Bytes(9, 1));
        Counts elems(devices_.size()), bytes(devices_.size());
        elems[0] = 3, elems.back() = 7;
        bytes[0] = 12, bytes.back() = 28;
        const Counts each(devices_.size(), 64);
        const auto exchange = [&] {
          comm.all_reduce(in.data(), reduced.data(), kCount, DType::kF32, stream.handle());
          comm.reduce_scatter(in.data(), part.data(), elems, DType::kF32, stream.handle());
          comm.all_gather(in.data(), gathered.data(), bytes, stream.handle());
          comm.all_to_all(in.data(), exchanged.data(), each, each, stream.handle());
          comm.broadcast(told.data(), 9, size - 1, stream.handle());
        };
        exchange();
        comm.synchronize(stream);
        for (Buffer* out : {&reduced, &part, &gathered, &exchanged}) out->poison();
        const Graph graph = Graph::capture(stream, exchange);
        graph.launch(stream);
        comm.synchronize(stream);
        const auto sums = reduced.to_vector<float>(), own = part.to_vector<float>();
        for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(sums[i], number_sum(size, i));
        const std::size_t first = rank + 1 == devices_.size() ? 3 : 0;
        for (std::size_t i = 0; i < static_cast<std::size_t>(elems[rank]); ++i)
          ASSERT_EQ(own[i], number_sum(size, first + i));
        const auto all = gathered.to_vector<float>();
        for (std::size_t i = 0; i < 3; ++i) ASSERT_EQ(all[i], number(0, i));
        for (std::size_t i = 0; i < 7; ++i) ASSERT_EQ(all[3 + i], number(size - 1, i));
        const auto rows = exchanged.to_vector<float>();  // of 16 numbers
        for (std::size_t i = 0; i < rows.size(); ++i)
          ASSERT_EQ(rows[i], number(static_cast<int>(i / 16), 16 * rank + i % 16));
      });
  for (const std::string& text : texts) EXPECT_EQ(text, "");
}

#ifdef TILEWRIGHT_HAS_NCCL_HEADER
TEST(Nccl, DeclarationsAreThoseOfItsHeader) {
  EXPECT_EQ(sizeof(nccl_abi::UniqueId), sizeof(ncclUniqueId));
  EXPECT_EQ(int{nccl_abi::kSuccess}, int{ncclSuccess});
  EXPECT_EQ(int{nccl_abi::kInProgress}, int{ncclInProgress});
  EXPECT_EQ(int{nccl_abi::kUint8}, int{ncclUint8});
  EXPECT_EQ(int{nccl_abi::kFloat32}, int{ncclFloat32});
  EXPECT_EQ(int{nccl_abi::kBfloat16}, int{ncclBfloat16});
  EXPECT_EQ(int{nccl_abi::kSum}, int{ncclSum});
  // The same numbers and kinds of parameters: with our types in the place of theirs.
  using ReduceType = ncclResult_t(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t,
                                  ncclComm_t, cudaStream_t);
  using RootType = ncclResult_t(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, int,
                                ncclComm_t, cudaStream_t);
  using GatherType =
      ncclResult_t(const void*, void*, size_t, ncclDataType_t, ncclComm_t, cudaStream_t);
  using BroadcastType =
      ncclResult_t(const void*, void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);
  static_assert(std::is_same_v<decltype(ncclAllReduce), ReduceType>);
  static_assert(std::is_same_v<decltype(ncclReduceScatter), ReduceType>);
  static_assert(std::is_same_v<decltype(ncclReduce), RootType>);
  static_assert(std::is_same_v<decltype(ncclAllGather), GatherType>);
  static_assert(std::is_same_v<decltype(ncclBroadcast), BroadcastType>);
  static_assert(std::is_same_v<decltype(ncclSend), ncclResult_t(const void*, size_t, ncclDataType_t,
                                                                int, ncclComm_t, cudaStream_t)>);
  static_assert(std::is_same_v<decltype(ncclRecv), ncclResult_t(void*, size_t, ncclDataType_t, int,
                                                                ncclComm_t, cudaStream_t)>);
  static_assert(std::is_same_v<decltype(ncclCommInitRank),
                               ncclResult_t(ncclComm_t*, int, ncclUniqueId, int)>);
  static_assert(
      std::is_same_v<decltype(ncclCommGetAsyncError), ncclResult_t(ncclComm_t, ncclResult_t*)>);
}
#endif

}  // namespace
}  // namespace tilewright::comm
