#include "device/open_device.h"

#include "fake_device_test.h"
#include "tests/base/scoped_env.h"

#include <cstdlib>
#include <filesystem>

namespace tilewright::device {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kNowhere = "/nowhere/lib/sim/libcuda.so.1";

/// A machine with a fake GPU driver and a fake simulator that shows an H200, a B200 and a B300.
class OpenDeviceTest : public FakeDeviceTest {
 protected:
  OpenDeviceTest() {
    simulator_.state.gpus = {fake::Gpu{.name = "Simulated H200", .capability = 90},
                             fake::Gpu{.name = "Simulated B200", .capability = 100},
                             fake::Gpu{.name = "Simulated B300", .capability = 103}};
  }
  void TearDown() override {
    EXPECT_THAT(simulator_.state.leaks(), ::testing::IsEmpty());
    EXPECT_THAT(simulator_.state.violations, ::testing::IsEmpty());
    FakeDeviceTest::TearDown();
  }

  Device open(const std::string& spec) const {
    return open_device(parse_device_spec(spec), libraries_);
  }
  std::string error_on(const std::string& spec) const {
    return error_of(ErrorKind::kUnsupported, [&] { open(spec); });
  }
  void without_simulator() { libraries_.sim = {kNowhere}; }
  void without_driver() { libraries_.cuda = {"/nowhere/libcuda.so.1"}; }

