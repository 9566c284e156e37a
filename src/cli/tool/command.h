// The tool's subcommands: each file adds its own to the command line.
#pragma once

#include "report/terminal.h"

#include <CLI/CLI.hpp>
#include <string>

namespace tilewright::cli {

/// What every command can ask for. Filled from the command line before a command runs.
struct Context {
  bool json = false;  ///< --json: one JSON value on standard output, nothing else
  ColorMode color = ColorMode::kAuto;
  std::string device;   ///< --device; empty: TILEWRIGHT_DEVICE, then auto
  int exit_status = 0;  ///< a command that finds something wrong sets 1

  TextColor text_color() const { return detect_color(color); }
  Style style() const { return Style(text_color()); }
};

/// A check whose words do not stand in --help: the name of the option's type says them.
inline CLI::Validator quiet(CLI::Validator check) {
  check.description("");
  return check;
}

/// Numbers above 0, and from 0 on.
inline CLI::Validator positive() {
  return {[](const std::string& text) {
            double number = 0;
            const bool is_good = CLI::detail::lexical_cast(text, number) && number > 0;
            return is_good ? "" : text + "; expected a number above 0";
          },
          ""};
}
inline CLI::Validator not_negative() {
  return {[](const std::string& text) {
            double number = 0;
            const bool is_good = CLI::detail::lexical_cast(text, number) && number >= 0;
            return is_good ? "" : text + "; expected 0 or more";
          },
          ""};
}

// One function per subcommand; commands.cpp lists them.
void add_info(CLI::App& app, Context& context);
void add_layout(CLI::App& app, Context& context);
void add_formats(CLI::App& app, Context& context);
void add_kernels(CLI::App& app, Context& context);
void add_demo(CLI::App& app, Context& context);
void add_sim(CLI::App& app, Context& context);
void add_bench(CLI::App& app, Context& context);
void add_attention(CLI::App& app, Context& context);
void add_linear(CLI::App& app, Context& context);
void add_ladder(CLI::App& app, Context& context);
void add_moe(CLI::App& app, Context& context);
void add_quantize(CLI::App& app, Context& context);
void add_generate(CLI::App& app, Context& context);
void add_eval(CLI::App& app, Context& context);
void add_tokenize(CLI::App& app, Context& context);
void add_make_checkpoint(CLI::App& app, Context& context);
void add_sparse_attention(CLI::App& app, Context& context);
void add_indexer(CLI::App& app, Context& context);
void add_decode(CLI::App& app, Context& context);

// Subcommands of `layout`.
void add_layout_eval(CLI::App& layout, Context& context);
void add_layout_draw(CLI::App& layout, Context& context);
void add_layout_check(CLI::App& layout, Context& context);
void add_layout_atoms(CLI::App& layout, Context& context);
void add_layout_banks(CLI::App& layout, Context& context);
void add_layout_handoff(CLI::App& layout, Context& context);

// Subcommands of `sim`.
void add_sim_exec(CLI::App& sim, Context& context);
void add_sim_run(CLI::App& sim, Context& context);
void add_sim_isa(CLI::App& sim, Context& context);

// Subcommands of `bench`.
void add_bench_linear(CLI::App& bench, Context& context);
void add_bench_sim(CLI::App& bench, Context& context);
void add_bench_moe(CLI::App& bench, Context& context);
void add_bench_sparse(CLI::App& bench, Context& context);
void add_bench_indexer(CLI::App& bench, Context& context);
void add_bench_fp8(CLI::App& bench, Context& context);
void add_bench_decode(CLI::App& bench, Context& context);
void add_bench_timing(CLI::App& bench, Context& context);
void add_bench_model(CLI::App& bench, Context& context);
void add_bench_exchange(CLI::App& bench, Context& context);

}  // namespace tilewright::cli
