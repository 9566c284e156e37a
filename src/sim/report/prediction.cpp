#include "sim/report/prediction.h"

namespace tilewright::sim {

std::string_view name_of(WaitCause cause) noexcept {
  constexpr std::array<std::string_view, kNumWaitCauses> kNames = {
      "operand",       "shared data",
      "global data",   "busy unit",
      "issue",         "tensor queue",
      "tensor cores",  "mbarrier",
      "named barrier", "cluster barrier",
      "grid barrier",  "copies",
      "code",          "own"};
  return kNames[static_cast<std::size_t>(cause)];
}

std::string_view name_of(TimedUnit unit) noexcept {
  constexpr std::array<std::string_view, kNumTimedUnits> kNames = {
      "tensor", "special function", "FMA", "ALU", "double", "issue", "shared memory", "L2", "HBM"};
  return kNames[static_cast<std::size_t>(unit)];
}

void Prediction::add(const Prediction& other) {
  // The clock of all: by how long each ran at its own.
  const double clocks = clock_hz * seconds + other.clock_hz * other.seconds;
  seconds += other.seconds;
  clock_hz = seconds > 0 ? clocks / seconds : other.clock_hz;
  launch_seconds += other.launch_seconds;
  for (std::size_t i = 0; i < busy.size(); ++i) busy[i] += other.busy[i];
  for (std::size_t i = 0; i < waits.size(); ++i) waits[i] += other.waits[i];
  for (const auto& [line, causes] : other.lines) {
    auto& own = lines[line];
    for (std::size_t i = 0; i < own.size(); ++i) own[i] += causes[i];
  }
  num_launches += other.num_launches;
  num_traced += other.num_traced;
  num_ctas += other.num_ctas;
  num_left_out += other.num_left_out;
  timeline = other.timeline;
  if (problem.empty()) problem = other.problem;
  if (note.empty()) note = other.note;
  has_machine_code = num_launches == other.num_launches
                         ? other.has_machine_code
                         : has_machine_code && other.has_machine_code;
}

}  // namespace tilewright::sim
