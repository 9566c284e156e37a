// Small programs, each with one mistake that one check finds and the others do not, and a twin
// without it that is clean under all of them. A program says in its first lines what it is:
//
//     // check: race            which finds it; "none" in tests/ptx/good
//     // launch: 1 64 1 0       CTAs, threads, CTAs of a cluster, bytes of dynamic shared memory
//     // finds: no barrier      what the finding says somewhere, if that matters
//
// Its kernel `kernel` gets three addresses: 64 KiB that the host has filled with zeros and two
// tensor maps, 64 KiB that were never written, and 64 KiB that the host has freed. What only
// `strict` finds is clean under all other checks, and its twin under strict too.
#include "sim/async/tensor_map.h"
#include "sim/event/finding.h"
#include "sim/machine.h"
#include "sim/parse/parser.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

namespace fs = std::filesystem;

struct Program {
  std::string name, text, check, finds;
  std::uint32_t ctas = 1, threads = 32, cluster = 1, dynamic_bytes = 0;
  bool is_strict() const { return check == "strict"; }
};

Program read_program(const fs::path& path) {
  Program out;
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  out.name = path.stem().string();
  out.text = text.str();
  std::string line;
  while (std::getline(text, line) && line.starts_with("//")) {
    std::istringstream words(line.substr(2));
    std::string key;
    words >> key;
    if (key == "check:") words >> out.check;
    if (key == "launch:") words >> out.ctas >> out.threads >> out.cluster >> out.dynamic_bytes;
    if (key == "finds:") std::getline(words >> std::ws, out.finds);
  }
  return out;
}

std::vector<Program> programs_in(const char* folder) {
  std::vector<Program> out;
  for (const auto& entry :
       fs::directory_iterator(fs::path(TILEWRIGHT_SOURCE_DIR) / "tests/ptx" / folder)) {
    if (entry.path().extension() == ".ptx") out.push_back(read_program(entry.path()));
  }
  std::ranges::sort(out, {}, &Program::name);
  return out;
}

struct Outcome {
  std::vector<Finding> findings;
  std::optional<Fault> fault;
  std::string text;
};

void place_tensor_map(std::uint64_t at, const TensorMapFields& fields) {
  ASSERT_EQ(validate(fields), "");
  encode(fields,
         std::span<std::byte, kTensorMapBytes>(reinterpret_cast<std::byte*>(at), kTensorMapBytes));
}

/// At 1 KiB before the end of the data: 64 words of it from the middle on. Behind that one: its
/// first 128 rows of 64 bf16, with the swizzle of 128 bytes.
void place_tensor_maps(std::uint64_t data, std::uint64_t bytes) {
  TensorMapFields words;
  words.element = TensorElement::kU32;
  words.address = data + bytes / 2;
  words.dims[0] = words.box[0] = 64;
  words.element_strides[0] = 1;
  place_tensor_map(data + bytes - 1024, words);
  TensorMapFields tile;
  tile.element = TensorElement::kBf16;
  tile.swizzle = TensorSwizzle::k128B;
  tile.rank = 2;
  tile.address = data;
  tile.dims[0] = tile.box[0] = 64;
  tile.dims[1] = tile.box[1] = 128;
  tile.strides_bytes[0] = 128;
  tile.element_strides[0] = tile.element_strides[1] = 1;
  place_tensor_map(data + bytes - 1024 + kTensorMapBytes, tile);
}

Outcome run(const Program& program, const std::string& checks, AsyncTiming timing) {
  constexpr std::uint64_t kBytes = 65536;
  Options options;
  options.checks = parse_checks(checks);
  options.async_timing = timing;
  options.num_threads = 1;
  const bool is_blackwell = program.text.find(".target sm_100") != std::string::npos;
  Machine machine(*find_device_model(is_blackwell ? "b200" : "h200"), options);
  Outcome out;
  machine.set_output([](std::string_view) {}, [&](std::string_view text) { out.text += text; });
  const std::uint64_t data = machine.memory().allocate(kBytes, "data");
  const std::uint64_t fresh = machine.memory().allocate(kBytes, "fresh");
  const std::uint64_t freed = machine.memory().allocate(kBytes, "freed");
  machine.memory().free(freed);
  std::memset(reinterpret_cast<void*>(data), 0, kBytes);
  place_tensor_maps(data, kBytes);
  machine.mark_defined(data, kBytes);
  Launch launch;
  launch.module = machine.load(parse_module(program.text, program.name + ".ptx"));
  launch.kernel = "kernel";
  launch.grid.x = program.ctas;
  launch.block.x = program.threads;
  launch.cluster.x = program.cluster;
  launch.dynamic_shared_bytes = program.dynamic_bytes;
  launch.params.resize(24);
  std::memcpy(launch.params.data(), &data, 8);
  std::memcpy(launch.params.data() + 8, &fresh, 8);
  std::memcpy(launch.params.data() + 16, &freed, 8);
  out.fault = machine.launch(launch);
  out.findings = machine.findings().take_all();
  return out;
}

