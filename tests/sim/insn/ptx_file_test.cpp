// Runs every program of tests/ptx and compares its results bit by bit (ptx_case.h): with what the
// file says, or with what a device gave where that is not the same (approximations).
#include "sim/compile/insn_lookup.h"
#include "sim/event/observer.h"
#include "sim/machine.h"
#include "sim/parse/parser.h"
#include "sim/state/code.h"
#include "tests/sim/insn/ptx_recording.h"
#include "tests/sim/insn/ptx_run.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

void run_case(Machine& machine, const std::shared_ptr<const LoadedModule>& module,
              const PtxCase& test, const std::vector<std::uint64_t>& expected) {
  SCOPED_TRACE(test.kernel);
  for (const KernelInfo& info : module->kernels()) {
    if (info.name == test.kernel) {
      ASSERT_EQ(info.problem, "");
    }
  }
  const std::vector<std::uint64_t> in = spread(test.inputs);
  ASSERT_FALSE(expected.empty());
  const std::vector<std::uint64_t> out = run_ptx_case(machine, module, test, in);
  ASSERT_EQ(out.size(), expected.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::string operands;
    for (std::size_t k = 0; k < test.inputs.size(); ++k) {
      operands += fmt::format(" {:#x}", in[k * kPtxLanes + i % kPtxLanes]);
    }
    EXPECT_EQ(fmt::format("{:#x}", out[i]), fmt::format("{:#x}", expected[i]))
        << "result " << i / kPtxLanes << " of lane " << i % kPtxLanes << ", operands" << operands;
  }
}

class PtxFile : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(PtxFile, GivesTheExpectedResults) {
  const std::string text = read_text(GetParam());
  const std::vector<PtxCase> cases = parse_ptx_cases(text);
  ASSERT_FALSE(cases.empty());
  Machine machine(model_for(text), options_for(text));
  const auto module = machine.load(parse_module(text, GetParam().filename().string()));
  for (const PtxCase& test : cases) {
    const auto recorded = recorded_results(GetParam().filename().string(), test.kernel);
    run_case(machine, module, test, recorded.empty() ? spread(test.outputs) : recorded);
  }
}

/// The same with everything checked and asynchronous work as late as it may be.
TEST_P(PtxFile, HasNoFindings) {
  const std::string text = read_text(GetParam());
  Options options = options_for(text);
  options.checks = parse_checks("all");
  options.async_timing = AsyncTiming::kLate;
  options.seed = 3;
  Machine machine(model_for(text), options);
  const auto module = machine.load(parse_module(text, GetParam().filename().string()));
  for (const PtxCase& test : parse_ptx_cases(text)) {
    const auto recorded = recorded_results(GetParam().filename().string(), test.kernel);
    run_case(machine, module, test, recorded.empty() ? spread(test.outputs) : recorded);
  }
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
    const std::string text = read_text(path);
    Machine machine(model_for(text), options_for(text));
    machine.set_observer(&executed);
    const auto module = machine.load(parse_module(text, path.filename().string()));
    for (const PtxCase& test : parse_ptx_cases(text)) {
      EXPECT_FALSE(run_ptx_case(machine, module, test, spread(test.inputs)).empty());
    }
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
