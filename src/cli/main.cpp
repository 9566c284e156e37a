// tilewright: the command line. Each subcommand lives in a file of its own and is listed here once.

#include "base/error.h"
#include "cli/command.h"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace tilewright::cli {

namespace {

constexpr void (*kCommands[])(CLI::App&, Context&) = {
    add_demo,      add_info,   add_layout,   add_formats,  add_kernels,
    add_attention, add_decode, add_linear,   add_moe,      add_sparse_attention,
    add_indexer,   add_ladder, add_quantize, add_generate, add_eval,
    add_sim,       add_bench};

void add_global_options(CLI::App& app, Context& context) {
  const std::map<std::string, ColorMode> modes = {
      {"auto", ColorMode::kAuto}, {"always", ColorMode::kAlways}, {"never", ColorMode::kNever}};
  app.add_flag("--json", context.json, "print one JSON value instead of text");
  app.add_option("--color", context.color, "colours; auto asks the terminal and honours NO_COLOR")
      ->transform(CLI::CheckedTransformer(modes))
      ->option_text("auto|always|never");
  app.add_option("--device", context.device,
                 "auto, cuda, cuda:N, sim:h200, sim:b200 or sim:b300; default TILEWRIGHT_DEVICE, "
                 "then auto. Of "
                 "models also reference, plain float64")
      ->type_name("SPEC");
  app.set_version_flag("--version", std::string("tilewright ") + TILEWRIGHT_VERSION);
}

int report_error(const Context& context, const char* kind, const std::string& message) {
  if (context.json) {
    print_json({{"error", {{"kind", kind}, {"message", message}}}});
  } else {
    std::fprintf(stderr, "tilewright: %s\n", message.c_str());
  }
  return 1;
}

int run_tool(int argc, char** argv) {
  Context context;
  CLI::App app("Layouts, number formats and kernels for tensor cores.", "tilewright");
  app.require_subcommand(0, 1);
  app.fallthrough();
  app.footer("`tilewright COMMAND --help` says more.");
  add_global_options(app, context);
  for (const auto add : kCommands) add(app, context);
  try {
    app.parse(argc, argv);
    if (app.get_subcommands().empty()) print(app.help());
  } catch (const CLI::ParseError& error) {
    constexpr int kUsage = 2;
    return app.exit(error) == 0 ? 0 : kUsage;
  } catch (const Error& error) {
    return report_error(context, to_string(error.kind()), error.what());
  } catch (const std::exception& error) {
    return report_error(context, to_string(ErrorKind::kInternal), error.what());
  }
  return std::fflush(stdout) == 0 ? context.exit_status : 1;
}

}  // namespace
}  // namespace tilewright::cli

int main(int argc, char** argv) {
  return tilewright::cli::run_tool(argc, argv);
}
