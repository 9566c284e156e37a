#include "device/driver.h"

#include "fake_device_test.h"

#include <fstream>
#include <set>

#include <dlfcn.h>

namespace tilewright::device {
namespace {

using abi::CUresult;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::vector<CUresult> all_failures() {
  std::vector<CUresult> results;
#define ADD(ours, theirs, value) results.push_back(CUresult::ours);
  TILEWRIGHT_CU_RESULTS(ADD)
#undef ADD
  results.erase(results.begin());  // kSuccess
  return results;
}

TEST(DriverTest, FillsTheWholeTable) {
  const Driver& driver = Driver::open(fake_library("complete"));
#define CHECK(member, exported, parameters)                                                      \
  EXPECT_EQ(reinterpret_cast<void*>(driver.cu.member), driver.function(#exported)) << #exported; \
  EXPECT_NE(driver.cu.member, nullptr) << #exported;
  TILEWRIGHT_DRIVER_FUNCTIONS(CHECK, CHECK)
#undef CHECK
  EXPECT_EQ(driver.version(), 13000);
  EXPECT_EQ(driver.path(), fake_library("complete"));
  EXPECT_FALSE(driver.is_simulator());
  EXPECT_EQ(driver.function("cuNoSuchFunction"), nullptr);
}

TEST(DriverTest, SameFileIsTheSameDriver) {
  const Driver& driver = Driver::open(fake_library("complete"));
  EXPECT_EQ(&driver, &Driver::open(fake_library("complete/../complete")));
  EXPECT_NE(&driver, &Driver::open(fake_library("simulator")));
}

// Each library keeps its own state, although all bear the same SONAME and export the same names.
TEST(DriverTest, LibrariesDoNotSeeEachOther) {
  FakeCuda one("complete");
  FakeCuda other("simulator");
  int version = 0;
  one.state.calls.clear();
  ASSERT_EQ(other.driver.cu.driver_get_version(&version), CUresult::kSuccess);
  EXPECT_THAT(other.state.calls, ::testing::ElementsAre("cuDriverGetVersion"));
  EXPECT_THAT(one.state.calls, ::testing::IsEmpty());
  EXPECT_EQ(dlsym(RTLD_DEFAULT, "fake_state"), nullptr) << "nor does anybody else";
}

TEST(DriverTest, OptionalFunctionsMayBeMissing) {
  const Driver& driver = Driver::open(fake_library("without_optional"));
  EXPECT_EQ(driver.cu.func_get_param_info, nullptr);
  EXPECT_EQ(driver.version(), Driver::kMinVersion);
}

TEST(DriverTest, MissingFileIsAnError) {
  const std::string message =
      error_of(ErrorKind::kUnsupported, [] { Driver::open("/nowhere/libcuda.so.1"); });
  EXPECT_THAT(
      message,
      AllOf(HasSubstr("CUDA driver /nowhere/libcuda.so.1: it cannot be loaded: cannot open"),
            HasSubstr("No such file or directory")));
}

TEST(DriverTest, OrdinaryLibraryIsAnError) {
  const std::string message = error_of(ErrorKind::kUnsupported, [] { Driver::open("libm.so.6"); });
  EXPECT_THAT(message, AllOf(HasSubstr("libm.so.6"), HasSubstr("cuDriverGetVersion"),
                             HasSubstr("no CUDA driver")));
}

TEST(DriverTest, OldDriverIsAnError) {
  for (int i = 0; i < 2; ++i) {  // a refused driver is not remembered as a good one
    const std::string message =
        error_of(ErrorKind::kUnsupported, [] { Driver::open(fake_library("old")); });
    EXPECT_THAT(message, AllOf(HasSubstr(fake_library("old")), HasSubstr("CUDA 11.8"),
                               HasSubstr("needs 12.0 or newer"), HasSubstr("Update the driver")));
  }
}

TEST(DriverTest, MissingFunctionIsNamed) {
  const std::string message =
      error_of(ErrorKind::kUnsupported, [] { Driver::open(fake_library("without_tensor_maps")); });
  EXPECT_THAT(message, AllOf(HasSubstr(fake_library("without_tensor_maps")),
                             HasSubstr("does not export cuTensorMapEncodeTiled."),
                             Not(HasSubstr("cuInit"))));
}

TEST(DriverTest, VersionCallThatFailsIsAnError) {
  // The state outlives a refused library only while somebody holds it; so ask one that stays.
  FakeCuda cuda;
  cuda.state.failing_function = "cuInit";
  cuda.state.failing_result = CUresult::kSystemDriverMismatch;
  const std::string message = error_of(ErrorKind::kDeviceError, [&] { cuda.driver.initialize(); });
  EXPECT_THAT(message, AllOf(StartsWith("cuInit: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"),
                             HasSubstr(fake_library("complete")), HasSubstr("reboot")));
}

#ifdef TILEWRIGHT_CUDA_INCLUDE
TEST(DriverTest, StubOfTheToolkitIsExplained) {
  const std::string path = std::string(TILEWRIGHT_CUDA_INCLUDE) + "/../lib64/stubs/libcuda.so";
  if (!std::ifstream(path).is_open()) GTEST_SKIP() << "no stub at " << path;
  const std::string message = error_of(ErrorKind::kDeviceError, [&] { Driver::open(path); });
  EXPECT_THAT(message, AllOf(HasSubstr("CUDA_ERROR_STUB_LIBRARY"), HasSubstr("stubs folder"),
                             HasSubstr("LD_LIBRARY_PATH")));
}
#endif

// The loader also matches names against the SONAMEs of loaded libraries. The fakes bear that of the
// real driver, but the name must go on meaning what it meant before they were loaded.
TEST(DriverTest, LoadedSimulatorDoesNotTakeTheNameOfTheDriver) {
  const Driver& simulator = Driver::open(fake_library("simulator"));
  try {
    const Driver& real = Driver::open("libcuda.so.1");
    EXPECT_NE(&real, &simulator);
    EXPECT_EQ(real.path().find(TILEWRIGHT_FAKE_CUDA), std::string::npos);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
    EXPECT_THAT(error.what(), HasSubstr("cannot be loaded"));
  }
}

TEST(DriverTest, SimulatorIsRecognised) {
  EXPECT_TRUE(Driver::open(fake_library("simulator")).is_simulator());
}

TEST(DriverTest, DescribesCodesOfANewerDriver) {
  const Driver& driver = Driver::open(fake_library("complete"));
  EXPECT_EQ(driver.describe(static_cast<CUresult>(4242)),
            "CUDA_ERROR_FROM_THE_FUTURE (text from the fake driver)");
  EXPECT_EQ(driver.describe(static_cast<CUresult>(4243)),
            "CUDA error 4243 (text from the fake driver)");
  EXPECT_EQ(driver.describe(CUresult::kOutOfMemory), "CUDA_ERROR_OUT_OF_MEMORY (out of memory)");
}

TEST(DriverTest, EveryCodeIsRaisedByName) {
  const Driver& driver = Driver::open(fake_library("complete"));
  std::set<std::string> names;
  for (const CUresult result : all_failures()) {
    try {
      driver.check(result, "cuSomething", "bytes = {}", 42);
      ADD_FAILURE() << name_of(result) << " was not raised";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), StartsWith("cuSomething: " + name_of(result) + " ("));
      EXPECT_THAT(error.what(), HasSubstr("; bytes = 42"));
      EXPECT_THAT(error.what(), HasSubstr(advice_on(result)));
      EXPECT_EQ(error.kind(), kind_of(result));
      EXPECT_NE(error.kind(), ErrorKind::kInternal);
    }
    EXPECT_THAT(name_of(result), StartsWith("CUDA_ERROR_"));
    EXPECT_TRUE(names.insert(name_of(result)).second) << name_of(result) << " twice";
  }
  EXPECT_GT(names.size(), 90u);
  EXPECT_NO_THROW(driver.check(CUresult::kSuccess, "cuSomething"));
}

TEST(DriverTest, KindsThatACallerCanReactTo) {
  EXPECT_EQ(kind_of(CUresult::kOutOfMemory), ErrorKind::kOutOfMemory);
  EXPECT_EQ(kind_of(CUresult::kInvalidPtx), ErrorKind::kParseError);
  EXPECT_EQ(kind_of(CUresult::kNoBinaryForGpu), ErrorKind::kUnsupported);
  EXPECT_EQ(kind_of(CUresult::kUnsupportedPtxVersion), ErrorKind::kUnsupported);
  EXPECT_EQ(kind_of(CUresult::kIllegalAddress), ErrorKind::kDeviceError);
  EXPECT_EQ(kind_of(static_cast<CUresult>(4243)), ErrorKind::kDeviceError);
}

TEST(DriverTest, KeepsTheFirstReleaseFailures) {
  const Driver& driver = Driver::open(fake_library("without_optional"));
  driver.take_release_failures();
  driver.note_release(CUresult::kSuccess, "cuMemFree");
  driver.note_release(CUresult::kDeinitialized, "cuMemFree");  // the process is ending
  EXPECT_EQ(driver.take_release_failures().count, 0u);
  driver.note_release(CUresult::kIllegalAddress, "cuMemFree");
  for (int i = 0; i < 40; ++i) driver.note_release(CUresult::kUnknown, "cuEventDestroy");
  const ReleaseFailures failures = driver.take_release_failures();
  EXPECT_EQ(failures.count, 41u);
  ASSERT_EQ(failures.messages.size(), ReleaseFailures::kMaxMessages);
  EXPECT_THAT(failures.messages.front(), StartsWith("cuMemFree: CUDA_ERROR_ILLEGAL_ADDRESS"));
  EXPECT_EQ(driver.take_release_failures().count, 0u);
}

}  // namespace
}  // namespace tilewright::device
