// Machine code of a cubin, against what nvdisasm says of it; and cubins that are none.
#include "sim/time/machine_code.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "sim/machine.h"
#include "sim/parse/parser.h"
#include "sim/time/machine_units.h"

#include <cstring>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string read_golden_file(const std::string& name) {
  const MappedFile file(std::string(TILEWRIGHT_TEST_DATA) + "/machine_code/" + name);
  return std::string(file.text());
}

std::string golden_cubin() {
  return read_golden_file("chain.cubin");
}

std::vector<MachineInsn> read_chain(const std::string& cubin, std::string_view kernel = "chain") {
  return read_machine_code(std::as_bytes(std::span(cubin)), kernel);
}

struct Listed {
  std::uint32_t line = 0;
  std::string name;  ///< "FFMA", without predicate and modifiers
};

std::vector<Listed> listing() {
  std::istringstream in(read_golden_file("chain.txt"));
  std::vector<Listed> out;
  for (std::string text; std::getline(in, text);) {
    std::istringstream words(text);
    std::string offset, name;
    Listed& listed = out.emplace_back();
    words >> offset >> listed.line >> name;
    if (name.starts_with('@')) words >> name;
    listed.name = name.substr(0, name.find('.'));
  }
  return out;
}

TEST(MachineCode, HasTheInstructionsAndLinesThatNvdisasmShows) {
  const std::vector<MachineInsn> code = read_chain(golden_cubin());
  const std::vector<Listed> listed = listing();
  ASSERT_EQ(code.size(), listed.size());
  std::map<std::string, std::uint16_t> opcodes;
  for (std::size_t i = 0; i < code.size(); ++i) {
    EXPECT_EQ(code[i].line, listed[i].line) << i;
    const auto [known, is_new] = opcodes.try_emplace(listed[i].name, code[i].opcode);
    EXPECT_EQ(known->second, code[i].opcode) << i << ' ' << listed[i].name;
  }
  const std::map<std::string, MachineKind> kinds = {
      {"LDS", MachineKind::kShared},   {"STS", MachineKind::kShared},
      {"LDG", MachineKind::kGlobal},   {"STG", MachineKind::kGlobal},
      {"SHFL", MachineKind::kShuffle}, {"MUFU", MachineKind::kSpecial},
      {"BAR", MachineKind::kBarrier},  {"FFMA", MachineKind::kOther}};
  for (std::size_t i = 0; i < code.size(); ++i) {
    const auto kind = kinds.find(listed[i].name);
    if (kind == kinds.end()) continue;
    EXPECT_EQ(machine_kind(code[i]), kind->second) << listed[i].name;
  }
}

// A sum of products takes four clocks, which ptxas writes down; a load says by a counter when it is
// there, and the first that needs it waits for that counter.
TEST(MachineCode, StallsAndCountersAreThoseOfAChain) {
  const std::vector<MachineInsn> code = read_chain(golden_cubin());
  const std::vector<Listed> listed = listing();
  int num_chained = 0;
  for (std::size_t i = 0; i + 1 < code.size(); ++i) {
    if (listed[i].name == "FFMA" && listed[i + 1].name == "FFMA") {
      EXPECT_EQ(code[i].stall, 4) << i;
      ++num_chained;
    }
    const bool is_variable = listed[i].name == "MUFU" || listed[i].name == "SHFL";
    if (!is_variable) continue;
    ASSERT_LT(code[i].write_counter, 6) << i;
    // The chain goes on with the next FFMA, SHFL or STS.
    EXPECT_TRUE(code[i + 1].wait_mask >> code[i].write_counter & 1)
        << i << ' ' << listed[i + 1].name;
  }
  EXPECT_GE(num_chained, 12);
}

void expect_refused(const std::string& cubin, std::string_view kernel, const std::string& what) {
  try {
    read_chain(cubin, kernel);
    FAIL() << "read";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kParseError);
    EXPECT_THAT(error.what(), StartsWith("cubin: "));
    EXPECT_THAT(error.what(), HasSubstr(what));
  }
}

