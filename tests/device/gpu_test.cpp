// Memory, streams, kernels and graphs on a real GPU.
#include "device/graph.h"
#include "device/memory.h"
#include "device/module.h"
#include "gpu_device_test.h"
#include "gpu_ptx.h"

#include <cmath>
#include <numeric>
#include <random>
#include <thread>

namespace tilewright::device {
namespace {

using ::testing::Each;

std::vector<std::byte> random_bytes(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

std::vector<float> ramp(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), -7.0f);
  return values;
}

Kernel scale_kernel(const Device& device) {
  return Module::from_ptx(device, "scale.ptx", kScalePtx).kernel("scale");
}

LaunchConfig blocks_for(std::uint32_t count) {
  return {.grid = {(count + 255) / 256}, .block = {256}};
}

TEST_F(GpuTest, SaysWhatItIs) {
  const DeviceInfo& info = device().info();
  EXPECT_TRUE(is_usable_capability(info.compute_capability));
  EXPECT_FALSE(info.name.empty());
  EXPECT_EQ(info.uuid.size(), 40u);
  EXPECT_GT(info.num_sms, 0);
  EXPECT_GT(info.memory_bytes, std::size_t{1} << 30);
  EXPECT_EQ(info.shared_per_block_bytes, 48 << 10);
  EXPECT_EQ(info.shared_per_block_optin_bytes, 227 << 10);
  EXPECT_EQ(info.shared_per_sm_bytes, 228 << 10);
  EXPECT_EQ(info.registers_per_sm, 65536);
  EXPECT_EQ(info.threads_per_sm, 2048);
  EXPECT_TRUE(info.has_clusters);
  EXPECT_TRUE(info.has_tensor_maps);
  const MemoryInfo memory = device().memory();
  EXPECT_GT(memory.free_bytes, 0u);
  EXPECT_LE(memory.free_bytes, memory.total_bytes);
  EXPECT_LE(memory.total_bytes, info.memory_bytes);
  RecordProperty("device", device().describe());
}

TEST_F(GpuTest, BytesComeBackAndNothingElseChanges) {
  constexpr std::size_t kMargin = 256;
  for (const std::size_t size : {1u, 3u, 255u, 256u, 257u, 4109u, 65537u, (5u << 20) + 1}) {
    const std::vector<std::byte> bytes = random_bytes(size, static_cast<unsigned>(size));
    Buffer buffer(device(), size + 2 * kMargin);
    buffer.poison();
    buffer.copy_from_host(bytes, kMargin);
    std::vector<std::byte> expected(size + 2 * kMargin, Buffer::kPoison);
    std::copy(bytes.begin(), bytes.end(), expected.begin() + kMargin);
    EXPECT_EQ(buffer.to_vector<std::byte>(), expected) << size << " bytes";
    std::vector<std::byte> part(size);
    buffer.copy_to_host(part, kMargin);
    EXPECT_EQ(part, bytes) << size << " bytes";
  }
}

TEST_F(GpuTest, FillsWithBytesAndWords) {
  Buffer buffer(device(), 4000);
  buffer.fill(std::byte{0x3f});
  EXPECT_THAT(buffer.to_vector<std::uint8_t>(), Each(0x3f));
  buffer.poison();
  EXPECT_THAT(buffer.to_vector<float>(), Each(::testing::IsNan()));
  const auto current = device().make_current();
  const auto& cu = device().cu();
  device().check(cu.memset_d32(buffer.address(), 0x3f800000, 1000), "cuMemsetD32");
  EXPECT_THAT(buffer.to_vector<float>(), Each(1.0f));
  const Stream stream(device());
  device().check(cu.memset_d32_async(buffer.address(), 0x40000000, 1000, stream.handle()),
                 "cuMemsetD32Async");
  stream.synchronize();
  EXPECT_THAT(buffer.to_vector<float>(), Each(2.0f));
}

TEST_F(GpuTest, AsynchronousCopiesKeepTheOrderOfTheirStream) {
  constexpr std::size_t kSize = 1 << 20;
  const Stream stream(device());
  const PinnedBuffer in(device(), kSize);
  const PinnedBuffer out(device(), kSize);
  const std::vector<std::byte> bytes = random_bytes(kSize, 1);
  std::copy(bytes.begin(), bytes.end(), in.bytes().begin());
  std::fill(out.bytes().begin(), out.bytes().end(), std::byte{0});
  Buffer first(device(), kSize);
  Buffer second(device(), kSize);
  second.poison();
  first.fill_async(std::byte{1}, stream);
  first.copy_from_host_async(in.bytes(), stream);
  second.copy_from_async(first, stream);
  first.fill_async(std::byte{2}, stream);
  second.copy_to_host_async(out.bytes(), stream);
  stream.synchronize();
  EXPECT_TRUE(stream.is_idle());
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), out.bytes().begin()));
  EXPECT_THAT(first.to_vector<std::uint8_t>(), Each(2));
  first.copy_from(second);
  EXPECT_EQ(first.to_vector<std::byte>(), bytes);
}

