// libFuzzer target: tokenizer.json files, which begin with a brace, and texts for one that is read.
#include "tests/fuzz/tokenizer_properties.h"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.starts_with('{')) {
    tilewright::fuzz::check_tokenizer_file(text);
  } else {
    tilewright::fuzz::check_tokenizer_text(text);
  }
  return 0;
}