/// "race sync": the checks that have found something.
std::string kinds_of(const Outcome& outcome) {
  std::set<std::string> kinds;
  for (const Finding& finding : outcome.findings) kinds.insert(finding.check);
  return fmt::format("{}", fmt::join(kinds, " "));
}

class Timing : public testing::TestWithParam<AsyncTiming> {};

TEST_P(Timing, GoodProgramsAreClean) {
  const auto programs = programs_in("good");
  ASSERT_FALSE(programs.empty());
  for (const Program& program : programs) {
    SCOPED_TRACE(program.name);
    const bool is_strict = program.name.starts_with("strict_");
    const Outcome outcome = run(program, is_strict ? "all,strict" : "all", GetParam());
    EXPECT_EQ(outcome.text, "");
    EXPECT_FALSE(outcome.fault.has_value()) << outcome.fault->message;
  }
}

TEST_P(Timing, BadProgramsAreFoundByTheirCheck) {
  const auto programs = programs_in("bad");
  ASSERT_FALSE(programs.empty());
  for (const Program& program : programs) {
    SCOPED_TRACE(program.name);
    const Outcome outcome =
        run(program, program.is_strict() ? "all,strict" : "none," + program.check, GetParam());
    EXPECT_EQ(kinds_of(outcome), program.check) << outcome.text;
    EXPECT_TRUE(outcome.fault.has_value());
    EXPECT_TRUE(outcome.text.starts_with("sim: kernel: ")) << outcome.text;
    EXPECT_NE(outcome.text.find(program.name + ".ptx:"), std::string::npos) << outcome.text;
    EXPECT_NE(outcome.text.find(program.finds), std::string::npos) << outcome.text;
  }
}

TEST_P(Timing, BadProgramsAreFoundByNoOtherCheck) {
  for (const Program& program : programs_in("bad")) {
    SCOPED_TRACE(program.name);
    // What stops a kernel is told whatever the checks are.
    const Outcome outcome = run(program, "all", GetParam());
    EXPECT_EQ(kinds_of(outcome), program.is_strict() ? "" : program.check) << outcome.text;
  }
}

INSTANTIATE_TEST_SUITE_P(Async, Timing,
                         testing::Values(AsyncTiming::kEager, AsyncTiming::kLate,
                                         AsyncTiming::kRandom));

TEST(BadPrograms, EachHasAGoodTwin) {
  const auto good = programs_in("good");
  for (const Program& bad : programs_in("bad")) {
    EXPECT_TRUE(std::ranges::any_of(good, [&](const Program& p) { return p.name == bad.name; }))
        << bad.name;
  }
}

/// The indented blocks of the manual that begin as findings do, without their indentation.
std::vector<std::string> findings_of_manual() {
  std::ifstream file(fs::path(TILEWRIGHT_SOURCE_DIR) / "docs/03-simulator.md");
  std::vector<std::string> out;
  bool is_inside = false;
  for (std::string line; std::getline(file, line);) {
    const bool begins = line.starts_with("    sim: kernel: ");
    is_inside = line.starts_with("    ") && (is_inside || begins);
    if (begins) out.emplace_back();
    if (is_inside) out.back() += line.substr(4) + "\n";
  }
  return out;
}

TEST(Manual, ShowsWhatIsPrinted) {
  const auto bad = programs_in("bad");
  std::set<std::string> shown;
  for (const std::string& finding : findings_of_manual()) {
    const std::size_t end = finding.find(".ptx:");
    ASSERT_NE(end, std::string::npos) << finding;
    const std::string name =
        finding.substr(finding.rfind(' ', end) + 1, end - finding.rfind(' ', end) - 1);
    const auto program = std::ranges::find(bad, name, &Program::name);
    ASSERT_NE(program, bad.end()) << name;
    const Outcome outcome =
        run(*program, program->is_strict() ? "all,strict" : "all", AsyncTiming::kEager);
    EXPECT_NE(outcome.text.find(finding), std::string::npos) << outcome.text;
    shown.insert(program->check);
  }
  EXPECT_EQ(shown, (std::set<std::string>{"init", "mem", "mma", "proxy", "race", "strict", "sync",
                                          "tmem"}));
}

}  // namespace
}  // namespace tilewright::sim
