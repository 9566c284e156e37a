#include "sim/state/code.h"

#include <fmt/format.h>

namespace tilewright::sim {

std::string KernelCode::describe(const Insn& insn) const {
  const CodePlace& at = place(insn);
  if (at.syntax == nullptr) return fmt::format("the end of {}", info.name);
  std::string out = fmt::format("{}:{}", module->name, at.syntax->pos.line);
  const std::string_view file = module->file_name(at.syntax->loc.file);
  if (!file.empty()) out += fmt::format(" ({}:{})", file, at.syntax->loc.line);
  return out;
}

}  // namespace tilewright::sim
