#include "base/json.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json_error.h"
#include "base/quote.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

namespace tilewright {

/// "source:line:column: error: message", the line around the place, and a caret below it.
void fail_json(std::string_view text, std::size_t offset, std::string_view source,
               std::string_view message) {
  constexpr std::size_t kMaxBefore = 60;
  constexpr std::size_t kMaxAfter = 20;
  offset = std::min(offset, text.size());
  const auto head = text.substr(0, offset);
  const auto line = 1 + std::ranges::count(head, '\n');
  const std::size_t line_begin = head.rfind('\n') + 1;  // npos + 1 == 0: the first line
  const std::size_t line_end = std::min(text.find('\n', offset), text.size());
  const std::size_t begin = offset - std::min(offset - line_begin, kMaxBefore);
  const std::size_t end = std::min(line_end, offset + kMaxAfter);
  std::string excerpt(text.substr(begin, end - begin));
  // One column per byte keeps the caret in place and the terminal safe.
  std::ranges::replace_if(
      excerpt, [](char c) { return c < 0x20 || c == 0x7f; }, '.');
  fail(ErrorKind::kParseError, "{}:{}:{}: error: {}\n  {}\n  {:>{}}", source, line,
       offset - line_begin + 1, message, excerpt, '^', offset - begin + 1);
}

namespace {

using Json = nlohmann::json;

/// Reads text and counts; the events of nlohmann's parser do not say where they happened.
struct CountingIterator {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* position;
  std::size_t* count;

  reference operator*() const { return *position; }
  CountingIterator& operator++() {
    ++position;
    ++*count;
    return *this;
  }
  bool operator==(const CountingIterator& other) const { return position == other.position; }
};

/// Builds the value from the parser's events. What nlohmann's own builder does not check is checked
/// here: depth, number of values, members of the same name.
class TreeBuilder {
 public:
  TreeBuilder(std::string_view text, std::string_view source, const JsonLimits& limits)
      : text_(text), source_(source), limits_(limits) {}

  Json build() {
    const CountingIterator first{text_.data(), &num_read_};
    const CountingIterator last{text_.data() + text_.size(), nullptr};
    Json::sax_parse(first, last, this);
    return std::move(root_);
  }

  // The events, with the names and types that nlohmann asks for. All return true or throw.
  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(Json::number_integer_t value) { return add(value); }
  bool number_unsigned(Json::number_unsigned_t value) { return add(value); }
  bool number_float(Json::number_float_t value, const std::string& /*text*/) { return add(value); }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(Json::binary_t& value) { return add(std::move(value)); }
  bool start_object(std::size_t /*size*/) { return open(Json::object()); }
  bool start_array(std::size_t /*size*/) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    auto [member, is_new] = open_.back()->get_ref<Json::object_t&>().try_emplace(std::move(name));
    if (!is_new) {
      fail_here(
          fmt::format("the object has two members {}; rename or remove one", quote(member->first)));
    }
    next_ = &member->second;
    return true;
  }

  bool parse_error(std::size_t num_read, const std::string& /*last_token*/,
                   const Json::exception& error) {
    num_read_ = num_read;
    fail_here(reason(error));
  }

 private:
  /// Puts a value where it belongs and remembers the place in next_.
  bool add(Json value) {
    if (++num_values_ > limits_.max_values) {
      fail_here(fmt::format("more than {} values; split the data", limits_.max_values));
    }
    if (open_.empty()) {
      next_ = &root_;
    } else if (open_.back()->is_array()) {
      next_ = &open_.back()->get_ref<Json::array_t&>().emplace_back();
    }
    *next_ = std::move(value);
    return true;
  }

  bool open(Json container) {
    add(std::move(container));
    if (open_.size() == limits_.max_depth) {
      fail_here(fmt::format("arrays and objects are nested more than {} deep", limits_.max_depth));
    }
    open_.push_back(next_);
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  /// What is left of nlohmann's text without its prefix and without the last token, which the
  /// excerpt shows and which can be as long as the file.
  static std::string reason(const Json::exception& error) {
    if (error.id == 406) return "the number is too large for a double";
    std::string_view text = error.what();
    const std::size_t dash = text.find(" - ");
    if (dash != text.npos) text.remove_prefix(dash + 3);
    const std::size_t token = text.find("; last read: '");
    const std::size_t expected = text.rfind("; expected ");
    const bool has_expected = expected != text.npos && (token == text.npos || expected > token);
    std::string reason(text.substr(0, std::min(token, expected)));
    if (has_expected) reason += text.substr(expected);
    return reason;
  }

  [[noreturn]] void fail_here(std::string_view message) const {
    fail_json(text_, num_read_ - std::min<std::size_t>(num_read_, 1), source_, message);
  }

  std::string_view text_;
  std::string_view source_;
  const JsonLimits& limits_;
  std::size_t num_read_ = 0;
  std::size_t num_values_ = 0;
  Json root_;
  std::vector<Json*> open_;  // arrays and objects that are not closed, outermost first
  Json* next_ = nullptr;     // where the next value goes (in an object) or the last one went
};

/// Refuses what dump() would write as something else, or recurse into too deeply.
void check_formattable(const Json& value, const std::string& path, std::size_t depth) {
  if (depth > JsonLimits{}.max_depth) {
    fail(ErrorKind::kInvalidArgument, "format_json: {} is nested more than {} deep; flatten it",
         path, JsonLimits{}.max_depth);
  }
  if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    fail(ErrorKind::kInvalidArgument,
         "format_json: {} is {}, which JSON cannot say; write null or a string instead",
         path.empty() ? "the value" : path, value.get<double>());
  }
  if (value.is_binary() || value.is_discarded()) {
    fail(ErrorKind::kInvalidArgument, "format_json: {} is {}, which JSON cannot say",
         path.empty() ? "the value" : path, value.type_name());
  }
  if (!value.is_structured()) return;
  for (const auto& [key, member] : value.items()) {
    check_formattable(member, path + "/" + key, depth + 1);
  }
}

}  // namespace

Json parse_json(std::string_view text, std::string_view source, const JsonLimits& limits) {
  if (text.size() > limits.max_bytes) {
    fail(ErrorKind::kParseError, "{}: {} bytes of JSON; at most {} are read. Split the data",
         source, text.size(), limits.max_bytes);
  }
  // To nlohmann's parser a zero byte is the end of the text, whatever follows.
  const std::size_t zero = text.find('\0');
  if (zero != text.npos) fail_json(text, zero, source, "a zero byte, which JSON text never has");
  return TreeBuilder(text, source, limits).build();
}

Json read_json(const std::filesystem::path& path, const JsonLimits& limits) {
  const MappedFile file(path);
  return parse_json(file.text(), path.string(), limits);
}

std::string format_json(const Json& value, JsonStrings strings) {
  check_formattable(value, "", 0);
  const auto invalid = strings == JsonStrings::kReplaceInvalid ? Json::error_handler_t::replace
                                                               : Json::error_handler_t::strict;
  try {
    return value.dump(2, ' ', false, invalid) + "\n";
  } catch (const Json::exception& error) {
    fail(ErrorKind::kInvalidArgument, "format_json: a string is not UTF-8 ({})", error.what());
  }
}

void write_json(const std::filesystem::path& path, const Json& value) {
  write_file(path, format_json(value));
}

}  // namespace tilewright
