// tilewright layout banks: shared-memory bank conflicts of a (thread, value) access.

#include "layout/banks.h"

#include "base/error.h"
#include "cli/layout/layout.h"
#include "cli/tool/command.h"
#include "layout/print.h"

#include <memory>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

struct BanksArguments {
  std::string access, tile;
  int bits = 16, vector = 1;
};

// The access as offsets: a (thread, value) map into a tile, seen through the layout of the tile if
// one is given.
ComposedLayout access_of(const BanksArguments& args) {
  const ComposedLayout tv = read_layout(args.access).layout;
  if (args.tile.empty()) return tv;
  const ComposedLayout tile = read_layout(args.tile).layout;
  require(tv.swizzle.is_identity() && tv.offset == IntTuple(0), ErrorKind::kInvalidArgument,
          "banks: the access {} must be a plain (thread, value) layout when --tile says where "
          "elements lie",
          to_string(tv));
  return composition(tile, Tiler(tv.layout));
}

void run_banks(const BanksArguments& args, Context& context) {
  const ComposedLayout access = access_of(args);
  require(rank(access) == 2, ErrorKind::kInvalidArgument,
          "banks: {} has {} modes; expected (thread, value)", to_string(access), rank(access));
  const auto values = static_cast<int>(size(access, 1));
  require(values % args.vector == 0, ErrorKind::kInvalidArgument,
          "banks: {} values are no whole number of vectors of {}", values, args.vector);
  const auto warps = static_cast<int>(std::max<std::int64_t>(1, size(access, 0) / kWarpLanes));
  Table table({"warp", "values", "passes", "ideal", "conflicts", "most words in a bank"});
  nlohmann::json steps = nlohmann::json::array();
  int passes = 0, ideal = 0;
  for (int warp = 0; warp < warps; ++warp) {
    for (int v = 0; v < values; v += args.vector) {
      const BankReport report = count_bank_conflicts(access, args.bits, args.vector, v, warp);
      passes += report.wavefronts;
      ideal += report.ideal;
      table.add({std::to_string(warp), fmt::format("{}-{}", v, v + args.vector - 1),
                 std::to_string(report.wavefronts), std::to_string(report.ideal),
                 std::to_string(report.conflicts()), std::to_string(report.worst_bank)});
      steps.push_back({{"warp", warp},
                       {"first_value", v},
                       {"passes", report.wavefronts},
                       {"ideal", report.ideal},
                       {"words_per_bank", report.words}});
    }
  }
  if (context.json) {
    print_json(
        {{"access", to_string(access)}, {"passes", passes}, {"ideal", ideal}, {"steps", steps}});
    return;
  }
  const Style style = context.style();
  const std::string verdict = fmt::format("{} passes, {} without conflicts", passes, ideal);
  print(style.bold(to_string(access)) + "\n" + table.text(style) + "\n" +
        (passes == ideal ? style.good(verdict) : style.bad(verdict)) + "\n");
}

}  // namespace

void add_layout_banks(CLI::App& layout, Context& context) {
  CLI::App* command = layout.add_subcommand("banks", "count the bank conflicts of an access");
  auto args = std::make_shared<BanksArguments>();
  command->add_option("access", args->access, "(thread, value) -> element")->required();
  command
      ->add_option("--tile", args->tile, "layout of the tile in shared memory: element -> offset")
      ->type_name("LAYOUT");
  command->add_option("--bits", args->bits, "width of an element")
      ->capture_default_str()
      ->type_name("8|16|32|64|128")
      ->check(quiet(CLI::IsMember({8, 16, 32, 64, 128})));
  command
      ->add_option("--vector", args->vector, "contiguous values that one instruction moves a lane")
      ->capture_default_str()
      ->type_name("N")
      ->check(quiet(CLI::Range(1, 16)));
  command->footer(
      "Examples: 32 lanes, each at the same 16-byte chunk of its own row of 128 bytes, plain and "
      "swizzled\n"
      "  tilewright layout banks '(32,8):(64,1)' --vector 8\n"
      "  tilewright layout banks 'Sw<3,3,3> o 0 o (32,8):(64,1)' --vector 8");
  command->callback([args, &context] { run_banks(*args, context); });
}

}  // namespace tilewright::cli
