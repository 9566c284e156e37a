// Devices, contexts, streams, events, captures and graphs: everything but kernels.
#include "tests/sim/driver/driver_fixture.h"

#include <thread>
#include <vector>

namespace tilewright::sim::abi {
namespace {

using DriverStateTest = DriverTest;

TEST_F(DriverStateTest, Devices) {
  int count = 0;
  EXPECT_OK(cu.cuDeviceGetCount(&count));
  EXPECT_EQ(count, 3);
  int version = 0;
  EXPECT_OK(cu.cuDriverGetVersion(&version));
  EXPECT_EQ(version, 13000);
  for (const auto& [ordinal, capability] : {std::pair{0, 90}, {1, 100}, {2, 103}}) {
    int major = 0, minor = 0;
    EXPECT_OK(cu.cuDeviceComputeCapability(&major, &minor, ordinal));
    EXPECT_EQ(10 * major + minor, capability);
    char id[32];
    EXPECT_OK(cu.cuDeviceGetPCIBusId(id, sizeof id, ordinal));
    CUdevice found = -1;
    EXPECT_OK(cu.cuDeviceGetByPCIBusId(&found, id));
    EXPECT_EQ(found, ordinal);
  }
  CUdevice device = 0;
  EXPECT_EQ(cu.cuDeviceGet(&device, 3), CUresult::kInvalidDevice);
  EXPECT_EQ(cu.cuDeviceGet(&device, -1), CUresult::kInvalidDevice);
  EXPECT_EQ(cu.cuDeviceGet(nullptr, 0), CUresult::kInvalidValue);
}

// Every attribute up to CUDA 13.0 has a value, none beyond.
TEST_F(DriverStateTest, EveryAttribute) {
  int value = 0;
  for (int attribute = 1; attribute <= 147; ++attribute) {
    EXPECT_OK(cu.cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(attribute), 0))
        << attribute;
  }
  for (const int attribute : {0, -1, 148, 9999}) {
    EXPECT_EQ(cu.cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(attribute), 0),
              CUresult::kInvalidValue)
        << attribute;
  }
  EXPECT_OK(cu.cuDeviceGetAttribute(&value, CUdevice_attribute::kMultiprocessorCount, 0));
  EXPECT_EQ(value, 132);
  EXPECT_OK(cu.cuDeviceGetAttribute(&value, CUdevice_attribute::kMultiprocessorCount, 1));
  EXPECT_EQ(value, 148);
}

TEST_F(DriverStateTest, ContextStack) {
  CUcontext made = nullptr, current = nullptr, popped = nullptr;
  EXPECT_OK(cu.cuCtxCreate_v2(&made, 0, 1));
  EXPECT_OK(cu.cuCtxGetCurrent(&current));
  EXPECT_EQ(current, made);
  CUdevice device = -1;
  EXPECT_OK(cu.cuCtxGetDevice(&device));
  EXPECT_EQ(device, 1);
  EXPECT_OK(cu.cuCtxPushCurrent_v2(context_));
  EXPECT_OK(cu.cuCtxPopCurrent_v2(&popped));
  EXPECT_EQ(popped, context_);
  EXPECT_OK(cu.cuCtxDestroy_v2(made));
  EXPECT_OK(cu.cuCtxGetCurrent(&current));
  EXPECT_EQ(current, context_) << "destroying the current context pops it";
  EXPECT_EQ(cu.cuCtxPushCurrent_v2(made), CUresult::kInvalidContext);
  EXPECT_EQ(cu.cuCtxDestroy_v2(context_), CUresult::kInvalidContext) << "primary";
}

TEST_F(DriverStateTest, ThreadsBeginWithoutAContext) {
  std::thread([this] {
    CUdeviceptr address = 0;
    EXPECT_EQ(cu.cuMemAlloc_v2(&address, 16), CUresult::kInvalidContext);
    EXPECT_EQ(cu.cuCtxSynchronize(), CUresult::kInvalidContext);
    EXPECT_OK(cu.cuCtxSetCurrent(context_));
    EXPECT_OK(cu.cuCtxSynchronize());
  }).join();
}