TEST(MachineCode, SaysWhatIsWrongWithACubin) {
  const std::string good = golden_cubin();
  expect_refused("", "chain", "the file ends after 0 bytes, 4 are needed");
  expect_refused("no cubin", "chain", "it does not begin as an ELF file does");
  expect_refused(good, "other", "it has no kernel other");
  expect_refused(good.substr(0, good.size() / 2), "chain", "its section table is said to be");
  std::string other = good;
  other[0x12] = 62;
  expect_refused(other, "chain", "it is for machine 62; 190 is a GPU");
  std::string without = good;
  without.replace(without.find(".nv_debug_line_sass"), 4, ".xyz");
  expect_refused(without, "chain", "it has no lines of PTX");
}

// Some 20 ms.
TEST(MachineCode, AnyBytesAreReadOrRefused) {
  const std::string good = golden_cubin();
  std::mt19937 random(7);
  int num_refused = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string bytes = good.substr(0, i % 4 == 0 ? random() % good.size() : good.size());
    for (unsigned n = random() % 6; n > 0 && !bytes.empty(); --n) {
      // Half of them where tables are: at the beginning and the end.
      const std::size_t from = random() % 2 == 0
                                   ? random() % bytes.size()
                                   : bytes.size() - 1 - random() % (bytes.size() / 3 + 1);
      bytes[from] = static_cast<char>(random() % 3 == 0 ? 0xff : random());
    }
    try {
      read_chain(bytes);
    } catch (const Error& error) {
      ++num_refused;
      ASSERT_EQ(error.kind(), ErrorKind::kParseError) << error.what();
      ASSERT_THAT(error.what(), StartsWith("cubin: "));
    }
  }
  EXPECT_GT(num_refused, 1000);
}

/// What is predicted for a golden kernel with so many turns of its loop, by its cubin or (empty) by
/// PTX.
nlohmann::json predict_golden(const std::string& kernel, const DeviceModel& model,
                              std::uint32_t turns, const std::string& cubin,
                              std::uint32_t threads = 32, std::uint32_t cluster = 1) {
  Options options;
  options.checks = parse_checks("none");
  options.report_path = "memory";
  options.has_time = true;
  Machine machine(model, options);
  const std::uint64_t data = machine.memory().allocate(4096, "data");
  std::memset(reinterpret_cast<void*>(data), 0, 4096);
  Module module = parse_module(read_golden_file(kernel + ".ptx"), kernel + ".ptx");
  if (!cubin.empty()) module.cubin = std::make_shared<const std::string>(cubin);
  Launch launch;
  launch.module = machine.load(std::move(module));
  launch.kernel = kernel;
  launch.block.x = threads;
  launch.grid.x = launch.cluster.x = cluster;
  launch.params.resize(12);
  std::memcpy(launch.params.data(), &data, 8);
  std::memcpy(launch.params.data() + 8, &turns, 4);
  const auto fault = machine.launch(launch);
  EXPECT_FALSE(fault) << fault->message;
  return parse_json(machine.take_report(), "report")["kernels"][0]["predicted"];
}
nlohmann::json predict_chain(std::uint32_t turns, const std::string& cubin) {
  return predict_golden("chain", device_models().front(), turns, cubin);
}

// A turn is a load, four sums of 4 clocks, an exponential, a shuffle and a store; ptxas keeps the
// value in a register where it unrolls, without the load. Both ways see the chain of at least 16
// clocks of sums and two results by counters.
TEST(MachineCode, IsPlayedInThePlaceOfPtx) {
  const auto clocks = [](const std::string& cubin) {
    const nlohmann::json few = predict_chain(100, cubin), many = predict_chain(300, cubin);
    EXPECT_EQ(few["costs_from"], cubin.empty() ? "PTX" : "machine code");
    return (many["us"].get<double>() - few["us"].get<double>()) * 1980 / 200;
  };
  const double by_machine = clocks(golden_cubin()), by_ptx = clocks("");
  EXPECT_GT(by_machine, 16 + 2 * 15);
  EXPECT_LT(by_machine, 16 + 29 + 19 + 30 + 40);
  EXPECT_NEAR(by_machine / by_ptx, 1, 0.5);
}

