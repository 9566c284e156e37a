// tilewright bench exchange: sums over ranks by their size.
#include "bench/exchange.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/bench/sweep_command.h"
#include "cli/generate/ranks.h"

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

struct BenchExchangeArgs {
  RankArgs ranks;
  std::vector<std::int64_t> bytes;
  SweepArgs sweep;
};

void write_exchange_log(const nlohmann::json& log, const BenchExchangeArgs& args,
                        Context& context) {
  const std::filesystem::path path = std::filesystem::path(args.sweep.out) / "exchange.json";
  write_json(path, log);
  context.exit_status = is_exchange_log_correct(log) ? 0 : 1;
  if (context.json) return print_json(log);
  print(exchange_table(log, context.style()));
  print(fmt::format("log: {}\n", path.string()));
}

void run_bench_exchange(const BenchExchangeArgs& args, Context& context) {
  ExchangeSweep sweep = {.bytes = args.bytes, .samples = args.sweep.samples};
  if (sweep.bytes.empty())
    for (std::int64_t bytes = 2 << 10; bytes <= 512 << 10; bytes *= 2) sweep.bytes.push_back(bytes);
  for (const std::int64_t bytes : sweep.bytes)
    require(bytes % 16 == 0, ErrorKind::kInvalidArgument,
            "--bytes {}: expected a multiple of 16, four numbers of fp32", bytes);
  open_out(args.sweep.out);
  if (!begin_ranks(args.ranks, context)) return;
  const std::string command =
      fmt::format("tilewright bench exchange --gpus {}{} --samples {}", args.ranks.gpus,
                  repeated_option("--bytes", args.bytes), args.sweep.samples);
  run_ranks_alone(args.ranks, context, [&](OpenRank rank) {
    require(rank.comm != nullptr, ErrorKind::kInvalidArgument,
            "bench exchange: one rank has nobody to exchange with; expected --gpus 2 or more");
    const auto log = run_exchange_sweep(rank.device, rank.comm, sweep, command);
    if (rank.comm->rank() == 0) write_exchange_log(log, args, context);
  });
}

}  // namespace

void add_bench_exchange(CLI::App& bench, Context& context) {
  CLI::App* command = bench.add_subcommand(
      "exchange", "sums over ranks by their size: NCCL, and the memory of all ranks");
  auto args = std::make_shared<BenchExchangeArgs>();
  add_rank_options(*command, args->ranks);
  command->add_option("--bytes", args->bytes, "of a message; default 2 KiB, 4 KiB, ... 512 KiB")
      ->check(quiet(CLI::Range(16, 1 << 30)))
      ->type_name("N");
  command->add_option("--samples", args->sweep.samples, "times of each")
      ->check(quiet(CLI::Range(3, 1000)))
      ->capture_default_str()
      ->type_name("N");
  args->sweep.out = "build/exchange";
  command->add_option("--out", args->sweep.out, "folder of exchange.json")
      ->capture_default_str()
      ->type_name("FOLDER");
  command->callback([args, &context] { run_bench_exchange(*args, context); });
}

}  // namespace tilewright::cli
