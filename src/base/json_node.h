// Reading values out of JSON, with errors that say which value of which file is wrong.
#pragma once

#include "base/error.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tilewright {

/// A JSON value that knows where it stands. Every function that finds something else than it was
/// asked for throws a ParseError that names source, place and what was found:
///
///     config.json: /layers/3/heads: expected a whole number from 1 to 128, found string "8"
///
/// The tree that the root was made of must outlive the node.
class JsonNode {
 public:
  JsonNode(const nlohmann::json& root, std::string source);

  const nlohmann::json& value() const { return *value_; }

  /// Keys and indices from the root, each after a slash, fit for a message (see escape()); empty
  /// for the root.
  const std::string& path() const { return path_; }

  /// A member of this object. The error for a missing one lists those there are.
  JsonNode at(std::string_view key) const;

  /// The same, nothing if the object has no such member.
  std::optional<JsonNode> find(std::string_view key) const;

  /// All members of this object by name, all elements of this array in order.
  std::vector<std::pair<std::string, JsonNode>> members() const;
  std::vector<JsonNode> elems() const;

  /// A number written without fraction and exponent, within the bounds.
  std::int64_t as_int(std::int64_t min = std::numeric_limits<std::int64_t>::min(),
                      std::int64_t max = std::numeric_limits<std::int64_t>::max()) const;
  /// Any number, rounded to double.
  double as_double() const;
  bool as_bool() const;
  const std::string& as_string() const;

  /// Throws a ParseError that begins with source and place, for what only the caller can check.
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    fail_text(fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  JsonNode(const JsonNode& parent, const nlohmann::json& value, std::string_view key);
  [[noreturn]] void fail_text(const std::string& text) const;
  [[noreturn]] void fail_expected(std::string_view what) const;

  const nlohmann::json* value_;
  std::shared_ptr<const std::string> source_;
  std::string path_;
};

}  // namespace tilewright
