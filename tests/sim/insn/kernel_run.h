// Runs small PTX kernels on the simulated device.
#pragma once

#include "sim/machine.h"
#include "sim/parse/parser.h"

#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace tilewright::sim {

/// One device with one kernel named "k", whose parameters are 64-bit numbers.
class KernelRun {
 public:
  explicit KernelRun(const std::string& body, Options options = {})
      : machine_(*find_device_model("h200"), [&] {
          options.num_threads = 1;
          return options;
        }()) {
    const std::string text =
        ".version 8.5\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p0, .param "
        ".u64 p1, .param .u64 p2, .param .align 64 .b8 map[128])\n{\n"
        ".reg .b16 %h<32>; .reg .b32 %r<320>; .reg .b64 %rd<32>; .reg .f32 %f<160>; .reg .pred "
        "%p<8>;\nld.param.u64 %rd0, [p0]; ld.param.u64 %rd1, [p1]; ld.param.u64 %rd2, [p2];\n"
        "mov.u32 %r0, %tid.x;\n" +
        body + "\nret;\n}\n";
    launch_.module = machine_.load(parse_module(text, "k.ptx"));
    launch_.kernel = "k";
    launch_.params.resize(256);
    problem_ = launch_.module->kernels().at(0).problem;
    param_bytes_ = launch_.module->kernels().at(0).param_bytes;
    if (problem_.empty()) map_offset_ = launch_.module->kernels().at(0).params.at(3).offset_bytes;
  }

  template <class T>
  T* allocate(std::size_t count) {
    const std::uint64_t address = machine_.memory().allocate(count * sizeof(T), "test");
    std::memset(reinterpret_cast<void*>(address), 0, count * sizeof(T));
    return reinterpret_cast<T*>(address);
  }

  /// Of Options::report_path "memory".
  std::string take_report() { return machine_.take_report(); }
  std::byte* map() { return launch_.params.data() + map_offset_; }
  GlobalMemory& memory() { return machine_.memory(); }
  const std::string& problem() const { return problem_; }

  std::optional<Fault> run(const void* p0, const void* p1 = nullptr, const void* p2 = nullptr,
                           std::uint32_t threads = 32, std::uint32_t cluster = 1) {
    EXPECT_EQ(problem_, "");
    if (!problem_.empty()) return Fault{FaultKind::kInternal, problem_};
    const std::uint64_t values[] = {reinterpret_cast<std::uint64_t>(p0),
                                    reinterpret_cast<std::uint64_t>(p1),
                                    reinterpret_cast<std::uint64_t>(p2)};
    std::memcpy(launch_.params.data(), values, sizeof values);
    launch_.params.resize(param_bytes_);
    launch_.block = {threads, 1, 1};
    launch_.grid = launch_.cluster = {cluster, 1, 1};
    return machine_.launch(launch_);
  }

  void run_well(const void* p0, const void* p1 = nullptr, const void* p2 = nullptr,
                std::uint32_t threads = 32, std::uint32_t cluster = 1) {
    const auto fault = run(p0, p1, p2, threads, cluster);
    EXPECT_FALSE(fault.has_value()) << (fault ? fault->message : "");
  }

 private:
  Machine machine_;
  Launch launch_;
  std::string problem_;
  std::uint32_t param_bytes_ = 0, map_offset_ = 0;
};

}  // namespace tilewright::sim
