// Memory, copies and fills.
#include "tests/sim/driver/driver_fixture.h"

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace tilewright::sim::abi {
namespace {

using DriverMemoryTest = DriverTest;

TEST_F(DriverMemoryTest, AllocateFillCopyFree) {
  CUdeviceptr device = 0;
  ASSERT_OK(cu.cuMemAlloc_v2(&device, 4000));
  EXPECT_OK(cu.cuMemsetD32_v2(device, 0x01020304, 1000));
  EXPECT_OK(cu.cuMemsetD16_v2(device + 2, 0x0505, 1));
  EXPECT_OK(cu.cuMemsetD8_v2(device + 3999, 9, 1));
  std::vector<unsigned char> host(4000);
  EXPECT_OK(cu.cuMemcpyDtoH_v2(host.data(), device, 4000));
  EXPECT_EQ(host[0], 4);
  EXPECT_EQ(host[2], 5);
  EXPECT_EQ(host[3], 5);
  EXPECT_EQ(host[3999], 9);
  std::iota(host.begin(), host.end(), std::uint8_t{0});
  EXPECT_OK(cu.cuMemcpyHtoD_v2(device, host.data(), 2000));
  EXPECT_OK(cu.cuMemcpyDtoD_v2(device + 2000, device, 2000));
  std::vector<unsigned char> back(2000);
  EXPECT_OK(cu.cuMemcpy(reinterpret_cast<CUdeviceptr>(back.data()), device + 2000, 2000));
  EXPECT_TRUE(std::equal(back.begin(), back.end(), host.begin()));
  EXPECT_OK(cu.cuMemFree_v2(device));
  EXPECT_EQ(cu.cuMemFree_v2(device), CUresult::kInvalidValue);
  EXPECT_OK(cu.cuMemFree_v2(0));
}

TEST_F(DriverMemoryTest, RangesAreChecked) {
  CUdeviceptr device = 0;
  ASSERT_OK(cu.cuMemAlloc_v2(&device, 100));
  char host[200] = {};
  EXPECT_EQ(cu.cuMemcpyHtoD_v2(device, host, 101), CUresult::kInvalidValue);
  EXPECT_EQ(cu.cuMemcpyHtoD_v2(device + 50, host, 51), CUresult::kInvalidValue);
  EXPECT_EQ(cu.cuMemcpyDtoH_v2(host, device + 100, 1), CUresult::kInvalidValue);
  EXPECT_EQ(cu.cuMemsetD8_v2(device, 0, 101), CUresult::kInvalidValue);
  EXPECT_EQ(cu.cuMemsetD32_v2(device + 1, 0, 1), CUresult::kInvalidValue) << "misaligned";
  EXPECT_EQ(cu.cuMemcpyHtoD_v2(device, nullptr, 1), CUresult::kInvalidValue);
  EXPECT_EQ(cu.cuMemcpyHtoD_v2(reinterpret_cast<CUdeviceptr>(host), host + 100, 1),
            CUresult::kInvalidValue)
      << "pageable memory is no device memory";
  EXPECT_OK(cu.cuMemFree_v2(device));
  EXPECT_EQ(cu.cuMemcpyDtoH_v2(host, device, 1), CUresult::kInvalidValue) << "freed";
}

TEST_F(DriverMemoryTest, AllocationErrors) {
  CUdeviceptr device = 0;
  EXPECT_EQ(cu.cuMemAlloc_v2(&device, 0), CUresult::kInvalidValue);
  EXPECT_EQ(cu.cuMemAlloc_v2(nullptr, 1), CUresult::kInvalidValue);
  EXPECT_EQ(cu.cuMemAlloc_v2(&device, std::size_t{1} << 40), CUresult::kOutOfMemory);
  size_t free_bytes = 0, total_bytes = 0;
  EXPECT_OK(cu.cuMemGetInfo_v2(&free_bytes, &total_bytes));
  EXPECT_EQ(free_bytes, total_bytes);
}

TEST_F(DriverMemoryTest, TwoDimensions) {
  CUdeviceptr device = 0;
  size_t pitch = 0;
  ASSERT_OK(cu.cuMemAllocPitch_v2(&device, &pitch, 100, 10, 4));
  EXPECT_EQ(pitch, 512u);
  ASSERT_OK(cu.cuMemsetD2D8_v2(device, pitch, 0, 100, 10));
  char host[6] = {1, 2, 3, 4, 5, 6};
  CUDA_MEMCPY2D copy{};
  copy.src_memory_type = CUmemorytype::kHost;
  copy.src_host = host;
  copy.src_pitch = 3;
  copy.dst_memory_type = CUmemorytype::kDevice;
  copy.dst_device = device;
  copy.dst_pitch = pitch;
  copy.dst_x_in_bytes = 7;
  copy.dst_y = 2;
  copy.width_in_bytes = 3;
  copy.height = 2;
  ASSERT_OK(cu.cuMemcpy2D_v2(&copy));
  char row[5];
  ASSERT_OK(cu.cuMemcpyDtoH_v2(row, device + 3 * pitch + 6, 5));
  EXPECT_THAT(row, ::testing::ElementsAre(0, 4, 5, 6, 0));
  copy.dst_y = 9;
  EXPECT_EQ(cu.cuMemcpy2D_v2(&copy), CUresult::kInvalidValue);
  EXPECT_OK(cu.cuMemFree_v2(device));
}

TEST_F(DriverMemoryTest, HostMemory) {
  void* pinned = nullptr;
  ASSERT_OK(cu.cuMemHostAlloc(&pinned, 1000, kMemHostAllocPortable));
  const auto address = reinterpret_cast<CUdeviceptr>(pinned);
  unsigned type = 0;
  EXPECT_OK(cu.cuPointerGetAttribute(&type, CUpointer_attribute::kMemoryType, address + 999));
  EXPECT_EQ(type, static_cast<unsigned>(CUmemorytype::kHost));
  EXPECT_EQ(cu.cuPointerGetAttribute(&type, CUpointer_attribute::kMemoryType, address + 1000),
            CUresult::kInvalidValue);
  CUdeviceptr seen = 0;
  EXPECT_OK(cu.cuMemHostGetDevicePointer_v2(&seen, pinned, 0));
  EXPECT_EQ(seen, address);
  EXPECT_EQ(cu.cuMemFree_v2(address), CUresult::kInvalidValue);
  EXPECT_OK(cu.cuMemFreeHost(pinned));

  std::vector<char> own(100);
  EXPECT_OK(cu.cuMemHostRegister_v2(own.data(), own.size(), 0));
  EXPECT_EQ(cu.cuMemHostRegister_v2(own.data() + 50, 10, 0),
            CUresult::kHostMemoryAlreadyRegistered);
  EXPECT_OK(cu.cuMemHostUnregister(own.data()));
  EXPECT_EQ(cu.cuMemHostUnregister(own.data()), CUresult::kHostMemoryNotRegistered);

  CUdeviceptr managed = 0;
  EXPECT_OK(cu.cuMemAllocManaged(&managed, 64, 1));
  unsigned is_managed = 0;
  EXPECT_OK(cu.cuPointerGetAttribute(&is_managed, CUpointer_attribute::kIsManaged, managed));
  EXPECT_EQ(is_managed, 1u);
  *reinterpret_cast<int*>(managed) = 3;
  EXPECT_OK(cu.cuMemFree_v2(managed));
}

/// Bytes of this process that the system holds in memory.
std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * 4096;
}

// The init check keeps a byte for each that was written.
TEST_F(DriverMemoryTest, FreedMemoryGoesBackToTheSystem) {
  constexpr std::size_t kMiB = 1 << 20;
  CUstream stream = nullptr;
  ASSERT_OK(cu.cuStreamCreate(&stream, 0));
  const auto grown_by = [&](std::size_t bytes, int times, auto&& release) {
    const std::vector<char> host(bytes, 1);
    const std::uint64_t before = resident_bytes();
    for (int i = 0; i < times; ++i) {
      CUdeviceptr device = 0;
      EXPECT_OK(cu.cuMemAlloc_v2(&device, bytes));
      EXPECT_OK(cu.cuMemcpyHtoD_v2(device, host.data(), bytes));
      release(device);
    }
    const std::uint64_t after = resident_bytes();
    return after > before ? (after - before) / kMiB : 0;
  };
  const auto free_now = [&](CUdeviceptr device) { EXPECT_OK(cu.cuMemFree_v2(device)); };
  const auto free_async = [&](CUdeviceptr device) { EXPECT_OK(cu.cuMemFreeAsync(device, stream)); };
  // Each is 400 MiB or more in all.
  EXPECT_LT(grown_by(40 * kMiB, 10, free_now), 100u);
  EXPECT_LT(grown_by(40 * kMiB, 10, free_async), 100u);
  EXPECT_LT(grown_by(kMiB, 400, free_now), 100u);
  EXPECT_LT(grown_by(10000, 40000, free_now), 100u);
  EXPECT_LT(grown_by(1500, 270000, free_now), 100u) << "several in a page";
  CUdeviceptr last = 0;
  const auto free_previous = [&](CUdeviceptr device) {
    EXPECT_OK(cu.cuMemFree_v2(std::exchange(last, device)));
  };
  EXPECT_LT(grown_by(1500, 270000, free_previous), 100u) << "the neighbour is live";
  EXPECT_OK(cu.cuMemFree_v2(last));
  EXPECT_OK(cu.cuStreamDestroy_v2(stream));
}

TEST_F(DriverMemoryTest, MemoryOfContextsAndModulesGoesBackToTheSystem) {
  constexpr std::size_t kBytes = 40 << 20;
  const std::vector<char> host(kBytes, 1);
  const std::string ptx =
      ".version 8.0\n.target sm_90\n.address_size 64\n.visible .global .b8 lut[41943040];\n";
  size_t free_before = 0, free_after = 0, total = 0;
  EXPECT_OK(cu.cuMemGetInfo_v2(&free_before, &total));
  const std::uint64_t before = resident_bytes();
  for (int i = 0; i < 10; ++i) {
    EXPECT_OK(cu.cuModuleUnload(load(ptx)));
    CUcontext context = nullptr;
    ASSERT_OK(cu.cuCtxCreate_v2(&context, 0, 0));
    CUdeviceptr device = 0;
    EXPECT_OK(cu.cuMemAlloc_v2(&device, kBytes));
    EXPECT_OK(cu.cuMemcpyHtoD_v2(device, host.data(), kBytes));
    EXPECT_OK(cu.cuCtxDestroy_v2(context));
  }
  EXPECT_LT(resident_bytes(), before + 3 * kBytes);
  EXPECT_OK(cu.cuMemGetInfo_v2(&free_after, &total));
  EXPECT_EQ(free_after, free_before);
}

TEST_F(DriverMemoryTest, Pools) {
  CUmemoryPool pool = nullptr, standard = nullptr;
  ASSERT_OK(cu.cuDeviceGetDefaultMemPool(&standard, 0));
  CUmemPoolProps props{};
  props.alloc_type = CUmemAllocationType::kPinned;
  props.location = {CUmemLocationType::kDevice, 0};
  ASSERT_OK(cu.cuMemPoolCreate(&pool, &props));
  CUdeviceptr a = 0, b = 0;
  ASSERT_OK(cu.cuMemAllocFromPoolAsync(&a, 1000, pool, nullptr));
  ASSERT_OK(cu.cuMemAllocAsync(&b, 500, nullptr));
  std::uint64_t used = 0;
  EXPECT_OK(cu.cuMemPoolGetAttribute(pool, CUmemPool_attribute::kUsedMemCurrent, &used));
  EXPECT_EQ(used, 1000u);
  EXPECT_OK(cu.cuMemPoolGetAttribute(standard, CUmemPool_attribute::kUsedMemCurrent, &used));
  EXPECT_EQ(used, 500u);
  EXPECT_OK(cu.cuMemFreeAsync(a, nullptr));
  EXPECT_OK(cu.cuMemFreeAsync(b, nullptr));
  EXPECT_EQ(cu.cuMemPoolDestroy(standard), CUresult::kInvalidValue);
  EXPECT_OK(cu.cuMemPoolDestroy(pool));
  EXPECT_EQ(cu.cuMemPoolTrimTo(pool, 0), CUresult::kInvalidValue);
}

}  // namespace
}  // namespace tilewright::sim::abi
