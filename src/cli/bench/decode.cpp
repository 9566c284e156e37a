// tilewright bench decode: attention of new tokens over caches of many lengths.
#include "bench/decode.h"

#include "cli/bench/sweep_command.h"

#include <memory>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

using Counts = std::vector<std::int64_t>;

struct BenchDecodeArgs {
  std::vector<std::string> models, kvs = {"bf16", "e4m3"};
  Counts batches, keys, pages = {0}, q_lens = {1}, head_dims;
  std::string lengths = "full", kernel = "auto";
  SweepArgs sweep;
};

DecodeSweep to_decode_sweep(const BenchDecodeArgs& args, const Device& device) {
  const bool is_small = device.is_simulated();
  DecodeSweep sweep = {.kvs = args.kvs,
                       .batches = args.batches,
                       .keys = args.keys,
                       .pages = args.pages,
                       .q_lens = args.q_lens,
                       .kernel = args.kernel,
                       .samples = args.sweep.samples};
  std::vector<std::string> models = args.models;
  if (models.empty()) models = {is_small ? "small" : "llama-8b"};
  for (const std::string& name : models) {
    DecodeModel model = find_decode_model(name);
    if (args.head_dims.empty()) sweep.models.push_back(model);
    for (const std::int64_t head_dim : args.head_dims)
      model.head_dim = head_dim, sweep.models.push_back(model);
  }
  if (sweep.batches.empty()) sweep.batches = is_small ? Counts{2} : Counts{1, 8, 64};
  if (sweep.keys.empty())
    sweep.keys = is_small ? Counts{64, 300} : Counts{256, 1024, 4096, 16384, 65536};
  if (args.lengths == "random") sweep.lengths = DecodeLengths::kRandom;
  return sweep;
}

std::string decode_command_line(const BenchDecodeArgs& args) {
  return "tilewright bench decode" + repeated_option("--model", args.models) +
         repeated_option("--kv", args.kvs) + repeated_option("--batch", args.batches) +
         repeated_option("--keys", args.keys) + repeated_option("--page", args.pages) +
         repeated_option("--q-len", args.q_lens) + repeated_option("--head-dim", args.head_dims) +
         fmt::format(" --kernel {} --lengths {} --samples {}", args.kernel, args.lengths,
                     args.sweep.samples);
}

void run_bench_decode(const BenchDecodeArgs& args, Context& context) {
  run_sweep({.name = "decode",
             .run =
                 [&](const Device& device) {
                   return run_decode_sweep(device, to_decode_sweep(args, device),
                                           decode_command_line(args));
                 },
             .is_correct = is_decode_log_correct,
             .page = decode_report,
             .table = decode_table},
            args.sweep, context);
}

}  // namespace

void add_bench_decode(CLI::App& bench, Context& context) {
  CLI::App* command =
      bench.add_subcommand("decode", "decode attention, by the length of the caches");
  auto args = std::make_shared<BenchDecodeArgs>();
  const auto counts = [&](const char* name, Counts& values, std::int64_t least, const char* what) {
    command->add_option(name, values, what)
        ->check(quiet(CLI::Range(least, std::int64_t{1} << 24)))
        ->type_name("N");
  };
  command
      ->add_option("--model", args->models,
                   fmt::format("of {}; default llama-8b", fmt::join(decode_model_names(), ", ")))
      ->type_name("MODEL");
  command->add_option("--kv", args->kvs, "of the caches")
      ->check(quiet(CLI::IsMember({"bf16", "f16", "e4m3"})))
      ->capture_default_str()
      ->type_name("bf16|f16|e4m3");
  counts("--batch", args->batches, 1, "sequences; default 1, 8, 64");
  counts("--keys", args->keys, 1, "of each; default 256 to 65536");
  counts("--page", args->pages, 0, "keys of a page; default 0, no pages");
  counts("--q-len", args->q_lens, 1, "queries of a sequence; default 1");
  counts("--head-dim", args->head_dims, 8, "instead of the models' own");
  command->add_option("--lengths", args->lengths, "all as long, or any length up to that")
      ->check(quiet(CLI::IsMember({"full", "random"})))
      ->capture_default_str()
      ->type_name("full|random");
  command
      ->add_option("--kernel", args->kernel, "auto, or one that `tilewright decode --plan` lists")
      ->capture_default_str()
      ->type_name("NAME");
  add_sweep_options(*command, args->sweep, "decode");
  command->callback([args, &context] { run_bench_decode(*args, context); });
}

}  // namespace tilewright::cli
