// Modules, functions, launches and what breaks a context.
#include "tests/sim/driver/driver_fixture.h"

#include <cstdio>
#include <cstring>
#include <vector>

namespace tilewright::sim::abi {
namespace {

constexpr const char* kPtx = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .global .align 4 .u32 counter = 41;
.visible .entry store(.param .u64 to, .param .u32 value)
{
  .reg .b64 %to;
  .reg .b32 %value;
  ld.param.u64 %to, [to];
  ld.param.u32 %value, [value];
  cvta.to.global.u64 %to, %to;
  st.global.u32 [%to], %value;
  ret;
}
.visible .entry stop()
.maxntid 64, 1, 1
{
  trap;
}
)";

class DriverLaunchTest : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    module_ = load(kPtx);
    store_ = function(module_, "store");
    stop_ = function(module_, "stop");
    ASSERT_OK(cu.cuMemAlloc_v2(&memory_, 16));
    ASSERT_OK(cu.cuMemsetD8_v2(memory_, 0, 16));
  }
  CUresult launch(CUfunction function, CUdeviceptr to, unsigned value, unsigned threads = 1) {
    void* arguments[] = {&to, &value};
    return cu.cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, nullptr, arguments, nullptr);
  }
  unsigned word() {
    unsigned value = 0;
    EXPECT_OK(cu.cuMemcpyDtoH_v2(&value, memory_, 4));
    return value;
  }

  CUmodule module_ = nullptr;
  CUfunction store_ = nullptr, stop_ = nullptr;
  CUdeviceptr memory_ = 0;
};

