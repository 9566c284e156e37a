#include "cli/tool/terminal_text.h"

#include <cstdint>

namespace tilewright::cli {

std::string for_terminal(std::string_view text) {
  std::string shown;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<std::uint8_t>(text[i]);
    // U+0080 to U+009F are 0xc2 and a byte below 0xa0.
    const bool is_c1 =
        byte == 0xc2 && i + 1 < text.size() && static_cast<std::uint8_t>(text[i + 1]) < 0xa0;
    const bool is_control = (byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f || is_c1;
    shown += is_control ? '?' : text[i];
    i += is_c1 ? 1 : 0;
  }
  return shown;
}

}  // namespace tilewright::cli
