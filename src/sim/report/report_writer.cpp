#include "sim/report/report_writer.h"

#include "base/json.h"

#include <nlohmann/json.hpp>
#include <utility>

#include <fmt/format.h>

namespace tilewright::sim {

ReportWriter::ReportWriter(const DeviceModel& model, std::string path)
    : model_(model), path_(std::move(path)) {}

void ReportWriter::write() {
  write_json(path_, report_json(report_, model_));
}

void ReportWriter::add(const KernelUsage& usage) {
  constexpr std::chrono::milliseconds kBetweenWrites{500};
  not_taken_.add(usage);
  is_due_ = true;
  if (is_kept()) return;
  report_.add(usage);
  if (is_table()) return;
  const auto now = std::chrono::steady_clock::now();
  if (usage.faults.empty() && now - last_write_ < kBetweenWrites) return;
  try {
    write();
  } catch (const std::exception&) {
    // The program that is looked at goes on; the last write, at the end, says what is wrong.
  }
  last_write_ = std::chrono::steady_clock::now();
}

Report ReportWriter::take() {
  return std::exchange(not_taken_, {});
}

bool ReportWriter::finish(const std::function<void(std::string_view)>& print) noexcept {
  if (!std::exchange(is_due_, false)) return true;
  try {
    if (is_table()) {
      print(report_table(report_, model_));
    } else if (!is_kept()) {
      write();
    }
    return true;
  } catch (const std::exception& error) {
    print(fmt::format("tilewright: the simulator's report: {}\n", error.what()));
    return false;
  }
}

}  // namespace tilewright::sim
