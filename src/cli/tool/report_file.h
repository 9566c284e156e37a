// The simulator's report as an output of the tool.
#pragma once

#include <string>

namespace tilewright::cli {

/// The driver writes the report when the program ends, too late to fail: so that a report is not
/// lost after all the work, its file is tried out before. "-" and "memory" are no files.
/// Errors   as AtomicFile
void require_report_file(const std::string& file);

}  // namespace tilewright::cli
