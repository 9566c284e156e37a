// Other PTX under an unchanged program: to try an edit of a kernel that the program carries.
#include "base/error.h"
#include "base/quote.h"
#include "sim/driver/objects/module.h"
#include "sim/parse/parser.h"

#include <algorithm>

#include <fmt/format.h>

namespace tilewright::sim {

namespace {

bool is_name_char(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         c == '$' || c == '%';
}

/// Whether an .entry of this name stands in the text; one in a comment counts too.
bool has_entry(std::string_view ptx, std::string_view name) {
  constexpr std::string_view kDirective = ".entry", kBlank = " \t\r\n";
  std::size_t at = ptx.find(kDirective);
  for (; at != std::string_view::npos; at = ptx.find(kDirective, at)) {
    const std::size_t begin =
        std::min(ptx.find_first_not_of(kBlank, at += kDirective.size()), ptx.size());
    const std::string_view rest = ptx.substr(begin);
    if (begin == at || !rest.starts_with(name)) continue;
    if (rest.size() == name.size() || !is_name_char(rest[name.size()])) return true;
  }
  return false;
}

std::string read_text(const std::string& path) {
  try {
    return read_ptx(path);
  } catch (const Error& error) {
    say(fmt::format("TILEWRIGHT_SIM_REPLACE: {} cannot be read; expected a PTX text ({})",
                    quote(path), error.what()));
    refuse(CUresult::kFileNotFound);
  }
}

}  // namespace

ModuleText replace_module(ModuleText given, const std::vector<Replacement>& replacements) {
  const auto found = std::ranges::find_if(
      replacements, [&](const Replacement& each) { return has_entry(given.ptx, each.entry); });
  if (found == replacements.end()) return given;
  std::string text = read_text(found->path);
  if (!has_entry(text, found->entry)) {
    say(
        fmt::format("TILEWRIGHT_SIM_REPLACE: {} has no .entry {}; expected the whole module with "
                    "this entry, edited",
                    quote(found->path), found->entry));
    refuse(CUresult::kInvalidPtx);
  }
  const std::string name = found->path.substr(found->path.find_last_of('/') + 1);
  say(fmt::format("{} stands in for the module of {}", quote(found->path), found->entry));
  return {std::move(text), name};
}

}  // namespace tilewright::sim
