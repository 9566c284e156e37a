// JSON read in order: values, places of errors, the same verdict as parse_json on damaged texts.
#include "tokenizer/json_reader.h"

#include "base/json.h"
#include "tests/base/expect_error.h"
#include "tests/base/mutator.h"

#include <nlohmann/json.hpp>

namespace tilewright {
namespace {

using ::testing::HasSubstr;

TEST(JsonReader, ReadsValuesInOrder) {
  JsonReader json(
      R"( {"a": [1, -2, []], "b\u0041": "x\n\ud83d\ude42", "c": true, "d": {"e": 1e5}} )", "input");
  json.begin_object();
  ASSERT_TRUE(json.next_member());
  EXPECT_EQ(json.name(), "a");
  EXPECT_EQ(json.name_in_text(), "a");
  json.begin_array();
  ASSERT_TRUE(json.next_elem());
  EXPECT_EQ(json.integer(0, 9), 1);
  ASSERT_TRUE(json.next_elem());
  EXPECT_EQ(json.integer(-9, 9), -2);
  ASSERT_TRUE(json.next_elem());
  EXPECT_EQ(json.next_kind(), JsonReader::Kind::kArray);
  json.begin_array();
  EXPECT_FALSE(json.next_elem());
  EXPECT_FALSE(json.next_elem());
  ASSERT_TRUE(json.next_member());
  EXPECT_EQ(json.name(), "bA");
  EXPECT_EQ(json.name_in_text().data(), nullptr);
  EXPECT_EQ(json.string(), "x\n\xf0\x9f\x99\x82");
  ASSERT_TRUE(json.next_member());
  EXPECT_TRUE(json.boolean());
  ASSERT_TRUE(json.next_member());
  EXPECT_EQ(json.skip(), R"({"e": 1e5})");
  EXPECT_FALSE(json.next_member());
  json.end();
}

TEST(JsonReader, SaysWhereSomethingElseStands) {
  const auto message = [](const char* text, auto&& read) {
    return error_of(ErrorKind::kParseError, [&] {
      JsonReader json(text, "input");
      read(json);
    });
  };
  const auto skip = [](JsonReader& json) {
    json.skip();
    json.end();
  };
  EXPECT_THAT(message("\n  7", [](JsonReader& json) { json.string(); }),
              HasSubstr("input:2:3: error: found '7'; expected a string"));
  EXPECT_THAT(message("12", [](JsonReader& json) { json.integer(0, 9); }),
              HasSubstr("input:1:1: error: expected a whole number from 0 to 9"));
  EXPECT_THAT(message("99999999999999999999", [](JsonReader& json) { json.integer(0, 9); }),
              HasSubstr("a whole number from 0 to 9"));
  EXPECT_THAT(message("1.5", [](JsonReader& json) { json.integer(0, 9); }),
              HasSubstr("a whole number from 0 to 9"));
  EXPECT_THAT(message("\"a", skip), HasSubstr("the text ends in a string"));
  EXPECT_THAT(message("\"\\x\"", skip), HasSubstr("unknown escape"));
  EXPECT_THAT(message("\"\\udc00\"", skip), HasSubstr("half of a surrogate pair"));
  EXPECT_THAT(message("\"\xff\"", skip), HasSubstr("input:1:2: error: a byte that is not UTF-8"));
  EXPECT_THAT(message("[1 2]", skip), HasSubstr("found '2'; expected a comma or ]"));
  EXPECT_THAT(message("[1,]", skip), HasSubstr("found ']'; expected a value"));
  EXPECT_THAT(message("1 1", skip), HasSubstr("expected nothing more"));
  EXPECT_THAT(message("", skip), HasSubstr("the text ends; expected a value"));
  EXPECT_THAT(message(std::string(200, '[').c_str(), skip), HasSubstr("more than 100 deep"));
}

TEST(JsonReader, AgreesWithTheParserOnDamagedTexts) {
  Mutator mutator(7, {"{", "}", "[", "]", ":", ",", "\"", "\\", "null", "1e5", "\\ud800", "-0"});
  const std::string good =
      R"({"a": [1, -2.5e3, {"b": null}], "c": "x\u00e9\n", "d": [[], {}, ""]})";
  int num_accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string text = mutator.mutate(good);
    std::string parsed, read;
    try {
      parse_json(text, "input");
    } catch (const Error& error) {
      parsed = error.what();
    }
    try {
      JsonReader json(text, "input");
      json.skip();
      json.end();
    } catch (const Error& error) {
      read = error.what();
    }
    // What a reader that builds nothing need not find.
    if (parsed.find("two members") != parsed.npos || parsed.find("too large") != parsed.npos)
      continue;
    EXPECT_EQ(parsed.empty(), read.empty()) << text << "\n" << parsed << "\n" << read;
    num_accepted += read.empty() ? 1 : 0;
  }
  EXPECT_GT(num_accepted, 200);
  EXPECT_LT(num_accepted, 18'000);
}

}  // namespace
}  // namespace tilewright
