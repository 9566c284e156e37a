// What depends on the variables that a process began with: each test runs in a process of its own.
#include "tests/base/scoped_folder.h"
#include "tests/sim/driver/driver_fixture.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace tilewright::sim::abi {
namespace {

constexpr const char* kPtx = R"(
.version 8.7
.target sm_90a
.address_size 64
.visible .entry write(.param .u64 to)
{
  .reg .b64 %to;
  ld.param.u64 %to, [to];
  st.global.u32 [%to], 1;
  ret;
}
.visible .entry read(.param .u64 from)
{
  .reg .b32 %v;
  .reg .b64 %from;
  ld.param.u64 %from, [from];
  ld.global.u32 %v, [%from];
  griddepcontrol.wait;
  ret;
}
.visible .entry _ZN6models5layerIiE3runEPi(.param .u64 to)
{
  .reg .b64 %to;
  ld.param.u64 %to, [to];
  st.global.u32 [%to+4096], 1;
  ret;
}
)";

#define REQUIRE_OK(call)                                           \
  if ((call) != CUresult::kSuccess) {                              \
    std::fprintf(stderr, "%s failed at line %d", #call, __LINE__); \
    std::_Exit(3);                                                 \
  }

class Program {
 public:
  Program() {
    REQUIRE_OK(cu.cuInit(0));
    REQUIRE_OK(cu.cuDevicePrimaryCtxRetain(&context_, 0));
    REQUIRE_OK(cu.cuCtxPushCurrent_v2(context_));
    REQUIRE_OK(cu.cuModuleLoadData(&module_, kPtx));
    REQUIRE_OK(cu.cuMemAlloc_v2(&memory, 256));
    REQUIRE_OK(cu.cuMemsetD8_v2(memory, 0, 256));
  }
  /// `serialization`: of the attribute; -1 for a launch without any.
  CUresult launch(const char* name, int serialization) {
    CUfunction function = nullptr;
    REQUIRE_OK(cu.cuModuleGetFunction(&function, module_, name));
    CUlaunchAttribute attribute{};
    attribute.id = CUlaunchAttributeID::kProgrammaticStreamSerialization;
    attribute.value.programmatic_stream_serialization_allowed = serialization;
    CUlaunchConfig config{};
    config.grid_dim_x = config.grid_dim_y = config.grid_dim_z = 1;
    config.block_dim_x = config.block_dim_y = config.block_dim_z = 1;
    config.attrs = &attribute;
    config.num_attrs = serialization < 0 ? 0 : 1;
    void* arguments[] = {&memory};
    return cu.cuLaunchKernelEx(&config, function, arguments, nullptr);
  }
  /// Ends the process: 0 if all launches went well.
  [[noreturn]] void end() { std::_Exit(cu.cuCtxSynchronize() == CUresult::kSuccess ? 0 : 1); }

  const DriverTable& cu = driver_table();
  CUdeviceptr memory = 0;

 private:
  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
};

class CheckedProcess : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(CheckedProcess, TheAttributeMakesALaunchDependent) {
  const auto run = [](int serialization, auto&& between) {
    setenv("TILEWRIGHT_SIM_CHECK", "all", 1);
    Program program;
    program.launch("write", -1);
    between(program);
    program.launch("read", serialization);
    program.end();
  };
  const auto nothing = [](Program&) {};
  EXPECT_EXIT(run(1, nothing), testing::ExitedWithCode(1),
              "read: reads what the launch of write before may still be writing \\[race\\]");
  EXPECT_EXIT(run(0, nothing), testing::ExitedWithCode(0), "^$");
  EXPECT_EXIT(run(-1, nothing), testing::ExitedWithCode(0), "^$");
  EXPECT_EXIT(run(1, [](Program& program) { program.cu.cuCtxSynchronize(); }),
              testing::ExitedWithCode(0), "^$");
  EXPECT_EXIT(run(1, [](Program& program) { program.cu.cuStreamSynchronize(nullptr); }),
              testing::ExitedWithCode(0), "^$");
}

/// How often a text occurs in another.
std::size_t count_in(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

std::string text_of(const std::filesystem::path& path) {
  std::stringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

// The names of files hold the number of the module in the process.
TEST_F(CheckedProcess, AFindingIsSaidOnceWithAReadableNameAndTheFileThatWasKept) {
  const auto run = [] {
    std::size_t num_wrong = 0;
    {
      const ScopedFolder folder;
      const std::filesystem::path kept = folder.path() / "new" / "kept";
      setenv("TILEWRIGHT_SIM_DUMP", kept.c_str(), 1);
      testing::internal::CaptureStderr();
      Program program;
      program.launch("_ZN6models5layerIiE3runEPi", -1);
      const bool is_broken = program.cu.cuCtxSynchronize() == CUresult::kIllegalAddress;
      const std::string text = testing::internal::GetCapturedStderr();
      std::fputs(text.c_str(), stderr);
      num_wrong += !is_broken;
      num_wrong += text_of(kept / "module1.ptx") != kPtx;
      num_wrong += count_in(text, (kept / "module1.ptx").string() + ":25") != 1;
      num_wrong += count_in(text, "st.global.u32 [%to+4096]") != 1;
      num_wrong += count_in(text, "sim: models::layer<int>::run: ") != 2;
      num_wrong += count_in(text, "the launch fails for this: CUDA_ERROR_ILLEGAL_ADDRESS") != 1;
      num_wrong += count_in(text, "_ZN6models") != 0;
    }
    std::_Exit(static_cast<int>(num_wrong));
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), "\\[mem\\]");
}

}  // namespace
}  // namespace tilewright::sim::abi