TEST_F(DriverStateTest, Limits) {
  size_t value = 0;
  EXPECT_OK(cu.cuCtxGetLimit(&value, CUlimit::kStackSize));
  EXPECT_EQ(value, 1024u);
  EXPECT_OK(cu.cuCtxSetLimit(CUlimit::kStackSize, 4096));
  EXPECT_OK(cu.cuCtxGetLimit(&value, CUlimit::kStackSize));
  EXPECT_EQ(value, 4096u);
  EXPECT_EQ(cu.cuCtxGetLimit(&value, CUlimit::kDevRuntimeSyncDepth), CUresult::kUnsupportedLimit);
  EXPECT_EQ(cu.cuCtxGetLimit(&value, static_cast<CUlimit>(99)), CUresult::kInvalidValue);
}

TEST_F(DriverStateTest, ReleasingThePrimaryContextEndsWhatWasInIt) {
  CUcontext second = nullptr;
  ASSERT_OK(cu.cuDevicePrimaryCtxRetain(&second, 1));
  ASSERT_OK(cu.cuCtxPushCurrent_v2(second));
  CUstream stream = nullptr;
  CUdeviceptr address = 0;
  EXPECT_OK(cu.cuStreamCreate(&stream, 0));
  EXPECT_OK(cu.cuMemAlloc_v2(&address, 1 << 20));
  EXPECT_OK(cu.cuDevicePrimaryCtxRelease_v2(1));
  EXPECT_EQ(cu.cuStreamSynchronize(stream), CUresult::kInvalidHandle);
  EXPECT_EQ(cu.cuCtxSynchronize(), CUresult::kContextIsDestroyed);
  EXPECT_EQ(cu.cuDevicePrimaryCtxRelease_v2(1), CUresult::kInvalidContext);
  ASSERT_OK(cu.cuDevicePrimaryCtxRetain(&second, 1));
  size_t free_bytes = 0, total_bytes = 0;
  EXPECT_OK(cu.cuMemGetInfo_v2(&free_bytes, &total_bytes));
  EXPECT_EQ(free_bytes, total_bytes);
  EXPECT_OK(cu.cuCtxPopCurrent_v2(&second));
  EXPECT_OK(cu.cuDevicePrimaryCtxRelease_v2(1));
}

TEST_F(DriverStateTest, HandlesThatAreNone) {
  const auto stream = reinterpret_cast<CUstream>(std::uintptr_t{0x1234});
  const auto event = reinterpret_cast<CUevent>(std::uintptr_t{0x1234});
  EXPECT_EQ(cu.cuStreamSynchronize(stream), CUresult::kInvalidHandle);
  EXPECT_EQ(cu.cuEventRecord(event, nullptr), CUresult::kInvalidHandle);
  EXPECT_EQ(cu.cuEventRecord(nullptr, nullptr), CUresult::kInvalidHandle);
  EXPECT_EQ(cu.cuModuleUnload(nullptr), CUresult::kInvalidHandle);
  EXPECT_EQ(cu.cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
            CUresult::kInvalidHandle);
  EXPECT_EQ(cu.cuGraphLaunch(nullptr, nullptr), CUresult::kInvalidValue);
}

TEST_F(DriverStateTest, Events) {
  CUevent start = nullptr, end = nullptr, untimed = nullptr;
  ASSERT_OK(cu.cuEventCreate(&start, 0));
  ASSERT_OK(cu.cuEventCreate(&end, 0));
  ASSERT_OK(cu.cuEventCreate(&untimed, 2));
  float ms = -1;
  EXPECT_EQ(cu.cuEventElapsedTime_v2(&ms, start, end), CUresult::kInvalidHandle);
  EXPECT_OK(cu.cuEventQuery(start)) << "never recorded counts as reached";
  EXPECT_OK(cu.cuEventRecord(start, nullptr));
  EXPECT_OK(cu.cuEventRecord(end, nullptr));
  EXPECT_OK(cu.cuEventRecord(untimed, nullptr));
  EXPECT_OK(cu.cuEventElapsedTime_v2(&ms, start, end));
  EXPECT_GE(ms, 0);
  EXPECT_OK(cu.cuEventElapsedTime_v2(&ms, start, start));
  EXPECT_EQ(ms, 0);
  EXPECT_EQ(cu.cuEventElapsedTime_v2(&ms, start, untimed), CUresult::kInvalidHandle);
  for (const CUevent event : {start, end, untimed}) EXPECT_OK(cu.cuEventDestroy_v2(event));
  EXPECT_EQ(cu.cuEventDestroy_v2(start), CUresult::kInvalidHandle);
}

