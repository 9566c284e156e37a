#include "device/memory.h"

#include "fake_device_test.h"

#include <array>
#include <numeric>

namespace tilewright::device {
namespace {

using abi::CUresult;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using MemoryTest = FakeDeviceTest;

/// What the driver was asked to do, without the context housekeeping.
std::vector<std::string> work(const fake::State& state) {
  std::vector<std::string> calls;
  for (const std::string& call : state.calls) {
    if (call.rfind("cuCtx", 0) != 0) calls.push_back(call);
  }
  return calls;
}

TEST_F(MemoryTest, RoundTrip) {
  const Device device = open();
  std::vector<float> values(1000);
  std::iota(values.begin(), values.end(), 0.5f);
  const Buffer buffer = Buffer::from(device, values);
  EXPECT_EQ(buffer.size_bytes(), 4000u);
  EXPECT_EQ(buffer.address() % 256, 0u);
  EXPECT_EQ(buffer.to_vector<float>(), values);
}

TEST_F(MemoryTest, PartsAreCopiedWhereTheyBelong) {
  const Device device = open();
  Buffer buffer(device, 8);
  buffer.fill(std::byte{1});
  const std::array<std::byte, 3> part = {std::byte{7}, std::byte{8}, std::byte{9}};
  buffer.copy_from_host(part, 5);
  EXPECT_THAT(buffer.to_vector<std::uint8_t>(), ElementsAre(1, 1, 1, 1, 1, 7, 8, 9));
  std::array<std::byte, 2> back{};
  buffer.copy_to_host(back, 4);
  EXPECT_EQ(back[0], std::byte{1});
  EXPECT_EQ(back[1], std::byte{7});
}

TEST_F(MemoryTest, PoisonIsNanInFloats) {
  Buffer buffer(open(), 16);
  buffer.poison();
  EXPECT_THAT(buffer.to_vector<float>(), Each(::testing::IsNan()));
  EXPECT_THAT(buffer.to_vector<int>(), Each(-1));
}

// What the driver calls synchronous may return early, and our streams do not wait for the default
// one: every function without a stream has to end in a wait, or in a copy to the host, which waits.
TEST_F(MemoryTest, FunctionsWithoutAStreamWait) {
  const Device device = open();
  Buffer buffer(device, 16);
  const Buffer other(device, 16);
  const std::vector<int> values = {1, 2, 3, 4};
  state().calls.clear();
  buffer.fill(std::byte{0});
  buffer.copy_from_host(std::as_bytes(std::span(values)));
  buffer.copy_from(other);
  buffer.to_vector<int>();
  EXPECT_THAT(work(state()), ElementsAre("cuMemsetD8_v2", "cuStreamSynchronize", "cuMemcpyHtoD_v2",
                                         "cuStreamSynchronize", "cuMemcpyDtoD_v2",
                                         "cuStreamSynchronize", "cuMemcpyDtoH_v2"));
}

TEST_F(MemoryTest, FunctionsWithAStreamDoNotWait) {
  const Device device = open();
  const Stream stream(device);
  Buffer buffer(device, 16);
  Buffer other(device, 16);
  const PinnedBuffer pinned(device, 16);
  pinned.as<int>()[3] = 42;
  state().calls.clear();
  buffer.fill_async(std::byte{0}, stream);
  buffer.copy_from_host_async(pinned.bytes().subspan(12), stream, 4);
  other.copy_from_async(buffer, stream);
  other.copy_to_host_async(pinned.bytes(), stream);
  EXPECT_THAT(work(state()), ElementsAre("cuMemsetD8Async", "cuMemcpyHtoDAsync_v2",
                                         "cuMemcpyDtoDAsync_v2", "cuMemcpyDtoHAsync_v2"));
  stream.synchronize();
  EXPECT_THAT(pinned.as<int>(), ElementsAre(0, 42, 0, 0));
}

TEST_F(MemoryTest, EmptyBuffersTakeNothing) {
  const Device device = open();
  state().calls.clear();
  Buffer buffer(device, 0);
  const PinnedBuffer pinned(device, 0);
  const Stream lent = Stream::lent(device, nullptr);
  buffer.fill(std::byte{1});
  buffer.fill_async(std::byte{1}, lent);
  buffer.copy_from_host({});
  buffer.copy_from(Buffer(device, 0));
  buffer.copy_from_async(Buffer(device, 0), lent);
  EXPECT_THAT(buffer.to_vector<int>(), IsEmpty());
  EXPECT_THAT(pinned.bytes(), IsEmpty());
  EXPECT_EQ(buffer.address(), 0u);
  EXPECT_THAT(state().calls, IsEmpty());
}

TEST_F(MemoryTest, CopiesThatLeaveTheBufferAreRefused) {
  const Device device = open();
  Buffer buffer(device, 16);
  const Stream stream(device);
  std::array<std::byte, 9> bytes{};
  constexpr std::size_t kHuge = ~std::size_t{0};
  state().calls.clear();
  const auto refused = [](auto&& call) { return error_of(ErrorKind::kInvalidArgument, call); };
  EXPECT_EQ(refused([&] { buffer.copy_from_host(bytes, 8); }),
            "Buffer::copy_from_host: 9 bytes at offset 8 do not fit into a buffer of 16 bytes");
  EXPECT_THAT(refused([&] { buffer.copy_to_host(bytes, kHuge - 2); }), HasSubstr("copy_to_host"));
  EXPECT_THAT(refused([&] { buffer.copy_from_host_async(bytes, stream, 17); }),
              HasSubstr("copy_from_host_async"));
  EXPECT_THAT(refused([&] { buffer.copy_to_host_async(bytes, stream, 8); }),
              HasSubstr("copy_to_host_async"));
  EXPECT_THAT(work(state()), IsEmpty());
  const Buffer larger(device, 17);
  EXPECT_THAT(refused([&] { buffer.copy_from(larger); }), HasSubstr("17 bytes"));
  EXPECT_THAT(refused([&] { buffer.copy_from_async(larger, stream); }), HasSubstr("17 bytes"));
  const Buffer odd(device, 6);
  EXPECT_THAT(refused([&] { odd.to_vector<int>(); }), HasSubstr("whole elements of 4 bytes"));
}

TEST_F(MemoryTest, OutOfMemorySaysHowMuchWasAskedAndHowMuchIsFree) {
  state().gpus[0].memory_bytes = 1 << 20;
  const Device device = open();
  const Buffer first(device, 1 << 19);
  EXPECT_THAT(error_of(ErrorKind::kOutOfMemory, [&] { Buffer(device, 1 << 20); }),
              AllOf(HasSubstr("cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (out of memory)"),
                    HasSubstr("requested 1048576 bytes, 524288 bytes free of 1048576"),
                    HasSubstr("device = cuda:0 (Fake H200)"), HasSubstr("Free buffers")));
  EXPECT_THAT(error_of(ErrorKind::kOutOfMemory, [&] { PinnedBuffer(device, 1 << 21); }),
              AllOf(HasSubstr("cuMemHostAlloc"), HasSubstr("2097152 bytes of pinned host memory")));
}

TEST_F(MemoryTest, OutOfMemoryIsReportedEvenIfTheFreeMemoryIsUnknown) {
  state().gpus[0].memory_bytes = 1 << 20;
  const Device device = open();
  fail_next("cuMemGetInfo_v2", CUresult::kUnknown);
  EXPECT_THAT(error_of(ErrorKind::kOutOfMemory, [&] { Buffer(device, 1 << 21); }),
              AllOf(HasSubstr("requested 2097152 bytes"),
                    HasSubstr("free memory unknown (CUDA_ERROR_UNKNOWN)")));
}

TEST_F(MemoryTest, EveryCodeOfAnAllocationIsReported) {
  const Device device = open();
#define CHECK(ours, theirs, value)                                                \
  if (CUresult::ours != CUresult::kSuccess) {                                     \
    fail_next("cuMemAlloc_v2", CUresult::ours);                                   \
    EXPECT_THAT(error_of(kind_of(CUresult::ours), [&] { Buffer(device, 64); }),   \
                AllOf(HasSubstr("cuMemAlloc: " #theirs), HasSubstr("64 bytes"))); \
  }
  TILEWRIGHT_CU_RESULTS(CHECK)
#undef CHECK
}

TEST_F(MemoryTest, MovingMovesTheOwnership) {
  const Device device = open();
  Buffer buffer(device, 64);
  const abi::CUdeviceptr address = buffer.address();
  Buffer moved = std::move(buffer);
  EXPECT_EQ(moved.address(), address);
  moved = Buffer(device, 32);  // frees the first
  EXPECT_EQ(moved.size_bytes(), 32u);
  EXPECT_EQ(device.memory().free_bytes, device.memory().total_bytes - 32);
}

TEST_F(MemoryTest, FailureToFreeIsKeptNotThrown) {
  const Device device = open();
  {
    const Buffer buffer(device, 64);
    fail_next("cuMemFree_v2", CUresult::kIllegalAddress);
  }
  const ReleaseFailures failures = cuda_.driver.take_release_failures();
  EXPECT_EQ(failures.count, 1u);
  EXPECT_THAT(failures.messages,
              ElementsAre("cuMemFree_v2: CUDA_ERROR_ILLEGAL_ADDRESS (text from the fake driver)"));
}

TEST_F(MemoryTest, WhatAnAddressIs) {
  state().gpus.push_back(fake::Gpu{});
  const Device device = open(1);
  const Buffer buffer(device, 1000);
  const PointerInfo inside = query_pointer(device, buffer.address() + 999);
  EXPECT_EQ(inside.kind, PointerInfo::Kind::kDevice);
  EXPECT_EQ(inside.ordinal, 1);
  EXPECT_EQ(inside.allocation_start, buffer.address());
  EXPECT_EQ(inside.allocation_bytes, 1000u);

  const PinnedBuffer pinned(device, 64);
  const auto host = reinterpret_cast<abi::CUdeviceptr>(pinned.bytes().data());
  EXPECT_EQ(query_pointer(device, host).kind, PointerInfo::Kind::kHost);

  const int local = 0;
  const auto unknown = reinterpret_cast<abi::CUdeviceptr>(&local);
  EXPECT_EQ(query_pointer(device, unknown).kind, PointerInfo::Kind::kUnknown);
  fail_next("cuPointerGetAttribute", CUresult::kIllegalAddress);
  EXPECT_THAT(error_of(ErrorKind::kDeviceError, [&] { query_pointer(device, unknown); }),
              HasSubstr("cuPointerGetAttribute"));
}

TEST_F(MemoryTest, PinnedMemoryIsPinnedForEveryContext) {
  const PinnedBuffer pinned(open(), 100);
  EXPECT_EQ(state().objects.at(reinterpret_cast<std::uint64_t>(pinned.bytes().data())).flags,
            abi::kMemHostAllocPortable);
  EXPECT_EQ(pinned.as<double>().size(), 12u);
}

}  // namespace
}  // namespace tilewright::device
