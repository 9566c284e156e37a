// What programs may do wrong without ending the process: every function answers, none throws.
#include "tests/sim/driver/driver_fixture.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <sys/mman.h>
#include <unistd.h>

namespace tilewright::sim::abi {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class DriverHostileTest : public DriverTest {};

constexpr const char* kFree = R"(
.version 8.0
.target sm_90
.address_size 64
.extern .func free(.param .b64 p);
.extern .func (.param .b64 r) malloc(.param .b64 n);
.visible .entry release(.param .u64 address)
{
  .reg .b64 %a;
  ld.param.u64 %a, [address];
  { .param .b64 p; st.param.b64 [p], %a; call.uni free, (p); }
  ret;
}
.visible .entry own()
{
  .reg .b64 %a;
  { .param .b64 n; .param .b64 r; st.param.b64 [n], 64; call.uni (r), malloc, (n);
    ld.param.b64 %a, [r]; }
  { .param .b64 p; st.param.b64 [p], %a; call.uni free, (p); }
  ret;
}
)";

TEST_F(DriverHostileTest, AKernelMayNotFreeWhatTheHostAllocated) {
  CUmodule const module = load(kFree);
  EXPECT_OK(
      cu.cuLaunchKernel(function(module, "own"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  EXPECT_OK(cu.cuCtxSynchronize());
  CUdeviceptr memory = 0;
  ASSERT_OK(cu.cuMemAlloc_v2(&memory, 16));
  void* arguments[] = {&memory};
  testing::internal::CaptureStderr();
  CUresult result = cu.cuLaunchKernel(function(module, "release"), 1, 1, 1, 1, 1, 1, 0, nullptr,
                                      arguments, nullptr);
  if (result == CUresult::kSuccess) result = cu.cuCtxSynchronize();
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("it is the start of the 16 bytes made by cuMemAlloc"),
                    HasSubstr("free takes what malloc gave to a kernel")));
  EXPECT_EQ(result, CUresult::kIllegalAddress);
  EXPECT_EQ(cu.cuMemFree_v2(memory), CUresult::kIllegalAddress);
}

TEST_F(DriverHostileTest, AFatbinIsReadToTheEndOfItsMemory) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  auto* const memory = static_cast<char*>(
      mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_EQ(mprotect(memory + page, page, PROT_NONE), 0);
  char* const fatbin = memory + page - 128;
  const std::uint32_t magic = 0xba55ed50;
  const std::uint16_t header[2] = {1, 16};
  const std::uint64_t claimed = 1 << 30;
  std::memcpy(fatbin, &magic, 4);
  std::memcpy(fatbin + 4, header, 4);
  std::memcpy(fatbin + 8, &claimed, 8);
  const std::uint32_t entry[4] = {1, 64, 1 << 20, 0};  // PTX of 1 MB
  std::memcpy(fatbin + 16, entry, sizeof entry);
  CUmodule module = nullptr;
  testing::internal::CaptureStderr();
  EXPECT_EQ(cu.cuModuleLoadFatBinary(&module, fatbin), CUresult::kNoBinaryForGpu);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("only: nothing"));
  munmap(memory, 2 * page);
}

TEST_F(DriverHostileTest, ParametersAreAsManyAsPtxasTakes) {
  const auto kernel = [](const char* version, int bytes) {
    return ".version " + std::string(version) +
           "\n.target sm_90\n.address_size 64\n.visible .entry k(.param .b8 p[" +
           std::to_string(bytes) + "])\n{\n  ret;\n}\n";
  };
  CUmodule module = nullptr;
  EXPECT_OK(cu.cuModuleLoadData(&module, kernel("8.1", 32764).c_str()));
  EXPECT_OK(cu.cuModuleLoadData(&module, kernel("8.0", 4352).c_str()));
  testing::internal::CaptureStderr();
  EXPECT_EQ(cu.cuModuleLoadData(&module, kernel("8.1", 32765).c_str()), CUresult::kInvalidPtx);
  EXPECT_EQ(cu.cuModuleLoadData(&module, kernel("8.0", 4353).c_str()), CUresult::kInvalidPtx);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("kernel k has 32765 bytes of parameters; at most 32764 fit"),
                    HasSubstr("at most 4352 fit before PTX 8.1")));
}

TEST_F(DriverHostileTest, NewerPtxIsTaken) {
  load(".version 9.4\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{\n  ret;\n}\n");
}

/// As NVIDIA's runtime asks first; here the caller is this program.
TEST_F(DriverHostileTest, TheLibraryWithNvidiasRuntimeIsNamed) {
  const CUuuid id = {{0x6b, static_cast<char>(0xd5), static_cast<char>(0xfb), 0x6c, 0x5b,
                      static_cast<char>(0xf4), static_cast<char>(0xe7), 0x4a,
                      static_cast<char>(0x89), static_cast<char>(0x87), static_cast<char>(0xd9),
                      0x39, 0x12, static_cast<char>(0xfd), static_cast<char>(0x9d),
                      static_cast<char>(0xf9)}};
  const void* table = &id;
  testing::internal::CaptureStderr();
  EXPECT_EQ(cu.cuGetExportTable(&table, &id), CUresult::kNotFound);
  EXPECT_EQ(cu.cuGetExportTable(&table, &id), CUresult::kNotFound);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, AllOf(HasSubstr("sim_tests brings NVIDIA's CUDA runtime"),
                          HasSubstr("linked into the program"), HasSubstr("nvcc -cudart shared")));
  EXPECT_EQ(said.find("brings"), said.rfind("brings")) << "once for each library";
}

/// What a function does first, by name: what follows `CUresult NAME(...) {`.
std::string first_call(const std::string& sources, const std::string& name) {
  const std::size_t at = sources.find("\nCUresult " + name + "(");
  if (at == std::string::npos) return "";
  const std::size_t body = sources.find("{\n", at) + 2;
  std::string statement = sources.substr(body, sources.find('(', body) - body);
  statement.erase(0, statement.find_first_not_of(' '));
  return statement.starts_with("return ") ? statement.substr(7) : statement;
}

TEST(DriverSources, EveryFunctionTurnsExceptionsIntoAnswers) {
  std::string sources;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(
           std::string(TILEWRIGHT_SOURCE_DIR) + "/src/sim/driver")) {
    if (entry.path().extension() != ".cpp") continue;
    std::ostringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    sources += text.str();
  }
  std::set<std::string> guards = {"call", "answer", "call_in_context", "call_in_usable_context"};
  std::set<std::string> names;
#define TILEWRIGHT_ADD(name, version, parameters) names.insert(#name);
  TILEWRIGHT_SIM_FUNCTIONS(TILEWRIGHT_ADD)
#undef TILEWRIGHT_ADD
  // Two helpers that are one guarded call, and functions that compare, copy and return only.
  for (const char* helper : {"set_now", "set_on"}) {
    const std::size_t body = sources.find(std::string("CUresult ") + helper + "(");
    ASSERT_NE(body, std::string::npos) << helper;
    EXPECT_LT(sources.find("return call", body) - body, 400u) << helper;
    guards.insert(helper);
  }
  const std::set<std::string> harmless = {"cuDriverGetVersion", "cuGetErrorName",
                                          "cuGetErrorString", "cuGetExportTable",
                                          "cuGetProcAddress_v2"};
  for (const std::string& name : names) {
    if (harmless.contains(name)) continue;
    const std::string first = first_call(sources, name);
    EXPECT_TRUE(guards.contains(first) || names.contains(first))
        << name << " begins with \"" << first << "\"; let it return call([&] {...}) or answer()";
  }
}

}  // namespace
}  // namespace tilewright::sim::abi
