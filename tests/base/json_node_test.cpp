#include "base/json_node.h"

#include "base/json.h"
#include "tests/base/expect_error.h"

#include <limits>
#include <nlohmann/json.hpp>

namespace tilewright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// A root that owns its tree.
struct Tree {
  explicit Tree(std::string_view text) : json(parse_json(text, "a.json")), root(json, "a.json") {}
  nlohmann::json json;
  JsonNode root;
};

template <class Call>
std::string node_error(Call&& call) {
  return error_of(ErrorKind::kParseError, std::forward<Call>(call));
}

TEST(JsonNode, ReadsValues) {
  const Tree tree(R"({"layers": [{"heads": 8, "scale": 0.5, "name": "q", "causal": true}]})");
  const JsonNode layer = tree.root.at("layers").elems().at(0);
  EXPECT_EQ(layer.at("heads").as_int(1, 8), 8);
  EXPECT_EQ(layer.at("scale").as_double(), 0.5);
  EXPECT_EQ(layer.at("heads").as_double(), 8.0);
  EXPECT_EQ(layer.at("name").as_string(), "q");
  EXPECT_TRUE(layer.at("causal").as_bool());
  EXPECT_EQ(layer.at("heads").path(), "/layers/0/heads");
  EXPECT_EQ(tree.root.path(), "");
}

TEST(JsonNode, OutlivesTheNodeItCameFrom) {
  const Tree tree(R"({"a": {"b": 1}})");
  const auto member = [&] { return JsonNode(tree.json, "copy").at("a").at("b"); }();
  EXPECT_EQ(member.as_int(), 1);
  EXPECT_EQ(node_error([&] { member.as_string(); }),
            "copy: /a/b: expected a string, found number 1");
}

TEST(JsonNode, FindIsNothingForMissingMembers) {
  const Tree tree(R"({"a": null})");
  EXPECT_TRUE(tree.root.find("a").has_value());
  EXPECT_FALSE(tree.root.find("b").has_value());
}

TEST(JsonNode, ListsMembersByName) {
  const Tree tree(R"({"b": 1, "a": 2})");
  std::vector<std::string> names;
  for (const auto& [name, node] : tree.root.members()) {
    names.push_back(name + "=" + std::to_string(node.as_int()));
  }
  EXPECT_THAT(names, ElementsAre("a=2", "b=1"));
}

TEST(JsonNode, ErrorsNamePlaceExpectationAndFind) {
  const Tree tree(
      R"({"n": 1.5, "s": "8\u001b", "l": [1, 2], "o": {"x": 1}, "z": null, "t": true})");
  const JsonNode& root = tree.root;
  EXPECT_EQ(node_error([&] { root.at("s").as_int(1, 128); }),
            R"(a.json: /s: expected a whole number from 1 to 128, found string "8\x1b")");
  EXPECT_EQ(node_error([&] { root.at("n").as_int(0, 9); }),
            "a.json: /n: expected a whole number from 0 to 9, found number 1.5");
  EXPECT_EQ(node_error([&] { root.at("l").elems()[1].as_int(5, 9); }),
            "a.json: /l/1: expected a whole number from 5 to 9, found number 2");
  EXPECT_EQ(node_error([&] { root.at("l").as_double(); }),
            "a.json: /l: expected a number, found an array of 2 elements");
  EXPECT_EQ(node_error([&] { root.at("z").as_bool(); }),
            "a.json: /z: expected true or false, found null");
  EXPECT_EQ(node_error([&] { root.at("t").as_string(); }),
            "a.json: /t: expected a string, found boolean true");
  EXPECT_EQ(node_error([&] { root.at("o").elems(); }),
            "a.json: /o: expected an array, found an object of 1 members");
  EXPECT_EQ(node_error([&] { root.at("l").members(); }),
            "a.json: /l: expected an object, found an array of 2 elements");
  EXPECT_EQ(node_error([&] { root.at("s").at("x"); }),
            R"(a.json: /s: expected an object, found string "8\x1b")");
  EXPECT_EQ(node_error([&] { root.elems(); }),
            "a.json: top level: expected an array, found an object of 6 members");
}

TEST(JsonNode, MissingMemberErrorListsThoseThereAre) {
  EXPECT_EQ(node_error([] { Tree(R"({"o": {"x": 1, "y": 2}})").root.at("o").at("z"); }),
            R"(a.json: /o: member "z" is missing; the object has "x", "y")");
  EXPECT_EQ(node_error([] { Tree("{}").root.at("z"); }),
            R"(a.json: top level: member "z" is missing; the object has no members)");
  nlohmann::json large;
  for (int i = 0; i < 5000; ++i) large["key" + std::to_string(10000 + i)] = i;
  const std::string message = node_error([&] { JsonNode(large, "a.json").at("z"); });
  EXPECT_THAT(message, HasSubstr("\"key10009\", ... (5000 in all)"));
  EXPECT_LT(message.size(), 300u);
}

TEST(JsonNode, IntegersAreExactOrRefused) {
  const auto as_int = [](std::string_view text) { return Tree(text).root.as_int(); };
  EXPECT_EQ(as_int("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(as_int("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
  for (const char* text :
       {"9223372036854775808", "18446744073709551615", "1e3", "1.0", "99999999999999999999999"}) {
    EXPECT_THAT(node_error([&] { as_int(text); }), HasSubstr("expected a whole number")) << text;
  }
}

TEST(JsonNode, HostileKeysDoNotFillMessages) {
  nlohmann::json json;
  json[std::string(1'000'000, '\n')]["x"] = 1;
  const auto members = JsonNode(json, "a.json").members();
  const std::string message = node_error([&] { members[0].second.at("x").as_bool(); });
  EXPECT_LT(message.size(), 300u);
  EXPECT_THAT(message, StartsWith("a.json: /\\n\\n"));
  EXPECT_THAT(message, HasSubstr(".../x: expected true or false"));
}

TEST(JsonNode, FailAddsSourceAndPlace) {
  const Tree tree(R"({"heads": 6})");
  EXPECT_EQ(node_error([&] { tree.root.at("heads").fail("{} is not a multiple of {}", 6, 4); }),
            "a.json: /heads: 6 is not a multiple of 4");
}

}  // namespace
}  // namespace tilewright
