#include "sim/parse/diagnostic.h"

#include "base/quote.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

namespace tilewright::sim {
namespace {

constexpr std::size_t kMaxShownBytes = 90;
constexpr std::size_t kMaxFileBytes = 300;
constexpr std::size_t kMaxMessageBytes = 1000;

/// The line of that number without its end.
std::string_view line_of(std::string_view text, std::uint32_t line) {
  for (; line > 1; --line) {
    const std::size_t end = text.find('\n');
    if (end == text.npos) return {};
    text.remove_prefix(end + 1);
  }
  return text.substr(0, text.find_first_of("\r\n"));
}

/// The piece of a line around a column, and a caret below that column.
std::string show(std::string_view line, std::size_t column) {
  const std::size_t caret = std::min(column == 0 ? 0 : column - 1, line.size());
  const std::size_t begin = caret < kMaxShownBytes * 2 / 3 ? 0 : caret - kMaxShownBytes / 2;
  std::string shown(line.substr(begin, kMaxShownBytes));
  // One character for each byte, whatever a terminal would make of it.
  std::ranges::replace_if(
      shown, [](char c) { return c == '\t'; }, ' ');
  std::ranges::replace_if(
      shown, [](char c) { return c < ' ' || c > '~'; }, '?');
  const std::string_view before = begin == 0 ? "" : "...";
  const std::string_view after = begin + shown.size() < line.size() ? "..." : "";
  return fmt::format("  {}{}{}\n  {}^", before, shown, after,
                     std::string(before.size() + caret - begin, ' '));
}

}  // namespace

std::string format_diagnostic(std::string_view file, std::string_view text, SourcePos pos,
                              std::string_view message) {
  const std::string name = escape(file, kMaxFileBytes);
  const std::string_view shown_message = message.substr(0, kMaxMessageBytes);
  if (pos.line == 0) return fmt::format("{}: error: {}", name, shown_message);
  return fmt::format("{}:{}:{}: error: {}\n{}", name, pos.line, pos.column, shown_message,
                     show(line_of(text, pos.line), pos.column));
}

void fail_at(const Module& module, SourcePos pos, std::string_view message) {
  const std::string_view text = module.text ? std::string_view(*module.text) : std::string_view();
  fail(ErrorKind::kParseError, "{}", format_diagnostic(module.name, text, pos, message));
}

namespace {

std::size_t offset_of(const std::string& text, const Instruction& instruction) {
  const char* const opcode = instruction.opcode.data();
  constexpr std::less_equal<const char*> is_before;
  if (is_before(text.data(), opcode) && is_before(opcode, text.data() + text.size()))
    return static_cast<std::size_t>(opcode - text.data());
  // The opcode of an fma made of a mul and an add stands nowhere; its place is the add's.
  std::size_t line = 0;
  for (std::uint32_t i = 1; i < instruction.pos.line && line < text.size(); ++i)
    line = text.find('\n', line) + 1;
  return std::min(text.size(), line + instruction.pos.column - 1);
}

}  // namespace

std::string Module::text_of(const Instruction& instruction, std::size_t most_chars) const {
  const std::size_t offset = offset_of(*text, instruction);
  std::string out;
  for (const char c : std::string_view(*text).substr(offset, instruction.length)) {
    const bool is_blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    if (is_blank && (out.empty() || out.back() == ' ')) continue;
    out += is_blank ? ' ' : c;
  }
  if (out.size() > most_chars) out = out.substr(0, most_chars - 3) + "...";
  return out;
}

std::string Module::target_name() const {
  return fmt::format("sm_{}{}", target, is_arch_specific ? "a" : is_family_specific ? "f" : "");
}

bool Module::runs_on(int compute_capability) const noexcept {
  return target_runs_on(target,
                        is_arch_specific     ? 'a'
                        : is_family_specific ? 'f'
                                             : '\0',
                        compute_capability);
}

std::string Module::version_note() const {
  if (version <= kNewestPtx) return {};
  return fmt::format("; the module is PTX {}.{}, and {}.{} is the newest known here", version / 10,
                     version % 10, kNewestPtx / 10, kNewestPtx % 10);
}

std::string_view Module::file_name(std::uint32_t file) const noexcept {
  for (const auto& [number, path] : files) {
    if (number == file) return path;
  }
  return {};
}

}  // namespace tilewright::sim
