#include "sim/check/order/stretch.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace tilewright::sim {

namespace {

bool ends_stretch(const KernelCode& code, const Insn& insn) {
  if ((insn.flags & (kControl | kBarrier)) != 0) return true;
  const Instruction* syntax = code.place(insn).syntax;
  if ((insn.flags & kAsync) == 0 || syntax == nullptr) return false;
  constexpr std::array<std::string_view, 4> kWords = {"commit_group", "wait_group", "wait_all",
                                                      "fence"};
  return std::ranges::any_of(kWords, [&](std::string_view word) {
    return std::ranges::find(syntax->modifiers, word) != syntax->modifiers.end();
  });
}

}  // namespace

std::vector<std::uint32_t> stretches_of(const KernelCode& code) {
  std::vector<std::uint32_t> out;
  out.reserve(code.insns.size());
  std::uint32_t number = 0;
  for (const Insn& insn : code.insns) {
    out.push_back(number);
    if (ends_stretch(code, insn)) ++number;
  }
  return out;
}

}  // namespace tilewright::sim
