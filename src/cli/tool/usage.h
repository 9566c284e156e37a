// --help, and what the tool says of a command line that it does not understand.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

namespace tilewright::cli {

/// Writes --help in lines of at most 100 columns.
std::shared_ptr<CLI::FormatterBase> make_help_formatter();

/// What is wrong, in a line, and the command whose --help says what is right:
///
///     linear: there is no option --rows
///     `tilewright linear --help` says more.
std::string usage_message(const CLI::App& app, const CLI::ParseError& error);

}  // namespace tilewright::cli
