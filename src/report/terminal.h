// What the tool prints to: colours where the terminal takes them, tables that line up.
#pragma once

#include "layout/draw_text.h"

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::cli {

/// Writes to standard output, and a JSON value with a newline at the end.
void print(const std::string& text);
void print_json(const nlohmann::json& value);

/// Sends what is buffered. 0, or the error number of what was lost since the program began.
int finish_output();

/// When to colour: kAuto means on a terminal that can, unless NO_COLOR is set to something
/// (no-color.org).
enum class ColorMode { kAuto, kAlways, kNever };

/// How much colour standard output takes under that mode.
TextColor detect_color(ColorMode mode);

/// Emphasis that vanishes where there is no colour.
class Style {
 public:
  explicit Style(TextColor color) : has_color_(color != TextColor::kNone) {}

  std::string bold(std::string_view text) const { return wrap("1", text); }
  std::string faint(std::string_view text) const { return wrap("2", text); }
  std::string good(std::string_view text) const { return wrap("32", text); }
  std::string bad(std::string_view text) const { return wrap("31;1", text); }

 private:
  std::string wrap(std::string_view code, std::string_view text) const;
  bool has_color_;
};

/// A table in columns that line up; columns whose cells are all numbers are set to the right.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : header_(std::move(header)) {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string text(const Style& style) const;

 private:
  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace tilewright::cli
