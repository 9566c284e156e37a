#include "sim/parse/instruction_text.h"

#include <algorithm>
#include <functional>

namespace tilewright::sim {

namespace {

std::size_t offset_of(const std::string& text, const Instruction& instruction) {
  const char* const opcode = instruction.opcode.data();
  constexpr std::less_equal<const char*> is_before;
  if (is_before(text.data(), opcode) && is_before(opcode, text.data() + text.size()))
    return static_cast<std::size_t>(opcode - text.data());
  // Of a fused instruction the opcode stands nowhere; its place is the sum's.
  std::size_t line = 0;
  for (std::uint32_t i = 1; i < instruction.pos.line && line < text.size(); ++i)
    line = text.find('\n', line) + 1;
  return std::min(text.size(), line + instruction.pos.column - 1);
}

}  // namespace

std::string instruction_text(const Module& module, const Instruction& instruction) {
  const std::size_t offset = offset_of(*module.text, instruction);
  std::string out;
  for (const char c : std::string_view(*module.text).substr(offset, instruction.length)) {
    const bool is_blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    if (is_blank && (out.empty() || out.back() == ' ')) continue;
    out += is_blank ? ' ' : c;
  }
  return out;
}

}  // namespace tilewright::sim
