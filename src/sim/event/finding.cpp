#include "sim/event/finding.h"

#include "sim/state/code.h"
#include "sim/state/lane_names.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tilewright::sim {

namespace {

constexpr std::size_t kMostOthers = 8;
constexpr std::size_t kMostLeftOut = 1000;

bool is_same_role_and_text(const FindingPlace& a, const FindingPlace& b) {
  return a.ptx == b.ptx && a.text == b.text && a.role == b.role;
}

bool is_at_same_places(const Finding& a, const Finding& b) {
  return std::ranges::equal(a.places, b.places, is_same_role_and_text);
}

/// "gemm.ptx": kernels of several modules may have one name.
std::string_view file_of(const Finding& finding) {
  if (finding.places.empty()) return {};
  const std::string_view place = finding.places.front().ptx;
  return place.substr(0, place.rfind(':'));
}

bool is_same(const Finding& a, const Finding& b) {
  if (a.check != b.check || a.kernel != b.kernel || a.cause != b.cause) return false;
  return (!a.cause.empty() && file_of(a) == file_of(b)) ||
         (a.missing == b.missing && is_at_same_places(a, b));
}

/// "88 and 131": the lines of the places, the lower first.
std::string lines_of(const Finding& finding) {
  std::vector<std::uint64_t> lines;
  for (const FindingPlace& place : finding.places) {
    lines.push_back(std::strtoull(place.ptx.c_str() + place.ptx.rfind(':') + 1, nullptr, 10));
  }
  std::ranges::sort(lines);
  return fmt::format("{}", fmt::join(lines, " and "));
}

std::string name_of_cause(const Finding& finding) {
  return fmt::format("{}|{}|{}", finding.kernel, finding.check,
                     finding.cause.empty() ? lines_of(finding) + finding.missing : finding.cause);
}

std::uint64_t key_of_order(const Finding& finding) {
  return finding.places.empty() ? 0 : finding.places.front().order;
}

void count_in(Finding& known, const Finding& more) {
  ++known.count;
  // The same instruction in many CTAs: the first of the grid stands for them.
  if (known.cause.empty() && key_of_order(more) < key_of_order(known)) {
    const std::uint64_t count = known.count;
    known = more;
    known.count = count;
  }
  if (known.cause.empty() || is_at_same_places(known, more)) return;
  std::string lines = lines_of(more);
  if (lines == lines_of(known)) return;
  if (std::ranges::find(known.others, lines) == known.others.end()) {
    known.others.push_back(std::move(lines));
  }
}

FindingThreads threads_of(const Execution& execution) {
  return {execution.cta, {execution.warp}, execution.lanes};
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

bool Findings::add(Finding finding, Handle* handle) {
  const std::lock_guard lock(mutex_);
  ++total_;
  for (Finding& known : findings_) {
    if (!is_same(known, finding)) continue;
    count_in(known, finding);
    if (handle != nullptr) *handle = static_cast<Handle>(&known - findings_.data());
    return false;
  }
  const bool is_kept = findings_.size() < limit_;
  if (handle != nullptr) *handle = is_kept ? findings_.size() : kNone;
  if (is_kept) {
    findings_.push_back(std::move(finding));
  } else if (left_out_.size() < kMostLeftOut) {
    left_out_.insert(name_of_cause(finding));
  }
  return is_kept;
}

void Findings::add_again(Handle handle, std::string what) {
  const std::lock_guard lock(mutex_);
  ++total_;
  if (handle >= findings_.size()) return;
  if (what.empty()) {
    ++findings_[handle].count;
  } else {
    findings_[handle].what = std::move(what);
  }
}

std::uint64_t Findings::num_left_out() const {
  const std::lock_guard lock(mutex_);
  return left_out_.size();
}

std::vector<Finding> Findings::take_all() const {
  const std::lock_guard lock(mutex_);
  return findings_;
}

std::size_t Findings::size() const {
  const std::lock_guard lock(mutex_);
  return findings_.size();
}

std::vector<Finding> Findings::take_from(std::size_t first) const {
  std::vector<Finding> out = take_all();
  out.erase(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(std::min(first, out.size())));
  std::ranges::stable_sort(out, {}, key_of_order);
  return out;
}

std::uint64_t Findings::total() const {
  const std::lock_guard lock(mutex_);
  return total_;
}

void Findings::clear() {
  const std::lock_guard lock(mutex_);
  findings_.clear();
  left_out_.clear();
  total_ = 0;
}

void Findings::set_limit(std::uint32_t limit) {
  const std::lock_guard lock(mutex_);
  limit_ = limit;
}

FindingPlace place_of(const KernelCode& code, const Insn& insn, std::string role,
                      FindingThreads who) {
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

Execution execution_of(const Warp& warp, const Insn& insn, std::uint32_t lanes) {
  return {warp.grid->code, &insn, warp.cta->index, warp.cta->linear_index, warp.index, lanes};
}

FindingPlace place_of(const Execution& execution, std::string role) {
  FindingPlace out =
      place_of(*execution.code, *execution.insn, std::move(role), threads_of(execution));
  out.order = execution.cta_order;
  return out;
}

FindingPlace place_of(const Warp& warp, const Insn& insn, std::uint32_t lanes, std::string role) {
  return place_of(execution_of(warp, insn, lanes), std::move(role));
}

std::string describe(const FindingThreads& threads) {
  const Dim3& cta = threads.cta;
  return fmt::format("CTA ({},{},{}) {} {}", cta.x, cta.y, cta.z, describe_warps(threads.warps),
                     describe_lane_mask(threads.lanes));
}

std::string describe(const Execution& execution) {
  return describe(threads_of(execution));
}

std::string describe_cta(const Cta& cta) {
  return fmt::format("CTA ({},{},{})", cta.index.x, cta.index.y, cta.index.z);
}

std::string describe_warp(const Warp& warp) {
  return fmt::format("{} warp {}", describe_cta(*warp.cta), warp.index);
}

std::string ordinal(std::uint64_t number) {
  const std::uint64_t tens = number / 10 % 10, ones = number % 10;
  const char* const ending = tens == 1 || ones == 0 || ones > 3 ? "th"
                             : ones == 1                        ? "st"
                             : ones == 2                        ? "nd"
                                                                : "rd";
  return fmt::format("{}{}", number, ending);
}

std::string to_string(const Finding& finding) {
  std::string out = fmt::format("{}: {}", readable_name(finding.kernel), finding.what);
  if (!finding.check.empty()) out += fmt::format(" [{}]", finding.check);
  for (const FindingPlace& place : finding.places) {
    out += fmt::format("\n     {} at {}", place.role, place.ptx);
    if (!place.source.empty()) out += fmt::format(" ({})", place.source);
    if (!place.who.warps.empty()) out += fmt::format(" by {}", describe(place.who));
    if (!place.text.empty()) out += fmt::format("\n       {}", place.text);
  }
  for (const std::string& note : finding.notes) out += fmt::format("\n     {}", note);
  if (!finding.missing.empty()) out += fmt::format("\n     {}", finding.missing);
  if (finding.others.empty()) {
    if (finding.count > 1) out += fmt::format("\n     {} times in all", finding.count);
    return out;
  }
  const std::size_t num_shown = std::min(finding.others.size(), kMostOthers);
  out +=
      fmt::format("\n     {} times in all, for the same reason also at lines {}", finding.count,
                  fmt::join(finding.others.begin(),
                            finding.others.begin() + static_cast<std::ptrdiff_t>(num_shown), ", "));
  if (num_shown < finding.others.size()) {
    out += fmt::format(" and {} more", finding.others.size() - num_shown);
  }
  return out;
}

}  // namespace tilewright::sim
