// The CUDA runtime as programs meet it: compiled by nvcc from program.cu, linked with -cudart
// shared, and run with the simulator's libraries.
#include "tests/base/scoped_folder.h"

#include <array>
#include <cstdio>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

namespace tilewright::sim {
namespace {

struct Outcome {
  int status = -1;
  std::string text;  ///< standard output and error
};

Outcome run(const std::string& program, const std::string& variables = "") {
  const std::string folder(TILEWRIGHT_SIM_FOLDER);
  const std::string command = "LD_LIBRARY_PATH=" + folder + " TILEWRIGHT_SIM_DEVICE=h200 " +
                              variables + " " TILEWRIGHT_RUNTIME_PROGRAMS "/" + program + " 2>&1";
  Outcome outcome;
  FILE* const pipe = popen(command.c_str(), "r");
  std::array<char, 4096> buffer{};
  while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) outcome.text += buffer.data();
  const int status = pclose(pipe);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

/// The programs of runtime_programs.cmake.
class CudartOnSim : public ::testing::Test {
 protected:
  void SetUp() override {
#ifndef TILEWRIGHT_HAS_RUNTIME_PROGRAMS
    GTEST_SKIP() << "programs of nvcc run with the release build only";
#endif
  }
};

class CudartProgramOnSim : public CudartOnSim, public ::testing::WithParamInterface<const char*> {};

TEST_P(CudartProgramOnSim, RunsWithoutAFailure) {
  const Outcome outcome = run(GetParam(), "TILEWRIGHT_SIM_CHECK=all");
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_THAT(outcome.text, testing::HasSubstr("0 failures\n"));
  EXPECT_THAT(outcome.text,
              testing::HasSubstr("sim: cudaMallocArray is not supported by the simulator's CUDA"));
}
INSTANTIATE_TEST_SUITE_P(Nvcc, CudartProgramOnSim,
                         ::testing::Values("program", "program_per_thread",
                                           "program_uncompressed"));

TEST_F(CudartOnSim, Example) {
  const Outcome outcome = run("vector_add", "TILEWRIGHT_SIM_CHECK=all");
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_EQ(outcome.text, "NVIDIA H200 (simulated): 10000 numbers, total 49994: right\n");
}

TEST_F(CudartOnSim, MachineCodeAloneIsRefusedWithTheRemedy) {
  const Outcome outcome = run("vector_add_machine_code");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.text, testing::HasSubstr("holds no PTX"));
  EXPECT_THAT(outcome.text, testing::HasSubstr("-gencode arch=compute_90a,code=compute_90a"));
  EXPECT_THAT(outcome.text, testing::HasSubstr("no kernel image is available for execution"));
}

TEST_F(CudartOnSim, NvidiasOwnRuntimeIsNamedWithTheRemedy) {
  const Outcome outcome = run("vector_add_static");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.text, testing::HasSubstr("vector_add_static brings NVIDIA's CUDA runtime"));
  EXPECT_THAT(outcome.text, testing::HasSubstr("link with nvcc -cudart shared"));
}

/// `vector_add` runs with our runtime; what is loaded with it brings another.
TEST_F(CudartOnSim, TheLibraryThatBringsNvidiasRuntimeIsNamed) {
  const auto run_with = [](const std::string& library) {
    return run("vector_add", "LD_PRELOAD=" TILEWRIGHT_RUNTIME_PROGRAMS "/" + library).text;
  };
  EXPECT_THAT(run_with("libstatic.so"),
              testing::AllOf(testing::HasSubstr("/libstatic.so brings NVIDIA's CUDA runtime"),
                             testing::HasSubstr("a build of libstatic.so with nvcc -cudart shared"),
                             testing::HasSubstr("by the driver API")));
  EXPECT_THAT(run_with("libcudart.so.12"),
              testing::AllOf(testing::HasSubstr("/libcudart.so.12 brings NVIDIA's CUDA runtime"),
                             testing::HasSubstr("put LD_PRELOAD=" TILEWRIGHT_SIM_FOLDER
                                                "/libcudart.so.13 before the command")));
}

}  // namespace
}  // namespace tilewright::sim
