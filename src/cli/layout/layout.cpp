// tilewright layout: the group of layout commands, and how they read what the user names.

#include "cli/layout/layout.h"

#include "base/error.h"
#include "cli/tool/command.h"

#include <charconv>

namespace tilewright::cli {

void add_layout(CLI::App& app, Context& context) {
  CLI::App* layout = app.add_subcommand("layout", "evaluate, draw and check layouts");
  layout->require_subcommand(1);
  layout->footer(
      "A layout is written as CuTe prints it, ((4,8),(2,2)):((32,1),(16,8)), with Sw<B,M,S> o "
      "OFFSET o in\n"
      "front where it is swizzled. Named hardware layouts (`layout atoms`) can stand wherever a "
      "layout can.");
  add_layout_eval(*layout, context);
  add_layout_draw(*layout, context);
  add_layout_check(*layout, context);
  add_layout_atoms(*layout, context);
  add_layout_banks(*layout, context);
  add_layout_handoff(*layout, context);
}

namespace {

int range_number(std::string_view text, const std::string& whole) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  require(error == std::errc() && end == text.data() + text.size() && value >= 0,
          ErrorKind::kInvalidArgument, "range {}: expected BEGIN:END or COUNT, whole numbers",
          whole);
  return value;
}

}  // namespace

std::pair<int, int> read_range(const std::string& text) {
  if (text.empty()) return {0, -1};
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return {0, range_number(text, text)};
  const std::string_view view = text;
  const int begin = colon == 0 ? 0 : range_number(view.substr(0, colon), text);
  const int end = colon + 1 == text.size() ? -1 : range_number(view.substr(colon + 1), text);
  return {begin, end};
}

}  // namespace tilewright::cli
