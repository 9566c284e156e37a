// Which instructions of which warps are shown.
#pragma once

#include "sim/state/launch.h"

#include <cstdint>
#include <optional>
#include <string>

namespace tilewright::sim {

/// What is not given means all.
struct TraceFilter {
  std::optional<std::uint32_t> line;  ///< of the PTX text
  std::optional<std::uint32_t> warp;  ///< in its CTA
  std::optional<Dim3> cta;

  bool matches(std::uint32_t at_line, std::uint32_t warp_idx, const Dim3& cta_idx) const;
};

/// "41", "41:0" (warp 0), "41:0:2,1" (CTA x = 2, y = 1), "41:*:3": a breakpoint.
/// Errors   InvalidArgument
TraceFilter parse_breakpoint(const std::string& text);

/// "" or "*" (all), "0", "0:2,1": warp and CTA.
/// Errors   InvalidArgument
TraceFilter parse_trace(const std::string& text);

}  // namespace tilewright::sim
