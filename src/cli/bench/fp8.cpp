// tilewright bench fp8-accuracy: what rounding to e4m3 costs, by scales, rotation and accumulation.

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/safetensors.h"
#include "base/source_commit.h"
#include "cli/tool/command.h"
#include "verify/attention/check.h"
#include "verify/attention/device.h"
#include "verify/attention/input.h"

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

using nlohmann::json;

struct AccuracyArgs {
  std::string input, out = "build/fp8-accuracy.json", inputs = "outlier";
  std::vector<std::int64_t> lengths;
  std::int64_t head_dim = 128, heads = 2, rows = 128;
};

struct Fp8Rounding {
  const char* name;
  ScaleSharing scales;
  bool is_rotated;
};
constexpr Fp8Rounding kFp8Roundings[] = {{"per tensor", ScaleSharing::kTensor, false},
                                         {"per block", ScaleSharing::kBlock, false},
                                         {"rotated", ScaleSharing::kTensor, true},
                                         {"rotated, per block", ScaleSharing::kBlock, true}};

json result_json(const char* rounding, const char* sums, const AttentionErrors& errors) {
  return {{"rounding", rounding},      {"sums", sums},
          {"rmse", errors.rmse},       {"relative_rms", errors.relative_rms},
          {"max_abs", errors.max_abs}, {"cosine", errors.cosine}};
}

// All roundings and both kinds of sums on the same operands, and 16 bits as they are.
json measure_case(const Device& device, const std::string& name, AttentionData& data,
                  std::int64_t rows) {
  data.problem = complete(data.problem);
  const std::vector<ExactRow> exact = exact_rows(data, rows, 1);
  AttentionBench bench(device, data);
  json results = json::array();
  const auto run = [&](const AttentionProblem& problem, const char* rounding, const char* sums) {
    try {
      const Attention attention(device, problem);
      bench.prepare(attention.plan());
      bench.enqueue(attention);
      bench.synchronize();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kUnsupported) throw;
      return;  // no two levels at this head_dim
    }
    const auto out = bench.read_out(data.problem);
    results.push_back(result_json(rounding, sums, compare_rows(data.problem, exact, out, {})));
  };
  run(data.problem, "16 bits", "fp32");
  for (const Fp8Rounding& rounding : kFp8Roundings) {
    Fp8Options fp8 = {.scales = rounding.scales, .v_layout = Fp8ValueLayout::kColumns};
    bench.round_operands(prepare_problem(data.problem, fp8, rounding.is_rotated));
    for (const auto sums : {Fp8Accumulation::kOneLevel, Fp8Accumulation::kTwoLevel}) {
      fp8.accumulation = sums;
      AttentionProblem problem = prepared_problem(data.problem, fp8);
      problem.kernel = "auto";
      run(problem, rounding.name, sums == Fp8Accumulation::kOneLevel ? "one level" : "two levels");
    }
  }
  const AttentionProblem& p = data.problem;
  return {{"name", name},         {"keys", p.kv_len},       {"head_dim", p.head_dim},
          {"heads", p.heads},     {"kv_heads", p.kv_heads}, {"causal", p.causal},
          {"rows", exact.size()}, {"results", results}};
}

json measure_drawn(const AccuracyArgs& args, const Device& device) {
  std::vector<std::int64_t> lengths = args.lengths;
  if (lengths.empty())
    lengths = device.is_simulated() ? std::vector<std::int64_t>{256, 512}
                                    : std::vector<std::int64_t>{4096, 65536};
  json cases = json::array();
  for (const std::int64_t length : lengths) {
    AttentionInput input;
    input.drawn = args.inputs;
    input.shape = {1, args.heads, args.heads, length, length, args.head_dim};
    AttentionData data = load_attention(input);
    cases.push_back(
        measure_case(device, fmt::format("{}, {} keys", args.inputs, length), data, args.rows));
  }
  return cases;
}