/// A kernel in which so many registers are live at once.
std::string greedy_kernel(int num_live, const std::string& bounds) {
  std::string text =
      ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry greedy(.param "
      ".u64 to)\n" +
      bounds + "\n{\n.reg .b64 %to;\n.reg .b32 %r<" + std::to_string(num_live) +
      ">;\nld.param.u64 %to, [to];\n";
  for (int i = 0; i < num_live; ++i) {
    text += "ld.volatile.global.u32 %r" + std::to_string(i) + ", [%to];\n";
  }
  for (int i = 0; i < num_live; ++i) {
    text += "st.volatile.global.u32 [%to], %r" + std::to_string(i) + ";\n";
  }
  return text + "ret;\n}\n";
}

TEST_F(DriverLaunchTest, LaunchBoundsLimitTheRegistersNotTheThreads) {
  const auto most_threads = [&](const std::string& bounds, int& num_registers) {
    const CUfunction greedy = function(load(greedy_kernel(240, bounds)), "greedy");
    int value = 0;
    EXPECT_OK(cu.cuFuncGetAttribute(&value, CUfunction_attribute::kMaxThreadsPerBlock, greedy));
    EXPECT_OK(cu.cuFuncGetAttribute(&num_registers, CUfunction_attribute::kNumRegs, greedy));
    EXPECT_OK(cu.cuLaunchKernel(greedy, 1, 1, 1, static_cast<unsigned>(value), 1, 1, 0, nullptr,
                                std::vector<void*>{&memory_}.data(), nullptr));
    return value;
  };
  int num_registers = 0;
  EXPECT_EQ(most_threads("", num_registers), 256);
  EXPECT_GT(num_registers, 240);
  EXPECT_EQ(most_threads(".maxntid 384, 1, 1", num_registers), 384);
  EXPECT_EQ(num_registers, 168);
  EXPECT_EQ(most_threads(".maxntid 128, 1, 1\n.minnctapersm 4", num_registers), 128);
  EXPECT_EQ(num_registers, 128);
  EXPECT_EQ(most_threads(".maxntid 384, 1, 1\n.maxnreg 64", num_registers), 384);
  EXPECT_EQ(num_registers, 64);
}

TEST_F(DriverLaunchTest, ArgumentsByPointersAndByBuffer) {
  EXPECT_OK(launch(store_, memory_, 7));
  EXPECT_EQ(word(), 7u);
  struct {
    CUdeviceptr to;
    unsigned value;
  } const buffer = {memory_, 8};
  size_t size = 12;
  void* extra[] = {reinterpret_cast<void*>(kLaunchParamBufferPointer),
                   const_cast<void*>(static_cast<const void*>(&buffer)),
                   reinterpret_cast<void*>(kLaunchParamBufferSize), &size,
                   reinterpret_cast<void*>(kLaunchParamEnd)};
  EXPECT_OK(cu.cuLaunchKernel(store_, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra));
  EXPECT_EQ(word(), 8u);
  size = 11;
  EXPECT_EQ(cu.cuLaunchKernel(store_, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra),
            CUresult::kInvalidValue);
}

TEST_F(DriverLaunchTest, GlobalsAndParameters) {
  CUdeviceptr counter = 0;
  size_t bytes = 0;
  ASSERT_OK(cu.cuModuleGetGlobal_v2(&counter, &bytes, module_, "counter"));
  EXPECT_EQ(bytes, 4u);
  unsigned value = 0;
  EXPECT_OK(cu.cuMemcpyDtoH_v2(&value, counter, 4));
  EXPECT_EQ(value, 41u);
  EXPECT_EQ(cu.cuModuleGetGlobal_v2(&counter, &bytes, module_, "other"), CUresult::kNotFound);
  size_t offset = 0, size = 0;
  EXPECT_OK(cu.cuFuncGetParamInfo(store_, 1, &offset, &size));
  EXPECT_EQ(offset, 8u);
  EXPECT_EQ(size, 4u);
  EXPECT_EQ(cu.cuFuncGetParamInfo(store_, 2, &offset, &size), CUresult::kInvalidValue);
  int threads = 0;
  EXPECT_OK(cu.cuFuncGetAttribute(&threads, CUfunction_attribute::kMaxThreadsPerBlock, stop_));
  EXPECT_EQ(threads, 64);
}

TEST_F(DriverLaunchTest, SizesThatDoNotFit) {
  EXPECT_EQ(launch(store_, memory_, 1, 1025), CUresult::kInvalidValue);
  EXPECT_EQ(launch(store_, memory_, 1, 0), CUresult::kInvalidValue);
  EXPECT_EQ(launch(stop_, 0, 0, 65), CUresult::kInvalidValue) << "more than .maxntid";
  EXPECT_EQ(cu.cuLaunchKernel(stop_, 1, 1, 1, 1, 1, 1, 49153, nullptr, nullptr, nullptr),
            CUresult::kInvalidValue);
  EXPECT_OK(cu.cuFuncSetAttribute(stop_, CUfunction_attribute::kMaxDynamicSharedSizeBytes, 232448));
  EXPECT_EQ(cu.cuFuncSetAttribute(stop_, CUfunction_attribute::kMaxDynamicSharedSizeBytes, 232449),
            CUresult::kInvalidValue);
  CUlaunchAttribute cluster{};
  cluster.id = CUlaunchAttributeID::kClusterDimension;
  cluster.value.cluster_dim = {2, 1, 1};
  CUlaunchConfig config{};
  config.grid_dim_x = 3;
  config.grid_dim_y = config.grid_dim_z = 1;
  config.block_dim_x = config.block_dim_y = config.block_dim_z = 1;
  config.attrs = &cluster;
  config.num_attrs = 1;
  EXPECT_EQ(cu.cuLaunchKernelEx(&config, stop_, nullptr, nullptr), CUresult::kInvalidClusterSize);
  EXPECT_OK(cu.cuCtxSynchronize()) << "nothing ran";
}

TEST_F(DriverLaunchTest, AFaultBreaksTheContextAtTheNextSynchronisation) {
  EXPECT_OK(launch(stop_, 0, 0));
  EXPECT_OK(launch(store_, memory_, 5)) << "not noticed yet";
  EXPECT_EQ(cu.cuCtxSynchronize(), CUresult::kLaunchFailed);
  EXPECT_EQ(launch(store_, memory_, 5), CUresult::kLaunchFailed) << "from here on everywhere";
  CUdeviceptr more = 0;
  EXPECT_EQ(cu.cuMemAlloc_v2(&more, 16), CUresult::kLaunchFailed);
  EXPECT_OK(cu.cuDevicePrimaryCtxReset_v2(0));
  EXPECT_OK(cu.cuCtxSynchronize());
  EXPECT_OK(cu.cuMemAlloc_v2(&more, 16));
}

TEST_F(DriverLaunchTest, LibrariesLoadWhereTheyAreUsed) {
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  ASSERT_OK(cu.cuLibraryLoadData(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  ASSERT_OK(cu.cuLibraryGetKernel(&kernel, library, "store"));
  EXPECT_EQ(cu.cuLibraryGetKernel(&kernel, library, "other"), CUresult::kNotFound);
  CUfunction function = nullptr;
  EXPECT_OK(cu.cuKernelGetFunction(&function, kernel));
  EXPECT_OK(launch(function, memory_, 3));
  EXPECT_EQ(word(), 3u);
  EXPECT_OK(launch(reinterpret_cast<CUfunction>(kernel), memory_, 4)) << "a kernel is a function";
  EXPECT_EQ(word(), 4u);
  EXPECT_OK(cu.cuLibraryUnload(library));
  EXPECT_EQ(launch(function, memory_, 3), CUresult::kInvalidHandle);
}

TEST_F(DriverLaunchTest, CapturedKernelsTakeNewParameters) {
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphExec exec = nullptr;
  ASSERT_OK(cu.cuGraphCreate(&graph, 0));
  unsigned value = 11;
  void* arguments[] = {&memory_, &value};
  CUDA_KERNEL_NODE_PARAMS params{};
  params.func = store_;
  params.grid_dim_x = params.grid_dim_y = params.grid_dim_z = 1;
  params.block_dim_x = params.block_dim_y = params.block_dim_z = 1;
  params.kernel_params = arguments;
  ASSERT_OK(cu.cuGraphAddKernelNode_v2(&node, graph, nullptr, 0, &params));
  value = 12;  // the node has its own copy
  ASSERT_OK(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
  EXPECT_OK(cu.cuGraphLaunch(exec, nullptr));
  EXPECT_EQ(word(), 11u);
  CUDA_KERNEL_NODE_PARAMS read{};
  EXPECT_OK(cu.cuGraphKernelNodeGetParams_v2(node, &read));
  EXPECT_EQ(*static_cast<unsigned*>(read.kernel_params[1]), 11u);
  EXPECT_OK(cu.cuGraphExecKernelNodeSetParams_v2(exec, node, &params));
  EXPECT_OK(cu.cuGraphLaunch(exec, nullptr));
  EXPECT_EQ(word(), 12u);
  EXPECT_OK(cu.cuModuleUnload(module_));
  EXPECT_OK(cu.cuGraphLaunch(exec, nullptr)) << "a graph keeps its code";
  EXPECT_OK(cu.cuGraphExecDestroy(exec));
  EXPECT_OK(cu.cuGraphDestroy(graph));
}

TEST_F(DriverLaunchTest, LogsNameTheLine) {
  char log[512];
  CUjit_option keys[] = {CUjit_option::kErrorLogBuffer, CUjit_option::kErrorLogBufferSizeBytes};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  CUmodule module = nullptr;
  EXPECT_EQ(cu.cuModuleLoadDataEx(&module, ".version 8.0\n.target sm_90\n.adress_size 64\n", 2,
                                  keys, values),
            CUresult::kInvalidPtx);
  EXPECT_THAT(log, ::testing::HasSubstr("line 3"));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(values[1]), std::strlen(log));
}

// A fatbin with the entries given, each for a target, as text or (empty) machine code.
std::vector<char> fatbin_of(const std::vector<std::pair<int, std::string>>& entries) {
  std::vector<char> out(16);
  for (const auto& [target, text] : entries) {
    const bool is_ptx = !text.empty();
    std::vector<char> entry(64 + (std::max<std::size_t>(text.size(), 1) + 7) / 8 * 8);
    const auto put = [&](std::size_t at, std::uint64_t value, std::size_t bytes) {
      std::memcpy(entry.data() + at, &value, bytes);
    };
    put(0, is_ptx ? 1 : 2, 2);
    put(4, 64, 4);
    put(8, entry.size() - 64, 8);
    put(28, static_cast<std::uint64_t>(target), 4);
    std::memcpy(entry.data() + 64, text.data(), text.size());
    out.insert(out.end(), entry.begin(), entry.end());
  }
  const std::uint32_t magic = 0xba55ed50;
  const std::uint16_t header[2] = {1, 16};
  const std::uint64_t payload = out.size() - 16;
  std::memcpy(out.data(), &magic, 4);
  std::memcpy(out.data() + 4, header, 4);
  std::memcpy(out.data() + 8, &payload, 8);
  return out;
}

TEST_F(DriverLaunchTest, FatbinsGiveTheBestPtx) {
  std::string older = kPtx, newer = kPtx;
  older.replace(older.find("store"), 5, "older");
  older.replace(older.find("sm_90"), 5, "sm_80");
  newer.replace(newer.find("sm_90"), 5, "sm_100");
  CUmodule module = nullptr;
  const std::vector<char> fatbin =
      fatbin_of({{80, older}, {90, kPtx}, {100, newer}, {90, std::string()}});
  ASSERT_OK(cu.cuModuleLoadFatBinary(&module, fatbin.data()));
  CUfunction found = nullptr;
  EXPECT_OK(cu.cuModuleGetFunction(&found, module, "store"));

  const std::vector<char> foreign = fatbin_of({{100, newer}, {90, std::string()}});
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(cu.cuModuleLoadFatBinary(&module, foreign.data()), CUresult::kNoBinaryForGpu);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::HasSubstr("only: PTX for 100, machine code for 90"));
}

TEST_F(DriverLaunchTest, CubinsAreRefusedInWords) {
  const char cubin[64] = "\177ELF\2\1\1";
  CUmodule module = nullptr;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(cu.cuModuleLoadData(&module, cubin), CUresult::kNoBinaryForGpu);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::AllOf(::testing::HasSubstr("sim: "), ::testing::HasSubstr("-gencode")));
}

TEST_F(DriverLaunchTest, Occupancy) {
  int num_blocks = 0, threads = 0;
  EXPECT_OK(cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&num_blocks, store_, 1024, 0));
  EXPECT_EQ(num_blocks, 2);
  EXPECT_OK(cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&num_blocks, store_, 2048, 0));
  EXPECT_EQ(num_blocks, 0);
  EXPECT_OK(cu.cuOccupancyMaxPotentialBlockSize(&num_blocks, &threads, store_, nullptr, 0, 0));
  EXPECT_EQ(threads, 1024);
  EXPECT_EQ(num_blocks, 2 * 132);
  size_t shared = 0;
  EXPECT_OK(cu.cuOccupancyAvailableDynamicSMemPerBlock(&shared, store_, 2, 128));
  EXPECT_EQ(shared, 233472u / 2 - 1024);
}

}  // namespace
}  // namespace tilewright::sim::abi
