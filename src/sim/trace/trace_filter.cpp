#include "sim/trace/trace_filter.h"

#include "base/error.h"
#include "base/quote.h"

#include <charconv>
#include <string_view>
#include <vector>

namespace tilewright::sim {

namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::optional<std::uint32_t> parse_number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// "3" or "3,1" or "3,1,0"
std::optional<Dim3> parse_cta(std::string_view text) {
  Dim3 cta{0, 0, 0};
  std::uint32_t* const extents[] = {&cta.x, &cta.y, &cta.z};
  const auto parts = split(text, ',');
  if (parts.size() > 3) return std::nullopt;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto value = parse_number(parts[i]);
    if (!value) return std::nullopt;
    *extents[i] = *value;
  }
  return cta;
}

bool is_any(std::string_view text) {
  return text.empty() || text == "*";
}

/// WARP[:CTA] out of the parts from `first` on. Whether they are all right.
bool parse_warp_and_cta(const std::vector<std::string_view>& parts, std::size_t first,
                        TraceFilter& filter) {
  if (parts.size() > first + 2) return false;
  if (parts.size() > first && !is_any(parts[first])) {
    filter.warp = parse_number(parts[first]);
    if (!filter.warp) return false;
  }
  if (parts.size() > first + 1 && !is_any(parts[first + 1])) {
    filter.cta = parse_cta(parts[first + 1]);
    if (!filter.cta) return false;
  }
  return true;
}

}  // namespace

bool TraceFilter::matches(std::uint32_t at_line, std::uint32_t warp_idx,
                          const Dim3& cta_idx) const {
  const bool is_line = !line || *line == at_line;
  const bool is_warp = !warp || *warp == warp_idx;
  const bool is_cta = !cta || (cta->x == cta_idx.x && cta->y == cta_idx.y && cta->z == cta_idx.z);
  return is_line && is_warp && is_cta;
}

TraceFilter parse_breakpoint(const std::string& text) {
  TraceFilter filter;
  const auto parts = split(text, ':');
  filter.line = parse_number(parts[0]);
  require(
      filter.line && *filter.line != 0 && parse_warp_and_cta(parts, 1, filter),
      ErrorKind::kInvalidArgument,
      "breakpoint {}: expected LINE[:WARP[:CTA]] such as 41, 41:0 or 41:*:2,1,0; LINE is one of "
      "the PTX text",
      quote(text));
  return filter;
}

TraceFilter parse_trace(const std::string& text) {
  TraceFilter filter;
  require(parse_warp_and_cta(split(text, ':'), 0, filter), ErrorKind::kInvalidArgument,
          "trace {}: expected WARP[:CTA] such as 0, 0:2,1,0 or * for all", quote(text));
  return filter;
}

}  // namespace tilewright::sim
