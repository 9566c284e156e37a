// tilewright tokenize, and what generate does with a tokenizer.
#include "tests/cli/run_tool.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace tilewright {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const std::string kSmall = "--tokenizer " + std::string(TILEWRIGHT_TEST_DATA) + "/tokenizer ";

TEST(TokenizeTool, TextToTokensAndBack) {
  const auto run = run_tool("--json tokenize " + kSmall + "'the <think>' \"it's\"");
  ASSERT_EQ(run.status, 0) << run.err;
  const json report = run.parsed();
  EXPECT_EQ(report["vocab_size"], 1207);
  EXPECT_EQ(report["texts"][0]["decoded"], "the <think>");
  EXPECT_EQ(report["texts"][0]["ids"].back(), 1202);
  const auto plain = run_tool("--json tokenize --plain " + kSmall + "'the <think>'");
  EXPECT_NE(plain.parsed()["texts"][0]["ids"].back(), 1202);
  const auto back = run_tool("tokenize " + kSmall + "--decode 1202,1203");
  EXPECT_EQ(back.out, "<think></think>\n");
}

TEST(TokenizeTool, OfTheBundledModelTokensAreBytes) {
  const auto run = run_tool("tokenize 'h\xc3\xa9'");
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("    195 \"\"\n    169 \"\xc3\xa9\"\n3 tokens\n"));
}

TEST(TokenizeTool, Times) {
  const auto run =
      run_tool("--json tokenize --time --samples 3 " + kSmall + "'the kernel' 'caf\xc3\xa9'");
  ASSERT_EQ(run.status, 0) << run.err;
  const json report = run.parsed();
  EXPECT_EQ(report["bytes"], 15);
  const json plain = run_tool("--json tokenize " + kSmall + "'the kernel' 'caf\xc3\xa9'").parsed();
  std::size_t tokens = 0;
  for (const json& text : plain["texts"]) tokens += text["ids"].size();
  EXPECT_EQ(report["tokens"], tokens);
  for (const char* what : {"load", "encode", "decode"}) {
    ASSERT_EQ(report["samples_ms"][what].size(), 3u);
    for (const json& sample : report["samples_ms"][what]) EXPECT_GT(sample, 0);
  }
  auto load = report["samples_ms"]["load"].get<std::vector<double>>();
  std::ranges::sort(load);
  EXPECT_EQ(report["load_ms"], load[1]);
  const auto table = run_tool("tokenize --time --samples 1 " + kSmall + "'the kernel'");
  EXPECT_THAT(table.out, HasSubstr("MB/s"));
  EXPECT_THAT(table.out, HasSubstr("10 bytes, "));
  EXPECT_THAT(run_tool("tokenize --time").err, HasSubstr("no text; expected TEXT"));
  EXPECT_NE(run_tool("tokenize --time --decode 3 a").status, 0);
}

TEST(TokenizeTool, Errors) {
  EXPECT_THAT(run_tool("tokenize").err, HasSubstr("no text; expected TEXT"));
  EXPECT_THAT(run_tool("tokenize --tokenizer /no/such.json a").err, HasSubstr("/no/such.json"));
  EXPECT_THAT(run_tool("tokenize --decode 999").err, HasSubstr("token 999; expected 0 to 255"));
  EXPECT_THAT(run_tool("tokenize " + kSmall + "\"$(printf 'a\\377')\"").err,
              HasSubstr("not UTF-8 at byte 1"));
  EXPECT_THAT(run_tool("generate --device reference --chat chat -p hi").err,
              HasSubstr("this tokenizer has no token <"));
}

// The bundled model's folder with another model's tokenizer in it.
TEST(TokenizeTool, GenerateRefusesTheTokenizerOfAnotherModel) {
  namespace fs = std::filesystem;
  const fs::path model = fs::path(TILEWRIGHT_SOURCE_DIR) / "examples/models/tiny-dsv4";
  const fs::path folder = fs::temp_directory_path() / fmt::format("tokenizer-{}", ::getpid());
  fs::create_directory(folder);
  for (const auto& entry : fs::directory_iterator(model))
    if (entry.path().filename() != "tokenizer.json")
      fs::create_symlink(entry.path(), folder / entry.path().filename());
  const std::string command =
      "generate --device reference --max-tokens 1 -q -p hi --model " + folder.string();
  EXPECT_EQ(run_tool(command).status, 0);  // without a file: bytes
  fs::create_symlink(fs::path(TILEWRIGHT_TEST_DATA) / "tokenizer/tokenizer.json",
                     folder / "tokenizer.json");
  EXPECT_THAT(run_tool(command).err, HasSubstr("1207 tokens, the model has 256; it is the "
                                               "tokenizer of another model"));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace tilewright
