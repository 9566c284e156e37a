// libFuzzer target: PTX modules, parsed, loaded and run.
#include "tests/fuzz/ptx_run.h"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tilewright::fuzz::check_ptx_run(std::as_bytes(std::span(data, size)));
  return 0;
}
