// libFuzzer target: fatbins, as a program hands them to the driver.
#include "sim/driver/objects/module.h"
#include "tests/fuzz/fatbin_properties.h"

#include <cstdint>

// All that the reader needs of the driver.
namespace tilewright::sim {
void refuse(CUresult result) {
  throw Failure{result};
}
void say(std::string_view) noexcept {}
}  // namespace tilewright::sim

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tilewright::fuzz::check_fatbin(std::as_bytes(std::span(data, size)));
  return 0;
}
