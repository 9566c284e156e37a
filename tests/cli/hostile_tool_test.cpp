// The tool with shapes nobody can run, names that are no text, output that cannot be written, and
// signals in the middle of writing.
#include "base/json.h"
#include "base/npy.h"
#include "base/safetensors_writer.h"
#include "tests/cli/run_tool.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>
#include <thread>
#include <tuple>

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tilewright {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kOnSimulator = "TILEWRIGHT_DEVICE=sim:h200";

struct BadShape {
  const char* arguments;
  const char* message;
};

class ImpossibleShape : public testing::TestWithParam<BadShape> {};

TEST_P(ImpossibleShape, IsRefusedWithValueAndRuleBeforeAnythingIsDrawn) {
  const auto begin = std::chrono::steady_clock::now();
  const Outcome run = run_tool(GetParam().arguments, kOnSimulator);
  EXPECT_TRUE(run.status == 1 || run.status == 2) << run.status;
  EXPECT_THAT(run.err + run.out, HasSubstr(GetParam().message));
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(time.count(), 20) << "it drew operands first";
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, ImpossibleShape,
    testing::Values(
        BadShape{"moe --shape 0/1/64/64 --tokens 2 --plan", "has experts 0"},
        BadShape{"moe --shape 8/0/64/64 --plan", "experts of a token 0"},
        BadShape{"moe --shape -8/2/64/64", "experts -8"},
        BadShape{"moe --shape 8/2/-64/64", "hidden size -64"},
        BadShape{"moe --shape 8/2/64/0", "intermediate size 0"},
        BadShape{"moe --shape 100000/1/64/64 --plan", "expected 1 to 384"},
        BadShape{"moe --shape 8/2/100000000/64", "hidden = 100000000"},
        BadShape{"moe --shape 99999999999999999999/1/16/16", "whole numbers"},
        BadShape{"moe --shape 8/2/64/64x", "whole numbers"}, BadShape{"moe --topk 0", "--topk"},
        BadShape{"ladder --lengths 0 --kernels k5 --head-dims 64", "--lengths"},
        BadShape{"ladder --head-dims 0", "--head-dims"}, BadShape{"ladder --hidden 0", "--hidden"},
        BadShape{"ladder --lengths 99999999999", "--lengths"},
        BadShape{"attention --inputs normal --shape 1,1000000,1000000,1000000,1000000,128",
                 "attention:"},
        BadShape{"attention --inputs normal --shape 70000,70000,70000,1,1,64", "attention:"}));

TEST(HostileNames, ThatAreNoUtf8StillGiveJson) {
  for (const char* command : {"attention --json --q", "quantize --json", "kernels --json --ptx",
                              "layout eval --json", "formats round --json"}) {
    const std::string name = command;
    const std::string last = name.starts_with("quantize")  ? " x"
                             : name.starts_with("formats") ? " 1"
                                                           : "";
    const Outcome run =
        run_tool(std::string(command) + " \"$(printf '\\377.npy')\"" + last, kOnSimulator);
    EXPECT_EQ(run.status, 1) << command;
    EXPECT_THAT(run.parsed()["error"]["message"].get<std::string>(), HasSubstr(".npy")) << command;
  }
}

TEST(HostileNames, ThatAreEmptyAreRefused) {
  const Outcome run = run_tool("attention --inputs normal --shape 1,1,1,8,8,64 --out ''");
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("--out"));
}

TEST(HostileNames, OneFileForTwoResultsIsRefused) {
  const ScopedFolder folder;
  const std::string file = folder / "z.npy";
  const Outcome run = run_tool(
      "attention --inputs normal --shape 1,1,1,8,8,64 --out " + file + " --lse-out " + file,
      kOnSimulator);
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("--lse-out"));
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST(HostileNames, AFolderOfAModelWithoutNameIsRefused) {
  for (const char* command : {"quantize m ''", "quantize '' out", "quantize '' ''"}) {
    const Outcome run = run_tool(command);
    EXPECT_EQ(run.status, 2) << command;
    EXPECT_THAT(run.err, HasSubstr("the name is empty")) << command;
  }
}

