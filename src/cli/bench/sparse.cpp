// tilewright bench sparse: sparse attention over batches, with floors and FlashMLA beside.
#include "bench/sparse.h"

#include "cli/bench/sweep_command.h"

#include <memory>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

struct BenchSparseArgs {
  std::vector<std::string> shapes, formats = {"fp8"}, kernels;
  std::vector<std::int64_t> batches;
  std::string flashmla;
  SweepArgs sweep;
};

SparseSweep to_sparse_sweep(const BenchSparseArgs& args, const Device& device) {
  const bool is_small = device.is_simulated();
  SparseSweep sweep;
  std::vector<std::string> shapes = args.shapes;
  if (shapes.empty())
    shapes = is_small ? std::vector<std::string>{"small"}
                      : std::vector<std::string>{"flash", "pro", "flash8", "flash16"};
  for (const std::string& name : shapes) sweep.shapes.push_back(find_sparse_shape(name));
  for (const std::string& name : args.formats)
    sweep.formats.push_back(*number_format_from_string(name));
  sweep.batches = args.batches;
  if (sweep.batches.empty())
    sweep.batches = is_small ? std::vector<std::int64_t>{1, 2}
                             : std::vector<std::int64_t>{2, 64, 74, 128, 148, 256};
  sweep.kernels = args.kernels;
  sweep.flashmla = args.flashmla;
  sweep.samples = args.sweep.samples;
  if (is_small) sweep.sets = 1;
  return sweep;
}

std::string sparse_command_line(const BenchSparseArgs& args) {
  return "tilewright bench sparse" + repeated_option("--shape", args.shapes) +
         repeated_option("--format", args.formats) + repeated_option("--kernel", args.kernels) +
         repeated_option("--batch", args.batches) +
         fmt::format(" --samples {}", args.sweep.samples);
}

void run_bench_sparse(const BenchSparseArgs& args, Context& context) {
  run_sweep({.name = "sparse",
             .run =
                 [&](const Device& device) {
                   return run_sparse_sweep(device, to_sparse_sweep(args, device),
                                           sparse_command_line(args));
                 },
             .is_correct = is_sparse_log_correct,
             .page = sparse_report,
             .table = sparse_table},
            args.sweep, context);
}

}  // namespace

void add_bench_sparse(CLI::App& bench, Context& context) {
  CLI::App* command =
      bench.add_subcommand("sparse", "DeepSeek-V4's attention over paged caches, by batch");
  auto args = std::make_shared<BenchSparseArgs>();
  command
      ->add_option("--shape", args->shapes,
                   fmt::format("of {}; default flash, pro, flash8, flash16; small on the simulator",
                               fmt::join(sparse_shape_names(), ", ")))
      ->type_name("SHAPE");
  command->add_option("--batch", args->batches, "sequences; default 2, 64, 74, 128, 148, 256")
      ->check(quiet(CLI::Range(1, 65536)))
      ->type_name("N");
  command->add_option("--format", args->formats, "of the caches")
      ->check(quiet(CLI::IsMember({"fp8", "nvfp4", "bf16"})))
      ->capture_default_str()
      ->type_name("fp8|nvfp4|bf16");
  command->add_option("--kernel", args->kernels, "names; default: the chosen one")
      ->type_name("NAME");
  command
      ->add_option("--flashmla", args->flashmla,
                   "a library with FlashMLA behind the C interface of docs/05-benchmarks.md, to "
                   "run on the same inputs")
      ->check(quiet(CLI::ExistingFile))
      ->envname("FLASHMLA_SHIM")
      ->type_name("FILE");
  add_sweep_options(*command, args->sweep, "sparse");
  command->callback([args, &context] { run_bench_sparse(*args, context); });
}

}  // namespace tilewright::cli