TEST_F(GpuTest, CompilesAndRunsPtx) {
  constexpr std::uint32_t kCount = 1000;  // no multiple of the block
  const std::vector<float> values = ramp(kCount);
  const Buffer in = Buffer::from(device(), values);
  Buffer out(device(), 4 * (kCount + 24));
  out.poison();
  const Stream stream(device());
  scale_kernel(device()).launch(
      blocks_for(kCount),
      ScaleParams{
          .in = in.address(), .out = out.address(), .scale = 3, .offset = 0.5f, .count = kCount},
      stream);
  stream.synchronize();
  const std::vector<float> results = out.to_vector<float>();
  for (std::uint32_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(results[i], std::fma(values[i], 3.0f, 0.5f)) << i;
  }
  EXPECT_THAT(std::vector<float>(results.begin() + kCount, results.end()),
              Each(::testing::IsNan()));
}

TEST_F(GpuTest, KernelAttributes) {
  const Kernel kernel = scale_kernel(device());
  const KernelAttributes& attributes = kernel.attributes();
  EXPECT_GT(attributes.registers, 0);
  EXPECT_LE(attributes.registers, 32);
  EXPECT_EQ(attributes.local_bytes, 0);
  EXPECT_EQ(attributes.static_shared_bytes, 0);
  EXPECT_EQ(attributes.max_block_threads, 1024);
  EXPECT_EQ(attributes.ptx_version, 90);
  EXPECT_EQ(attributes.binary_version, device().info().compute_capability);
  EXPECT_EQ(attributes.required_cluster, std::nullopt);
  if (device().driver().version() >= 12040) {
    EXPECT_EQ(attributes.params_bytes, sizeof(ScaleParams));
  }
  EXPECT_EQ(kernel.max_active_blocks_per_sm(1024, 0), 2);
  EXPECT_EQ(kernel.max_active_blocks_per_sm(1024, 40 << 10), 2);
}

TEST_F(GpuTest, EventsMeasureTime) {
  const Stream stream(device());
  const Event start(device());
  const Event end(device());
  Buffer buffer(device(), 64 << 20);
  start.record(stream);
  for (int i = 0; i < 10; ++i) buffer.fill_async(static_cast<std::byte>(i), stream);
  end.record(stream);
  end.synchronize();
  EXPECT_TRUE(end.is_reached());
  EXPECT_GT(elapsed_ms(start, end), 0);
  EXPECT_LT(elapsed_ms(start, end), 60000);
}

// Without the wait, the copy on the second stream would overtake the fills on the first.
TEST_F(GpuTest, StreamsWaitForEvents) {
  const Stream first(device());
  const Stream second(device(), Stream::Priority::kHighest);
  const Event done(device(), Event::Timing::kOff);
  Buffer buffer(device(), 256 << 20);
  buffer.fill(std::byte{0});
  const PinnedBuffer out(device(), 4096);
  std::fill(out.bytes().begin(), out.bytes().end(), std::byte{0});
  for (int i = 1; i <= 20; ++i) buffer.fill_async(static_cast<std::byte>(i), first);
  done.record(first);
  second.wait_for(done);
  buffer.copy_to_host_async(out.bytes(), second, buffer.size_bytes() - 4096);
  second.synchronize();
  EXPECT_THAT(out.as<std::uint8_t>(), Each(20));
  first.synchronize();
}

TEST_F(GpuTest, LentStreams) {
  const Stream owner(device());
  const Stream lent = Stream::lent(device(), owner.handle());
  Buffer buffer(device(), 64);
  buffer.fill_async(std::byte{9}, lent);
  owner.synchronize();
  EXPECT_THAT(buffer.to_vector<std::uint8_t>(), Each(9));
  const Stream legacy = Stream::lent(device(), nullptr);
  buffer.fill_async(std::byte{8}, legacy);
  legacy.synchronize();
  EXPECT_THAT(buffer.to_vector<std::uint8_t>(), Each(8));
}

