// Errors of a real driver, provoked on purpose: compute-sanitizer reports each of them, so it has
// to be run with --report-api-errors no, or without these tests.
#include "device/graph.h"
#include "device/memory.h"
#include "device/module.h"
#include "gpu_device_test.h"
#include "gpu_ptx.h"

#include <algorithm>

namespace tilewright::device {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using GpuApiErrorTest = GpuTest;

TEST_F(GpuApiErrorTest, PtxErrorsNameTheLine) {
  std::string ptx = kScalePtx;
  const std::size_t at = ptx.find("fma.rn.f32");
  ptx.replace(at, 3, "fmx");
  const auto line =
      1 + std::count(ptx.begin(), ptx.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  EXPECT_THAT(
      error_of(ErrorKind::kParseError, [&] { Module::from_ptx(device(), "typo.ptx", ptx); }),
      AllOf(HasSubstr("CUDA_ERROR_INVALID_PTX"), HasSubstr("module = typo.ptx"),
            HasSubstr(fmt::format("line {}", line)), HasSubstr("fmx")));
}

// Which of these it is depends on the driver: it may not know the target, or refuse it.
TEST_F(GpuApiErrorTest, CodeForAnotherGpuIsRefused) {
  std::string ptx = "\n.version 8.7" + std::string(kScalePtx).substr(13);
  ptx.replace(ptx.find("sm_90"), 5, "sm_120");
  try {
    Module::from_ptx(device(), "for_sm_120", ptx);
    ADD_FAILURE() << "loaded";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("module = for_sm_120"),
                                    AnyOf(HasSubstr("CUDA_ERROR_NO_BINARY_FOR_GPU"),
                                          HasSubstr("CUDA_ERROR_UNSUPPORTED_PTX_VERSION"),
                                          HasSubstr("CUDA_ERROR_INVALID_PTX"))));
  }
}

TEST_F(GpuApiErrorTest, OutOfMemory) {
  const std::size_t too_much = 2 * device().info().memory_bytes;
  EXPECT_THAT(error_of(ErrorKind::kOutOfMemory, [&] { Buffer(device(), too_much); }),
              AllOf(HasSubstr("cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (out of memory)"),
                    HasSubstr(fmt::format("requested {} bytes", too_much)),
                    HasSubstr(fmt::format("bytes free of {}", device().memory().total_bytes))));
  EXPECT_NO_THROW(Buffer(device(), 1 << 20).poison()) << "the context survives";
}

TEST_F(GpuApiErrorTest, UnknownKernel) {
  const Module module = Module::from_ptx(device(), "scale.ptx", kScalePtx);
  EXPECT_THAT(
      error_of(ErrorKind::kDeviceError, [&] { module.kernel("sclae"); }),
      AllOf(HasSubstr("cuModuleGetFunction: CUDA_ERROR_NOT_FOUND"), HasSubstr("kernel = sclae")));
}

TEST_F(GpuApiErrorTest, EventsThatWereNotRecorded) {
  const Event start(device());
  const Event end(device());
  EXPECT_THAT(error_of(ErrorKind::kDeviceError, [&] { elapsed_ms(start, end); }),
              StartsWith("cuEventElapsedTime: CUDA_ERROR_INVALID_HANDLE"));
}

TEST_F(GpuApiErrorTest, ForbiddenCallsBreakACaptureButNotTheStream) {
  const Stream stream(device());
  EXPECT_THAT(error_of(ErrorKind::kDeviceError,
                       [&] { Graph::capture(stream, [&] { stream.synchronize(); }); }),
              HasSubstr("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"));
  Buffer buffer(device(), 64);
  const Graph graph = Graph::capture(stream, [&] { buffer.fill_async(std::byte{7}, stream); });
  graph.launch(stream);
  stream.synchronize();
  EXPECT_THAT(buffer.to_vector<std::uint8_t>(), Each(7));
}

TEST_F(GpuApiErrorTest, UnknownAddresses) {
  const int local = 0;
  EXPECT_EQ(query_pointer(device(), reinterpret_cast<abi::CUdeviceptr>(&local)).kind,
            PointerInfo::Kind::kUnknown);
}

}  // namespace
}  // namespace tilewright::device
