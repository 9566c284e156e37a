// The programs of tests/ptx give bit for bit what a device gave, for the operands in the files and
// for sweeps over thousands more (ptx_recording.h).
#include "tests/sim/insn/ptx_recording.h"
#include "tests/sim/insn/ptx_run.h"
#include "tests/sim/insn/ptx_sweep.h"

#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

/// The text of each test from its name to the next one.
std::map<std::string, std::string> texts_of(const std::string& text) {
  constexpr std::string_view kMark = "\n// test: ";
  std::map<std::string, std::string> texts;
  for (std::size_t at = text.find(kMark); at != std::string::npos;) {
    const std::size_t begin = at + kMark.size();
    at = text.find(kMark, begin);
    std::string own = text.substr(begin, at == std::string::npos ? at : at + 1 - begin);
    texts[own.substr(0, own.find_first_of(" \n"))] = std::move(own);
  }
  return texts;
}

std::string digest_of(const std::string& text) {
  const std::vector<unsigned char> bytes(text.begin(), text.end());
  return fmt::format("{:016x}", digest(std::span<const unsigned char>(bytes)));
}

void expect_sweep(Machine& machine, const std::shared_ptr<const LoadedModule>& module,
                  const PtxCase& test, const nlohmann::json& recording) {
  const std::size_t num_operands = std::max<std::size_t>(test.inputs.size(), 1);
  std::vector<std::uint64_t> digests;
  std::string bytes, wrong;
  for (std::size_t launch = 0; launch < kSweepLaunches; ++launch) {
    const auto out = run_ptx_case(machine, module, test, sweep_operands(launch, num_operands));
    digests.push_back(digest(std::span<const std::uint64_t>(out)));
    const std::string byte = fmt::format("{:02x}", digests.back() & 255);
    if (byte != recording.at("launches").get<std::string>().substr(2 * launch, 2)) {
      wrong += fmt::format(" {}", launch);
    }
  }
  EXPECT_EQ(fmt::format("{:016x}", digest(std::span<const std::uint64_t>(digests))),
            recording.at("sweep").get<std::string>())
      << "other results than the device's in the launches" << wrong;
}

/// The recordings are an H200's, which does not run programs for sm_100 and newer.
bool is_for_recorded_device(const std::string& text) {
  return model_for(text).compute_capability == 90;
}

class HardwareRecording : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(HardwareRecording, IsWhatTheSimulatorGives) {
  const std::string text = read_text(GetParam()), file = GetParam().filename().string();
  const auto texts = texts_of(text);
  Machine machine(model_for(text), options_for(text));
  const auto module = machine.load(parse_module(text, file));
  for (const PtxCase& test : parse_ptx_cases(text)) {
    SCOPED_TRACE(test.kernel);
    const nlohmann::json* recording = recording_of(file, test.kernel);
    if (!is_for_recorded_device(text) || is_exception("not_recorded", file, test.kernel)) {
      EXPECT_EQ(recording, nullptr) << "is recorded, though exceptions.json says otherwise";
      continue;
    }
    ASSERT_NE(recording, nullptr) << "has neither a recording nor a reason in exceptions.json";
    EXPECT_EQ(digest_of(texts.at(test.kernel)), recording->at("text").get<std::string>())
        << "the program has changed since it was recorded";
    if (is_exception("differs", file, test.kernel)) continue;
    ASSERT_FALSE(recording->contains("error")) << recording->at("error");
    const auto out = run_ptx_case(machine, module, test, spread(test.inputs));
    EXPECT_EQ(fmt::format("{:016x}", digest(std::span<const std::uint64_t>(out))),
              recording->at("results").get<std::string>());
    if (recording->contains("sweep")) expect_sweep(machine, module, test, *recording);
  }
}

INSTANTIATE_TEST_SUITE_P(Simulator, HardwareRecording, testing::ValuesIn(ptx_files()),
                         [](const auto& file) {
                           std::string name = file.param.stem().string();
                           std::ranges::replace_if(
                               name, [](char c) { return std::isalnum(c) == 0; }, '_');
                           return name;
                         });

}  // namespace
}  // namespace tilewright::sim