// Tensors PREFIX.q, PREFIX.k, PREFIX.v [head, row, head_dim], causal.
json measure_file(const AccuracyArgs& args, const Device& device) {
  json cases = json::array();
  const SafetensorsFile file(args.input);
  for (const SafetensorsEntry& entry : file.entries()) {
    if (!entry.name.ends_with(".q")) continue;
    const std::string prefix = entry.name.substr(0, entry.name.size() - 2);
    AttentionInput input;
    input.file = args.input;
    input.layout = "hnd";
    input.q = prefix + ".q";
    input.k = prefix + ".k";
    input.v = prefix + ".v";
    input.causal = true;
    AttentionData data = load_attention(input);
    cases.push_back(measure_case(device, prefix, data, args.rows));
  }
  require(!cases.empty(), ErrorKind::kInvalidArgument,
          "fp8-accuracy: {} has no tensors PREFIX.q, PREFIX.k, PREFIX.v", args.input);
  return cases;
}

void print_accuracy(const json& log, const Style& style) {
  for (const json& c : log["cases"]) {
    print(style.bold(fmt::format("{} (head_dim {}, {} rows)\n", c["name"].get<std::string>(),
                                 c["head_dim"].get<int>(), c["rows"].get<int>())));
    Table table({"operands", "sums", "rmse", "relative", "largest"});
    for (const json& r : c["results"])
      table.add({r["rounding"].get<std::string>(), r["sums"].get<std::string>(),
                 fmt::format("{:.2e}", r["rmse"].get<double>()),
                 fmt::format("{:.4f}", r["relative_rms"].get<double>()),
                 fmt::format("{:.2e}", r["max_abs"].get<double>())});
    print(table.text(style));
  }
}

void run_accuracy(const AccuracyArgs& args, Context& context) {
  const Device device = Device::open(context.device);
  const SourceCommit commit = source_commit(kBuiltCommit);
  json log = {
      {"schema", 1},
      {"kind", "fp8-accuracy"},
      {"commit", commit.hash},
      {"dirty", commit.is_dirty},
      {"device", device.description()},
      {"inputs",
       args.input.empty() ? args.inputs : std::filesystem::path(args.input).filename().string()}};
  log["cases"] = args.input.empty() ? measure_drawn(args, device) : measure_file(args, device);
  const std::filesystem::path path = args.out;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path());
  write_json(path, log);
  if (context.json) return print_json(log);
  print_accuracy(log, context.style());
  print(context.style().faint(fmt::format("\nlog {}\n", path.string())));
}

}  // namespace

void add_bench_fp8(CLI::App& bench, Context& context) {
  CLI::App* command = bench.add_subcommand(
      "fp8-accuracy", "errors of attention in e4m3: scales, rotation, accumulation");
  auto args = std::make_shared<AccuracyArgs>();
  command->add_option("--inputs", args->inputs, "N(0,1), or with one in a thousand + N(0,100)")
      ->check(quiet(CLI::IsMember({"normal", "outlier"})))
      ->capture_default_str()
      ->type_name("normal|outlier");
  command
      ->add_option("--input", args->input,
                   "real tensors PREFIX.q, .k, .v [head, row, dim], causal, instead of drawn ones")
      ->check(quiet(CLI::ExistingFile))
      ->type_name("FILE");
  command->add_option("--lengths", args->lengths, "default: 4096,65536; on a simulator 256,512")
      ->delimiter(',')
      ->check(quiet(CLI::Range(1, 1 << 20)))
      ->type_name("N");
  command->add_option("--head-dim", args->head_dim)
      ->check(quiet(CLI::IsMember({64, 128, 256})))
      ->capture_default_str()
      ->type_name("N");
  command->add_option("--heads", args->heads)
      ->check(quiet(CLI::Range(1, 1024)))
      ->capture_default_str()
      ->type_name("N");
  command->add_option("--rows", args->rows, "queries of each case, in float64")
      ->check(quiet(CLI::Range(1, 1 << 20)))
      ->capture_default_str()
      ->type_name("N");
  command->add_option("--out", args->out, "the log")->capture_default_str()->type_name("FILE");
  command->callback([args, &context] { run_accuracy(*args, context); });
}

}  // namespace tilewright::cli
