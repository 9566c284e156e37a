// libFuzzer target: the text of PTX modules.
#include "tests/fuzz/ptx_properties.h"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tilewright::fuzz::check_ptx(std::as_bytes(std::span(data, size)));
  return 0;
}
