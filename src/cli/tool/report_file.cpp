#include "cli/tool/report_file.h"

#include "base/file.h"

namespace tilewright::cli {

void require_report_file(const std::string& file) {
  if (!file.empty() && file != "-" && file != "memory") AtomicFile{file};
}

}  // namespace tilewright::cli
