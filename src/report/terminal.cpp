#include "report/terminal.h"

#include "base/env.h"
#include "base/json.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include <fmt/format.h>
#include <unistd.h>

namespace tilewright::cli {

namespace {

int lost_output = 0;  // why print() lost some: an error number

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789.,+-eExX %") == std::string_view::npos;
}

// Columns a UTF-8 text takes; combining and wide characters do not occur in what the tool prints.
std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

void print(const std::string& text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() && lost_output == 0)
    lost_output = errno;
}

int finish_output() {
  errno = 0;
  std::cout.flush();
  const bool is_flushed = std::fflush(stdout) == 0;
  if (lost_output != 0) return lost_output;
  if (is_flushed && std::ferror(stdout) == 0 && std::cout.good()) return 0;
  return errno != 0 ? errno : EIO;
}

void print_json(const nlohmann::json& value) {
  print(format_json(value, JsonStrings::kReplaceInvalid));
}

TextColor detect_color(ColorMode mode) {
  const std::string term = env_text("TERM"), colorterm = env_text("COLORTERM");
  const bool is_rich = colorterm == "truecolor" || colorterm == "24bit";
  if (mode == ColorMode::kNever) return TextColor::kNone;
  if (mode == ColorMode::kAlways) return is_rich ? TextColor::kTrue : TextColor::k256;
  const bool is_plain = !env_text("NO_COLOR").empty() || term.empty() || term == "dumb";
  if (is_plain || isatty(STDOUT_FILENO) == 0) return TextColor::kNone;
  return is_rich ? TextColor::kTrue : TextColor::k256;
}

std::string Style::wrap(std::string_view code, std::string_view text) const {
  return has_color_ ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

std::string Table::text(const Style& style) const {
  std::vector<std::size_t> width;
  std::vector<bool> right(header_.size(), true);
  for (std::size_t c = 0; c < header_.size(); ++c) {
    width.push_back(columns_of(header_[c]));
    for (const auto& row : rows_) {
      width[c] = std::max(width[c], columns_of(row[c]));
      right[c] = right[c] && (is_number(row[c]) || row[c].empty() || row[c] == "-");
    }
  }
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string out;
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const std::string blank(width[c] - columns_of(cells[c]), ' ');
      out += c > 0 ? "  " : "";
      out += right[c] ? blank + cells[c] : cells[c] + blank;
    }
    out.erase(out.find_last_not_of(' ') + 1);
    return out;
  };
  std::string out = style.bold(line(header_)) + "\n";
  for (const auto& row : rows_) out += line(row) + "\n";
  return out;
}

}  // namespace tilewright::cli
