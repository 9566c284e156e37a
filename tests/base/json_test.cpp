#include "base/json.h"

#include "base/file.h"
#include "tests/base/expect_error.h"
#include "tests/base/scoped_folder.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

namespace tilewright {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Json = nlohmann::json;

std::string parse_error(std::string_view text, const JsonLimits& limits = {}) {
  return error_of(ErrorKind::kParseError, [&] { parse_json(text, "a.json", limits); });
}

TEST(ParseJson, BuildsEveryKindOfValue) {
  const Json json = parse_json(
      R"( {"null": null, "yes": true, "int": -3, "large": 18446744073709551615, "real": 2.5e-1,
           "text": "a\u00e4\n", "list": [1, [], {}, [[2]]], "object": {"x": {"y": 1}}} )",
      "a.json");
  EXPECT_EQ(json.size(), 8u);
  EXPECT_TRUE(json["null"].is_null());
  EXPECT_EQ(json["yes"], true);
  EXPECT_EQ(json["int"], -3);
  EXPECT_EQ(json["large"], std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(json["real"], 0.25);
  EXPECT_EQ(json["text"], "a\u00e4\n");
  EXPECT_EQ(json["list"],
            Json::array({1, Json::array(), Json::object(), Json::array({Json::array({2})})}));
  EXPECT_EQ(json["object"]["x"]["y"], 1);
}

TEST(ParseJson, TakesScalarsAtTheTop) {
  EXPECT_EQ(parse_json("1.5", "a.json"), 1.5);
  EXPECT_EQ(parse_json("\"x\"", "a.json"), "x");
}

TEST(ParseJson, ErrorShowsThePlace) {
  EXPECT_EQ(parse_error("{\n  \"a\": 1,\n  \"b\": [1 2]\n}\n"),
            "a.json:3:11: error: unexpected number literal; expected ']'\n"
            "    \"b\": [1 2]\n"
            "            ^");
  EXPECT_EQ(parse_error("[1, 2"),
            "a.json:1:6: error: unexpected end of input; expected ']'\n"
            "  [1, 2\n"
            "       ^");
  EXPECT_THAT(parse_error(""), StartsWith("a.json:1:1: error: unexpected end of input"));
  EXPECT_THAT(parse_error("{} x"), StartsWith("a.json:1:4: error: "));
  EXPECT_THAT(parse_error("\n\n{,}"), StartsWith("a.json:3:2: error: unexpected ','"));
}

TEST(ParseJson, ErrorShowsAPartOfALongLine) {
  EXPECT_EQ(parse_error("[\"" + std::string(100, '1') + "\", x, " + std::string(1000, '2')),
            "a.json:1:106: error: invalid literal\n"
            "  " +
                std::string(57, '1') + "\", x, " + std::string(17, '2') + "\n" + "  " +
                std::string(60, ' ') + "^");
  const std::string message = parse_error("[\"" + std::string(1'000'000, 'x'));
  EXPECT_LT(message.size(), 300u);
  EXPECT_THAT(message,
              StartsWith("a.json:1:1000003: error: invalid string: missing closing quote"));
}

TEST(ParseJson, ErrorShowsNoControlBytes) {
  EXPECT_THAT(parse_error("[\"\xc3\xa4\", \x1b[31m]"), HasSubstr("\n  [\"..\", .[31m]\n"));
}

TEST(ParseJson, RefusesWhatIsNotJson) {
  EXPECT_THAT(parse_error("[1,]"), HasSubstr("expected"));
  EXPECT_THAT(parse_error("{'a': 1}"), HasSubstr("expected"));
  EXPECT_THAT(parse_error("[01]"), HasSubstr("unexpected number literal"));
  EXPECT_THAT(parse_error("[NaN]"), HasSubstr("invalid literal"));
  EXPECT_THAT(parse_error("// x\n1"), HasSubstr("invalid literal"));
  EXPECT_THAT(parse_error("\"\xff\""), HasSubstr("invalid string: ill-formed UTF-8 byte"));
  EXPECT_THAT(parse_error("\"\\ud800\""), HasSubstr("surrogate"));
  EXPECT_THAT(parse_error("\"a\nb\""), HasSubstr("control character"));
  EXPECT_EQ(parse_error(std::string_view("{}\0", 3)),
            "a.json:1:3: error: a zero byte, which JSON text never has\n  {}.\n    ^");
  EXPECT_EQ(parse_error("[1e999]"),
            "a.json:1:6: error: the number is too large for a double\n  [1e999]\n       ^");
}

