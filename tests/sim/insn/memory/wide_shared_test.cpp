// Operands in shared memory given by 64-bit generic addresses: every program of tests/ptx, with
// its shared addresses made generic before each instruction, must give what it gave.
#include "sim/event/finding.h"
#include "tests/sim/insn/kernel_run.h"
#include "tests/sim/insn/ptx_recording.h"
#include "tests/sim/insn/ptx_run.h"

#include <cctype>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace tilewright::sim {
namespace {

constexpr int kMaxOperands = 4;

std::size_t skip_blanks(std::string_view text, std::size_t at) {
  const auto is_blank = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (at < text.size()) {
    if (is_blank(text[at]) || text[at] == '{' || text[at] == '}') {
      ++at;
    } else if (text.substr(at).starts_with("//")) {
      at = std::min(text.find('\n', at), text.size());
    } else {
      return at;
    }
  }
  return at;
}

/// Where the guard or opcode begins, behind a label; npos if this is no instruction.
std::size_t instruction_in(std::string_view statement) {
  std::size_t at = skip_blanks(statement, 0);
  const std::size_t word_end = statement.find_first_of(" \n:", at);
  if (word_end != statement.npos && statement[word_end] == ':' &&
      !statement.substr(word_end).starts_with("::")) {
    at = skip_blanks(statement, word_end + 1);
  }
  return at < statement.size() && statement[at] != '.' ? at : statement.npos;
}

bool is_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return c == '_' || c == '%' || std::isalnum(static_cast<unsigned char>(c)) != 0;
  });
}

bool is_narrow_register(std::string_view base) {
  return base.starts_with("%r") && base.size() > 2 &&
         std::isdigit(static_cast<unsigned char>(base[2])) != 0;
}

/// Gives the operands [%r1+8] and [variable] of one instruction to registers of 64 bits.
std::string widened(std::string_view statement, std::string& before) {
  std::string out;
  int count = 0;
  for (std::size_t at = 0; at < statement.size(); ++at) {
    out += statement[at];
    if (statement[at] != '[') continue;
    const std::size_t end = statement.find_first_of("+]", at);
    const std::string_view base = statement.substr(at + 1, end - at - 1);
    if (end == statement.npos || !is_name(base) || count == kMaxOperands) continue;
    const bool is_register = is_narrow_register(base);
    if (!is_register && base.starts_with("%")) continue;
    before += fmt::format("{} %wide{}, {}; cvta.shared.u64 %wide{}, %wide{};\n  ",
                          is_register ? "cvt.u64.u32" : "mov.u64", count, base, count, count);
    out += fmt::format("%wide{}", count++);
    at = end - 1;
  }
  return out;
}

/// The program with wide addresses; notes the opcodes that got some.
std::string widen_all(std::string_view text, std::set<std::string>& opcodes) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(';'), text.size() - 1) + 1;
    const std::string_view statement = text.substr(0, end);
    text.remove_prefix(end);
    const std::size_t brace = statement.find('{');
    if (statement.find(".entry") != statement.npos && brace != statement.npos) {
      out += fmt::format("{}\n  .reg .b64 %wide<{}>;\n{}", statement.substr(0, brace + 1),
                         kMaxOperands, statement.substr(brace + 1));
      continue;
    }
    const std::size_t start = instruction_in(statement);
    const bool is_shared = start != statement.npos && statement.find("shared", start) != start &&
                           statement.substr(start).find("shared") != statement.npos;
    if (!is_shared) {
      out += statement;
      continue;
    }
    std::string before;
    const std::string changed = widened(statement.substr(start), before);
    out += statement.substr(0, start);
    out += before + changed;
    if (before.empty()) continue;
    const std::size_t opcode = changed[0] == '@' ? changed.find(' ') + 1 : 0;
    opcodes.insert(changed.substr(opcode, changed.find_first_of(". ", opcode) - opcode));
  }
  return out;
}

TEST(WideSharedAddress, EveryProgramGivesTheSame) {
  std::set<std::string> opcodes;
  for (const auto& path : ptx_files()) {
    const std::string name = path.filename().string();
    SCOPED_TRACE(name);
    const std::string text = read_text(path);
    const std::string wide = widen_all(text, opcodes);
    if (wide.find("cvta.shared.u64 %wide") == wide.npos) continue;
    Machine machine(model_for(text), options_for(text));
    const auto module = machine.load(parse_module(wide, name));
    for (const PtxCase& test : parse_ptx_cases(text)) {
      const auto recorded = recorded_results(name, test.kernel);
      EXPECT_EQ(run_ptx_case(machine, module, test, spread(test.inputs)),
                recorded.empty() ? spread(test.outputs) : recorded)
          << test.kernel;
    }
  }
  EXPECT_THAT(opcodes,
              testing::IsSupersetOf({"ld", "st", "atom", "red", "mbarrier", "cp", "ldmatrix",
                                     "stmatrix", "tcgen05", "clusterlaunchcontrol", "tensormap"}));
}

TEST(WideSharedAddress, MapaAndCvtaKeepTheLowerHalf) {
  KernelRun kernel(R"(.shared .align 8 .b64 word; .reg .pred %q;
    mov.u64 %rd3, word; cvta.shared.u64 %rd4, %rd3; cvta.shared.u64 %rd5, %rd4;
    setp.ne.u64 %q, %rd4, %rd5; @%q trap;
    mapa.shared::cluster.u64 %rd6, %rd4, 0; cvta.to.shared.u64 %rd7, %rd5;
    getctarank.shared::cluster.u64 %r1, %rd4;
    st.shared::cluster.u32 [%rd6], 7; ld.shared.u32 %r2, [%rd7]; add.u32 %r2, %r2, %r1;
    st.global.u32 [%rd0], %r2; st.global.u64 [%rd0+8], %rd6;)");
  auto* out = kernel.allocate<std::uint32_t>(4);
  kernel.run_well(out);
  EXPECT_EQ(out[0], 7u);
  EXPECT_EQ(out[3], 0u) << "mapa gives an address of shared::cluster";
}

}  // namespace
}  // namespace tilewright::sim
