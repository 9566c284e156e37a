#include "device/module.h"

#include "device/memory.h"
#include "fake_device_test.h"

#include <array>
#include <cstring>

namespace tilewright::device {
namespace {

using abi::CUjit_option;
using abi::CUresult;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

struct Params {
  std::uint64_t out = 0;
  float scale = 0;
  std::uint32_t count = 0;
};
static_assert(sizeof(Params) == 16);

class ModuleTest : public FakeDeviceTest {
 protected:
  Kernel kernel_of(const Device& device, const std::string& name = "scale") const {
    return Module::from_ptx(device, "test", fake_ptx(name, sizeof(Params))).kernel(name);
  }
  std::uint64_t jit_option(CUjit_option option) const {
    const auto found = state().jit_options.find(static_cast<int>(option));
    return found == state().jit_options.end() ? 9999 : found->second;
  }
  std::string refusal(const Kernel& kernel, const LaunchConfig& config) const {
    const Stream stream(kernel.device());
    const std::size_t before = state().count("cuLaunchKernelEx");
    const std::string message =
        error_of(ErrorKind::kInvalidArgument, [&] { kernel.launch(config, Params{}, stream); });
    EXPECT_EQ(state().count("cuLaunchKernelEx"), before) << "refused before the driver is called";
    return message;
  }
};

/// The least that passes for an ELF file with its section headers at the end.
std::vector<std::byte> fake_cubin() {
  std::vector<std::byte> image(64 + 2 * 64);
  const std::uint64_t section_table = 64;
  const std::uint16_t section_bytes = 64;
  const std::uint16_t num_sections = 2;
  std::memcpy(image.data(),
              "\x7f"
              "ELF",
              4);
  std::memcpy(image.data() + 40, &section_table, 8);
  std::memcpy(image.data() + 58, &section_bytes, 2);
  std::memcpy(image.data() + 60, &num_sections, 2);
  return image;
}

TEST_F(ModuleTest, PtxErrorsCarryTheLogOfTheCompiler) {
  const Device device = open();
  const std::string ptx = ".version 8.0\n.target sm_90\nbroken\n";
  const std::string message =
      error_of(ErrorKind::kParseError, [&] { Module::from_ptx(device, "k1_naive", ptx); });
  EXPECT_THAT(
      message,
      AllOf(StartsWith("cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX ("),
            HasSubstr("module = k1_naive, driver's log: ptxas application ptx input, line 3; "
                      "fatal   : Parsing error near 'broken': syntax error, device"),
            HasSubstr("device = cuda:0")));
}

TEST_F(ModuleTest, ErrorsWithoutALogSayNothingAboutIt) {
  const Device device = open();
  fail_next("cuModuleLoadDataEx", CUresult::kUnsupportedPtxVersion);
  EXPECT_THAT(
      error_of(ErrorKind::kUnsupported, [&] { Module::from_ptx(device, "m", fake_ptx("k", 8)); }),
      AllOf(HasSubstr("update the driver"), Not(HasSubstr("log:"))));
  fail_next("cuModuleLoadDataEx", CUresult::kNoBinaryForGpu);
  EXPECT_THAT(
      error_of(ErrorKind::kUnsupported, [&] { Module::from_cubin(device, "m", fake_cubin()); }),
      HasSubstr("sm_90a code runs on compute capability 9.0"));
}

TEST_F(ModuleTest, OptionsReachTheCompiler) {
  const Device device = open();
  Module::from_ptx(device, "m", fake_ptx("k", 8));
  EXPECT_EQ(jit_option(CUjit_option::kOptimizationLevel), 4u);
  EXPECT_EQ(jit_option(CUjit_option::kMaxRegisters), 9999u) << "left to the PTX";
  EXPECT_EQ(jit_option(CUjit_option::kGenerateLineInfo), 9999u);
  EXPECT_GE(jit_option(CUjit_option::kErrorLogBufferSizeBytes), 4096u);
  Module::from_ptx(device, "m", fake_ptx("k", 8),
                   {.max_registers = 64, .optimization_level = 1, .has_line_info = true});
  EXPECT_EQ(jit_option(CUjit_option::kOptimizationLevel), 1u);
  EXPECT_EQ(jit_option(CUjit_option::kMaxRegisters), 64u);
  EXPECT_EQ(jit_option(CUjit_option::kGenerateLineInfo), 1u);
}

// The driver reads up to a NUL, which a string_view does not promise.
TEST_F(ModuleTest, PtxNeedNotBeTerminated) {
  const Device device = open();
  const std::string text = fake_ptx("k", 8);
  const std::string followed = text + "broken";
  EXPECT_NO_THROW(Module::from_ptx(device, "m", std::string_view(followed).substr(0, text.size())));
  EXPECT_NO_THROW(Module::from_ptx(device, "m", text + std::string(3, '\0')));
  EXPECT_THAT(error_of(ErrorKind::kInvalidArgument,
                       [&] { Module::from_ptx(device, "m", text + '\0' + text); }),
              HasSubstr(fmt::format("NUL character at byte {}", text.size())));
  EXPECT_THAT(error_of(ErrorKind::kInvalidArgument, [&] { Module::from_ptx(device, "m", ""); }),
              HasSubstr("module m: the PTX text is empty"));
}

TEST_F(ModuleTest, CubinsAreCheckedBeforeTheDriverReadsThem) {
  const Device device = open();
  std::vector<std::byte> image = fake_cubin();
  EXPECT_EQ(Module::from_cubin(device, "m", image).kernel("from_cubin").name(), "from_cubin");
  state().calls.clear();
  const auto refused = [&](const std::vector<std::byte>& bytes) {
    return error_of(ErrorKind::kInvalidArgument, [&] { Module::from_cubin(device, "m", bytes); });
  };
  image.pop_back();
  EXPECT_THAT(refused(image), HasSubstr("191 bytes, its header promises 192; it was cut short"));
  image.resize(20);
  EXPECT_THAT(refused(image), HasSubstr("20 bytes, its header promises 64"));
  image = fake_cubin();
  std::memset(image.data() + 40, 0xff, 8);  // a section table at the end of the world
  EXPECT_THAT(refused(image), HasSubstr("cut short"));
  EXPECT_THAT(refused(std::vector<std::byte>(100)), HasSubstr("neither as a cubin"));
  EXPECT_THAT(refused({}), HasSubstr("0 bytes that begin neither"));

  std::vector<std::byte> fatbin(16 + 100);
  const std::uint32_t magic = 0xba55ed50;
  const std::uint16_t header_bytes = 16;
  const std::uint64_t payload_bytes = 101;
  std::memcpy(fatbin.data(), &magic, 4);
  std::memcpy(fatbin.data() + 6, &header_bytes, 2);
  std::memcpy(fatbin.data() + 8, &payload_bytes, 8);
  EXPECT_THAT(refused(fatbin), HasSubstr("116 bytes, its header promises 117"));
  std::memset(fatbin.data() + 8, 0xff, 8);
  EXPECT_THAT(refused(fatbin), HasSubstr("cut short"));
  EXPECT_THAT(state().calls, IsEmpty());
}

TEST_F(ModuleTest, UnknownNamesAreErrors) {
  const Device device = open();
  const Module module = Module::from_ptx(device, "m", fake_ptx("k", 8));
  EXPECT_THAT(error_of(ErrorKind::kDeviceError, [&] { module.kernel("nope"); }),
              AllOf(HasSubstr("cuModuleGetFunction: CUDA_ERROR_NOT_FOUND"),
                    HasSubstr("kernel = nope, module = m")));
  EXPECT_THAT(error_of(ErrorKind::kDeviceError, [&] { module.global("nope"); }),
              AllOf(HasSubstr("cuModuleGetGlobal"), HasSubstr("variable = nope, module = m")));
  EXPECT_EQ(module.global("table").address, 0x1234500u);
  EXPECT_EQ(module.global("table").size_bytes, 64u);
}

TEST_F(ModuleTest, KernelsKeepTheirModule) {
  const Device device = open();
  {
    const Kernel kernel = kernel_of(device);  // the Module is gone already
    EXPECT_EQ(state().count("cuModuleUnload"), 0u);
    kernel.launch({}, Params{}, Stream(device));
  }
  EXPECT_EQ(state().count("cuModuleUnload"), 1u);
}

TEST_F(ModuleTest, Attributes) {
  const Device device = open();
  const KernelAttributes attributes = kernel_of(device).attributes();
  EXPECT_EQ(attributes.registers, 168);
  EXPECT_EQ(attributes.local_bytes, 16);
  EXPECT_EQ(attributes.static_shared_bytes, 1024);
  EXPECT_EQ(attributes.const_bytes, 0);
  EXPECT_EQ(attributes.max_block_threads, 384);
  EXPECT_EQ(attributes.ptx_version, 90);
  EXPECT_EQ(attributes.binary_version, 90);
  EXPECT_EQ(attributes.required_cluster, std::nullopt);
  EXPECT_EQ(attributes.params_bytes, sizeof(Params));
  EXPECT_EQ(kernel_of(device, "clustered").attributes().required_cluster, (Dim3{2, 1, 1}));
}

TEST_F(ModuleTest, KernelsTakeAnArgument) {
  const Device device = open();
  const Module module = Module::from_ptx(device, "m", ".entry none()\n");
  EXPECT_THAT(
      error_of(ErrorKind::kInvalidArgument, [&] { module.kernel("none"); }),
      HasSubstr("kernel none: it takes no argument; kernels of Tilewright take exactly one"));
}

TEST_F(ModuleTest, ArgumentSizesMustAgree) {
  const Device device = open();
  const Kernel kernel = kernel_of(device);
  const std::array<int, 5> other{};
  EXPECT_THAT(
      error_of(ErrorKind::kInvalidArgument, [&] { kernel.launch({}, other, Stream(device)); }),
      HasSubstr("argument of 20 bytes, compiled with one of 16"));
}

// Drivers before CUDA 12.4 cannot tell; launches then go through unchecked.
TEST(ModuleOldDriverTest, ArgumentSizesAreNotCheckedWhereTheDriverCannotTell) {
  FakeCuda cuda("without_optional");
  {
    const Device device(cuda.driver, 0, "cuda:0", "test");
    const Kernel kernel = Module::from_ptx(device, "m", fake_ptx("k", sizeof(Params))).kernel("k");
    EXPECT_EQ(kernel.attributes().params_bytes, std::nullopt);
    kernel.launch({}, Params{}, Stream(device));
    EXPECT_EQ(cuda.state.launches.size(), 1u);
  }
  EXPECT_THAT(cuda.state.leaks(), IsEmpty());
}

TEST_F(ModuleTest, LaunchPassesEverythingOn) {
  const Device device = open();
  const Kernel kernel = kernel_of(device);
  const Stream stream(device);
  const Params params = {.out = 0x1234, .scale = 2.5f, .count = 77};
  kernel.launch({.grid = {8, 3, 2},
                 .block = {32, 4, 2},
                 .cluster = Dim3{4, 1, 2},
                 .dynamic_shared_bytes = 1000,
                 .is_dependent_launch = true},
                params, stream);
  ASSERT_EQ(state().launches.size(), 1u);
  const fake::Launch& launch = state().launches[0];
  EXPECT_EQ(launch.kernel, "scale");
  EXPECT_EQ(launch.config.grid_dim_x, 8u);
  EXPECT_EQ(launch.config.grid_dim_y, 3u);
  EXPECT_EQ(launch.config.grid_dim_z, 2u);
  EXPECT_EQ(launch.config.block_dim_x, 32u);
  EXPECT_EQ(launch.config.block_dim_y, 4u);
  EXPECT_EQ(launch.config.block_dim_z, 2u);
  EXPECT_EQ(launch.config.shared_mem_bytes, 1000u);
  EXPECT_EQ(launch.config.stream, stream.handle());
  ASSERT_EQ(launch.attributes.size(), 2u);
  EXPECT_EQ(launch.attributes[0].id, abi::CUlaunchAttributeID::kClusterDimension);
  EXPECT_EQ(launch.attributes[0].value.cluster_dim.x, 4u);
  EXPECT_EQ(launch.attributes[0].value.cluster_dim.y, 1u);
  EXPECT_EQ(launch.attributes[0].value.cluster_dim.z, 2u);
  EXPECT_EQ(launch.attributes[1].id, abi::CUlaunchAttributeID::kProgrammaticStreamSerialization);
  EXPECT_EQ(launch.attributes[1].value.programmatic_stream_serialization_allowed, 1);
  EXPECT_EQ(std::memcmp(launch.params.data(), &params, sizeof params), 0);
}

TEST_F(ModuleTest, PlainLaunchesHaveNoAttributes) {
  const Device device = open();
  kernel_of(device).launch({.grid = {5}, .block = {64}}, Params{}, Stream::lent(device, nullptr));
  EXPECT_THAT(state().launches.at(0).attributes, IsEmpty());
  EXPECT_EQ(state().launches.at(0).config.grid_dim_y, 1u);
}

TEST_F(ModuleTest, DependentLaunchWithoutACluster) {
  const Device device = open();
  kernel_of(device).launch({.is_dependent_launch = true}, Params{}, Stream(device));
  ASSERT_EQ(state().launches.at(0).attributes.size(), 1u);
  EXPECT_EQ(state().launches[0].attributes[0].id,
            abi::CUlaunchAttributeID::kProgrammaticStreamSerialization);
}

TEST_F(ModuleTest, SizesThatBreakALimitAreRefusedWithTheLimit) {
  const Device device = open();
  const Kernel kernel = kernel_of(device);
  EXPECT_THAT(refusal(kernel, {.grid = {0, 1, 1}}), HasSubstr("grid = 0 x 1 x 1; every extent"));
  EXPECT_THAT(refusal(kernel, {.grid = {1, 65536, 1}}), HasSubstr("y and z at most 65535"));
  EXPECT_THAT(refusal(kernel, {.grid = {1, 1, 65536}}), HasSubstr("grid = 1 x 1 x 65536"));
  EXPECT_THAT(refusal(kernel, {.grid = {1u << 31, 1, 1}}), HasSubstr("x at most 2^31 - 1"));
  EXPECT_THAT(refusal(kernel, {.block = {32, 0, 1}}), HasSubstr("block = 32 x 0 x 1 is 0 threads"));
  EXPECT_THAT(
      refusal(kernel, {.block = {128, 4, 1}}),
      HasSubstr("is 512 threads; this kernel can have 1 to 384 (168 registers per thread)"));
  EXPECT_THAT(refusal(kernel, {.grid = {6, 1, 1}, .cluster = Dim3{4, 1, 1}}),
              HasSubstr("cluster = 4 x 1 x 1 does not divide grid = 6 x 1 x 1"));
  EXPECT_THAT(refusal(kernel, {.grid = {4, 3, 1}, .cluster = Dim3{1, 2, 1}}), HasSubstr("divide"));
  EXPECT_THAT(refusal(kernel, {.grid = {4, 4, 3}, .cluster = Dim3{1, 1, 2}}), HasSubstr("divide"));
  EXPECT_THAT(refusal(kernel, {.dynamic_shared_bytes = 48129}),
              HasSubstr("48129 bytes of dynamic shared memory, 48128 are allowed. Call "
                        "allow_dynamic_shared_bytes(48129)"));
  EXPECT_THAT(refusal(kernel, {.grid = {4, 1, 1}, .cluster = Dim3{0, 1, 1}}), HasSubstr("cluster"));
}

TEST_F(ModuleTest, LargestSizesThatBreakNoLimit) {
  const Device device = open();
  const Kernel kernel = kernel_of(device);
  const Stream stream(device);
  kernel.launch({.grid = {(1u << 31) - 1, 1, 1}, .block = {384}}, Params{}, stream);
  kernel.launch({.grid = {1, 65535, 65535}, .dynamic_shared_bytes = 48128}, Params{}, stream);
  kernel.launch({.grid = {8, 1, 1}, .cluster = Dim3{8, 1, 1}}, Params{}, stream);
  EXPECT_EQ(state().launches.size(), 3u);
}

TEST_F(ModuleTest, DynamicSharedMemoryCanBeAllowedUpToTheDevice) {
  const Device device = open();
  const Kernel kernel = kernel_of(device);
  const Stream stream(device);
  const std::uint32_t most = 232448 - 1024;
  kernel.allow_dynamic_shared_bytes(most);
  kernel.launch({.dynamic_shared_bytes = most}, Params{}, stream);
  EXPECT_EQ(state().launches.size(), 1u);
  kernel.allow_dynamic_shared_bytes(60000);  // for another launch of the same function
  kernel_of(device).launch({.dynamic_shared_bytes = most}, Params{}, stream);
  EXPECT_EQ(state().launches.size(), 2u);
  EXPECT_THAT(
      error_of(ErrorKind::kInvalidArgument, [&] { kernel.allow_dynamic_shared_bytes(most + 1); }),
      AllOf(HasSubstr("231425 bytes of dynamic shared memory and 1024 static ones"),
            HasSubstr("232448"), HasSubstr("fewer stages")));
}

// What one handle of a kernel allows, another may use; the driver is asked once more at most.
TEST_F(ModuleTest, LimitsBelongToTheFunctionNotToTheHandle) {
  const Device device = open();
  const Module module = Module::from_ptx(device, "m", fake_ptx("scale", sizeof(Params)));
  const Kernel one = module.kernel("scale");
  const Kernel other = module.kernel("scale");
  const Stream stream(device);
  other.launch({.dynamic_shared_bytes = 100}, Params{}, stream);
  one.allow_dynamic_shared_bytes(100000);
  other.launch({.dynamic_shared_bytes = 100000}, Params{}, stream);
  const std::size_t queries = state().count("cuFuncGetAttribute");
  other.launch({.dynamic_shared_bytes = 100000}, Params{}, stream);
  EXPECT_EQ(state().count("cuFuncGetAttribute"), queries);
  EXPECT_EQ(state().launches.size(), 3u);
}

TEST_F(ModuleTest, LargeClustersMustBeAllowed) {
  const Device device = open();
  const Kernel kernel = kernel_of(device);
  const LaunchConfig config = {.grid = {16, 1, 1}, .cluster = Dim3{16, 1, 1}};
  EXPECT_THAT(refusal(kernel, config),
              HasSubstr("16 blocks, 8 are portable. Call allow_nonportable_cluster() first"));
  kernel.allow_nonportable_cluster();
  kernel.launch(config, Params{}, Stream(device));
  EXPECT_EQ(state().launches.size(), 1u);
}

TEST_F(ModuleTest, CompiledClusterCannotBeReplaced) {
  const Device device = open();
  const Kernel kernel = kernel_of(device, "clustered");
  EXPECT_THAT(refusal(kernel, {.grid = {4, 1, 1}, .cluster = Dim3{4, 1, 1}}),
              HasSubstr("cluster = 4 x 1 x 1, but it was compiled for 2 x 1 x 1"));
  kernel.launch({.grid = {4, 1, 1}, .cluster = Dim3{2, 1, 1}}, Params{}, Stream(device));
  kernel.launch({.grid = {4, 1, 1}}, Params{}, Stream(device));
  EXPECT_THAT(refusal(kernel, {.grid = {3, 1, 1}}), HasSubstr("does not divide grid = 3 x 1 x 1"));
}

TEST_F(ModuleTest, FailedLaunchNamesTheWholeConfiguration) {
  const Device device = open();
  const Kernel kernel = kernel_of(device);
  fail_next("cuLaunchKernelEx", CUresult::kLaunchOutOfResources);
  EXPECT_THAT(error_of(ErrorKind::kDeviceError,
                       [&] {
                         kernel.launch({.grid = {4, 2, 1},
                                        .block = {128},
                                        .cluster = Dim3{2, 1, 1},
                                        .dynamic_shared_bytes = 512,
                                        .is_dependent_launch = true},
                                       Params{}, Stream(device));
                       }),
              AllOf(StartsWith("cuLaunchKernelEx: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"),
                    HasSubstr("kernel = scale, grid = 4 x 2 x 1, block = 128 x 1 x 1, cluster = "
                              "2 x 1 x 1, dynamic shared memory = 512 bytes, dependent launch"),
                    EndsWith("less shared memory")));
}

TEST_F(ModuleTest, Occupancy) {
  const Device device = open();
  const Kernel kernel = kernel_of(device);
  EXPECT_EQ(kernel.max_active_blocks_per_sm(256, 0), 8);
  EXPECT_EQ(kernel.max_active_blocks_per_sm(128, 100000), 2);
  EXPECT_EQ(kernel.max_active_clusters({.grid = {4, 1, 1}, .cluster = Dim3{4, 1, 1}}), 33);
  fail_next("cuOccupancyMaxActiveClusters", CUresult::kInvalidClusterSize);
  EXPECT_THAT(
      error_of(ErrorKind::kUnsupported,
               [&] {
                 kernel.max_active_clusters({.grid = {8, 1, 1}, .cluster = Dim3{8, 1, 1}});
               }),
      AllOf(HasSubstr("CUDA_ERROR_INVALID_CLUSTER_SIZE"), HasSubstr("cluster = 8 x 1 x 1")));
}

TEST_F(ModuleTest, KernelsRunOnBuffers) {
  state().kernel_bodies["scale"] = [](const std::byte* bytes) {
    Params params;
    std::memcpy(&params, bytes, sizeof params);
    auto* const out = reinterpret_cast<float*>(params.out);
    for (std::uint32_t i = 0; i < params.count; ++i) out[i] *= params.scale;
  };
  const Device device = open();
  const Buffer buffer = Buffer::from(device, std::vector<float>{1, 2, 3});
  const Stream stream(device);
  kernel_of(device).launch({}, Params{.out = buffer.address(), .scale = 10, .count = 3}, stream);
  stream.synchronize();
  EXPECT_THAT(buffer.to_vector<float>(), ::testing::ElementsAre(10, 20, 30));
}

}  // namespace
}  // namespace tilewright::device