TEST(ParseJson, RefusesTwoMembersOfOneName) {
  EXPECT_EQ(parse_error(R"({"a": 1, "b": {"a": 2}, "\u0061": 3})"),
            "a.json:1:32: error: the object has two members \"a\"; rename or remove one\n"
            "  {\"a\": 1, \"b\": {\"a\": 2}, \"\\u0061\": 3}\n"
            "                                 ^");
}

TEST(ParseJson, LimitsDepth) {
  const JsonLimits limits{.max_depth = 3};
  EXPECT_EQ(parse_json("[[[1]], {\"a\": []}]", "a.json", limits).size(), 2u);
  EXPECT_EQ(parse_error("[[[[1]]]]", limits),
            "a.json:1:4: error: arrays and objects are nested more than 3 deep\n  [[[[1]]]]\n     "
            "^");
  EXPECT_THAT(parse_error(std::string(10'000'000, '[')), HasSubstr("nested more than 100 deep"));
}

TEST(ParseJson, LimitsValues) {
  const JsonLimits limits{.max_values = 4};
  EXPECT_EQ(parse_json("[1, 2, {}]", "a.json", limits).size(), 3u);
  EXPECT_THAT(parse_error("[1, 2, 3, 4]", limits),
              StartsWith("a.json:1:12: error: more than 4 values; split the data"));
  EXPECT_THAT(parse_error(R"({"a": 1, "b": 2, "c": 3, "d": 4})", limits),
              HasSubstr("more than 4 values"));
}

TEST(ParseJson, LimitsBytes) {
  const JsonLimits limits{.max_bytes = 5};
  EXPECT_EQ(parse_json("[123]", "a.json", limits).size(), 1u);
  EXPECT_EQ(parse_error("[1234]", limits),
            "a.json: 6 bytes of JSON; at most 5 are read. Split the data");
}

TEST(ReadJson, ReadsWhatWriteJsonWrote) {
  const ScopedFolder folder;
  const Json json = {{"b", {1, 2.5, "x"}}, {"a", nullptr}, {"c", 0.1}, {"d", -0.0}};
  write_json(folder / "a.json", json);
  EXPECT_EQ(read_json(folder / "a.json"), json);
  EXPECT_EQ(MappedFile(folder / "a.json").text(),
            "{\n  \"a\": null,\n  \"b\": [\n    1,\n    2.5,\n    \"x\"\n  ],\n  \"c\": 0.1,\n"
            "  \"d\": -0.0\n}\n");
}

TEST(ReadJson, ErrorNamesTheFile) {
  const ScopedFolder folder;
  write_file(folder / "bad.json", std::string_view("{\"a\" 1}"));
  EXPECT_THAT(error_of(ErrorKind::kParseError, [&] { read_json(folder / "bad.json"); }),
              StartsWith((folder / "bad.json").string() + ":1:6: error: "));
  EXPECT_THAT(error_of(ErrorKind::kInvalidArgument, [&] { read_json(folder / "none.json"); }),
              HasSubstr("none.json: cannot open the file"));
}

std::string format_error(const Json& json) {
  return error_of(ErrorKind::kInvalidArgument, [&] { format_json(json); });
}

TEST(FormatJson, RefusesWhatJsonCannotSay) {
  EXPECT_EQ(format_error({{"a", {1, std::nan("")}}}),
            "format_json: /a/1 is nan, which JSON cannot say; write null or a string instead");
  EXPECT_EQ(
      format_error(-std::numeric_limits<double>::infinity()),
      "format_json: the value is -inf, which JSON cannot say; write null or a string instead");
  EXPECT_THAT(format_error({{"a", Json::binary({1, 2})}}), HasSubstr("/a is binary"));
  EXPECT_THAT(format_error({{"a", "\xff"}}), HasSubstr("a string is not UTF-8"));
}

TEST(FormatJson, RefusesNestingThatParseJsonWouldRefuse) {
  Json json = 1;
  for (int depth = 0; depth < 100; ++depth) json = Json::array({std::move(json)});
  EXPECT_EQ(parse_json(format_json(json), "a.json"), json);
  json = Json::array({std::move(json)});
  EXPECT_THAT(format_error(json), HasSubstr("nested more than 100 deep"));
}

TEST(WriteJson, RefusalLeavesTheOldFile) {
  const ScopedFolder folder;
  write_json(folder / "a.json", 1);
  EXPECT_THROW(write_json(folder / "a.json", std::nan("")), Error);
  EXPECT_EQ(read_json(folder / "a.json"), 1);
}

}  // namespace
}  // namespace tilewright