void count(void* data) {
  ++*static_cast<int*>(data);
}

TEST_F(DriverStateTest, HostFunctionsRunInOrderAtOnce) {
  int calls = 0;
  EXPECT_OK(cu.cuLaunchHostFunc(nullptr, &count, &calls));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(cu.cuLaunchHostFunc(nullptr, nullptr, nullptr), CUresult::kInvalidValue);
}

class DriverGraphTest : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    ASSERT_OK(cu.cuStreamCreate(&a_, 1));
    ASSERT_OK(cu.cuStreamCreate(&b_, 1));
    ASSERT_OK(cu.cuEventCreate(&event_, 2));
    ASSERT_OK(cu.cuMemAlloc_v2(&memory_, 64));
    ASSERT_OK(cu.cuMemsetD8_v2(memory_, 0, 64));
  }
  std::vector<unsigned char> bytes() {
    std::vector<unsigned char> host(64);
    EXPECT_OK(cu.cuMemcpyDtoH_v2(host.data(), memory_, 64));
    return host;
  }
  size_t num_nodes(CUgraph graph) {
    size_t count = 0;
    EXPECT_OK(cu.cuGraphGetNodes(graph, nullptr, &count));
    return count;
  }
  size_t num_edges(CUgraph graph) {
    size_t count = 0;
    EXPECT_OK(cu.cuGraphGetEdges(graph, nullptr, nullptr, &count));
    return count;
  }

  CUstream a_ = nullptr, b_ = nullptr;
  CUevent event_ = nullptr;
  CUdeviceptr memory_ = 0;
};

constexpr auto kThreadLocal = CUstreamCaptureMode::kThreadLocal;

