// tilewright layout handoff: can an accumulator be read as the next operand, and if not, what must
// move?

#include "arch/fragments/named_handoff.h"
#include "base/file.h"
#include "cli/layout/layout.h"
#include "cli/tool/command.h"

#include <memory>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

struct HandoffArguments {
  std::string from, to, svg;
};

void run_handoff(const HandoffArguments& args, const Context& context) {
  const arch::NamedAtom& from = read_atom(args.from);
  const arch::NamedAtom& to = read_atom(args.to);
  const nlohmann::json handoff = arch::describe_handoff(from, to);
  const bool has_drawing = !args.svg.empty() && from.kind == arch::AtomKind::kTensorMemory;
  if (has_drawing) write_file(args.svg, arch::draw_tmem_handoff(from, to));
  if (context.json) {
    print_json(handoff);
    return;
  }
  print(context.style().bold(fmt::format("{} -> {}: {}", from.name, to.name,
                                         handoff["verdict"].get<std::string>())) +
        "\n" + handoff["explanation"].get<std::string>());
  if (has_drawing) print(fmt::format("wrote {}\n", args.svg));
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
