// tilewright ladder: every rung on the same inputs, checked, timed or counted, and reported.

#include "bench/ladder.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/safetensors.h"
#include "bench/decode.h"
#include "bench/ladder_images.h"
#include "cli/bench/sweep_command.h"
#include "cli/tool/command.h"
#include "cli/tool/time_sample.h"
#include "verify/device_facts.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

using nlohmann::json;

struct LadderArgs {
  std::string input, out = "build/ladder", from, decode, plots;
  std::vector<std::string> kernels, peers;
  std::vector<std::int64_t> head_dims, lengths;
  std::string mask = "both", dtype = "bf16";
  std::int64_t hidden = 0, tokens = 0, rows = 64, limit = 0;
  int samples = 15;
};

// Drawn once, as many as the largest shape needs; every shape reads the same memory.
class NormalSource : public LadderSource {
 public:
  NormalSource(std::int64_t elems, DType dtype) {
    for (auto [codes, seed] :
         {std::pair{&data_.q, 1}, std::pair{&data_.k, 2}, std::pair{&data_.v, 3}}) {
      *codes = draw_normal(elems, static_cast<std::uint64_t>(seed), dtype);
    }
  }
  AttentionData& load(const LadderCase&) override { return data_; }

 private:
  AttentionData data_;
};

// Tensors PREFIX.q, PREFIX.k, PREFIX.v [head, row, head_dim] of a file.
class FileSource : public LadderSource {
 public:
  explicit FileSource(const std::string& path) : file_(path), path_(path) {}

  std::vector<std::string> prefixes() const {
    std::set<std::string> names;
    for (const SafetensorsEntry& entry : file_.entries()) {
      if (entry.name.ends_with(".q")) names.insert(entry.name.substr(0, entry.name.size() - 2));
    }
    require(!names.empty(), ErrorKind::kInvalidArgument,
            "ladder: {} has no tensors PREFIX.q, PREFIX.k, PREFIX.v", path_);
    return {names.begin(), names.end()};
  }

  // The first `limit` rows; all if it is 0.
  LadderCase describe(const std::string& prefix, std::int64_t limit, DType dtype) const {
    LadderCase out = {
        "causal " + prefix, std::filesystem::path(path_).filename().string() + ": " + prefix, {}};
    AttentionProblem& p = out.problem;
    p.dtype = dtype;
    const auto extents = [&](const char* letter) {
      const std::string name = prefix + "." + letter;
      AttentionExtents found = read_layout("hnd", file_.tensor(name).shape, name);
      if (limit > 0) found.rows = std::min(found.rows, limit);
      return found;
    };
    set_extents(p, extents("q"), extents("k"), extents("v"));
    p.causal = true;
    p.has_lse = true;
    out.name = fmt::format("causal {} n{}", prefix, p.q_len);
    return out;
  }

  AttentionData& load(const LadderCase& ladder_case) override {
    const std::string prefix = ladder_case.inputs.substr(ladder_case.inputs.find(": ") + 2);
    const auto codes = [&](const char* letter) {
      const std::string name = prefix + "." + letter;
      const HostTensor aligned(file_.tensor(name));
      return to_codes(aligned.view(), ladder_case.problem.dtype, name);
    };
    data_ = {ladder_case.problem, codes("q"), codes("k"), codes("v")};
    return data_;
  }

 private:
  SafetensorsFile file_;
  std::string path_;
  AttentionData data_;
};

// The worklog's shapes: so many tokens and heads * head_dim = hidden, whatever the length.
std::vector<LadderCase> sweep_cases(const LadderArgs& args) {
  std::vector<LadderCase> cases;
  for (const std::int64_t head_dim : args.head_dims) {
    for (const bool causal : {false, true}) {
      if (args.mask == (causal ? "full" : "causal")) continue;
      for (const std::int64_t n : args.lengths) {
        const std::int64_t heads = std::max<std::int64_t>(args.hidden / head_dim, 1);
        LadderCase added = {
            fmt::format("{} d{} n{}", causal ? "causal" : "full", head_dim, n), "N(0,1)", {}};
        AttentionProblem& p = added.problem;
        p.dtype = args.dtype == "f16" ? DType::kF16 : DType::kBF16;
        p.batch = std::max<std::int64_t>(args.tokens / n, 1);
        p.heads = p.kv_heads = heads;
        p.q_len = p.kv_len = n;
        p.head_dim = head_dim;
        p.causal = causal;
        p.has_lse = true;
        p.q_strides = p.k_strides = p.v_strides =
            p.out_strides = {heads * n * head_dim, head_dim, n * head_dim};
        cases.push_back(std::move(added));
      }
    }
  }
  return cases;
}

