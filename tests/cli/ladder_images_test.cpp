// Pictures of the ladder: those in the documents, and what makes them files of their own.
#include "base/file.h"
#include "tests/cli/run_tool.h"

#include <filesystem>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::filesystem::path kRoot = TILEWRIGHT_SOURCE_DIR;
const std::string kLog =
    (kRoot / "bench/results/2026-11-23-attention-ladder-all-lengths.json").string();

std::set<std::string> names_in(const std::filesystem::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.insert(entry.path().filename().string());
  return names;
}

// The tool writes its plots to `folder`/plots.
Outcome draw(const ScopedFolder& folder, const std::string& what) {
  const std::string path = folder.path().string();
  return run_tool(what + " --out " + path + "/page --plots " + path + "/plots");
}

std::string read(const std::filesystem::path& path) {
  return std::string(MappedFile(path).text());
}

TEST(LadderImages, ThoseInTheDocumentsAreOfTheCommittedLog) {
  const ScopedFolder fresh;
  const Outcome run = draw(fresh, "ladder --from " + kLog);
  ASSERT_EQ(run.status, 0) << run.err;
  int pictures = 0;
  for (const std::string& name : names_in(kRoot / "docs/images")) {
    if (!name.starts_with("rungs-") && !name.starts_with("lengths-")) continue;
    const std::filesystem::path committed = kRoot / "docs/images" / name;
    ASSERT_TRUE(std::filesystem::exists(fresh.path() / "plots" / name)) << name;
    EXPECT_EQ(read(fresh.path() / "plots" / name), read(committed))
        << committed << " is stale: tilewright ladder --from " << kLog << " --plots FOLDER";
    ++pictures;
  }
  EXPECT_EQ(pictures, 3);
}

TEST(LadderImages, AreWholeInLightAndDark) {
  const ScopedFolder fresh;
  ASSERT_EQ(draw(fresh, "ladder --from " + kLog).status, 0);
  const std::set<std::string> names = names_in(fresh.path() / "plots");
  EXPECT_EQ(names.size(), 8u) << "bars and lines, of two head dimensions and two masks";
  for (const std::string& name : names) {
    const std::string svg = read(fresh.path() / "plots" / name);
    EXPECT_THAT(svg, HasSubstr("xmlns='http://www.w3.org/2000/svg'")) << name;
    EXPECT_THAT(svg, HasSubstr("prefers-color-scheme: dark")) << name;
    EXPECT_THAT(svg, Not(HasSubstr("var("))) << name << ": few programs but browsers know it";
    EXPECT_THAT(svg, Not(HasSubstr("<script"))) << name;
    for (const char* const rung : {">k1<", ">k3_3<", ">k6<"})
      EXPECT_THAT(svg, HasSubstr(rung)) << name;
  }
}

TEST(LadderImages, OfASimulatedLogAreBounds) {
  if (run_tool("info --json").parsed()["kernels"].empty()) GTEST_SKIP() << "built without kernels";
  const ScopedFolder fresh;
  const Outcome run =
      draw(fresh,
           "--device sim:h200 ladder --kernels k2,k6 --head-dims 64 --lengths 64 --tokens 64 "
           "--hidden 64 --mask full");
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(names_in(fresh.path() / "plots"), std::set<std::string>{"rungs-d64-full.svg"});
  EXPECT_THAT(read(fresh.path() / "plots/rungs-d64-full.svg"),
              HasSubstr("least microseconds of the busiest unit"));
}

}  // namespace
}  // namespace tilewright