TEST(HostileNames, TextOfALayoutIsShownInPartAndWithoutControlBytes) {
  const std::string zeros(5000, '0');
  const Outcome run = run_tool("layout eval '(4,8:" + zeros + "'");
  EXPECT_EQ(run.status, 1);
  EXPECT_LT(run.err.size(), 400u);
  const Outcome bell = run_tool("layout eval \"$(printf '(4,\\033[31m')\"");
  EXPECT_EQ(bell.status, 1);
  EXPECT_THAT(bell.err, Not(HasSubstr("\033")));
  EXPECT_THAT(bell.err, HasSubstr("\n  (4,?[31m\n     ^"));
}

TEST(HostileNames, ADeviceThatIsNoneIsRefusedByInfoToo) {
  EXPECT_EQ(run_tool("info --device gpu:7").status, 1);
  const Outcome run = run_tool("info", "TILEWRIGHT_DEVICE=gpu:7");
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("TILEWRIGHT_DEVICE: \"gpu:7\""));
}

TEST(HostileNames, ADeviceThatIsNotThereIsSaidByInfo) {
  const Outcome run = run_tool("info --device cuda:1000");
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.out, HasSubstr("device      none: device cuda:1000: "));
  const Outcome json = run_tool("info --device cuda:1000 --json");
  EXPECT_EQ(json.status, 1);
  EXPECT_THAT(json.parsed()["device_problem"].get<std::string>(), HasSubstr("cuda:1000"));
}