  FakeCuda simulator_{"simulator"};
  DriverLibraries libraries_ = {.cuda = {fake_library("complete")},
                                .sim = {fake_library("simulator")}};
};

TEST_F(OpenDeviceTest, AutoTakesTheFirstUsableGpu) {
  state().gpus = {fake::Gpu{.name = "Fake A100", .capability = 80},
                  fake::Gpu{.name = "Fake H200", .capability = 90}};
  const Device device = open("auto");
  EXPECT_EQ(device.spec(), "cuda:1");
  EXPECT_EQ(device.info().name, "Fake H200");
  EXPECT_EQ(device.why(), "auto: the first usable GPU");
  EXPECT_FALSE(device.is_simulated());
}

TEST_F(OpenDeviceTest, AutoFallsBackOnTheSimulatedH200AndSaysWhy) {
  state().gpus = {fake::Gpu{.name = "Fake A100", .capability = 80}};
  const Device device = open("auto");
  EXPECT_EQ(device.spec(), "sim:h200");
  EXPECT_EQ(device.info().compute_capability, 90);
  EXPECT_TRUE(device.is_simulated());
  EXPECT_EQ(device.why(),
            "auto: simulated, for want of a usable GPU: GPU 0 is Fake A100 with compute capability "
            "8.0, not 9.0 (Hopper) or 10.x (Blackwell)");
}

TEST_F(OpenDeviceTest, AutoFallsBackWhenTheDriverFails) {
  fail_next("cuInit", abi::CUresult::kNoDevice);
  const Device device = open("auto");
  EXPECT_EQ(device.spec(), "sim:h200");
  EXPECT_THAT(device.why(), HasSubstr("cuInit: CUDA_ERROR_NO_DEVICE"));
}

TEST_F(OpenDeviceTest, AutoWithNothingListsEverything) {
  without_driver();
  without_simulator();
  EXPECT_THAT(
      error_on("auto"),
      AllOf(StartsWith("device auto: no usable GPU: there is no file /nowhere/libcuda.so.1."),

            HasSubstr("fall back on: there is no file " + std::string(kNowhere) + "."),
            HasSubstr("TILEWRIGHT_SIM_LIBRARY")));
}

TEST_F(OpenDeviceTest, EveryUsableCapability) {
  for (const auto& [capability, is_usable] : {std::pair{70, false},
                                              {80, false},
                                              {89, false},
                                              {90, true},
                                              {100, true},
                                              {101, true},
                                              {103, true},
                                              {110, false},
                                              {120, false}}) {
    EXPECT_EQ(is_usable_capability(capability), is_usable) << capability;
    state().gpus[0].capability = capability;
    if (is_usable) {
      EXPECT_EQ(open("cuda:0").info().compute_capability, capability);
    } else {
      EXPECT_THAT(error_on("cuda:0"), HasSubstr(fmt::format("compute capability {}.{}",
                                                            capability / 10, capability % 10)));
    }
  }
}

TEST_F(OpenDeviceTest, CudaWithoutANumberTakesTheFirstUsableButNoSimulator) {
  state().gpus = {fake::Gpu{.name = "Fake A100", .capability = 80}, fake::Gpu{}};
  EXPECT_EQ(open("cuda").spec(), "cuda:1");
  state().gpus.pop_back();
  EXPECT_THAT(error_on("cuda"), AllOf(StartsWith("device cuda: no usable GPU: GPU 0 is Fake A100"),
                                      HasSubstr("--device sim:h200")));
}

TEST_F(OpenDeviceTest, CudaWithANumberTakesThatOneOrNone) {
  state().gpus = {fake::Gpu{}, fake::Gpu{.name = "Fake A100", .capability = 80},
                  fake::Gpu{.name = "Fake B200", .capability = 100}};
  EXPECT_EQ(open("cuda:2").info().name, "Fake B200");
  EXPECT_EQ(open("cuda:2").spec(), "cuda:2");
  EXPECT_THAT(error_on("cuda:1"), AllOf(HasSubstr("GPU 1 is Fake A100"), Not(HasSubstr("GPU 0"))));
  EXPECT_THAT(error_on("cuda:3"), AllOf(HasSubstr("there is no GPU 3"), HasSubstr("sees 3")));
}

TEST_F(OpenDeviceTest, NoGpuAtAll) {
  state().gpus.clear();
  EXPECT_THAT(error_on("cuda:0"),
              AllOf(HasSubstr("CUDA_ERROR_NO_DEVICE"), HasSubstr("CUDA_VISIBLE_DEVICES")));
}

TEST_F(OpenDeviceTest, LaterLibrariesAreTriedWhenEarlierOnesFail) {
  libraries_.cuda = {"/nowhere/libcuda.so.1", fake_library("old"),
                     fake_library("without_tensor_maps"), fake_library("complete")};
  EXPECT_EQ(open("cuda:0").spec(), "cuda:0");
  libraries_.cuda.pop_back();
  EXPECT_THAT(error_on("cuda:0"),
              AllOf(HasSubstr("there is no file /nowhere/libcuda.so.1."), HasSubstr("CUDA 11.8"),
                    HasSubstr("cuTensorMapEncodeTiled")));
}

TEST_F(OpenDeviceTest, TheSameLibraryUnderTwoNamesIsReportedOnce) {
  libraries_.cuda = {fake_library("complete"), fake_library("complete/../complete")};
  state().gpus = {fake::Gpu{.name = "Fake A100", .capability = 80}};
  const std::string message = error_on("cuda:0");
  EXPECT_EQ(message.find("Fake A100"), message.rfind("Fake A100"));
}

TEST_F(OpenDeviceTest, SimulatedModels) {
  const Device h200 = open("sim:h200");
  const Device b200 = open("sim:b200");
  EXPECT_EQ(h200.info().name, "Simulated H200");
  EXPECT_EQ(b200.info().name, "Simulated B200");
  EXPECT_EQ(b200.spec(), "sim:b200");
  EXPECT_EQ(open("sim:b300").info().name, "Simulated B300");
  EXPECT_EQ(open("sim:b300").spec(), "sim:b300");
  EXPECT_EQ(&h200.driver(), &b200.driver());
  EXPECT_TRUE(b200.is_simulated());
}

TEST_F(OpenDeviceTest, SimulatorWithoutThatModel) {
  simulator_.state.gpus.resize(1);
  EXPECT_THAT(error_on("sim:b200"),
              HasSubstr("GPU 0 is Simulated H200 with compute capability 9.0, not 10.0"));
}

TEST_F(OpenDeviceTest, AbsentSimulatorSaysWhatIsMissingAndWhatToDo) {
  without_simulator();
  for (const char* spec : {"sim:h200", "sim:b200"}) {
    EXPECT_EQ(error_on(spec),
              fmt::format("device {}: the simulator library is missing or unusable: there is no "
                          "file {}. It comes with Tilewright's simulator: build that, or name its "
                          "library in TILEWRIGHT_SIM_LIBRARY, or use a GPU with --device cuda:0",
                          spec, kNowhere));
  }
}

TEST_F(OpenDeviceTest, RealDriverIsNotTakenForTheSimulator) {
  libraries_.sim = {fake_library("complete")};
  EXPECT_THAT(error_on("sim:h200"), HasSubstr("is a CUDA driver, not the simulator"));
}

TEST_F(OpenDeviceTest, RealAndSimulatedDeviceCoexist) {
  const Device gpu = open("cuda:0");
  const Device sim = open("sim:h200");
  EXPECT_NE(&gpu.driver(), &sim.driver());
  state().calls.clear();
  simulator_.state.calls.clear();
  sim.synchronize();
  EXPECT_THAT(state().calls, ::testing::IsEmpty());
  EXPECT_EQ(simulator_.state.count("cuCtxSynchronize"), 1u);
}

TEST(DriverLibrariesTest, SimulatorIsBesideTheProgramUnlessNamed) {
  const ScopedEnv unset(kSimLibraryVariable, nullptr);
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
  const std::filesystem::path expected =
      program.parent_path().parent_path() / "lib" / "sim" / "libcuda.so.1";
  EXPECT_THAT(DriverLibraries::standard().sim, ::testing::ElementsAre(expected.string()));
  const ScopedEnv named(kSimLibraryVariable, "/elsewhere/libcuda.so.1");
  EXPECT_THAT(DriverLibraries::standard().sim, ::testing::ElementsAre("/elsewhere/libcuda.so.1"));
}

TEST(DriverLibrariesTest, TheLoaderIsAskedFirst) {
  EXPECT_EQ(DriverLibraries::standard().cuda.front(), "libcuda.so.1");
}

// The loader reads LD_LIBRARY_PATH when a program starts, so this takes a new process.
class LoaderPathDeathTest : public ::testing::Test {
 protected:
  LoaderPathDeathTest() {
    GTEST_FLAG_SET(death_test_style, "threadsafe");  // runs this program anew
    const std::filesystem::path folder =
        std::filesystem::path(fake_library("simulator")).parent_path();
    path_.emplace("LD_LIBRARY_PATH", folder.c_str());
    sim_.emplace(kSimLibraryVariable, kNowhere);
  }
  std::optional<ScopedEnv> path_;
  std::optional<ScopedEnv> sim_;
};

[[noreturn]] void open_and_exit(const char* spec) {
  int status = 1;
  try {
    const Device device = open_device(parse_device_spec(spec));
    fmt::print(stderr, "{} simulated={} {} | {}\n", device.spec(), device.is_simulated(),
               device.driver().path(), device.why());
    status = 0;
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
  }
  std::_Exit(status);
}

TEST_F(LoaderPathDeathTest, SimulatorFoundByTheLoaderRunsAsAGpu) {
  EXPECT_EXIT(open_and_exit("auto"), ::testing::ExitedWithCode(0),
              "cuda:0 simulated=true .*simulator/libcuda.so.1 . auto: the first usable GPU");
  EXPECT_EXIT(open_and_exit("cuda:0"), ::testing::ExitedWithCode(0), "cuda:0 simulated=true");
}

TEST_F(LoaderPathDeathTest, NamedSimulatorIsTheSameLibrary) {
  const ScopedEnv named(kSimLibraryVariable, fake_library("simulator").c_str());
  EXPECT_EXIT(open_and_exit("sim:h200"), ::testing::ExitedWithCode(0), "sim:h200 simulated=true");
}

TEST_F(LoaderPathDeathTest, AbsentSimulatorLibraryIsAnError) {
  EXPECT_EXIT(open_and_exit("sim:h200"), ::testing::ExitedWithCode(1),
              "the simulator library is missing or unusable: there is no file /nowhere/lib/sim/");
}

}  // namespace
}  // namespace tilewright::device
