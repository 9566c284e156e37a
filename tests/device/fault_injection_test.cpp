// Every call of the driver fails once, one after the other: nothing may leak, no context may stay
// current, and the failure must be reported by name, be it thrown or noted.
#include "device/graph.h"
#include "device/memory.h"
#include "device/module.h"
#include "device/open_device.h"
#include "device/tensor_map.h"
#include "fake_device_test.h"

#include <numeric>
#include <set>

namespace tilewright::device {
namespace {

using abi::CUresult;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Params {
  std::uint64_t address;
};

void launch_things(const Device& device, const Stream& stream, const Buffer& buffer) {
  const Module module = Module::from_ptx(device, "m", fake_ptx("k", sizeof(Params)));
  const Kernel kernel = module.kernel("k");
  module.global("table");
  const Params params = {buffer.address()};
  const LaunchConfig config = {.grid = {32, 1, 1},
                               .block = {128},
                               .cluster = Dim3{16, 1, 1},
                               .dynamic_shared_bytes = 100000,
                               .is_dependent_launch = true};
  kernel.allow_dynamic_shared_bytes(100000);
  kernel.allow_nonportable_cluster();
  kernel.launch(config, params, stream);
  kernel.max_active_blocks_per_sm(128, 0);
  kernel.max_active_clusters(config);
  const Module other = Module::from_ptx(device, "l", fake_ptx("of_library", sizeof(Params)));
  const Kernel of_library = other.kernel("of_library");
  const Graph graph = Graph::capture(stream, [&] {
    kernel.launch(config, params, stream);
    of_library.launch({}, params, stream);
  });
  graph.nodes();
  graph.launch(stream);
}

void move_things(const Device& device, const Stream& stream, Buffer& buffer) {
  std::vector<int> values(64);
  std::iota(values.begin(), values.end(), 0);
  Buffer other = Buffer::from(device, values);
  const PinnedBuffer pinned(device, other.size_bytes());
  buffer.poison();
  buffer.copy_from(other);
  buffer.to_vector<int>();
  buffer.fill_async(std::byte{0}, stream);
  buffer.copy_from_host_async(pinned.bytes(), stream);
  buffer.copy_from_async(other, stream);
  buffer.copy_to_host_async(pinned.bytes(), stream);
  query_pointer(device, buffer.address());
  device.memory();
}

/// All of src/device at work.
void use_everything(const std::string& library) {
  const Device device =
      open_device(parse_device_spec("cuda:0"), {.cuda = {library}, .sim = {"/nowhere"}});
  const Stream stream(device);
  const Stream urgent(device, Stream::Priority::kHighest);
  const Event start(device);
  const Event end(device);
  Buffer buffer(device, 256);
  start.record(stream);
  move_things(device, stream, buffer);
  launch_things(device, stream, buffer);
  end.record(stream);
  urgent.wait_for(end);
  end.synchronize();
  end.is_reached();
  stream.is_idle();
  elapsed_ms(start, end);
  encode_tensor_map(device, {.name = "t",
                             .type = TensorMapType::kUint8,
                             .address = buffer.address(),
                             .dims = {256},
                             .strides_bytes = {},
                             .box = {256}});
  stream.synchronize();
  device.synchronize();
}

/// "cuMemFree_v2" -> "cuMemFree"
std::string base_name(const std::string& exported) {
  const std::size_t version = exported.rfind("_v");
  return version == std::string::npos ? exported : exported.substr(0, version);
}

constexpr const char* kNoted = "[noted] ";

class FaultInjectionTest : public ::testing::Test {
 protected:
  /// Runs everything with call number `index` failing; returns what was reported about it.
  std::string report_of_failure(int index, CUresult result) {
    cuda_.reset();
    cuda_.state.calls_until_failure = index;
    cuda_.state.failing_result = result;
    std::string report;
    try {
      use_everything(fake_library("complete"));
    } catch (const Error& error) {
      report = error.what();
    }
    for (const std::string& message : cuda_.driver.take_release_failures().messages) {
      report += kNoted + message;
    }
    return report;
  }

  FakeCuda cuda_;
};

TEST_F(FaultInjectionTest, EveryCallFailsOnce) {
  use_everything(fake_library("complete"));
  ASSERT_THAT(cuda_.state.leaks(), IsEmpty());
  ASSERT_THAT(cuda_.state.violations, IsEmpty());
  const std::vector<std::string> calls = cuda_.state.calls;
  ASSERT_GT(calls.size(), 100u);
  for (int i = 0; i < static_cast<int>(calls.size()); ++i) {
    const std::string report = report_of_failure(i, CUresult::kEccUncorrectable);
    const std::string where =
        fmt::format("call {} of {}, {}: {}", i, calls.size(), calls[i], report);
    ASSERT_EQ(cuda_.state.failures_delivered, 1) << where;
    ASSERT_EQ(cuda_.state.calls[i], calls[i]) << where;
    const bool is_noted = report.rfind(kNoted, 0) == 0;
    EXPECT_THAT(report,
                AllOf(HasSubstr(base_name(calls[i])), HasSubstr(": CUDA_ERROR_ECC_UNCORRECTABLE")))
        << where << "the failure was lost";
    EXPECT_EQ(report.find(kNoted), is_noted ? 0u : std::string::npos)
        << where << "one failure, one report";
    EXPECT_EQ(cuda_.context_depth(), 0u) << where;
    EXPECT_THAT(cuda_.state.violations, IsEmpty()) << where;
    // A destructor that cannot make the context current has no way to give its handle back.
    const bool is_stuck =
        is_noted && (calls[i] == "cuCtxGetCurrent" || calls[i] == "cuCtxPushCurrent_v2");
    EXPECT_LE(cuda_.state.leaks().size(), is_stuck ? 1u : 0u) << where;
  }
}

// The list above is worth what it reaches.
TEST_F(FaultInjectionTest, ReachesEveryFunctionThatWeCall) {
  use_everything(fake_library("complete"));
  const std::set<std::string> called(cuda_.state.calls.begin(), cuda_.state.calls.end());
  std::set<std::string> not_called;
#define CHECK(member, exported, parameters) \
  if (called.count(#exported) == 0) not_called.insert(#exported);
  TILEWRIGHT_DRIVER_FUNCTIONS(CHECK, CHECK)
#undef CHECK
  // For callers of the table itself, or not counted by the fake.
  EXPECT_THAT(not_called,
              ::testing::ElementsAre("cuCtxSetCurrent", "cuDriverGetVersion", "cuGetErrorName",
                                     "cuGetErrorString", "cuLaunchKernel", "cuMemsetD32Async",
                                     "cuMemsetD32_v2"));
}

// At process exit the driver may be gone before us, which is nobody's failure.
TEST_F(FaultInjectionTest, DeinitializedDriverIsNoReleaseFailure) {
  {
    const Device device(cuda_.driver, 0, "cuda:0", "test");
    const Stream stream(device);
    cuda_.state.failing_function = "cuStreamDestroy_v2";
    cuda_.state.failing_result = CUresult::kDeinitialized;
  }
  EXPECT_TRUE(cuda_.state.failing_function.empty());
  EXPECT_EQ(cuda_.driver.take_release_failures().count, 0u);
}

}  // namespace
}  // namespace tilewright::device
