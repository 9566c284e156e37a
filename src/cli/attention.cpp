// tilewright attention: the operator on tensors from files.

#include "base/error.h"
#include "base/npy.h"
#include "base/safetensors.h"
#include "base/safetensors_writer.h"
#include "cli/attention_bench.h"
#include "cli/attention_check.h"
#include "cli/command.h"
#include "formats/minifloat.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

struct AttentionArgs {
  std::string q = "q", k = "k", v = "v", input, layout, dtype, kernel = "auto";
  std::string sink, out, lse_out, window;
  double scale = 0, softcap = 0;
  bool causal = false, check = false, plan_only = false;
  int runs = 20;
};

HostTensor load_tensor(const AttentionArgs& args, const std::string& name) {
  if (args.input.empty()) return read_npy(name);
  return HostTensor(SafetensorsFile(args.input).tensor(name));
}

// "64" keys before; "64,8" keys before and after.
void set_window(AttentionProblem& problem, const std::string& text) {
  if (text.empty()) return;
  int end = 0;
  long long left = -1, right = -1;
  const int found = std::sscanf(text.c_str(), "%lld%n,%lld%n", &left, &end, &right, &end);
  require(found >= 1 && static_cast<std::size_t>(end) == text.size(), ErrorKind::kInvalidArgument,
          "attention: --window {}; expected LEFT or LEFT,RIGHT, -1 for all keys of a side", text);
  problem.window_left = left;
  problem.window_right = right;
}

DType element_type(const AttentionArgs& args, DType of_q) {
  if (args.dtype == "bf16") return DType::kBF16;
  if (args.dtype == "f16") return DType::kF16;
  return of_q == DType::kF16 ? DType::kF16 : DType::kBF16;
}

AttentionData load_data(const AttentionArgs& args) {
  const HostTensor q = load_tensor(args, args.q), k = load_tensor(args, args.k);
  const HostTensor v = load_tensor(args, args.v);
  AttentionData data;
  AttentionProblem& p = data.problem;
  p.dtype = element_type(args, q.dtype());
  const std::string layout = !args.layout.empty()    ? args.layout
                             : q.shape().size() == 3 ? "nhd"
                                                     : "bnhd";
  set_extents(p, read_layout(layout, q.shape(), args.q), read_layout(layout, k.shape(), args.k),
              read_layout(layout, v.shape(), args.v));
  p.causal = args.causal;
  p.softcap = args.softcap;
  if (args.scale != 0) p.scale = args.scale;
  set_window(p, args.window);
  p.kernel = args.kernel;
  p.has_lse = !args.lse_out.empty() || args.check;
  p.has_sink = !args.sink.empty();
  if (p.has_sink) {
    const HostTensor sink = args.input.empty() || args.sink.ends_with(".npy")
                                ? read_npy(args.sink)
                                : load_tensor(args, args.sink);
    const auto values = sink.elems<float>();
    require(static_cast<std::int64_t>(values.size()) == p.heads, ErrorKind::kInvalidArgument,
            "attention: --sink has {} values; expected one for each of {} heads", values.size(),
            p.heads);
    data.sink.assign(values.begin(), values.end());
  }
  data.q = to_codes(q.view(), p.dtype, args.q);
  data.k = to_codes(k.view(), p.dtype, args.k);
  data.v = to_codes(v.view(), p.dtype, args.v);
  return data;
}

// NumPy has no bf16: there float32, which holds every value.
void write_tensor(const std::string& path, const char* name, const ConstTensorView& view) {
  if (path.ends_with(".safetensors")) {
    write_safetensors(path, {{name, view}});
    return;
  }
  require(path.ends_with(".npy"), ErrorKind::kInvalidArgument,
          "attention: {} is neither .npy nor .safetensors", path);
  if (view.dtype != DType::kBF16) return write_npy(path, view);
  const auto* const codes = static_cast<const std::uint16_t*>(view.data);
  HostTensor wide(DType::kF32, view.shape);
  const std::span<float> values = wide.elems<float>();
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(decode(kBf16, codes[i]));
  write_npy(path, wide.view());
}

void write_results(const AttentionArgs& args, const AttentionProblem& p,
                   const std::vector<std::uint16_t>& out, const std::vector<float>& lse) {
  if (!args.out.empty()) {
    // Out lies as q does.
    std::vector<std::int64_t> shape = load_tensor(args, args.q).shape();
    write_tensor(args.out, "out",
                 contiguous_view(static_cast<const void*>(out.data()), p.dtype, shape));
  }
  if (!args.lse_out.empty()) {
    write_tensor(args.lse_out, "lse",
                 contiguous_view(static_cast<const void*>(lse.data()), DType::kF32,
                                 {p.batch, p.heads, p.q_len}));
  }
}

nlohmann::json plan_json(const AttentionPlan& plan) {
  nlohmann::json candidates = nlohmann::json::array();
  for (const AttentionCandidate& c : plan.candidates)
    candidates.push_back({{"name", c.name}, {"possible", c.is_possible}, {"reason", c.reason}});
  return {{"kernel", plan.kernel},    {"text", plan.to_string()},
          {"candidates", candidates}, {"workspace_bytes", plan.workspace_bytes},
          {"flops", plan.flops},      {"bytes", plan.bytes}};
}