TEST_F(GpuTest, GraphsReplayTheCapturedWork) {
  constexpr std::uint32_t kCount = 4096;
  const Stream stream(device());
  const Kernel kernel = scale_kernel(device());
  const Buffer buffer = Buffer::from(device(), std::vector<float>(kCount, 1.0f));
  const ScaleParams params = {
      .in = buffer.address(), .out = buffer.address(), .scale = 2, .offset = 1, .count = kCount};
  const Graph graph = Graph::capture(stream, [&] {
    kernel.launch(blocks_for(kCount), params, stream);
    kernel.launch(blocks_for(kCount), params, stream);
  });
  EXPECT_THAT(buffer.to_vector<float>(), Each(1.0f)) << "capturing does not run the work";
  float expected = 1;
  for (int i = 0; i < 6; ++i) expected = 2 * expected + 1;
  for (int i = 0; i < 3; ++i) graph.launch(stream);
  stream.synchronize();
  EXPECT_THAT(buffer.to_vector<float>(), Each(expected));
}

TEST_F(GpuTest, ClustersWithMoreSharedMemoryThanTheDefault) {
  constexpr std::uint32_t kShared = 200 << 10;
  const Kernel kernel =
      Module::from_ptx(device(), "cluster.ptx", kClusterPtx).kernel("cluster_rank");
  const Stream stream(device());
  Buffer out(device(), 16 * 64 * 4);
  out.poison();
  const ClusterParams params = {.out = out.address(), .dynamic_shared_bytes = kShared};
  const LaunchConfig config = {.grid = {16},
                               .block = {64},
                               .cluster = Dim3{4},
                               .dynamic_shared_bytes = kShared,
                               .is_dependent_launch = true};
  kernel.allow_dynamic_shared_bytes(kShared);
  EXPECT_GT(kernel.max_active_clusters(config), 0);
  kernel.launch(config, params, stream);
  stream.synchronize();
  const std::vector<std::uint32_t> ranks = out.to_vector<std::uint32_t>();
  for (std::size_t i = 0; i < ranks.size(); ++i) ASSERT_EQ(ranks[i], i / 64 % 4) << i;
}

TEST_F(GpuTest, ClustersOfSixteen) {
  const Kernel kernel =
      Module::from_ptx(device(), "cluster.ptx", kClusterPtx).kernel("cluster_rank");
  const LaunchConfig config = {
      .grid = {16}, .block = {32}, .cluster = Dim3{16}, .dynamic_shared_bytes = 1024};
  kernel.allow_nonportable_cluster();
  if (kernel.max_active_clusters(config) == 0) {
    GTEST_SKIP() << "no cluster of 16 fits on " << device().label();
  }
  const Stream stream(device());
  Buffer out(device(), 16 * 32 * 4);
  out.poison();
  kernel.launch(config, ClusterParams{.out = out.address(), .dynamic_shared_bytes = 1024}, stream);
  stream.synchronize();
  const std::vector<std::uint32_t> ranks = out.to_vector<std::uint32_t>();
  for (std::size_t i = 0; i < ranks.size(); ++i) ASSERT_EQ(ranks[i], i / 32) << i;
}

TEST_F(GpuTest, ThreadsShareADevice) {
  constexpr std::uint32_t kCount = 3000;
  const Kernel kernel = scale_kernel(device());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const Stream stream(device());
      const std::vector<float> values(kCount, static_cast<float>(t));
      const Buffer buffer = Buffer::from(device(), values);
      for (int i = 0; i < 100; ++i) {
        kernel.launch(blocks_for(kCount),
                      ScaleParams{.in = buffer.address(),
                                  .out = buffer.address(),
                                  .scale = 1,
                                  .offset = 1,
                                  .count = kCount},
                      stream);
      }
      stream.synchronize();
      EXPECT_THAT(buffer.to_vector<float>(), Each(static_cast<float>(t + 100)));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(GpuTest, KnowsAddresses) {
  const Buffer buffer(device(), 1000);
  const PointerInfo info = query_pointer(device(), buffer.address() + 999);
  EXPECT_EQ(info.kind, PointerInfo::Kind::kDevice);
  EXPECT_EQ(info.ordinal, device().info().ordinal);
  EXPECT_LE(info.allocation_start, buffer.address());
  EXPECT_GE(info.allocation_start + info.allocation_bytes, buffer.address() + 1000);
  const PinnedBuffer pinned(device(), 1000);
  const auto host = reinterpret_cast<abi::CUdeviceptr>(pinned.bytes().data());
  EXPECT_EQ(query_pointer(device(), host).kind, PointerInfo::Kind::kHost);
}

// The context is the one that the CUDA runtime uses, and a second handle is the same again.
TEST_F(GpuTest, SharesThePrimaryContext) {
  const Device again = open_device(parse_device_spec(device().spec()));
  EXPECT_EQ(again.context(), device().context());
  Buffer there(again, 64);
  Buffer here(device(), 64);
  there.fill(std::byte{4});
  here.copy_from(there);
  EXPECT_THAT(here.to_vector<std::uint8_t>(), Each(4));
}

}  // namespace
}  // namespace tilewright::device