void set_sweep_defaults(LadderArgs& args, bool is_simulated) {
  if (args.head_dims.empty()) args.head_dims = {64, 128, 256};
  if (args.lengths.empty())
    args.lengths = is_simulated ? std::vector<std::int64_t>{128, 256}
                                : std::vector<std::int64_t>{512, 1024, 2048, 4096, 8192, 16384};
  if (args.hidden == 0) args.hidden = is_simulated ? 256 : 2048;
  if (args.tokens == 0) args.tokens = is_simulated ? 256 : 16384;
}

json run_sweep(LadderArgs& args, const Device& device, LadderPlan& plan) {
  const DType dtype = args.dtype == "f16" ? DType::kF16 : DType::kBF16;
  if (!args.input.empty()) {
    // All of the example would take a simulator minutes.
    constexpr std::int64_t kSimulatedRows = 512;
    if (args.limit == 0 && device.is_simulated()) args.limit = kSimulatedRows;
    FileSource source(args.input);
    for (const std::string& prefix : source.prefixes())
      plan.cases.push_back(source.describe(prefix, args.limit, dtype));
    return run_ladder(device, plan, source);
  }
  set_sweep_defaults(args, device.is_simulated());
  plan.cases = sweep_cases(args);
  // A shape that no kernel takes is refused before anything is drawn.
  for (const LadderCase& c : plan.cases) plan_attention(device, c.problem);
  std::int64_t elems = 0;
  for (const LadderCase& c : plan.cases) {
    const AttentionProblem& p = c.problem;
    elems = std::max(elems, p.batch * p.heads * p.q_len * p.head_dim);
  }
  NormalSource source(elems, dtype);
  return run_ladder(device, plan, source);
}

void require_rung(const std::string& name) {
  if (name == "auto" || find_rung(name) != nullptr) return;
  std::string known;
  for (const AttentionKernelInfo& kernel : ladder_rungs()) known += ", " + kernel.name;
  fail(ErrorKind::kInvalidArgument, "ladder: there is no rung \"{}\"; expected one of auto{}", name,
       known);
}

json make_log(LadderArgs& args, const Context& context) {
  if (!args.from.empty()) return read_json(args.from);
  refuse_time_sample("ladder checks the results of all CTAs");
  request_counts();
  const Device device = Device::open(context.device);
  LadderPlan plan;
  plan.kernels = args.kernels;
  if (plan.kernels.empty()) {
    const bool is_blackwell = device.compute_capability() >= 100;
    for (const AttentionKernelInfo& kernel : ladder_rungs())
      if ((kernel.compute_capability >= 100) == is_blackwell) plan.kernels.push_back(kernel.name);
  }
  for (const std::string& name : plan.kernels) require_rung(name);
  plan.samples = args.samples;
  plan.check_rows = args.rows;
  std::string command = "tilewright ladder";
  if (!args.input.empty())
    command += " --input " + std::filesystem::path(args.input).filename().string();
  json log = ladder_header(device, command);
  log["kernels"] = plan.kernels;
  log["clocks_before"] = read_clocks(device);
  json samples = run_sweep(args, device, plan);
  log["clocks_after"] = read_clocks(device);
  log["samples"] = std::move(samples);
  if (args.kernels.empty() && args.decode.empty())
    log["decode"] = run_ladder_decode(device, args.samples);
  return log;
}

void write_plots(const json& log, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  for (const LadderImage& image : ladder_images(read_ladder(log)))
    write_file(folder / image.name, image.svg);
}

void run_ladder_command(LadderArgs& args, Context& context) {
  json log = make_log(args, context);
  for (const std::string& path : args.peers) merge_peers(log, read_json(path));
  if (!args.decode.empty()) log["decode"] = read_sweep_log(args.decode, "decode");
  std::filesystem::create_directories(args.out);
  const std::filesystem::path folder = args.out;
  if (args.from.empty()) write_json(folder / "ladder.json", log);
  write_file(folder / "ladder.html", ladder_report(log));
  if (!args.plots.empty()) write_plots(log, args.plots);
  context.exit_status = is_ladder_correct(log) ? 0 : 1;
  if (context.json) return print_json(log);
  print(ladder_table(log, context.style()));
  if (log.contains("decode")) print("\n" + decode_table(log["decode"], context.style()));
  std::string where = fmt::format("\nreport {}", (folder / "ladder.html").string());
  if (args.from.empty()) where += fmt::format("   log {}", (folder / "ladder.json").string());
  print(context.style().faint(where + "\n"));
}

