// Writing the report of a machine to the place that its options name.
#pragma once

#include "sim/report/report.h"

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

namespace tilewright::sim {

/// JSON to a file, or with the path "-" the table to `print`, or with "memory" nowhere: then it is
/// there to be taken. A file is written at the end, at once
/// after a fault, and now and then in between, so that a program that crashes leaves one.
/// Thread   not safe
class ReportWriter {
 public:
  ReportWriter(const DeviceModel& model, std::string path);

  /// A file that cannot be written is no error here: finish() tries again and says it.
  void add(const KernelUsage& usage);
  /// What was added since the last call. A file or table has all of it nevertheless.
  Report take();
  /// Once, unless something is added later. Never throws; `print` gets the table, or why the file
  /// could not be written: then false.
  bool finish(const std::function<void(std::string_view)>& print) noexcept;

 private:
  bool is_table() const { return path_ == "-"; }
  bool is_kept() const { return path_ == "memory"; }
  void write();

  const DeviceModel& model_;
  std::string path_;
  Report report_;       ///< of the file or table
  Report not_taken_;    ///< what was not asked for yet
  bool is_due_ = true;  ///< finish() has not seen all of it
  std::chrono::steady_clock::time_point last_write_;
};

}  // namespace tilewright::sim