// A warp loads 4 x 32 columns of its 32 lanes, 16 KiB at 53 bytes a clock, adds them, and stores 4
// KiB at 97. By PTX the four loads wait once for their latency; ptxas has the third and the fourth
// in the registers of the second, so there are three, and one of the store.
TEST(MachineCode, TensorMemoryIsOnePortForAQuarterOfItsLanes) {
  const std::string cubin = read_golden_file("tensor.cubin");
  std::map<MachineKind, int> count;
  int num_pairs = 0;
  for (const MachineInsn& insn : read_chain(cubin, "tensor")) {
    ++count[machine_kind(insn)];
    num_pairs += insn.opcode == 0x4b;  // FADD2
  }
  EXPECT_EQ(count[MachineKind::kTensorMemory], 4 + 4 + 1);
  EXPECT_EQ(num_pairs, 48);
  const auto found = std::ranges::find(device_models(), "b200", &DeviceModel::key);
  ASSERT_NE(found, device_models().end());
  const auto clocks = [&](const std::string& code) {
    const nlohmann::json few = predict_golden("tensor", *found, 10, code);
    const nlohmann::json many = predict_golden("tensor", *found, 60, code);
    EXPECT_EQ(few["costs_from"], code.empty() ? "PTX" : "machine code");
    return (many["us"].get<double>() - few["us"].get<double>()) * 1965 / 50;
  };
  constexpr double kPort = 4 * 4096 / 53.0 + 4096 / 97.0;
  constexpr double kLatency = 160, kSums = 48 * 2, kRest = 40;  // kRest: issue, branch
  const double by_ptx = clocks(""), by_machine = clocks(cubin);
  EXPECT_GT(by_ptx, kPort + 2 * kLatency);
  EXPECT_LT(by_ptx, kPort + 2 * kLatency + 2 * kSums + kRest);  // chains of three
  EXPECT_GT(by_machine, kPort + 4 * kLatency);
  EXPECT_LT(by_machine, kPort + 4 * kLatency + kSums + kRest);
}

// The arrival at a cluster's barrier is a fence and an arrival, on one line. On an H200 a turn
// takes 364 clocks with the fence, 82 without ("cluster_barrier, 2 CTAs, 4 warps").
TEST(MachineCode, TheFenceBeforeAnArrivalIsPlayed) {
  const std::string cubin = read_golden_file("meeting.cubin");
  const auto clocks = [&](std::uint32_t turns) {
    const nlohmann::json predicted =
        predict_golden("meeting", device_models().front(), turns, cubin, 128, 2);
    EXPECT_EQ(predicted["costs_from"], "machine code");
    return predicted["us"].get<double>() * 1980;
  };
  EXPECT_NEAR((clocks(300) - clocks(100)) / 200, 364, 30);
}

// 32 exponentials of 8 clocks, one lane's arrival, 96 products. PTX branches around the arrival;
// machine code has a predicate, and the products between the exponentials: they take no time of
// their own. One block behind the other would take 256 + 96 clocks.
TEST(MachineCode, BlocksWithoutAJumpBetweenThemAreMixed) {
  const std::string cubin = read_golden_file("mixed.cubin");
  std::vector<MachineInsn> code = read_chain(cubin, "mixed");
  constexpr std::uint16_t kFmul = 0x20, kMufu = 0x108;
  const auto is_of = [](std::uint16_t opcode) {
    return [opcode](const MachineInsn& insn) { return insn.opcode == opcode; };
  };
  const auto first = std::ranges::find_if(code, is_of(kMufu));
  const auto last = std::find_if(code.rbegin(), code.rend(), is_of(kMufu)).base();
  EXPECT_EQ(std::count_if(first, last, is_of(kFmul)), 96);
  EXPECT_TRUE(std::none_of(first, last, is_jump));
  const auto clocks = [&](std::uint32_t turns) {
    const nlohmann::json predicted = predict_golden("mixed", device_models().front(), turns, cubin);
    EXPECT_EQ(predicted["costs_from"], "machine code");
    return predicted["us"].get<double>() * 1980;
  };
  const double turn = (clocks(300) - clocks(100)) / 200;
  EXPECT_GT(turn, 32 * 8 - 1);
  EXPECT_LT(turn, 32 * 8 + 96 / 2);
}

TEST(MachineCode, ThatCannotBeReadIsTold) {
  const nlohmann::json predicted = predict_chain(10, "no cubin at all");
  EXPECT_EQ(predicted["costs_from"], "PTX (cubin: it does not begin as an ELF file does)");
  EXPECT_GT(predicted["us"], 0);
}

}  // namespace
}  // namespace tilewright::sim
