#include "base/json_node.h"

#include "base/quote.h"

#include <nlohmann/json.hpp>

namespace tilewright {
namespace {

using Json = nlohmann::json;

/// What a value is, for "found ...".
std::string description(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::object:
      return fmt::format("an object of {} members", value.size());
    case Json::value_t::array:
      return fmt::format("an array of {} elements", value.size());
    case Json::value_t::string:
      return "string " + quote(value.get_ref<const std::string&>());
    default:
      return fmt::format("{} {}", value.type_name(), value.dump());
  }
}

/// The first names of an object, for "it has ...".
std::string list_keys(const Json& object) {
  constexpr int kMaxKeys = 10;
  std::string list;
  int num_listed = 0;
  for (const auto& [key, member] : object.items()) {
    if (num_listed == kMaxKeys) return list + fmt::format(", ... ({} in all)", object.size());
    list += (num_listed++ == 0 ? "" : ", ") + quote(key, 40);
  }
  return list.empty() ? "no members" : list;
}

}  // namespace

JsonNode::JsonNode(const Json& root, std::string source)
    : value_(&root), source_(std::make_shared<const std::string>(std::move(source))) {}

JsonNode::JsonNode(const JsonNode& parent, const Json& value, std::string_view key)
    : value_(&value), source_(parent.source_), path_(parent.path_) {
  path_ += '/';
  path_ += escape(key);  // cut: every node has a copy, and a hostile key is as long as its file
}

JsonNode JsonNode::at(std::string_view key) const {
  if (auto member = find(key)) return *std::move(member);
  fail("member {} is missing; the object has {}", quote(key), list_keys(*value_));
}

std::optional<JsonNode> JsonNode::find(std::string_view key) const {
  if (!value_->is_object()) fail_expected("an object");
  const auto member = value_->find(key);
  if (member == value_->end()) return std::nullopt;
  return JsonNode(*this, *member, key);
}

std::vector<std::pair<std::string, JsonNode>> JsonNode::members() const {
  if (!value_->is_object()) fail_expected("an object");
  std::vector<std::pair<std::string, JsonNode>> members;
  members.reserve(value_->size());
  for (const auto& [key, member] : value_->items()) {
    members.emplace_back(key, JsonNode(*this, member, key));
  }
  return members;
}

std::vector<JsonNode> JsonNode::elems() const {
  if (!value_->is_array()) fail_expected("an array");
  std::vector<JsonNode> elems;
  elems.reserve(value_->size());
  for (const Json& elem : *value_) {
    elems.push_back(JsonNode(*this, elem, std::to_string(elems.size())));
  }
  return elems;
}

std::int64_t JsonNode::as_int(std::int64_t min, std::int64_t max) const {
  const bool is_too_large =
      value_->is_number_unsigned() &&
      value_->get<std::uint64_t>() >
          static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (value_->is_number_integer() && !is_too_large) {
    const auto value = value_->get<std::int64_t>();
    if (value >= min && value <= max) return value;
  }
  fail_expected(fmt::format("a whole number from {} to {}", min, max));
}

double JsonNode::as_double() const {
  if (!value_->is_number()) fail_expected("a number");
  return value_->get<double>();
}

bool JsonNode::as_bool() const {
  if (!value_->is_boolean()) fail_expected("true or false");
  return value_->get<bool>();
}

const std::string& JsonNode::as_string() const {
  if (!value_->is_string()) fail_expected("a string");
  return value_->get_ref<const std::string&>();
}

void JsonNode::fail_text(const std::string& text) const {
  tilewright::fail(ErrorKind::kParseError, "{}: {}: {}", *source_,
                   path_.empty() ? "top level" : path_, text);
}

void JsonNode::fail_expected(std::string_view what) const {
  fail("expected {}, found {}", what, description(*value_));
}

}  // namespace tilewright
