// Each subcommand lives in a file of its own and is listed here once.
#include "cli/tool/commands.h"

#include "base/error.h"
#include "cli/tool/command.h"
#include "cli/tool/report_file.h"
#include "cli/tool/time_sample.h"
#include "cli/tool/usage.h"
#include "sim/time/time_parameters.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace tilewright::cli {

namespace {

constexpr void (*kCommands[])(CLI::App&, Context&) = {add_demo,
                                                      add_info,
                                                      add_layout,
                                                      add_formats,
                                                      add_kernels,
                                                      add_attention,
                                                      add_decode,
                                                      add_linear,
                                                      add_moe,
                                                      add_sparse_attention,
                                                      add_indexer,
                                                      add_ladder,
                                                      add_quantize,
                                                      add_generate,
                                                      add_eval,
                                                      add_tokenize,
                                                      add_make_checkpoint,
                                                      add_sim,
                                                      add_bench};

// What a simulated device predicts; it reads variables when it is opened.
void add_time_options(CLI::App& app) {
  const auto set = [](const char* name, const std::string& value) {
    ::setenv("TILEWRIGHT_SIM_TIME", "1", 1);
    ::setenv(name, value.c_str(), 1);
  };
  app.add_flag_callback(
      "--time", [set] { set("TILEWRIGHT_SIM_TIME", "1"); },
      "a simulated device predicts how long kernels take on the real one, and says why");
  app.add_option("--time-ideal", "likewise, with these units infinitely fast: what binds?")
      ->type_name("UNIT,...")
      ->each([set](const std::string& units) {
        sim::with_ideal_units({}, units);  // refuses words that are none
        set("TILEWRIGHT_SIM_TIME_IDEAL", units);
      });
  app.add_option(
         "--timeline",
         "likewise; who waits for whom in a CTA of the last launch: a trace for Perfetto, or a "
         "picture if FILE ends in .svg")
      ->type_name("FILE")
      ->each([set](const std::string& file) {
        require_report_file(file);
        set("TILEWRIGHT_SIM_TIME_LINE", file);
      });
  add_time_sample_option(app);
}

void add_global_options(CLI::App& app, Context& context) {
  const std::map<std::string, ColorMode> modes = {
      {"auto", ColorMode::kAuto}, {"always", ColorMode::kAlways}, {"never", ColorMode::kNever}};
  app.add_flag("--json", context.json, "print one JSON value instead of text");
  app.add_option("--color", context.color, "colours; auto asks the terminal and honours NO_COLOR")
      ->transform(CLI::CheckedTransformer(modes))
      ->option_text("auto|always|never");
  app.add_option("--device", context.device,
                 "auto, cuda, cuda:N, or the simulator: sim:h200, sim:b200, sim:b300; for --plan "
                 "alone also plan:h200, plan:b200, plan:b300, which need neither; for models also "
                 "reference, plain float64. Default: TILEWRIGHT_DEVICE, then auto")
      ->type_name("SPEC");
  app.add_option("--report",
                 "what kernels cost on a simulated device: counts and bounds, JSON to FILE, or - "
                 "for a table on standard error")
      ->type_name("FILE")
      ->each([](const std::string& file) {
        require_report_file(file);
        ::setenv("TILEWRIGHT_SIM_REPORT", file.c_str(), 1);
      });
  add_time_options(app);
  app.set_version_flag("--version", std::string("tilewright ") + TILEWRIGHT_VERSION);
}

// A name that is empty would mean what leaving the option out means.
void refuse_empty_names(CLI::App& app) {
  const auto refuse = [](const std::string& value) {
    return std::string(value.empty() ? "the name is empty; give one, or leave the option out" : "");
  };
  for (CLI::Option* option : app.get_options()) {
    const std::string type = option->get_type_name();
    const bool is_name = type.starts_with("FILE") || type == "FOLDER" || type == "NAME" ||
                         type == "IN" || type == "OUT" || type == "MODEL";
    if (is_name) option->check(quiet(CLI::Validator(refuse, "")));
  }
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; }))
    refuse_empty_names(*command);
}

// At the end of the help of commands that have commands. CLI11 hands a footer down to commands that
// are added later, so it is set when all are there.
void name_next_help(CLI::App& command, const std::string& words) {
  const auto commands = command.get_subcommands([](const CLI::App*) { return true; });
  for (CLI::App* next : commands) name_next_help(*next, words + " " + next->get_name());
  if (!commands.empty() && command.get_footer().empty())
    command.footer("`" + words + " COMMAND --help` says more.");
}

int report_error(const Context& context, const char* kind, const std::string& message) {
  if (context.json) {
    print_json({{"error", {{"kind", kind}, {"message", message}}}});
  } else {
    std::fprintf(stderr, "tilewright: %s\n", message.c_str());
  }
  return 1;
}

// Options are not read to the end if one of them is wrong.
bool is_json_wanted(int argc, char** argv) {
  return std::any_of(argv, argv + argc,
                     [](const char* word) { return std::strcmp(word, "--json") == 0; });
}

int report_no_memory(const Context& context) {
  return report_error(context, to_string(ErrorKind::kOutOfMemory),
                      "not enough memory on this machine for what was asked; ask for less: a "
                      "smaller shape, fewer rows, tokens or runs");
}

}  // namespace

int run_command(int argc, char** argv) {
  Context context;
  CLI::App app("Layouts, number formats and kernels for tensor cores.", "tilewright");
  app.formatter(make_help_formatter());
  app.require_subcommand(0, 1);
  app.fallthrough();
  add_global_options(app, context);
  for (const auto add : kCommands) add(app, context);
  name_next_help(app, "tilewright");
  refuse_empty_names(app);
  try {
    app.parse(argc, argv);
    if (app.get_subcommands().empty()) print(app.help());
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    constexpr int kUsage = 2;
    context.json = context.json || is_json_wanted(argc, argv);
    report_error(context, "Usage", usage_message(app, error));
    return kUsage;
  } catch (const Error& error) {
    return report_error(context, to_string(error.kind()), error.what());
  } catch (const std::bad_alloc&) {
    return report_no_memory(context);
  } catch (const std::length_error&) {
    return report_no_memory(context);  // of a vector
  } catch (const std::exception& error) {
    return report_error(context, to_string(ErrorKind::kInternal), error.what());
  }
  return context.exit_status;
}

}  // namespace tilewright::cli
