// The simulator's own function beside the driver's: counts while the program still runs.
#include "sim/driver/objects/state.h"

#include <string>

/// JSON text (sim/report) of what ran on a device since the last call, if TILEWRIGHT_SIM_REPORT
/// asks for a report; "" otherwise. Valid until the calling thread's next call.
extern "C" const char* tilewright_simulator_take_report(int ordinal);

const char* tilewright_simulator_take_report(int ordinal) {
  static thread_local std::string text;
  text.clear();
  try {
    tilewright::sim::Device& device = tilewright::sim::Driver::get().device(ordinal);
    if (auto* const machine = device.existing_machine()) text = machine->take_report();
  } catch (const std::exception&) {
    text.clear();  // no such device
  }
  return text.c_str();
}
