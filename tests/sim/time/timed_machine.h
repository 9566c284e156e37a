// Kernels of a loop, and a simulated device that predicts how long they take.
#pragma once

#include "base/json.h"
#include "sim/machine.h"
#include "sim/parse/parser.h"
#include "sim/report/report.h"

#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tilewright::sim {

using nlohmann::json;

inline constexpr int kTimedRepeats = 64, kTimedLoops = 20;
inline constexpr double kTimedCount = kTimedRepeats * kTimedLoops;

/// A loop over `body`, which stands in it many times. {} is the number of the repetition.
inline std::string timed_kernel(const std::string& body, const std::string& prologue = "") {
  std::string text = R"(.version 8.7
.target sm_90a
.address_size 64
.visible .entry timed(.param .u64 data)
{
  .reg .pred %p;
  .reg .b32 %r<9>, %i;
  .reg .f32 %f<9>, %g<65>;
  .reg .b64 %rd<4>;
  .shared .align 128 .b8 tile[8192];
  ld.param.u64 %rd0, [data];
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, tile;
  mov.f32 %f0, 0f3F800000;
  mov.f32 %f1, 0f3F800000;
  mov.u32 %i, 0;
)";
  text += prologue + "LOOP:\n";
  for (int i = 0; i < kTimedRepeats; ++i) text += fmt::format(fmt::runtime(body), i) + "\n";
  return text + fmt::format(R"(
  add.u32 %i, %i, 1;
  setp.lt.u32 %p, %i, {};
  @%p bra LOOP;
  add.f32 %f0, %f0, %g0;
  st.global.f32 [%rd0], %f0;
  ret;
}}
)",
                            kTimedLoops);
}

class TimedMachine {
 public:
  explicit TimedMachine(const std::string& ideal = "", std::uint32_t sample = 0,
                        const std::string& timeline = "", std::uint64_t bytes_before = 0,
                        std::uint64_t bytes = 1 << 20)
      : machine_(device_models().front(), options(ideal, sample, timeline)) {
    if (bytes_before != 0) machine_.memory().allocate(bytes_before, "before");
    data_ = machine_.memory().allocate(bytes, "data");
    std::memset(reinterpret_cast<void*>(data_), 0, bytes);
  }

  json run(const std::string& ptx, std::uint32_t threads, std::uint32_t ctas = 1,
           bool is_cooperative = false, bool is_in_graph = false, std::uint32_t shared_bytes = 0) {
    Launch launch;
    launch.dynamic_shared_bytes = shared_bytes;
    launch.is_cooperative = is_cooperative;
    launch.is_in_graph = is_in_graph;
    launch.module = machine_.load(parse_module(ptx, "timed.ptx"));
    launch.kernel = "timed";
    launch.grid.x = ctas;
    launch.block.x = threads;
    launch.params.resize(8);
    std::memcpy(launch.params.data(), &data_, 8);
    const auto fault = machine_.launch(launch);
    EXPECT_FALSE(fault) << fault->message;
    return parse_json(machine_.take_report(), "report")["kernels"][0];
  }

  /// Of one CTA, without the launch.
  double clocks(const std::string& ptx, std::uint32_t threads) {
    const json predicted = run(ptx, threads)["predicted"];
    return (predicted["us"].get<double>() - predicted["launch_us"].get<double>()) * 1980;
  }

  const std::uint32_t* words() const { return reinterpret_cast<const std::uint32_t*>(data_); }

 private:
  static Options options(const std::string& ideal, std::uint32_t sample,
                         const std::string& timeline) {
    Options options;
    options.checks = parse_checks("none");
    options.report_path = "memory";
    options.has_time = true;
    options.time_sample = sample;
    options.ideal_units = ideal;
    options.timeline_path = timeline;
    return options;
  }

  Machine machine_;
  std::uint64_t data_ = 0;
};

}  // namespace tilewright::sim