TEST(FullDisk, LostOutputIsAFailureWithAReason) {
  if (::access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full";
  for (const char* command :
       {"--help", "--version", "layout atoms --json", "kernels --json", "kernels", "info",
        "layout draw 'wgmma.m64n64.C'", "sim isa /dev/null"}) {
    const Outcome run = run_tool(std::string(command) + " >/dev/full", kOnSimulator);
    EXPECT_NE(run.status, 0) << command;
  }
  EXPECT_THAT(run_tool("layout atoms --json >/dev/full").err, HasSubstr("No space left on device"));
}

TEST(FullDisk, AReportThatCannotBeWrittenIsRefusedBeforeTheWork) {
  const ScopedFolder folder;
  for (const std::string& file : {std::string("/nonexistent/report.json"), std::string("/dev/full"),
                                  folder.path().string()}) {
    const Outcome run =
        run_tool("attention --inputs normal --shape 1,1,1,8,8,64 --report " + file, kOnSimulator);
    EXPECT_EQ(run.status, 1) << file;
    EXPECT_EQ(run.out, "") << file;
    EXPECT_THAT(run.err, HasSubstr(file));
    EXPECT_EQ(run_tool("sim exec --report " + file + " -- true").status, 1) << file;
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

// The file's place is good until the last moment: one block may be written, the report is longer.
TEST(FullDisk, AReportThatIsLostAtTheEndIsAFailure) {
  const ScopedFolder folder;
  const std::string file = folder / "report.json";
  const std::string kLimited = "ulimit -f 1; " + std::string(kOnSimulator);
  const std::string calls[] = {"attention --inputs normal --shape 1,1,1,8,8,64 --report " + file,
                               "sim exec --report " + file +
                                   " -- " TILEWRIGHT_TOOL
                                   " attention --inputs normal --shape 1,1,1,8,8,64"};
  for (const std::string& call : calls) {
    const Outcome run = run_tool(call, kLimited);
    EXPECT_EQ(run.status, 1) << call;
    EXPECT_THAT(run.err, HasSubstr("the simulator's report: " + file)) << call;
    EXPECT_THAT(run.out, HasSubstr("counted")) << call;
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(FullDisk, ALimitOfFileSizesIsAnErrorThatLeavesNothing) {
  const ScopedFolder folder;
  const Outcome run = run_tool(
      "attention --inputs normal --shape 1,1,1,64,64,64 --out " + (folder / "z.npy").string(),
      "ulimit -f 8; " + std::string(kOnSimulator));
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("File too large"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

// The file of the embedding fits the first limit, those of layers do not; nothing fits the second.
TEST(FullDisk, ACheckpointThatCannotBeWrittenLeavesNothing) {
  for (const char* limit : {"1024", "8"}) {
    const ScopedFolder folder;
    const Outcome run =
        run_tool("make-checkpoint " + (folder / "out").string() + " --layers 2 --experts 64",
                 fmt::format("ulimit -f {};", limit));
    EXPECT_EQ(run.status, 1) << limit;
    EXPECT_THAT(run.err, HasSubstr("File too large")) << limit;
    EXPECT_THAT(run.err, testing::EndsWith("\n")) << limit;
    EXPECT_EQ(std::ranges::count(run.err, '\n'), 1) << run.err;
    EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << limit;
  }
}

TEST(FullDisk, ACheckpointWithoutAPlaceIsRefused) {
  const Outcome run = run_tool("make-checkpoint /proc/nope/out");
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("/proc/nope/out: cannot create the folder: No such file"));
}

TEST(HugeText, IsRefusedUnread) {
  const ScopedFolder folder;
  const std::string file = folder / "huge.ptx";
  { std::ofstream empty(file); }
  std::filesystem::resize_file(file, std::uintmax_t{64} << 30);  // no blocks
  const Outcome run = run_tool("sim isa " + file);
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("68719476736 bytes of PTX; at most 1073741824 are read"));
}

// A model of one shard that takes a while to quantise.
void write_model(const std::filesystem::path& folder) {
  std::filesystem::create_directory(folder);
  const std::int64_t rows = 8192, columns = 4096;
  const std::vector<std::uint16_t> weights(static_cast<std::size_t>(rows * columns), 0x3f80);
  write_safetensors(
      folder / "model.safetensors",
      {{"layers.0.ffn.experts.0.w1.weight",
        contiguous_view(static_cast<const void*>(weights.data()), DType::kBF16, {rows, columns})}});
}

// The tool in a process of its own, ended by a signal as soon as `is_writing` says so. Its status.
template <class Condition>
int end_tool(const std::vector<std::string>& arguments, int signal, const Condition& is_writing) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::vector<char*> argv{const_cast<char*>(TILEWRIGHT_TOOL)};
    for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
    argv.push_back(nullptr);
    const int null = ::open("/dev/null", O_WRONLY);
    ::dup2(null, STDOUT_FILENO);
    ::dup2(null, STDERR_FILENO);
    // On a machine that is busy the test is to get a processor before the tool is done.
    [[maybe_unused]] const int priority = ::nice(5);
    ::execv(TILEWRIGHT_TOOL, argv.data());
    ::_exit(127);
  }
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (is_writing()) {
      ::kill(child, signal);
      ::waitpid(child, &status, 0);
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return status;
}

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  return names;
}

// Commands that write a folder `out` of `folder`.
struct FolderWriter {
  const char* name;
  const char* last;  // file of a folder that is complete
  void (*prepare)(const std::filesystem::path& folder);
  std::vector<std::string> (*arguments)(const std::filesystem::path& folder);
};

const FolderWriter kFolderWriters[] = {
    {"quantize", "model.safetensors",
     [](const std::filesystem::path& folder) { write_model(folder / "model"); },
     [](const std::filesystem::path& folder) {
       return std::vector<std::string>{"quantize", folder / "model", folder / "out", "--host"};
     }},
    {"make_checkpoint", "config.json", [](const std::filesystem::path&) {},
     [](const std::filesystem::path& folder) {
       return std::vector<std::string>{"make-checkpoint", folder / "out", "--experts", "64"};
     }}};

struct WrittenFolder {
  explicit WrittenFolder(const FolderWriter& which) : writer(which) {
    writer.prepare(scratch.path());
    before = names_in(scratch.path());
  }

  // end_tool() of the command, begun again if it was done before the signal came.
  int end(int signal) const {
    constexpr int kTries = 20;
    int status = 0;
    for (int i = 0; i < kTries && !WIFSIGNALED(status); ++i) {
      std::filesystem::remove_all(scratch / "out");
      status = end_tool(writer.arguments(scratch.path()), signal,
                        [&] { return names_in(scratch.path()).size() > before.size(); });
    }
    return status;
  }

  const FolderWriter& writer;
  ScopedFolder scratch;
  std::vector<std::string> before;
};

class Interrupted : public testing::TestWithParam<std::tuple<FolderWriter, int>> {};

TEST_P(Interrupted, LeavesNothing) {
  const auto& [writer, signal] = GetParam();
  const WrittenFolder folder(writer);
  std::signal(signal, SIG_DFL);  // what runs in the background may inherit that it is ignored
  const int status = folder.end(signal);
  ASSERT_TRUE(WIFSIGNALED(status)) << "it ended before the signal";
  EXPECT_EQ(WTERMSIG(status), signal);
  for (const std::string& name : names_in(folder.scratch.path()))
    EXPECT_TRUE(name == "model" || name == "out") << name;
  // Unless it had just finished.
  EXPECT_EQ(std::filesystem::exists(folder.scratch / "out"),
            std::filesystem::exists(folder.scratch / "out" / writer.last));
}

INSTANTIATE_TEST_SUITE_P(Signals, Interrupted,
                         testing::Combine(testing::ValuesIn(kFolderWriters),
                                          testing::Values(SIGINT, SIGTERM, SIGHUP)),
                         [](const auto& param) {
                           return fmt::format("{}_{}", std::get<0>(param.param).name,
                                              std::get<1>(param.param));
                         });

class Killed : public testing::TestWithParam<FolderWriter> {};

TEST_P(Killed, WhatWasLeftIsRemovedByTheNextOne) {
  const WrittenFolder folder(GetParam());
  ASSERT_TRUE(WIFSIGNALED(folder.end(SIGKILL)));
  std::filesystem::remove_all(folder.scratch / "out");
  const auto arguments = folder.writer.arguments(folder.scratch.path());
  EXPECT_EQ(end_tool(arguments, SIGKILL, [] { return false; }), 0);
  std::vector<std::string> expected = folder.before;
  expected.emplace_back("out");
  EXPECT_THAT(names_in(folder.scratch.path()), testing::UnorderedElementsAreArray(expected));
}

INSTANTIATE_TEST_SUITE_P(Writers, Killed, testing::ValuesIn(kFolderWriters),
                         [](const auto& param) { return param.param.name; });

TEST(InPlace, QuantisingAFileOntoItselfIsRefused) {
  const ScopedFolder scratch;
  const std::filesystem::path file = scratch / "model.safetensors";
  const std::vector<std::uint16_t> weights(64 * 64, 0x3f80);
  write_safetensors(
      file, {{"layers.0.ffn.experts.0.w1.weight",
              contiguous_view(static_cast<const void*>(weights.data()), DType::kBF16, {64, 64})}});
  const std::uintmax_t size = std::filesystem::file_size(file);
  const std::string other = scratch / "other.safetensors";
  std::filesystem::create_symlink(file, other);
  for (const std::string& out : {file.string(), other}) {
    const Outcome run = run_tool("quantize --host " + file.string() + " " + out);
    EXPECT_EQ(run.status, 1) << out;
    EXPECT_THAT(run.err, HasSubstr("is the input"));
  }
  EXPECT_EQ(std::filesystem::file_size(file), size);
}

TEST(CutFile, EndsWithASentence) {
  const ScopedFolder scratch;
  const std::filesystem::path& folder = scratch.path();
  constexpr int kTries = 20;  // it may have read everything before the file is cut
  int status = 0;
  for (int i = 0; i < kTries && status == 0; ++i) {
    std::filesystem::remove_all(folder / "out");
    write_model(folder / "model");
    bool is_cut = false;
    const auto cut = [&] {
      if (!is_cut && names_in(folder).size() > 1)
        std::filesystem::resize_file(folder / "model" / "model.safetensors", 100'000);
      is_cut = is_cut || names_in(folder).size() > 1;
      return false;
    };
    status = end_tool({"quantize", folder / "model", folder / "out", "--host"}, SIGTERM, cut);
  }
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
}

TEST(Options, OfScalesAreNotLeftOutWhereTheyMakeNoSense) {
  for (const char* command : {"attention --inputs normal --shape 1,1,1,8,8,64", "decode --keys 8",
                              "sparse-attention --window 8 --compressed 0"}) {
    for (const char* scale : {"0", "-1", "nan"}) {
      const Outcome run = run_tool(std::string(command) + " --plan --scale=" + scale, kOnSimulator);
      EXPECT_EQ(run.status, 1) << command << scale;
      EXPECT_THAT(run.err, HasSubstr("scale = ")) << command << scale;
    }
  }
}

TEST(VacuousCheck, IsNotCalledCorrect) {
  const std::string call = "attention --inputs normal --shape 1,1,1,40,40,64 --check ";
  EXPECT_THAT(run_tool(call, kOnSimulator).out, HasSubstr("correct"));
  const Outcome run = run_tool(call + "--scale 1e6", kOnSimulator);
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.out, HasSubstr("UNDECIDED"));
  const Outcome decode = run_tool(
      "decode --batch 1 --keys 300 --heads 8 --kv-heads 1 --check --scale 1e6", kOnSimulator);
  EXPECT_EQ(decode.status, 1);
  EXPECT_THAT(decode.out, HasSubstr("UNDECIDED"));
  const Outcome sparse = run_tool(
      "sparse-attention --batch 1 --heads 4 --window 9 --compressed 0 --check --scale 1e20",
      kOnSimulator);
  EXPECT_EQ(sparse.status, 1);
  EXPECT_THAT(sparse.out, HasSubstr("UNDECIDED"));
}

// A query that is no number: its results are NaN in the reference, too, and its lse is that of a
// row without keys.
TEST(NotANumber, OnBothSidesIsCorrect) {
  const ScopedFolder folder;
  HostTensor q(DType::kF32, {1, 8, 2, 64}), k(DType::kF32, {1, 9, 2, 64});
  std::ranges::fill(q.elems<float>(), 0.5f);
  std::ranges::fill(k.elems<float>(), 0.25f);
  q.elems<float>()[5] = std::numeric_limits<float>::quiet_NaN();
  write_npy(folder / "q.npy", q.view());
  write_npy(folder / "k.npy", k.view());
  const std::string names = " --q " + (folder / "q.npy").string() + " --k " +
                            (folder / "k.npy").string() + " --v " + (folder / "k.npy").string();
  for (const char* device : {"sim:h200", "sim:b200"}) {
    const Outcome run = run_tool("attention --layout bnhd --check" + names + " --device " + device);
    EXPECT_EQ(run.status, 0) << device << run.err;
    EXPECT_THAT(run.out, HasSubstr("correct")) << device;
  }
}

TEST(Counts, OccupancyOfSeveralLaunchesIsNoSum) {
  const Outcome run =
      run_tool("attention --inputs normal --shape 1,1,1,40,40,64 --kernel k1 --json", kOnSimulator);
  const nlohmann::json occupancy = run.parsed()["counted"]["occupancy"];
  EXPECT_LE(occupancy["warps_per_sm"].get<double>(), occupancy["max_warps_per_sm"].get<double>());
}

// The profiler's limits on an H200 are the truth; the simulator estimates registers (131 for the
// three launches of k1, where ptxas needs 32).
TEST(Counts, OccupancyOfEveryRungIsThatOfAnH200) {
  const nlohmann::json profile =
      read_json(TILEWRIGHT_SOURCE_DIR "/bench/results/2026-11-23-attention-profile.json");
  for (const nlohmann::json& launch : profile["launches"]) {
    const std::string kernel = launch["kernel"];
    const int ctas =
        std::min({launch["ctas_by_registers"].get<int>(), launch["ctas_by_shared"].get<int>(),
                  launch["ctas_by_warps"].get<int>(), launch["ctas_by_sm"].get<int>()});
    const Outcome run =
        run_tool("attention --inputs normal --shape 1,1,1,64,64,128 --json --kernel " + kernel,
                 kOnSimulator);
    const nlohmann::json counted = run.parsed()["counted"];
    EXPECT_EQ(counted["occupancy"]["ctas_per_sm"], ctas) << kernel;
    EXPECT_EQ(counted["occupancy"]["registers"], launch["registers"]) << kernel;
    EXPECT_EQ(counted["occupancy"]["warps_per_sm"], launch["theoretical_warps"]) << kernel;
    EXPECT_EQ(counted["dynamic_shared_bytes"], launch["shared_bytes"]) << kernel;
  }
}

TEST(WideWindow, DoesNotOverflowTheReference) {
  const Outcome run = run_tool(
      "attention --inputs normal --shape 1,1,1,40,40,64 --check "
      "--window 9223372036854775800,9223372036854775800",
      kOnSimulator);
  EXPECT_EQ(run.status, 0) << run.err << run.out;
}

}  // namespace
}  // namespace tilewright
