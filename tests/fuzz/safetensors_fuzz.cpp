// libFuzzer target: safetensors files.
#include "tests/fuzz/properties.h"

#include <cstdint>
#include <cstring>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using tilewright::fuzz::check_safetensors;
  check_safetensors(std::as_bytes(std::span(data, size)));
  if (size == 0) return 0;
  // Also as a header of the right length, which random bytes rarely have: the first byte says how
  // many bytes of data follow it.
  const std::uint64_t length = size - 1;
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  file.append(reinterpret_cast<const char*>(data) + 1, length);
  file.append(data[0], 'd');
  check_safetensors(std::as_bytes(std::span(file)));
  return 0;
}
