// libFuzzer target: JSON texts; also as a safetensors index, which is JSON with a meaning.
#include "tests/fuzz/properties.h"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  tilewright::fuzz::check_json(bytes);
  tilewright::fuzz::check_safetensors_index(bytes);
  return 0;
}
