// tilewright bench indexer: the lightning indexer over batches and prompts, with floors and
// DeepGEMM beside.
#include "bench/indexer.h"

#include "base/error.h"
#include "cli/bench/sweep_command.h"

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

struct BenchIndexerArgs {
  std::vector<std::int64_t> batches, keys, q_lens;
  std::vector<std::string> prompts, formats = {"fp8", "mxfp4"};
  std::int64_t heads = 64, topk = 512, key_page = 64;
  std::string lengths = "full", deepgemm;
  SweepArgs sweep;
};

// "2048x8192": tokens of a prompt and keys.
IndexShape to_prompt(const std::string& text, const IndexShape& like) {
  IndexShape shape = like;
  shape.batch = 1;
  int end = 0;
  long long tokens = 0, keys = 0;
  const int found = std::sscanf(text.c_str(), "%lldx%lld%n", &tokens, &keys, &end);
  require(found == 2 && static_cast<std::size_t>(end) == text.size() && tokens > 0 && keys > 0,
          ErrorKind::kInvalidArgument,
          "bench indexer: --prompt {}; expected TOKENSxKEYS, as in 2048x8192", text);
  shape.q_len = tokens;
  shape.keys = keys;
  return shape;
}

IndexSweep to_index_sweep(BenchIndexerArgs args, const Device& device) {
  const bool is_small = device.is_simulated();
  const auto or_default = [&](auto& values, auto small, auto large) {
    if (values.empty()) values = is_small ? small : large;
  };
  using Numbers = std::vector<std::int64_t>;
  const bool is_default = args.batches.empty() && args.prompts.empty();
  or_default(args.keys, Numbers{150}, Numbers{2048, 4096, 8192});
  or_default(args.q_lens, Numbers{2}, Numbers{1, 2});
  if (is_default) {
    args.batches = is_small ? Numbers{2} : Numbers{64, 128, 256};
    args.prompts = is_small ? std::vector<std::string>{"9x70"}
                            : std::vector<std::string>{"2048x8192", "4096x32768"};
  }
  IndexShape like;
  like.heads = is_small ? std::min<std::int64_t>(args.heads, 16) : args.heads;
  like.topk = is_small ? std::min<std::int64_t>(args.topk, 40) : args.topk;
  like.key_page = args.key_page;
  like.lengths = index_lengths_from_string(args.lengths);
  IndexSweep sweep;
  for (const std::int64_t q_len : args.q_lens) {
    for (const std::int64_t keys : args.keys) {
      for (const std::int64_t batch : args.batches) {
        IndexShape shape = like;
        shape.batch = batch, shape.q_len = q_len, shape.keys = keys;
        sweep.shapes.push_back(shape);
      }
    }
  }
  for (const std::string& prompt : args.prompts) sweep.shapes.push_back(to_prompt(prompt, like));
  for (const std::string& format : args.formats)
    sweep.formats.push_back(format == "fp8" ? NumberFormat::kFp8 : NumberFormat::kMxfp4);
  sweep.deepgemm = args.deepgemm;
  sweep.samples = args.sweep.samples;
  if (is_small) sweep.cache_bytes = 0;
  return sweep;
}

std::string index_command_line(const BenchIndexerArgs& args) {
  return "tilewright bench indexer" + repeated_option("--batch", args.batches) +
         repeated_option("--keys", args.keys) + repeated_option("--q-len", args.q_lens) +
         repeated_option("--prompt", args.prompts) + repeated_option("--format", args.formats) +
         fmt::format(" --heads {} --topk {} --page {} --lengths {} --samples {}", args.heads,
                     args.topk, args.key_page, args.lengths, args.sweep.samples);
}

void run_bench_indexer(const BenchIndexerArgs& args, Context& context) {
  run_sweep({.name = "indexer",
             .run =
                 [&](const Device& device) {
                   return run_index_sweep(device, to_index_sweep(args, device),
                                          index_command_line(args));
                 },
             .is_correct = is_index_log_correct,
             .page = index_report,
             .table = index_table},
            args.sweep, context);
}

void add_problem_options(CLI::App& command, BenchIndexerArgs& args) {
  const auto list = [&](const char* name, std::vector<std::int64_t>& values, const char* what) {
    command.add_option(name, values, what)
        ->check(quiet(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20)))
        ->type_name("N");
  };
  list("--batch", args.batches, "sequences that decode; default 64, 128, 256");
  list("--keys", args.keys, "of each sequence; default 2048, 4096, 8192");
  list("--q-len", args.q_lens, "tokens of each sequence; default 1, 2");
  command
      .add_option("--prompt", args.prompts,
                  "tokens and keys of one prompt; default 2048x8192, 4096x32768")
      ->type_name("TxK");
  command.add_option("--heads", args.heads, "1 to 64")
      ->check(quiet(CLI::Range(1, 64)))
      ->capture_default_str()
      ->type_name("N");
  command.add_option("--topk", args.topk, "keys to select, up to 2048")
      ->check(quiet(CLI::Range(1, 2048)))
      ->capture_default_str()
      ->type_name("N");
  command.add_option("--page", args.key_page, "keys of a page")
      ->check(quiet(CLI::Range(1, 1 << 20)))
      ->capture_default_str()
      ->type_name("N");
  command.add_option("--lengths", args.lengths, "keys that a token sees")
      ->check(quiet(CLI::IsMember({"full", "drawn", "causal"})))
      ->capture_default_str()
      ->type_name("full|drawn|causal");
  command.add_option("--format", args.formats, "of queries and keys")
      ->check(quiet(CLI::IsMember({"fp8", "mxfp4"})))
      ->capture_default_str()
      ->type_name("fp8|mxfp4");
}

}  // namespace

void add_bench_indexer(CLI::App& bench, Context& context) {
  CLI::App* command =
      bench.add_subcommand("indexer", "DeepSeek-V4's lightning indexer, decoding and prompts");
  auto args = std::make_shared<BenchIndexerArgs>();
  add_problem_options(*command, *args);
  command
      ->add_option("--deepgemm", args->deepgemm,
                   "a library with DeepGEMM behind the C interface of docs/05-benchmarks.md, to "
                   "run on the same quantised queries and keys")
      ->check(quiet(CLI::ExistingFile))
      ->envname("DEEPGEMM_SHIM")
      ->type_name("FILE");
  add_sweep_options(*command, args->sweep, "indexer");
  command->callback([args, &context] { run_bench_indexer(*args, context); });
}

}  // namespace tilewright::cli
