// JSON read in order, value by value: for files of which no tree is wanted because they are large.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tilewright {

/// Reads a JSON text (RFC 8259, UTF-8) from its beginning to its end; the caller says what it
/// expects next. Everything else is a ParseError of parse_json's form, with the place:
///
///     JsonReader json(text, "tokenizer.json");
///     json.begin_object();
///     while (json.next_member()) {
///       if (json.name() == "id") id = json.integer(0, 9);
///       else json.skip();
///     }
///     json.end();
///
/// Two members of one name are not found here: a caller for whom they matter must.
class JsonReader {
 public:
  JsonReader(std::string_view text, std::string source);

  void begin_object();
  /// Whether another member follows; its name is name() then, its value must be read next. At the
  /// end of the object: false, and the object is closed.
  bool next_member();
  const std::string& name() const { return name_; }
  /// The same as a part of the text, which lives longer; without data if the text has escapes.
  std::string_view name_in_text() const { return name_in_text_; }

  void begin_array();
  bool next_elem();  ///< the same for an array

  /// Valid until the next call of any function.
  std::string_view string();
  std::int64_t integer(std::int64_t min, std::int64_t max);
  bool boolean();
  enum class Kind { kObject, kArray, kString, kOther };
  /// What comes next, by its first character; nothing is read.
  Kind next_kind();

  /// Reads a value of any kind. Its text, for parse_json or to be read later.
  std::string_view skip();

  /// Only white space may follow.
  void end();

  /// Goes back to what a function read last: reading it again gives the same.
  std::size_t place() const { return at_; }
  void go_to(std::size_t place) { at_ = place; }

  /// A ParseError that points at the value that was read last.
  [[noreturn]] void fail(std::string_view message) const;

 private:
  char peek();
  bool next_of(char close);
  void expect_word(std::string_view word);
  std::uint32_t read_hex();
  std::string_view escaped_string(std::size_t begin);
  void skip_number();
  [[noreturn]] void fail_at(std::size_t place, std::string_view message) const;
  [[noreturn]] void fail_expected(std::string_view what);

  std::string_view text_;
  std::string source_;
  std::size_t at_ = 0;
  std::size_t value_at_ = 0;
  bool is_first_ = false;  // nothing was read yet of the object or array that was begun last
  std::string name_, scratch_;
  std::string_view name_in_text_;
};

}  // namespace tilewright
