// What the tests of the driver share, and that the library is one.
#include "tests/sim/driver/driver_fixture.h"

#include <cstdlib>
#include <stdexcept>

namespace tilewright::sim::abi {

void PrintTo(CUresult result, std::ostream* out) {
  const char* name = nullptr;
  driver_table().cuGetErrorName(result, &name);
  *out << (name != nullptr ? name : "no CUresult");
}

void* driver_library() {
  static void* const library = [] {
    unsetenv("TILEWRIGHT_SIM_DEVICE");
    void* const opened = dlopen(TILEWRIGHT_SIM_DRIVER, RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) throw std::runtime_error(dlerror());
    return opened;
  }();
  return library;
}

const DriverTable& driver_table() {
  // Aggregate of pointers, in the order of the list.
  static const DriverTable table = {
#define TILEWRIGHT_FIND(name, version, parameters) \
  reinterpret_cast<CUresult(*) parameters>(dlsym(driver_library(), #name)),
      TILEWRIGHT_SIM_FUNCTIONS(TILEWRIGHT_FIND)
#undef TILEWRIGHT_FIND
  };
  return table;
}

void DriverTest::SetUp() {
  ASSERT_OK(cu.cuInit(0));
  ASSERT_OK(cu.cuDevicePrimaryCtxRetain(&context_, 0));
  ASSERT_OK(cu.cuCtxPushCurrent_v2(context_));
}

void DriverTest::TearDown() {
  CUcontext popped = nullptr;
  EXPECT_OK(cu.cuCtxPopCurrent_v2(&popped));
  EXPECT_EQ(popped, context_) << "the test left another context current";
  EXPECT_OK(cu.cuDevicePrimaryCtxRelease_v2(0));  // the last one: frees whatever was left
}

CUmodule DriverTest::load(const std::string& ptx) {
  CUmodule module = nullptr;
  EXPECT_OK(cu.cuModuleLoadData(&module, ptx.c_str()));
  return module;
}

CUfunction DriverTest::function(CUmodule module, const char* name) {
  CUfunction found = nullptr;
  EXPECT_OK(cu.cuModuleGetFunction(&found, module, name));
  return found;
}

// Tables and loops: an expectation for each name takes the compiler ten seconds.
TEST(DriverLibrary, ExportsEveryFunctionAndTheMark) {
#define TILEWRIGHT_TEXT(name, ...) #name,
  const char* const names[] = {TILEWRIGHT_SIM_FUNCTIONS(TILEWRIGHT_TEXT)                     //
                               TILEWRIGHT_SIM_UNSUPPORTED_FUNCTIONS(TILEWRIGHT_TEXT)         //
                               TILEWRIGHT_SIM_OLDER_NAMES(TILEWRIGHT_TEXT)                   //
                               TILEWRIGHT_SIM_PER_THREAD_NAMES(TILEWRIGHT_TEXT)              //
                               TILEWRIGHT_SIM_UNSUPPORTED_PER_THREAD_NAMES(TILEWRIGHT_TEXT)  //
                               "tilewright_simulator"};
#undef TILEWRIGHT_TEXT
  for (const char* name : names) EXPECT_NE(dlsym(driver_library(), name), nullptr) << name;
}

TEST(DriverLibrary, OtherNamesAreTheSameFunctions) {
#define TILEWRIGHT_TEXTS(name, version, target) {#name, #target},
#define TILEWRIGHT_TEXTS_PER_THREAD(name, target) {#name, #target},
  constexpr struct {
    const char *name, *target;
  } kPairs[] = {TILEWRIGHT_SIM_OLDER_NAMES(TILEWRIGHT_TEXTS)  //
                TILEWRIGHT_SIM_PER_THREAD_NAMES(TILEWRIGHT_TEXTS_PER_THREAD)};
#undef TILEWRIGHT_TEXTS
#undef TILEWRIGHT_TEXTS_PER_THREAD
  for (const auto& [name, target] : kPairs) {
    EXPECT_EQ(dlsym(driver_library(), name), dlsym(driver_library(), target)) << name;
  }
}

TEST(DriverLibrary, ExportsNothingElse) {
  for (const char* name : {"_ZN10tilewright3sim6Driver3getEv", "_ZTIN10tilewright5ErrorE"}) {
    EXPECT_EQ(dlsym(driver_library(), name), nullptr) << name;
  }
}

}  // namespace tilewright::sim::abi
