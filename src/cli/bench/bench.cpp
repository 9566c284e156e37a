// tilewright bench: speed measurements.
#include "cli/tool/command.h"

namespace tilewright::cli {

void add_bench(CLI::App& app, Context& context) {
  CLI::App* bench = app.add_subcommand("bench", "measure speed");
  bench->require_subcommand(1);
  add_bench_linear(*bench, context);
  add_bench_sim(*bench, context);
  add_bench_moe(*bench, context);
  add_bench_sparse(*bench, context);
  add_bench_indexer(*bench, context);
  add_bench_fp8(*bench, context);
  add_bench_decode(*bench, context);
  add_bench_timing(*bench, context);
  add_bench_model(*bench, context);
  add_bench_exchange(*bench, context);
}

}  // namespace tilewright::cli
