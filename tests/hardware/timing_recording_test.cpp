// Constants of the simulator's timing model, held to what probes of a GPU took.

#include "base/json.h"
#include "hardware/timing_case.h"
#include "sim/model/device_model.h"
#include "sim/time/time_parameters.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tilewright::hardware {
namespace {

using nlohmann::json;

constexpr double kReadingClock = 14;  ///< of the probe "nothing": two readings and no more

const json& timing_recording() {
  static const json recording =
      read_json(std::string(TILEWRIGHT_TEST_DATA) + "/hardware/h200_timing.json");
  return recording;
}

/// The clock under load, of an H100.
const json& power_recording() {
  static const json recording =
      read_json(std::string(TILEWRIGHT_TEST_DATA) + "/hardware/h100_power.json");
  return recording;
}

/// Shared memory beside products and between CTAs, mma.sync, and dependent launches, of an H100.
const json& shared_recording() {
  static const json recording =
      read_json(std::string(TILEWRIGHT_TEST_DATA) + "/hardware/h100_shared.json");
  return recording;
}

/// mma.sync beside other work, where CTAs go, and cooperative launches, of an H100.
const json& few_tokens_recording() {
  static const json recording =
      read_json(std::string(TILEWRIGHT_TEST_DATA) + "/hardware/h100_few_tokens.json");
  return recording;
}

/// Code that an SM does not hold, and empty launches behind other kernels, of an H100.
const json& code_recording() {
  static const json recording =
      read_json(std::string(TILEWRIGHT_TEST_DATA) + "/hardware/h100_code.json");
  return recording;
}

/// What computes beside products of wgmma at rates that leave room for them, of an H200.
const json& beside_recording() {
  static const json recording =
      read_json(std::string(TILEWRIGHT_TEST_DATA) + "/hardware/h200_beside.json");
  return recording;
}

/// Copies of pages that lie anywhere, with results and without, of boxes of matrices, and loads of
/// the same lines by all SMs, of an H200.
const json& pages_recording() {
  static const json recording =
      read_json(std::string(TILEWRIGHT_TEST_DATA) + "/hardware/h200_pages.json");
  return recording;
}

const json& recorded(const std::string& name) {
  static const auto by_name = [] {
    std::map<std::string, json> probes;
    for (const json* const recording :
         {&timing_recording(), &shared_recording(), &few_tokens_recording(), &code_recording(),
          &pages_recording(), &beside_recording()})
      for (const json& probe : (*recording)["probes"]) probes[probe["name"]] = probe;
    return probes;
  }();
  const auto found = by_name.find(name);
  EXPECT_NE(found, by_name.end()) << name << " was not recorded";
  static const json none;
  return found == by_name.end() ? none : found->second;
}

/// The median of the samples; of lists, of their numbers at `index` (negative: from the end).
double middle(const std::string& name, int index = -1) {
  std::vector<double> values;
  for (const json& sample : recorded(name)["samples"]) {
    if (sample.is_array()) {
      const int size = static_cast<int>(sample.size());
      values.push_back(sample[static_cast<std::size_t>(index < 0 ? size + index : index)]);
    } else {
      values.push_back(sample);
    }
  }
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// Clocks of one operation, without those of reading the clock.
double each(const std::string& name) {
  return (middle(name) - kReadingClock) / recorded(name)["operations"].get<double>();
}

sim::TimeParameters constants() {
  return sim::time_parameters(sim::device_models().front());
}

TEST(TimingRecording, HasTheCasesOfTheTable) {
  for (const char* key : {"device", "driver", "toolkit", "date"}) {
    EXPECT_FALSE(timing_recording()[key].get<std::string>().empty()) << key;
  }
  std::map<std::string, TimingCase> cases;
  for (const TimingCase& timing : timing_cases()) {
    EXPECT_TRUE(cases.emplace(timing.name, timing).second) << timing.name << " is there twice";
  }
  const auto& probes = timing_recording()["probes"];
  const auto& powers = power_recording()["probes"];
  const auto& shared = shared_recording()["probes"];
  const auto& few = few_tokens_recording()["probes"];
  const auto& code = code_recording()["probes"];
  const auto& pages = pages_recording()["probes"];
  const auto& beside = beside_recording()["probes"];
  EXPECT_EQ(probes.size() + powers.size() + shared.size() + few.size() + code.size() +
                pages.size() + beside.size(),
            cases.size())
      << "record again";
  for (const json* const recording : {&probes, &powers, &shared, &few, &code, &pages, &beside}) {
    for (const json& probe : *recording) {
      const auto found = cases.find(probe["name"]);
      ASSERT_NE(found, cases.end()) << probe["name"] << " is in no table; record again";
      EXPECT_EQ(probe["operations"], found->second.operations) << probe["name"];
      EXPECT_EQ(probe["threads"], found->second.threads) << probe["name"];
    }
  }
}

/// What a probe of power says: the median of its samples.
struct Load {
  double mhz = 0, us = 0, rounds = 0;

  /// Two warpgroups multiply for 1024 clocks a round.
  double part_of_products() const { return 1024 * rounds / (mhz * us); }
};

Load load_of(const std::string& name) {
  for (const json& probe : power_recording()["probes"]) {
    if (probe["name"] != "power: " + name) continue;
    std::vector<std::pair<double, double>> samples = probe["samples"];
    std::ranges::sort(samples);
    const auto [mhz, us] = samples[samples.size() / 2];
    return {mhz, us, probe["operations"]};
  }
  ADD_FAILURE() << name << " was not recorded";
  return {};
}

// Behind another kernel an empty one takes 3 to 4 us between two events, whatever its CTAs need. On
// the H200 one of a kernel that reads nothing is recorded.
TEST(TimingRecording, ALaunchBetweenTwoEvents) {
  const sim::TimeParameters p = constants();
  for (const char* ctas : {"132 CTAs of 128 threads, 0 KiB", "132 CTAs of 384 threads, 200 KiB",
                           "264 CTAs of 1024 threads, 0 KiB"}) {
    for (const char* behind : {"other memory", "written memory", "other code"}) {
      EXPECT_NEAR(middle(fmt::format("cold_launch, {}, behind {}", ctas, behind)), 3.35, 0.3)
          << ctas << behind;
    }
  }
  EXPECT_NEAR(middle("memory_stream, HBM, 16 MiB, clean lines") - 1.6, 1e6 * p.launch / p.clock_hz,
              0.1);
}

// Of the lines that were written so many are in L2 as it takes longer to read others.
TEST(TimingRecording, WrittenLinesOfL2GoToHbmFirst) {
  const sim::TimeParameters p = constants();
  for (const auto& [mib, read] :
       {std::pair{64, 34.6e6}, std::pair{256, 242e6}, std::pair{1024, 1073e6}}) {
    const double longer = middle(fmt::format("memory_stream, HBM, {} MiB, dirty lines", mib)) -
                          middle(fmt::format("memory_stream, HBM, {} MiB, clean lines", mib));
    const double written = p.dirty_bytes * (1 - std::exp(-read / p.l2_bytes));
    EXPECT_NEAR(1e6 * written / (p.hbm_bytes_per_clock * p.clock_hz), longer, 1) << mib;
  }
}

// 138 MB more of pages, and with them 4.2 MB of results: what those take beyond their bytes is that
// HBM turns. L2 holds the results of fewer pages until the end.
TEST(TimingRecording, HbmTurnsBetweenReadsAndWrites) {
  const sim::TimeParameters p = constants();
  const auto more = [](const char* kernel) {
    return middle(fmt::format("{}, 32768 of 8448 bytes", kernel)) -
           middle(fmt::format("{}, 16384 of 8448 bytes", kernel));
  };
  constexpr double kRead = 16384.0 * 8448, kWritten = 16384.0 * 256;
  const double turns = std::min(p.hbm_turn * kWritten, p.hbm_turn_part * (kRead + kWritten));
  EXPECT_NEAR(1e6 * (kWritten + turns) / (p.hbm_bytes_per_clock * p.clock_hz),
              more("copy_pages_stores") - more("copy_pages_shuffled"), 0.3);
  // Where pages lie matters little, whatever their size from 2 KiB.
  EXPECT_NEAR(more("copy_pages_shuffled") / more("copy_pages"), 1, 0.03);
  for (const char* const pages : {"65536 of 2048", "32768 of 4096", "8192 of 16384"}) {
    EXPECT_NEAR(middle(fmt::format("copy_pages_shuffled, {} bytes", pages)) /
                    middle(fmt::format("copy_pages, {} bytes", pages)),
                1, 0.06)
        << pages;
  }
}

// Boxes of 64 rows of 128 bytes are as fast from narrow rows as from wide ones.
TEST(TimingRecording, RowsOfMatricesNeedNotLieTogether) {
  const double narrow = middle("copy_boxes, rows of 128 bytes");
  for (const int bytes : {512, 2048, 8192}) {
    EXPECT_NEAR(middle(fmt::format("copy_boxes, rows of {} bytes", bytes)) / narrow, 1, 0.03);
  }
}

/// Of middle(), of samples that are numbers: 1.25 standard deviations, by the quartiles, over the
/// root of their number.
double middle_error(const std::string& name) {
  std::vector<double> values = recorded(name)["samples"];
  std::ranges::sort(values);
  const double quartiles = values[3 * values.size() / 4] - values[values.size() / 4];
  return 1.25 / 1.35 * quartiles / std::sqrt(static_cast<double>(values.size()));
}

// All SMs load the same lines, each after the last one: nearly as long as one SM alone. What the
// reading of the clock and the branch behind the load take is in both recordings; the bound is
// three standard errors of their difference.
TEST(TimingRecording, SmsThatAskForTheSameLinesAllWaitForHbm) {
  const sim::TimeParameters p = constants();
  const std::string hbm = "memory_loads, HBM, 64 MiB, all SMs", l2 = "memory_loads, L2, 24 MiB";
  EXPECT_GT(middle(hbm), 1.9 * middle(l2));
  EXPECT_NEAR(middle(hbm) - middle(l2), p.hbm_shared_latency - p.l2_latency,
              3 * std::hypot(middle_error(hbm), middle_error(l2)));
  EXPECT_LT(p.hbm_shared_latency, p.hbm_latency);
}

// Code that another kernel left no room for takes no less than what is near it; the model has that
// one's time. Lines that come from HBM take six times as long.
TEST(TimingRecording, TheFirstPassOfCodeBehindAnotherKernel) {
  const sim::TimeParameters p = constants();
  for (const char* const sms : {"1 SMs", "132 SMs"}) {
    const std::string name = fmt::format("cold_jumps, 24 of 1 KiB, {}, behind other memory", sms);
    std::vector<double> first;
    const json& samples = recorded(name)["samples"];
    for (std::size_t i = 3; i < samples.size(); i += 3) {  // three passes a launch
      first.push_back(samples[i].get<double>() - samples[i + 2].get<double>());
    }
    std::ranges::sort(first);
    const double lines = 24 * 9;
    EXPECT_GT(first[first.size() / 2] / lines, p.code_line) << sms;
    EXPECT_LT(first[first.size() / 2] / lines, p.code_line_from_l2) << sms;
  }
}

// The recording is of an H100, whose highest clock is the H200's.
TEST(PowerRecording, ProductsLowerTheClock) {
  const sim::TimeParameters p = constants();
  // A round of products takes 1024 clocks, and the clock stays low behind it.
  const auto predicted = [&](double part) {
    const double low = std::min(1.0, part * (1024 + p.tensor_clock_hold) / 1024);
    return 1e-6 *
           (p.clock_hz - low * (p.clock_hz - p.tensor_clock_hz) - part * p.tensor_clock_drop_hz);
  };
  for (const std::string form : {"ss", "rs", "fp8"}) {
    const std::string name = "power_products_" + form;
    EXPECT_NEAR(load_of(name + " of zeros, 2000 rounds").mhz, 1e-6 * p.tensor_clock_hz, 3) << form;
    const Load often = load_of(name + ", 2000 rounds, 100 ns of sleep between");
    EXPECT_GT(often.part_of_products(), 0.8);
    EXPECT_NEAR(often.mhz, predicted(often.part_of_products()), 40) << form;
    const Load rarely = load_of(name + ", 2000 rounds, 3000 ns of sleep between");
    EXPECT_LT(rarely.part_of_products(), 0.15);
    EXPECT_NEAR(rarely.mhz, predicted(rarely.part_of_products()), 25) << form;
    // At the same load others lie up to 100 MHz away: how it alternates is not in the model.
    for (const char* rest : {", 200 rounds", ", 2000 rounds, 300 ns of sleep between"}) {
      const Load load = load_of(name + rest);
      EXPECT_NEAR(load.mhz, predicted(load.part_of_products()), 150) << form << rest;
    }
  }
}

TEST(PowerRecording, OtherUnitsDoNotLowerTheClock) {
  for (const char* name : {"power_ffma, 2000 rounds", "power_ex2, 2000 rounds",
                           "power_lop3, 2000 rounds", "power_shared, 2000 rounds",
                           "reads, 16 MiB, 1000 rounds", "reads, 1024 MiB, 1000 rounds"}) {
    EXPECT_GT(load_of(name).mhz, 1975) << name;
  }
}

// Reading the clock overlaps with the end of the 128 steps: a tenth of a clock of each.
TEST(TimingRecording, LatenciesAndIntervalsOfInstructions) {
  const sim::TimeParameters p = constants();
  EXPECT_NEAR(each("ffma_chain, 1 warps"), p.fma_latency, 0.15);
  EXPECT_NEAR(each("ffma_streams, 4 warps"), p.fma_interval, 0.1);
  EXPECT_NEAR(each("fmin_fmax_chain, 1 warps"), p.alu_latency, 0.15);
  for (const char* name : {"lop3", "prmt", "shf", "fmin_fmax", "cvt_bf16x2", "imad", "i2f"}) {
    EXPECT_NEAR(each(std::string(name) + "_streams, 4 warps"), p.alu_interval, 0.15) << name;
  }
  EXPECT_NEAR(each("ex2_chain, 1 warps"), p.special_latency, 0.3);
  EXPECT_NEAR(each("ex2_streams, 4 warps"), p.special_interval, 0.1);
  EXPECT_NEAR(each("f2i_streams, 4 warps"), p.special_interval, 0.1);
  EXPECT_NEAR(each("shfl_bfly_chain, 1 warps"), p.shuffle_latency, 0.5);
}

TEST(TimingRecording, ASchedulerStartsSharedAccessesAtIntervals) {
  EXPECT_NEAR(each("shared_stores, 1 warps, 4 bytes"), constants().shared_issue, 0.2);
  EXPECT_NEAR(each("shfl_bfly_streams, 1 warps"), constants().shared_issue, 0.2);
}

// The chain of addresses has an addition, of 4 clocks, behind each load.
TEST(TimingRecording, LatenciesOfMemory) {
  const sim::TimeParameters p = constants();
  EXPECT_NEAR(each("shared_load_chain, 1 warps") - 4, p.shared_latency, 1);
  EXPECT_NEAR(each("ldmatrix_chain, 1 warps") - 4, p.matrix_load_latency, 1);
  EXPECT_NEAR(each("l1_chain, 1 warps") - 5, p.l1_latency, 2);
  EXPECT_NEAR(each("remote_chain, 2 CTAs, 1 warps") - 8, p.remote_shared_latency, 10);
  EXPECT_NEAR(each("atomic_chain, 1 warps") - 4, p.atomic_latency, 5);
  // One load: the branch that waits for it is in it.
  EXPECT_NEAR(middle("memory_loads, L2, 2 MiB") - kReadingClock, p.l2_latency, 15);
  EXPECT_NEAR(middle("memory_loads, HBM, 64 MiB") - kReadingClock, p.hbm_latency, 20);
  // Bytes of a clock of one SM, by six copies of 32 KiB more than one has.
  const double more =
      middle("copy_tensor, 6 of 32768 bytes, L2") - middle("copy_tensor, 1 of 32768 bytes, L2");
  EXPECT_NEAR(5 * 32768 / more, p.sm_bytes, 5);
  const double seconds = 1e-6 * middle("copy_stream, 64 KiB an SM, L2");
  EXPECT_NEAR((1 << 30) / seconds / 1.98e9, p.l2_bytes_per_clock, 100);
}

TEST(TimingRecording, TensorCores) {
  const sim::TimeParameters p = constants();
  for (const int n : {64, 128, 256}) {
    const std::string name = "wgmma_ss_n" + std::to_string(n) + "_x1, 1 warpgroups";
    EXPECT_NEAR(middle(name) - n / 2.0, p.wgmma_tail, 2) << n;
  }
  // Marks: each product is accepted p.wgmma_issue after the last one, until the queue is full.
  const std::string marks = "wgmma_marks_ss_n128, 1 warpgroups";
  const int queued = static_cast<int>(p.wgmma_queued);
  for (int i = 1; i + 1 < queued; ++i) {
    EXPECT_NEAR(middle(marks, i) - middle(marks, i - 1), p.wgmma_issue, 3) << i;
  }
  for (int i = queued; i < 16; ++i) {
    EXPECT_NEAR(middle(marks, i) - middle(marks, i - 1), 64, 3) << i;
  }
}

// 2048 instructions of a warp while 16 groups of 8 products run: `rest` of them come after the
// products' end, at their own rate.
double interval_beside(const std::string& instruction, int group) {
  const std::string name = "wgmma_beside_" + instruction + "_ss_n128, 1 other warpgroups, ";
  const double own = middle(name + "no products", group) / 2048;
  const double products = middle(name + "products", 0), all = middle(name + "products", group);
  const double rest = std::max(0.0, (all - products) / own);
  return std::min(all, products) / (2048 - rest) / own;
}

TEST(TimingRecording, WhatProductsLeaveOfOtherUnits) {
  const sim::TimeParameters p = constants();
  EXPECT_NEAR(interval_beside("fmin_fmax", 1), p.alu_beside_products, 0.1);
  EXPECT_NEAR(interval_beside("cvt_bf16x2", 1), p.alu_beside_products, 0.1);
  EXPECT_NEAR(interval_beside("ex2", 1), p.special_beside_products, 0.05);
}

// Two warps of a scheduler beside products without pauses: one instruction of a softmax in three
// clocks, an exponential in ten, and products are not late. FMA of each clock stops them.
TEST(BesideRecording, ASchedulerIssuesInEachThirdClock) {
  const sim::TimeParameters p = constants();
  const auto name = [](const std::string& steps, int others, const std::string& products) {
    return fmt::format("wgmma_paced_{}_ss_n128, {} other warpgroups, {}", steps, others, products);
  };
  const auto interval = [&](const std::string& steps) {
    const std::string both = name(steps, 2, "products");
    return middle(both) / recorded(both)["operations"].get<double>() / 2;
  };
  const auto late = [&](const std::string& steps) {
    return middle(name(steps, 2, "products"), 0) - middle(name(steps, 0, "products"), 0);
  };
  EXPECT_NEAR(interval("softmax_x8"), 3, 0.1);
  EXPECT_LT(late("softmax_x8"), 0.01 * middle(name("softmax_x8", 2, "products"), 0));
  // A step and one of FMA: two for each exponential
  EXPECT_NEAR(2 * interval("ffma_ex2_x8"), p.special_interval * p.special_beside_products, 0.3);
  EXPECT_NEAR(late("ffma_x4") / middle(name("ffma_x4", 2, "products"), 1), 1, 0.02);
}

TEST(TimingRecording, BarriersAndFences) {
  const sim::TimeParameters p = constants();
  for (const int warps : {1, 4, 8, 12, 16, 32}) {
    EXPECT_NEAR(each("cta_barrier, " + std::to_string(warps) + " warps"),
                p.barrier_release + p.barrier_per_warp * warps, 1.5)
        << warps;
  }
  // To the consumer and back, and some 12 clocks of code on both ways.
  EXPECT_NEAR(each("hand_over, 2 warps") / 2 - 12,
              p.mbarrier_issue + p.mbarrier_arrival + p.mbarrier_wake, 10);
  EXPECT_NEAR(each("ready_waits, 1 warps") - 5, p.mbarrier_ready, 3);
  EXPECT_NEAR(each("set_registers, 4 warps") / 2, p.set_registers, 3);
  EXPECT_NEAR(each("gpu_fence, 1 warps"), p.memory_fence, 5);
  EXPECT_NEAR(each("proxy_fence, 1 warps"), p.proxy_fence, 2);
  const double relaxed = each("cluster_barrier_relaxed, 2 CTAs, 4 warps");
  // What is issued around them is played beside: 20 clocks, and 48 with the fence.
  EXPECT_NEAR(relaxed - 20, p.cluster_release, 5);
  const double fence = each("cluster_barrier, 2 CTAs, 4 warps") - relaxed;
  EXPECT_NEAR(fence - 48, p.memory_fence_alone, 5);
  const double fence_of_12 =
      each("cluster_barrier, 2 CTAs, 12 warps") - each("cluster_barrier_relaxed, 2 CTAs, 12 warps");
  EXPECT_NEAR((fence_of_12 - fence) / 8, p.fence_interval, 0.5);
}

// Bytes between CTAs of a cluster, and what one warp stores before it has to wait.
TEST(SharedRecording, StoresAndLoadsOfOtherCtas) {
  const sim::TimeParameters p = constants();
  constexpr double kBytes = 32 * 512;  // of a warp
  EXPECT_NEAR(8 * kBytes / middle("remote_stores, 2 CTAs, 8 warps"), p.remote_store_bytes, 1);
  EXPECT_NEAR(8 * kBytes / middle("remote_loads, 2 CTAs, 8 warps"), p.remote_load_bytes, 0.5);
  EXPECT_GT(p.remote_stores_queued, 0);
  EXPECT_LT((kBytes - p.remote_stores_queued) / p.remote_store_bytes,
            middle("remote_stores, 2 CTAs, 1 warps"));
}

TEST(SharedRecording, MmaSync) {
  const sim::TimeParameters p = constants();
  EXPECT_NEAR(each("mma_sync_x1, 1 warps"), p.mma_sync_latency, 1);
  // Three warps of a scheduler; wgmma's rate is one in 4 clocks.
  EXPECT_NEAR(each("mma_sync_x8, 12 warps") / 3, 4 * p.mma_sync_interval_scale, 0.3);
}

// What 128 products beside a stream of loads add to it: a wavefront for 128 bytes of B, and 16 for
// A, once for 128 columns. From registers they take as much.
TEST(SharedRecording, ProductsTakeWavefronts) {
  const auto added = [](const std::string& form) {
    const std::string name = "wgmma_beside_load16_" + form + ", 2 other warpgroups, ";
    return (middle(name + "products") - middle(name + "no products")) / 128;
  };
  EXPECT_NEAR(added("ss_n64"), 32, 4);
  EXPECT_NEAR(added("ss_n128"), 48, 4);
  EXPECT_NEAR(added("ss_n256"), 96, 4);
  EXPECT_NEAR(added("rs_n128"), 48, 4);
  EXPECT_NEAR(added("fp8_n128"), 48, 4);
}

TEST(SharedRecording, DependentLaunchesBeginBesideTheOneBefore) {
  const sim::TimeParameters p = constants();
  const auto clocks = [](int blocks, int before, int cluster = 1) {
    const std::string name = fmt::format(
        "graph of 100 dependent launches, {} large CTAs in clusters of {}, "
        "{} clocks before the wait and 4000 behind",
        blocks, cluster, before);
    for (const json& launch : shared_recording()["launches"]) {
      if (launch["name"] != name) continue;
      std::vector<double> samples = launch["samples"];
      std::ranges::sort(samples);
      return samples[samples.size() / 2] / launch["operations"].get<double>() * 1980;
    }
    ADD_FAILURE() << name << " was not recorded";
    return 0.0;
  };
  EXPECT_NEAR(clocks(132, 4000) - 8000, p.dependent_start, 30);
  EXPECT_NEAR(clocks(32, 8000), clocks(32, 0), 120);  // with room all of it is hidden
  EXPECT_NEAR(clocks(64, 4000, 2), clocks(32, 0), 120);
  EXPECT_GT(clocks(64, 4000, 4), clocks(32, 0) + 1000);
  EXPECT_NEAR(clocks(32, 0) - 4000, p.graph_launch - p.dependent_gain, 60);
}

// In a graph of launches that leave room for a second CTA on their SM: the most of one SM, in the
// launches behind the first.
TEST(FewTokensRecording, DependentLaunchesShareSmsWhereNotAllAreFree) {
  const auto most = [](int blocks, int cluster, const char* how) {
    const json& samples = recorded(fmt::format(
        "places of {} CTAs in clusters of {}, two to an SM{}", blocks, cluster, how))["samples"];
    return samples.back()[1].get<double>();
  };
  for (const int cluster : {1, 2, 4, 8}) {
    EXPECT_EQ(most(32, cluster, ""), 1);
    EXPECT_EQ(most(32, cluster, ", dependent launches"), 1);
    for (const int blocks : {104, 120}) {
      EXPECT_EQ(most(blocks, cluster, ""), 1) << blocks;
      EXPECT_EQ(most(blocks, cluster, ", dependent launches"), 2) << blocks;
    }
  }
}

// 2048 steps of four warps beside 1024 products each of four others.
TEST(FewTokensRecording, MmaSyncAndOthersHoldEachOtherUp) {
  const sim::TimeParameters p = constants();
  const double products = middle("mma_sync_beside_lop3, 0 other warpgroups, products");
  const auto beside = [](const std::string& step, const char* what, int group) {
    return middle("mma_sync_beside_" + step + ", 1 other warpgroups, " + what, group);
  };
  const auto slower = [&](const std::string& step) {
    return beside(step, "products", 1) / beside(step, "no products", 1);
  };
  EXPECT_NEAR(slower("ffma"), p.fma_beside_mma_sync, 0.05);
  EXPECT_NEAR((beside("ffma", "products", 0) - products) / 2048, p.fma_delays_mma_sync, 0.05);
  for (const char* step : {"lop3", "prmt", "imad", "mul_bf16x2"}) {
    EXPECT_NEAR(slower(step), p.alu_beside_mma_sync, 0.08) << step;
    EXPECT_NEAR((beside(step, "products", 0) - products) / 2048, p.alu_delays_mma_sync, 0.12)
        << step;
  }
}

double mean_of(const std::string& name) {
  double sum = 0;
  const json& samples = recorded(name)["samples"];
  for (const json& sample : samples) sum += sample.back().get<double>();
  return sum / static_cast<double>(samples.size());
}

// From HBM a copy takes as much longer than from L2 as its last line. Means of 48 copies, whose
// standard errors are up to 40 clocks.
TEST(TimingRecording, TheLastOfManyLinesIsLate) {
  const sim::TimeParameters p = constants();
  for (const int bytes : {256, 1024, 4096, 16384, 32768}) {
    double later = 0;
    for (const char* kernel : {"copy_tensor_prefetched", "copy_plain"}) {
      const std::string name = fmt::format("{}, 1 of {} bytes, ", kernel, bytes);
      later += (mean_of(name + "HBM") - mean_of(name + "L2")) / 2;
    }
    const double expected = p.hbm_latency - p.l2_latency + p.hbm_spread * std::log2(bytes / 128.0);
    EXPECT_NEAR(later, expected, 120) << bytes;
  }
}

// Straight code that is longer than what an SM holds of it; 512 instructions to 8 KiB.
TEST(TimingRecording, CodeThatIsFetchedAgainAndAgain) {
  const sim::TimeParameters p = constants();
  EXPECT_NEAR(each("cold_code, 64 KiB") * 8, p.code_line, 1.5);
  EXPECT_NEAR(each("cold_code, 256 KiB") * 8, p.code_line_from_l2, 4);
}

TEST(TimingRecording, CopiesAndLaunches) {
  const sim::TimeParameters p = constants();
  // Issue and the bytes of the box are part of it; the wait ends as any other does.
  const double copy = middle("copy_tensor, 1 of 256 bytes, L2") - kReadingClock;
  EXPECT_NEAR(copy, p.copy_issue + p.l2_latency + p.copy_latency + p.mbarrier_wake, 25);
  const json& first = recorded("copy_tensor, 1 of 16384 bytes, L2")["samples"][0];
  EXPECT_NEAR(first.back().get<double>() - middle("copy_tensor, 1 of 16384 bytes, L2"),
              p.copy_first_use, 10);
  for (const char* threads : {"128", "384", "1024"}) {
    EXPECT_NEAR(
        middle(std::string("cta_times, ") + threads + " threads, 204800 bytes of shared memory"),
        p.cta_start, 10);
  }
  std::map<std::string, double> launches;
  for (const json& launch : timing_recording()["launches"]) {
    std::vector<double> samples = launch["samples"];
    std::ranges::sort(samples);
    launches[launch["name"]] =
        samples[samples.size() / 2] / launch["operations"].get<double>() * 1980;
  }
  EXPECT_NEAR(launches["graph of 100 launches"], p.graph_launch, 20);
  EXPECT_NEAR(launches["graph of 100 launches"] - launches["graph of 100 dependent launches"],
              p.dependent_gain, 20);
}

}  // namespace
}  // namespace tilewright::hardware
