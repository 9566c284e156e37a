// Runs every program of tests/ptx and compares its results bit by bit (ptx_case.h).
#include "sim/insn/sections.h"
#include "sim/machine.h"
#include "sim/parse/parser.h"
#include "tests/sim/insn/ptx_case.h"

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
  launch.grid.x = launch.cluster.x = test.cluster;
  launch.block.x = kPtxLanes;
  launch.params.resize(16);
  std::memcpy(launch.params.data(), &in_address, 8);
  std::memcpy(launch.params.data() + 8, &out_address, 8);
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
  Machine machine(model_for(text), Options{});
  const auto module = machine.load(parse_module(text, GetParam().filename().string()));
  for (const PtxCase& test : cases) run_case(machine, module, test);
}

INSTANTIATE_TEST_SUITE_P(Simulator, PtxFile, testing::ValuesIn(ptx_files()), [](const auto& file) {
  std::string name = file.param.stem().string();
  std::ranges::replace_if(
      name, [](char c) { return std::isalnum(c) == 0; }, '_');
  return name;
});

/// The rows that the instructions of a module use: each opcode with all its leading modifiers.
void add_spellings(const Module& module, std::set<std::string, std::less<>>& spellings) {
  for (const Function& function : module.functions) {
    for (const Instruction& instruction : function.body) {
      std::string spelling(instruction.opcode);
      spellings.insert(spelling);
      for (const std::string_view modifier : instruction.modifiers) {
        spelling += "." + std::string(modifier);
        spellings.insert(spelling);
      }
    }
  }
}

TEST(PtxFiles, UseEveryScalarInstruction) {
  std::set<std::string, std::less<>> spellings;
  std::vector<Module> modules;
  for (const auto& path : ptx_files()) {
    add_spellings(modules.emplace_back(parse_module(read(path), path.string())), spellings);
  }
  for (const InsnSection* section :
       {&arithmetic_section(), &carry_section(), &bits_section(), &compare_section(),
        &move_section(), &convert_section(), &address_section(), &special_function_section(),
        &hint_section()}) {
    for (const InsnRow& row : section->rows) {
      EXPECT_TRUE(spellings.contains(row.opcode)) << "no file of tests/ptx uses " << row.opcode;
    }
  }
}

}  // namespace
}  // namespace tilewright::sim
