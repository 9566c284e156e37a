#include "sim/check/finding.h"

#include "sim/program/engine.h"

#include <algorithm>

#include <fmt/format.h>

namespace tilewright::sim {

namespace {

bool is_same_place(const FindingPlace& a, const FindingPlace& b) {
  return a.ptx == b.ptx && a.text == b.text && a.role == b.role;
}

bool is_same(const Finding& a, const Finding& b) {
  return a.check == b.check && a.kernel == b.kernel && a.missing == b.missing &&
         std::ranges::equal(a.places, b.places, is_same_place);
}

/// The line of the text at which an instruction stands, without blanks at both ends.
std::string source_line(const Module& module, SourcePos pos) {
  const std::string_view text = *module.text;
  std::size_t begin = 0;
  for (std::uint32_t line = 1; line < pos.line && begin != std::string::npos; ++line) {
    begin = text.find('\n', begin);
    if (begin != std::string::npos) ++begin;
  }
  if (pos.line == 0 || begin == std::string::npos) return {};
  std::string_view line = text.substr(begin, text.find('\n', begin) - begin);
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  return std::string(line.substr(0, 160));
}

}  // namespace

bool Findings::add(Finding finding) {
  const std::lock_guard lock(mutex_);
  ++total_;
  for (Finding& known : findings_) {
    if (!is_same(known, finding)) continue;
    ++known.count;
    return false;
  }
  if (findings_.size() >= limit_) return false;
  findings_.push_back(std::move(finding));
  return true;
}

std::vector<Finding> Findings::take_all() const {
  const std::lock_guard lock(mutex_);
  return findings_;
}

std::uint64_t Findings::total() const {
  const std::lock_guard lock(mutex_);
  return total_;
}

void Findings::clear() {
  const std::lock_guard lock(mutex_);
  findings_.clear();
  total_ = 0;
}

void Findings::set_limit(std::uint32_t limit) {
  const std::lock_guard lock(mutex_);
  limit_ = limit;
}

FindingPlace place_of(const KernelCode& code, const Insn& insn, std::string role, std::string who) {
  FindingPlace out;
  out.role = std::move(role);
  out.who = std::move(who);
  const Instruction* syntax = code.place(insn).syntax;
  if (syntax == nullptr) {
    out.ptx = code.describe(insn);
    return out;
  }
  out.ptx = fmt::format("{}:{}", code.module->name, syntax->pos.line);
  const std::string_view file = code.module->file_name(syntax->loc.file);
  if (!file.empty()) out.source = fmt::format("{}:{}", file, syntax->loc.line);
  out.text = source_line(*code.module, syntax->pos);
  return out;
}

FindingPlace place_of(const Warp& warp, const Insn& insn, std::uint32_t lanes, std::string role) {
  return place_of(*warp.grid->code, insn, std::move(role), describe_lanes(warp, lanes));
}

std::string to_string(const Finding& finding) {
  std::string out = fmt::format("{}: {}", finding.kernel, finding.what);
  if (!finding.check.empty()) out += fmt::format(" [{}]", finding.check);
  for (const FindingPlace& place : finding.places) {
    out += fmt::format("\n     {} at {}", place.role, place.ptx);
    if (!place.source.empty()) out += fmt::format(" ({})", place.source);
    if (!place.who.empty()) out += fmt::format(" by {}", place.who);
    if (!place.text.empty()) out += fmt::format("\n       {}", place.text);
  }
  if (!finding.missing.empty()) out += fmt::format("\n     {}", finding.missing);
  if (finding.count > 1) out += fmt::format("\n     {} times in all", finding.count);
  return out;
}

}  // namespace tilewright::sim