void print_attention(const nlohmann::json& report, const Style& style) {
  print(report["plan"]["text"].get<std::string>());
  if (report.contains("time")) {
    const nlohmann::json& time = report["time"];
    print(fmt::format(
        "time       {} us, median of {} runs with a cold cache ({:.1f} to {:.1f}): "
        "{} TFLOP/s\n",
        style.bold(fmt::format("{:.1f}", time["median_us"].get<double>())),
        time["samples_us"].size(), time["low_us"].get<double>(), time["high_us"].get<double>(),
        style.bold(fmt::format("{:.1f}", time["tflops"].get<double>()))));
  }
  if (report.contains("counted")) {
    const nlohmann::json& total = report["counted"]["total"];
    print(fmt::format(
        "counted    {:.4g} warp instructions, {:.4g} tensor GFLOP, {:.4g} MB from "
        "L2; no time: a simulator\n",
        total["warp_instructions"].get<double>(), total["tensor_flop"].get<double>() * 1e-9,
        (total["global_requested_bytes"].get<double>() + total["bulk_bytes"].get<double>()) *
            1e-6));
  }
  if (report.contains("error")) {
    const nlohmann::json& e = report["error"];
    const bool is_ok = e["ok"].get<bool>();
    print(
        fmt::format("check      {}: max error {:.3g}, relative rms {:.3g}, cosine {:.9f}, {:.1f} "
                    "% of the bound, lse {:.2g}\n",
                    is_ok ? style.good("correct") : style.bad("WRONG"), e["max_abs"].get<double>(),
                    e["relative_rms"].get<double>(), e["cosine"].get<double>(),
                    100 * e["worst_of_bound"].get<double>(), e["max_lse"].get<double>()));
  }
}

void run_attention(const AttentionArgs& args, Context& context) {
  request_counts();
  const Device device = Device::open(context.device);
  const AttentionData loaded = load_data(args);
  nlohmann::json report = {{"device", device.description()}};
  if (args.plan_only) {
    report["plan"] = plan_json(plan_attention(device, loaded.problem));
    return context.json ? print_json(report) : print_attention(report, context.style());
  }
  const Attention attention(device, loaded.problem);
  AttentionData data = loaded;
  data.problem = attention.plan().problem;
  report["plan"] = plan_json(attention.plan());
  AttentionBench bench(device, data);
  bench.prepare(attention.plan());
  bench.enqueue(attention);
  bench.synchronize();
  const std::vector<std::uint16_t> out = bench.read_out(data.problem);
  const std::vector<float> lse = bench.read_lse(data.problem);
  if (const nlohmann::json counts = take_counts(device); !counts.is_null())
    report["counted"] = counts;
  if (!device.is_simulated() && args.runs > 0) {
    std::vector<double> samples;
    for (int i = 0; i < args.runs; ++i) samples.push_back(bench.time_cold_us(attention));
    const TimeSummary time = summarize(samples);
    report["time"] = {{"median_us", time.median_us},
                      {"low_us", time.low_us},
                      {"high_us", time.high_us},
                      {"tflops", attention.plan().flops / time.median_us * 1e-6},
                      {"samples_us", samples}};
  }
  if (args.check) {
    const auto rows = exact_rows(data, std::numeric_limits<std::int64_t>::max(), 1);
    const AttentionErrors errors = compare_rows(data.problem, rows, out, lse);
    report["error"] = to_json(errors);
    context.exit_status = errors.is_ok() ? 0 : 1;
  }
  write_results(args, data.problem, out, lse);
  context.json ? print_json(report) : print_attention(report, context.style());
}

}  // namespace

void add_attention(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("attention", "softmax(scale * q k^T) v on tensors of files");
  auto args = std::make_shared<AttentionArgs>();
  command->add_option("--q", args->q, "queries: an .npy file, with --input the name of a tensor");
  command->add_option("--k", args->k, "keys, likewise");
  command->add_option("--v", args->v, "values, likewise");
  command->add_option("--input", args->input, "a safetensors file that holds q, k and v")
      ->check(CLI::ExistingFile);
  command
      ->add_option("--layout", args->layout,
                   "dimensions, outermost first: b batch, n rows, h heads, d; default bnhd or nhd")
      ->type_name("LETTERS");
  command->add_option("--dtype", args->dtype, "type on the device; default: that of q if it is one")
      ->check(CLI::IsMember({"bf16", "f16"}));
  command->add_option("--kernel", args->kernel, "auto, or a rung: k1, k2, ... k6")
      ->capture_default_str();
  command->add_flag("--causal", args->causal, "keys after a query's position are hidden");
  command->add_option("--window", args->window, "visible keys before the query, and after it")
      ->type_name("LEFT[,RIGHT]");
  command->add_option("--softcap", args->softcap, "c: scores become c * tanh(s / c)");
  command->add_option("--scale", args->scale, "factor on q . k; default head_dim^-0.5");
  command->add_option("--sink", args->sink, "F32 [heads]: scores of one more key without a value")
      ->type_name("FILE|NAME");
  command
      ->add_option("--out", args->out, "write the result: .npy (bf16 as float32) or .safetensors")
      ->type_name("FILE");
  command->add_option("--lse-out", args->lse_out, "write [batch, heads, rows] log sum exp")
      ->type_name("FILE");
  command->add_flag("--check", args->check, "compare every row with the float64 reference");
  command->add_flag("--plan", args->plan_only, "say what would run, and why; run nothing");
  command->add_option("--runs", args->runs, "timed runs on a GPU")
      ->capture_default_str()
      ->check(CLI::Range(0, 10000));
  command->callback([args, &context] { run_attention(*args, context); });
}

}  // namespace tilewright::cli