TEST_F(DriverGraphTest, CapturedWorkRunsWhenTheGraphDoes) {
  ASSERT_OK(cu.cuStreamBeginCapture_v2(a_, kThreadLocal));
  EXPECT_OK(cu.cuMemsetD8Async(memory_, 1, 32, a_));
  EXPECT_OK(cu.cuMemcpyDtoDAsync_v2(memory_ + 32, memory_, 32, a_));
  EXPECT_EQ(bytes()[0], 0);
  CUgraph graph = nullptr;
  ASSERT_OK(cu.cuStreamEndCapture(a_, &graph));
  EXPECT_EQ(num_nodes(graph), 2u);
  EXPECT_EQ(num_edges(graph), 1u);
  CUgraphExec exec = nullptr;
  ASSERT_OK(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
  EXPECT_OK(cu.cuGraphDestroy(graph)) << "an instance stands for itself";
  EXPECT_OK(cu.cuGraphLaunch(exec, a_));
  EXPECT_THAT(bytes(), ::testing::Each(1));
  EXPECT_OK(cu.cuGraphExecDestroy(exec));
  EXPECT_EQ(cu.cuGraphLaunch(exec, a_), CUresult::kInvalidValue);
}

TEST_F(DriverGraphTest, OtherStreamsJoinByEvents) {
  ASSERT_OK(cu.cuStreamBeginCapture_v2(a_, kThreadLocal));
  EXPECT_OK(cu.cuMemsetD8Async(memory_, 1, 32, a_));
  EXPECT_OK(cu.cuEventRecord(event_, a_));
  EXPECT_OK(cu.cuStreamWaitEvent(b_, event_, 0));
  CUstreamCaptureStatus status{};
  EXPECT_OK(cu.cuStreamIsCapturing(b_, &status));
  EXPECT_EQ(status, CUstreamCaptureStatus::kActive);
  EXPECT_OK(cu.cuMemsetD8Async(memory_ + 32, 2, 32, b_));
  EXPECT_EQ(cu.cuEventSynchronize(event_), CUresult::kCapturedEvent);
  CUgraph graph = nullptr;
  EXPECT_EQ(cu.cuStreamEndCapture(a_, &graph), CUresult::kStreamCaptureInvalidated);
  EXPECT_OK(cu.cuStreamIsCapturing(b_, &status));
  EXPECT_EQ(status, CUstreamCaptureStatus::kNone);
}

TEST_F(DriverGraphTest, StreamsThatDoNotComeBack) {
  CUgraph graph = nullptr;
  const auto capture = [&](bool comes_back) {
    EXPECT_OK(cu.cuStreamBeginCapture_v2(a_, kThreadLocal));
    EXPECT_OK(cu.cuEventRecord(event_, a_));
    EXPECT_OK(cu.cuStreamWaitEvent(b_, event_, 0));
    EXPECT_OK(cu.cuMemsetD8Async(memory_, 2, 32, b_));
    EXPECT_OK(cu.cuEventRecord(event_, b_));
    if (comes_back) {
      EXPECT_OK(cu.cuStreamWaitEvent(a_, event_, 0));
    }
    EXPECT_EQ(cu.cuStreamEndCapture(b_, &graph), CUresult::kStreamCaptureUnmatched);
    return cu.cuStreamEndCapture(a_, &graph);
  };
  EXPECT_EQ(capture(false), CUresult::kStreamCaptureUnjoined);
  EXPECT_EQ(graph, nullptr);
  EXPECT_OK(capture(true));
  EXPECT_EQ(num_nodes(graph), 1u);
}

TEST_F(DriverGraphTest, ForbiddenCallsBreakACapture) {
  ASSERT_OK(cu.cuStreamBeginCapture_v2(a_, kThreadLocal));
  EXPECT_EQ(cu.cuStreamBeginCapture_v2(a_, kThreadLocal), CUresult::kIllegalState);
  EXPECT_EQ(cu.cuStreamSynchronize(a_), CUresult::kStreamCaptureUnsupported);
  EXPECT_EQ(cu.cuMemsetD8Async(memory_, 1, 1, a_), CUresult::kStreamCaptureInvalidated);
  CUgraph graph = nullptr;
  EXPECT_EQ(cu.cuStreamEndCapture(a_, &graph), CUresult::kStreamCaptureInvalidated);
  EXPECT_OK(cu.cuStreamSynchronize(a_));
  EXPECT_EQ(cu.cuStreamBeginCapture_v2(nullptr, kThreadLocal), CUresult::kStreamCaptureUnsupported);
}

TEST_F(DriverGraphTest, GraphsByHand) {
  CUgraph graph = nullptr;
  ASSERT_OK(cu.cuGraphCreate(&graph, 0));
  CUDA_MEMSET_NODE_PARAMS fill{
      .dst = memory_, .pitch = 0, .value = 3, .element_size = 1, .width = 64, .height = 1};
  int calls = 0;
  CUDA_HOST_NODE_PARAMS host{.fn = &count, .user_data = &calls};
  CUgraphNode filled = nullptr, called = nullptr, joined = nullptr;
  ASSERT_OK(cu.cuGraphAddMemsetNode(&filled, graph, nullptr, 0, &fill, context_));
  ASSERT_OK(cu.cuGraphAddHostNode(&called, graph, &filled, 1, &host));
  const CUgraphNode both[] = {filled, called};
  ASSERT_OK(cu.cuGraphAddEmptyNode(&joined, graph, both, 2));
  EXPECT_EQ(num_edges(graph), 3u);
  CUgraphNodeType type{};
  EXPECT_OK(cu.cuGraphNodeGetType(called, &type));
  EXPECT_EQ(type, CUgraphNodeType::kHost);
  CUgraphExec exec = nullptr;
  ASSERT_OK(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
  EXPECT_OK(cu.cuGraphLaunch(exec, nullptr));
  EXPECT_EQ(calls, 1);
  EXPECT_THAT(bytes(), ::testing::Each(3));

  fill.value = 4;
  EXPECT_OK(cu.cuGraphExecMemsetNodeSetParams(exec, filled, &fill, context_));
  EXPECT_OK(cu.cuGraphLaunch(exec, nullptr));
  EXPECT_THAT(bytes(), ::testing::Each(4));
  EXPECT_OK(cu.cuGraphNodeSetEnabled(exec, filled, 0));
  EXPECT_OK(cu.cuMemsetD8_v2(memory_, 0, 64));
  EXPECT_OK(cu.cuGraphLaunch(exec, nullptr));
  EXPECT_THAT(bytes(), ::testing::Each(0));
  EXPECT_EQ(calls, 3);

  EXPECT_EQ(cu.cuGraphExecMemsetNodeSetParams(exec, called, &fill, context_),
            CUresult::kInvalidValue);
  ASSERT_OK(cu.cuGraphAddDependencies(graph, &joined, &filled, 1));
  CUgraphExec cyclic = nullptr;
  EXPECT_EQ(cu.cuGraphInstantiateWithFlags(&cyclic, graph, 0), CUresult::kInvalidValue);
  EXPECT_OK(cu.cuGraphRemoveDependencies(graph, &joined, &filled, 1));

  CUgraph clone = nullptr;
  CUgraphNode found = nullptr;
  ASSERT_OK(cu.cuGraphClone(&clone, graph));
  EXPECT_OK(cu.cuGraphNodeFindInClone(&found, called, clone));
  CUgraphExecUpdateResultInfo info{};
  EXPECT_OK(cu.cuGraphExecUpdate_v2(exec, clone, &info));
  EXPECT_OK(cu.cuGraphDestroyNode(joined));
  EXPECT_EQ(cu.cuGraphExecUpdate_v2(exec, graph, &info), CUresult::kGraphExecUpdateFailure);
  EXPECT_EQ(info.result, CUgraphExecUpdateResult::kErrorTopologyChanged);
  EXPECT_OK(cu.cuGraphDestroy(clone));
  EXPECT_OK(cu.cuGraphDestroy(graph));
  EXPECT_EQ(cu.cuGraphNodeGetType(called, &type), CUresult::kInvalidValue);
}

TEST_F(DriverStateTest, ProcAddressesByVersion) {
  void* function = nullptr;
  CUdriverProcAddressQueryResult status{};
  const auto symbol = [](const char* name) { return dlsym(driver_library(), name); };
  EXPECT_OK(cu.cuGetProcAddress_v2("cuMemAlloc", &function, 13000, 0, &status));
  EXPECT_EQ(function, symbol("cuMemAlloc_v2"));
  EXPECT_OK(cu.cuGetProcAddress_v2("cuMemAlloc", &function, 3010, 0, &status));
  EXPECT_EQ(function, symbol("cuMemAlloc"));
  EXPECT_OK(cu.cuGetProcAddress_v2("cuStreamGetCaptureInfo", &function, 12020, 0, &status));
  EXPECT_EQ(function, symbol("cuStreamGetCaptureInfo_v2"));
  EXPECT_OK(cu.cuGetProcAddress_v2("cuStreamGetCaptureInfo", &function, 12030, 0, &status));
  EXPECT_EQ(function, symbol("cuStreamGetCaptureInfo_v3"));
  EXPECT_EQ(cu.cuGetProcAddress_v2("cuMulticastCreate", &function, 11000, 0, &status),
            CUresult::kNotFound);
  EXPECT_EQ(status, CUdriverProcAddressQueryResult::kVersionNotSufficient);
  EXPECT_EQ(cu.cuGetProcAddress_v2("cuNoSuchThing", &function, 13000, 0, &status),
            CUresult::kNotFound);
  EXPECT_EQ(status, CUdriverProcAddressQueryResult::kSymbolNotFound);
  EXPECT_EQ(function, nullptr);
}

TEST_F(DriverStateTest, UnsupportedFunctionsSaySo) {
  const auto create = reinterpret_cast<CUresult (*)(void*, const void*)>(
      dlsym(driver_library(), "cuArrayCreate_v2"));
  EXPECT_EQ(create(nullptr, nullptr), CUresult::kNotSupported);
}

TEST_F(DriverStateTest, ErrorTexts) {
  const char* text = nullptr;
  EXPECT_OK(cu.cuGetErrorName(CUresult::kIllegalAddress, &text));
  EXPECT_STREQ(text, "CUDA_ERROR_ILLEGAL_ADDRESS");
  EXPECT_OK(cu.cuGetErrorString(CUresult::kIllegalAddress, &text));
  EXPECT_STREQ(text, "an illegal memory access was encountered");
  EXPECT_EQ(cu.cuGetErrorString(static_cast<CUresult>(12345), &text), CUresult::kInvalidValue);
  EXPECT_EQ(text, nullptr);
}

}  // namespace
}  // namespace tilewright::sim::abi
