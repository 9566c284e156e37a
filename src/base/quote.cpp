#include "base/quote.h"

#include <fmt/format.h>

namespace tilewright {
namespace {

bool is_printable(char c) {
  return c >= 0x20 && c < 0x7f;
}

void append_escaped(std::string& out, char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      break;
  }
  if (is_printable(c)) {
    out += c;
  } else {
    out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
}

}  // namespace

std::string escape(std::string_view text, std::size_t max_bytes) {
  std::string out;
  for (const char c : text.substr(0, max_bytes)) append_escaped(out, c);
  if (text.size() > max_bytes) out += "...";
  return out;
}

std::string quote(std::string_view text, std::size_t max_bytes) {
  const bool is_cut = text.size() > max_bytes;
  return fmt::format("\"{}\"{}", escape(text, max_bytes),
                     is_cut ? fmt::format(" ({} bytes)", text.size()) : "");
}

}  // namespace tilewright
