#include "cli/tool/usage.h"

#include <sstream>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tilewright::cli {

namespace {

constexpr std::size_t kHelpColumns = 100;

// A line of options goes on below its right column, any other one at the margin.
std::string wrap_line(std::string line, std::size_t right_column) {
  const std::string margin(line.starts_with(" ") ? right_column : 0, ' ');
  std::string out;
  while (line.size() > kHelpColumns) {
    const std::size_t blank = line.rfind(' ', kHelpColumns);
    if (blank == std::string::npos || blank <= margin.size()) break;
    out += line.substr(0, blank) + "\n";
    line = margin + line.substr(blank + 1);
  }
  return out + line;
}

class WrappedHelp final : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    std::stringstream text(Formatter::make_help(app, std::move(name), mode));
    std::string out;
    for (std::string line; std::getline(text, line);)
      out += wrap_line(std::move(line), column_width_) + "\n";
    return out;
  }
};

// The command that was being read, and its words: "layout draw".
const CLI::App* deepest_command(const CLI::App& app, std::string& words) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    words += (words.empty() ? "" : " ") + command->get_name();
  }
  return command;
}

std::vector<std::string> names_of_subcommands(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* each : command.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(each->get_name());
  return names;
}

// CLI11 names what is left over in the reverse order.
std::string of_what_is_left(const std::vector<std::string>& left,
                            const std::vector<std::string>& subcommands) {
  const std::string& first = left.front();
  if (first.starts_with("-")) return fmt::format("there is no option {}", first);
  if (subcommands.empty()) return fmt::format("\"{}\" is one argument too many", first);
  return fmt::format("there is no command \"{}\"; expected one of {}", first,
                     fmt::join(subcommands, ", "));
}

}  // namespace

std::shared_ptr<CLI::FormatterBase> make_help_formatter() {
  return std::make_shared<WrappedHelp>();
}

std::string usage_message(const CLI::App& app, const CLI::ParseError& error) {
  std::string words;
  const CLI::App* const command = deepest_command(app, words);
  const std::vector<std::string> left = app.remaining(true);
  const std::vector<std::string> subcommands = names_of_subcommands(*command);
  std::string what = error.what();
  const bool has_words_left = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
  if (has_words_left && !left.empty()) {
    what = of_what_is_left(left, subcommands);
  } else if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && !subcommands.empty()) {
    what = fmt::format("name what to do: {}", fmt::join(subcommands, ", "));
  }
  return fmt::format("{}{}{}\n`tilewright{}{} --help` says more.", words, words.empty() ? "" : ": ",
                     what, words.empty() ? "" : " ", words);
}

}  // namespace tilewright::cli
