// tilewright layout handoff: can an accumulator be read as the next operand, and if not, what must
// move?

#include "base/error.h"
#include "base/file.h"
#include "cli/layout/layout.h"
#include "cli/tool/command.h"
#include "layout/draw_svg.h"
#include "layout/register_handoff.h"
#include "layout/tmem_handoff.h"

#include <memory>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

using arch::AtomKind;
using arch::NamedAtom;

struct HandoffArguments {
  std::string from, to, svg;
};

void print_finding(const NamedAtom& from, const NamedAtom& to, const char* verdict,
                   const std::string& explanation, const Style& style) {
  print(style.bold(fmt::format("{} -> {}: {}", from.name, to.name, verdict)) + "\n" + explanation);
}

void run_register_handoff(const NamedAtom& from, const NamedAtom& to, const Context& context) {
  const std::int64_t m = from.tile.value[0], n = from.tile.value[1], k = to.tile.value[1];
  require(to.tile.value[0] == m, ErrorKind::kInvalidArgument,
          "handoff: {} has {} rows, {} has {}; they must agree", from.name, m, to.name,
          to.tile.value[0]);
  const RegisterHandoff handoff =
      analyze_register_handoff(from.layout.layout, to.layout.layout, m, n, k);
  if (!context.json) {
    print_finding(from, to, to_string(handoff.verdict), handoff.explain(), context.style());
    return;
  }
  print_json({{"from", from.name},
              {"to", to.name},
              {"verdict", to_string(handoff.verdict)},
              {"source_value", handoff.source_value},
              {"key_of_slot", handoff.key_of_slot},
              {"key_period", handoff.key_period},
              {"values_to_move", handoff.moves.size()},
              {"exchange_group", handoff.exchange_group},
              {"explanation", handoff.explain()}});
}

// Both maps side by side, the same cells of Tensor Memory: as written and as read.
std::string draw_tmem_handoff(const NamedAtom& from, const NamedAtom& to) {
  const Window window = {0, 8, 0, 16};
  Drawing written = draw_tmem(from.layout.layout, {from.element_bits, 128, "m", "n", true}, window);
  Drawing read = draw_tmem(to.layout.layout, {to.element_bits, 128, "m", "k", true}, window);
  written.name = "as written: " + from.name;
  written.caption = "Row m, column n of the accumulator. A colour is a column.";
  read.name = "as read: " + to.name;
  read.caption =
      "Row m, elements k of the operand, in the same lanes and columns. Where the colours differ, "
      "the "
      "MMA multiplies something else than what was meant.";
  return to_svg({written, read}, from.name + " handed to " + to.name);
}

void run_tmem_handoff(const NamedAtom& from, const NamedAtom& to, const HandoffArguments& args,
                      const Context& context) {
  const TmemHandoff handoff =
      analyze_tmem_handoff(from.layout.layout, to.layout.layout, to.element_bits);
  if (!args.svg.empty()) write_file(args.svg, draw_tmem_handoff(from, to));
  if (!context.json) {
    print_finding(from, to, to_string(handoff.verdict), handoff.explain(), context.style());
    if (!args.svg.empty()) print(fmt::format("wrote {}\n", args.svg));
    return;
  }
  nlohmann::json examples = nlohmann::json::array();
  for (const TmemMismatch& at : handoff.examples) {
    examples.push_back({{"row", at.row},
                        {"column", at.column},
                        {"lane", at.lane},
                        {"cell", at.cell},
                        {"read_row", at.read_row},
                        {"read_k", at.read_k}});
    if (examples.size() == 64) break;
  }
  print_json({{"from", from.name},
              {"to", to.name},
              {"verdict", to_string(handoff.verdict)},
              {"elements", handoff.elements},
              {"misplaced", handoff.misplaced},
              {"columns_written", handoff.columns_written},
              {"columns_read", handoff.columns_read},
              {"examples", examples},
              {"explanation", handoff.explain()}});
}

void run_handoff(const HandoffArguments& args, const Context& context) {
  const NamedAtom& from = read_atom(args.from);
  const NamedAtom& to = read_atom(args.to);
  const auto both = [&](AtomKind kind) { return from.kind == kind && to.kind == kind; };
  if (both(AtomKind::kThreadValue)) {
    run_register_handoff(from, to, context);
  } else if (both(AtomKind::kTensorMemory)) {
    run_tmem_handoff(from, to, args, context);
  } else {
    fail(ErrorKind::kInvalidArgument,
         "handoff: {} is {}, {} is {}; expected two fragments (mma.*, wgmma.*) or two layouts of "
         "Tensor Memory "
         "(tmem.C.*, tmem.A.*)",
         from.name, to_string(from.kind), to.name, to_string(to.kind));
  }
}

}  // namespace

void add_layout_handoff(CLI::App& layout, Context& context) {
  CLI::App* command =
      layout.add_subcommand("handoff", "can an accumulator be read as the next MMA's operand?");
  auto args = std::make_shared<HandoffArguments>();
  command->add_option("--from", args->from, "the accumulator, by name")
      ->required()
      ->type_name("ATOM");
  command->add_option("--to", args->to, "the operand, by name")->required()->type_name("ATOM");
  command->add_option("--svg", args->svg, "Tensor Memory: draw both maps side by side")
      ->type_name("FILE");
  command->footer(
      "Examples:\n"
      "  tilewright layout handoff --from wgmma.m64n64.C --to wgmma.m64k16.A\n"
      "  tilewright layout handoff --from wgmma.m64n64.C --to wgmma.m64k32.A\n"
      "  tilewright layout handoff --from tmem.C.m128.n64 --to tmem.A.m128.k64.16bit --svg "
      "handoff.svg");
  command->callback([args, &context] { run_handoff(*args, context); });
}

}  // namespace tilewright::cli
