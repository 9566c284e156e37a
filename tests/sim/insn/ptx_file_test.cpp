// Runs every program of tests/ptx and compares its results bit by bit (ptx_case.h).
#include "sim/check/observer.h"
#include "sim/machine.h"
#include "sim/parse/parser.h"
#include "sim/program/code.h"
#include "sim/program/insn_lookup.h"
#include "tests/sim/insn/ptx_case.h"
#include "tests/sim/insn/ptx_map.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

std::vector<std::filesystem::path> ptx_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(TILEWRIGHT_SOURCE_DIR) + "/tests/ptx")) {
    if (entry.path().extension() == ".ptx") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

std::string read(const std::filesystem::path& path) {
  std::ifstream stream(path);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

const DeviceModel& model_for(const std::string& text) {
  return *find_device_model(text.find(".target sm_100") != std::string::npos ? "b200" : "h200");
}

Options options_for(const std::string& text) {
  Options options;
  options.is_exact_mma = text.find("\n// machine: exact_mma\n") != std::string::npos;
  if (text.find("\n// machine: separate_mul_add\n") != std::string::npos) {
    options.fuse_mul_add = false;
  }
  return options;
}

/// Parameters: the two buffers, then the maps.
std::vector<std::byte> params_of(const PtxCase& test, std::uint64_t in, std::uint64_t out) {
  std::vector<std::byte> params(test.maps.empty() ? 16 : 64 + test.maps.size() * kTensorMapBytes);
  std::memcpy(params.data(), &in, 8);
  std::memcpy(params.data() + 8, &out, 8);
  for (std::size_t i = 0; i < test.maps.size(); ++i) {
    const TensorMapFields fields = parse_map(test.maps[i], in, out);
    EXPECT_EQ(validate(fields), "");
    encode(fields, std::span<std::byte, kTensorMapBytes>(params.data() + 64 + i * kTensorMapBytes,
                                                         kTensorMapBytes));
  }
  return params;
}

void run_case(Machine& machine, const std::shared_ptr<const LoadedModule>& module,
              const PtxCase& test) {
  SCOPED_TRACE(test.kernel);
  for (const KernelInfo& info : module->kernels()) {
    if (info.name == test.kernel) {
      ASSERT_EQ(info.problem, "");
    }
  }
  const std::vector<std::uint64_t> in = spread(test.inputs);
  const std::vector<std::uint64_t> expected = spread(test.outputs);
  ASSERT_FALSE(expected.empty());
  const std::uint64_t in_address = machine.memory().allocate(in.size() * 8 + 8, "in");
  const std::uint64_t out_address = machine.memory().allocate(expected.size() * 8, "out");
  std::memcpy(reinterpret_cast<void*>(in_address), in.data(), in.size() * 8);
  std::memset(reinterpret_cast<void*>(out_address), 0, expected.size() * 8);
  Launch launch;
  launch.module = module;
  launch.kernel = test.kernel;
  launch.block.x = test.num_threads;
  launch.grid.x = launch.cluster.x = test.cluster;
  launch.params = params_of(test, in_address, out_address);
  const std::optional<Fault> fault = machine.launch(launch);
  ASSERT_FALSE(fault.has_value()) << fault->message;
  std::vector<std::uint64_t> out(expected.size());
  std::memcpy(out.data(), reinterpret_cast<const void*>(out_address), out.size() * 8);
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::string operands;
    for (std::size_t k = 0; k < test.inputs.size(); ++k) {
      operands += fmt::format(" {:#x}", in[k * kPtxLanes + i % kPtxLanes]);
    }
    EXPECT_EQ(fmt::format("{:#x}", out[i]), fmt::format("{:#x}", expected[i]))
        << "result " << i / kPtxLanes << " of lane " << i % kPtxLanes << ", operands" << operands;
  }
  machine.memory().free(in_address);
  machine.memory().free(out_address);
}

class PtxFile : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(PtxFile, GivesTheExpectedResults) {
  const std::string text = read(GetParam());
  const std::vector<PtxCase> cases = parse_ptx_cases(text);
  ASSERT_FALSE(cases.empty());
  Machine machine(model_for(text), options_for(text));
  const auto module = machine.load(parse_module(text, GetParam().filename().string()));
  for (const PtxCase& test : cases) run_case(machine, module, test);
}

/// The same with everything checked and asynchronous work as late as it may be.
TEST_P(PtxFile, HasNoFindings) {
  const std::string text = read(GetParam());
  Options options = options_for(text);
  options.checks = parse_checks("all");
  options.async_timing = AsyncTiming::kLate;
  options.seed = 3;
  Machine machine(model_for(text), options);
  const auto module = machine.load(parse_module(text, GetParam().filename().string()));
  for (const PtxCase& test : parse_ptx_cases(text)) run_case(machine, module, test);
}

INSTANTIATE_TEST_SUITE_P(Simulator, PtxFile, testing::ValuesIn(ptx_files()), [](const auto& file) {
  std::string name = file.param.stem().string();
  std::ranges::replace_if(
      name, [](char c) { return std::isalnum(c) == 0; }, '_');
  return name;
});

/// The rows of the instruction table that were executed by at least one lane.
class ExecutedRows : public Observer {
 public:
  void executing(Warp& warp, const Insn& insn, std::uint32_t) override {
    const CodePlace& place = warp.grid->code->place(insn);
    if (place.syntax == nullptr) return;
    std::size_t num_leading = 0;
    if (const InsnRow* row = find_row(*place.syntax, num_leading)) rows_.insert(row->opcode);
  }
  bool contains(std::string_view opcode) const { return rows_.contains(opcode); }

 private:
  std::set<std::string_view> rows_;
};

struct NamedTest {
  std::string_view opcode, test;  ///< which one runs it instead, and why no text test can
};

/// A text test must come to its end and give results.
constexpr NamedTest kElsewhere[] = {
    {"trap", "Engine.FaultsSayWhere: it ends the launch with a fault"},
    {"brkpt", "Control.BreakpointsGoOn: a device without a debugger stops at it"},
};

TEST(PtxFiles, ExecuteEveryInstructionOfTheTable) {
  ExecutedRows executed;
  for (const auto& path : ptx_files()) {
    const std::string text = read(path);
    Machine machine(model_for(text), options_for(text));
    machine.set_observer(&executed);
    const auto module = machine.load(parse_module(text, path.filename().string()));
    for (const PtxCase& test : parse_ptx_cases(text)) run_case(machine, module, test);
  }
  for (const InsnSection& section : insn_table()) {
    for (const InsnRow& row : section.rows) {
      const bool is_elsewhere = std::ranges::count(kElsewhere, row.opcode, &NamedTest::opcode) > 0;
      EXPECT_NE(executed.contains(row.opcode), is_elsewhere)
          << row.opcode << (is_elsewhere ? " has a text test" : " is run by no file of tests/ptx");
    }
  }
}

}  // namespace
}  // namespace tilewright::sim
