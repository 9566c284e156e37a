// Findings as data: what to_string() says, member by member.
#pragma once

#include "sim/event/finding.h"

#include <nlohmann/json_fwd.hpp>
#include <vector>

namespace tilewright::sim {

/// An array of {"check", "kernel", "what", "places", "notes", "missing", "others", "count",
/// "text"}; a place is {"role", "instruction", "ptx", "source", "threads"}, with {"file", "line"}
/// or null for ptx and source, {"cta", "warps", "lanes", "thread"} or null for threads. `thread` is
/// the first one's index in its CTA, `text` what would be printed.
nlohmann::json findings_json(const std::vector<Finding>& findings);

}  // namespace tilewright::sim