// Which shapes on which inputs.
void add_sweep_options(CLI::App& command, LadderArgs& args) {
  command
      .add_option("--input", args.input,
                  "real tensors PREFIX.q, .k, .v [head, row, dim], causal, instead of the sweep")
      ->type_name("FILE")
      ->check(quiet(CLI::ExistingFile));
  command.add_option("--limit", args.limit, "only so many rows of the input; on a simulator 512")
      ->type_name("N")
      ->check(quiet(CLI::Range(1, 1 << 24)));
  command.add_option("--kernels", args.kernels, "only these; default: all")
      ->type_name("NAME")
      ->delimiter(',');
  command.add_option("--head-dims", args.head_dims, "default: 64,128,256")
      ->type_name("N")
      ->delimiter(',')
      ->check(quiet(CLI::Range(1, 512)));
  command.add_option("--lengths", args.lengths, "default: 512 to 16384; on a simulator 128,256")
      ->type_name("N")
      ->delimiter(',')
      ->check(quiet(CLI::Range(1, 1 << 24)));
  command.add_option("--mask", args.mask, "masks of the sweep")
      ->type_name("full|causal|both")
      ->check(quiet(CLI::IsMember({"full", "causal", "both"})))
      ->capture_default_str();
  command.add_option("--dtype", args.dtype, "element type")
      ->type_name("bf16|f16")
      ->check(quiet(CLI::IsMember({"bf16", "f16"})))
      ->capture_default_str();
  command.add_option("--hidden", args.hidden, "heads * head_dim: 2048; on a simulator 256")
      ->type_name("N")
      ->check(quiet(CLI::Range(1, 1 << 20)));
  command.add_option("--tokens", args.tokens, "batch * length: 16384; on a simulator 256")
      ->type_name("N")
      ->check(quiet(CLI::Range(1, 1 << 24)));
}

// How often, beside what, and where the report goes.
void add_report_options(CLI::App& command, LadderArgs& args) {
  command.add_option("--samples", args.samples, "timed runs of each kernel and shape")
      ->capture_default_str()
      ->type_name("N")
      ->check(quiet(CLI::Range(1, 1000)));
  command.add_option("--rows", args.rows, "rows of each shape that are checked in float64")
      ->type_name("N")
      ->check(quiet(CLI::Range(1, 1 << 24)))
      ->capture_default_str();
  command.add_option("--peers", args.peers, "logs of bench/attention_peers.py to compare with")
      ->type_name("FILE")
      ->check(quiet(CLI::ExistingFile));
  command
      .add_option("--decode", args.decode,
                  "a log of bench decode for the report, instead of a few lengths run here")
      ->type_name("FILE")
      ->check(quiet(CLI::ExistingFile));
  command.add_option("--from", args.from, "run nothing: report on this log")
      ->type_name("FILE")
      ->check(quiet(CLI::ExistingFile));
  command.add_option("--out", args.out, "folder for log and report")
      ->type_name("FOLDER")
      ->capture_default_str();
  command.add_option("--plots", args.plots, "folder for the plots, each an SVG file of its own")
      ->type_name("FOLDER");
}

}  // namespace

void add_ladder(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "ladder", "all attention kernels on the same inputs: check, time or count, report");
  auto args = std::make_shared<LadderArgs>();
  add_sweep_options(*command, *args);
  add_report_options(*command, *args);
  command->footer(
      "Examples:\n"
      "  tilewright ladder --kernels k5,k6 --head-dims 128 --lengths 4096\n"
      "  tilewright ladder --input examples/data/qkv.safetensors --limit 256\n"
      "  tilewright ladder --from build/ladder/ladder.json --peers peers.json\n"
      "  tilewright ladder --from build/ladder/ladder.json --plots pictures\n"
      "Exit status 1 if a result is wrong.");
  command->callback([args, &context] { run_ladder_command(*args, context); });
}

}  // namespace tilewright::cli
