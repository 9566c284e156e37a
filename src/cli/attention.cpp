// tilewright attention: the operator on tensors from files.

#include "base/error.h"
#include "base/npy.h"
#include "base/safetensors_writer.h"
#include "cli/tool/command.h"
#include "cli/tool/fp8_options.h"
#include "cli/tool/plan_options.h"
#include "cli/tool/time_sample.h"
#include "formats/minifloat.h"
#include "report/operator_report.h"
#include "verify/attention/check.h"
#include "verify/attention/device.h"
#include "verify/attention/fp8.h"
#include "verify/attention/input.h"
#include "verify/device_facts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

struct AttentionArgs {
  AttentionInput input;
  Fp8Args fp8;
  std::string out, lse_out;
  bool check = false;
  PlanArgs plan;
  int runs = 20;
};

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
    std::vector<std::int64_t> shape = args.input.drawn.empty()
                                          ? load_tensor(args.input, args.input.q).shape()
                                          : std::vector{p.batch, p.q_len, p.heads, p.head_dim};
    shape.back() = value_dim(p);
    write_tensor(args.out, "out",
                 contiguous_view(static_cast<const void*>(out.data()), p.dtype, shape));
  }
  if (!args.lse_out.empty()) {
    std::vector<std::int64_t> shape = {p.batch, p.heads, p.q_len};
    if (p.is_packed) shape = {p.heads, p.total_q};
    write_tensor(args.lse_out, "lse",
                 contiguous_view(static_cast<const void*>(lse.data()), DType::kF32, shape));
  }
}

void print_attention(const nlohmann::json& report, const Style& style) {
  print(report["plan"]["text"].get<std::string>());
  if (report.contains("time")) {
    const nlohmann::json& time = report["time"];
    print(fmt::format("{}: {} TFLOP/s\n", time_line(time, style, 1, " with a cold cache"),
                      style.bold(fmt::format("{:.1f}", time["tflops"].get<double>()))));
  }
  if (report.contains("counted")) {
    const nlohmann::json& total = report["counted"]["total"];
    print(fmt::format(
        "{}, {:.4g} MB from L2; not measured: a simulator\n{}", counted_line(report["counted"]),
        (total["global_requested_bytes"].get<double>() + total["bulk_bytes"].get<double>()) * 1e-6,
        predicted_line(report["counted"])));
  }
  if (report.contains("error")) {
    const nlohmann::json& e = report["error"];
    print(
        fmt::format("check      {}: max error {:.3g}, relative rms {:.3g}, cosine {:.9f}, {}, lse "
                    "{:.2g}\n",
                    verdict_text(e, style), e["max_abs"].get<double>(),
                    e["relative_rms"].get<double>(), e["cosine"].get<double>(),
                    bound_text(e["worst_of_bound"].get<double>()), e["max_lse"].get<double>()));
  }
}

// The lengths of packed sequences, which the plan does not know, count here.
AttentionPlan counted_plan(AttentionPlan plan, const AttentionData& data) {
  plan.flops = visible_flops(data);
  return plan;
}

nlohmann::json measure(AttentionBench& bench, const Attention& attention, double flops, int runs) {
  std::vector<double> samples;
  for (int i = 0; i < runs; ++i) samples.push_back(bench.time_cold(attention).us);
  nlohmann::json time = time_summary(samples);
  time["tflops"] = flops / time["median_us"].get<double>() * 1e-6;
  return time;
}

// What the device computes: the problem of the files, or that of the same tensors in e4m3.
AttentionProblem device_problem(const AttentionArgs& args, AttentionProblem& of_files) {
  const Fp8Options fp8 = args.fp8.options();
  of_files.fp8.accumulation = fp8.accumulation;
  if (args.input.dtype != "e4m3") return of_files;
  AttentionProblem p = prepared_problem(of_files, fp8);
  of_files.kernel = "auto";
  return p;
}

nlohmann::json check(const AttentionArgs& args, const AttentionData& data,
                     const AttentionPlan& plan, const std::vector<std::uint16_t>& out,
                     const std::vector<float>& lse) {
  constexpr std::int64_t kDrawnRows = 512;
  const std::int64_t count =
      args.input.drawn.empty() ? std::numeric_limits<std::int64_t>::max() : kDrawnRows;
  const std::vector<ExactRow> rows = exact_rows(data, count, 1);
  return to_json(check_attention(data, plan, rows, out, lse, args.fp8.is_rotated));
}

void run_attention(const AttentionArgs& args, Context& context) {
  require(args.out.empty() || args.out != args.lse_out, ErrorKind::kInvalidArgument,
          "attention: --out and --lse-out are both {}; give them different names", args.out);
  request_counts();
  const Device device = Device::open(context.device);
  AttentionData data = describe_attention(args.input);
  data.problem.has_lse = !args.lse_out.empty() || args.check;
  const AttentionProblem problem = device_problem(args, data.problem);
  nlohmann::json report = {{"device", device.description()}};
  if (args.plan.only) {
    report["plan"] =
        plan_json(counted_plan(plan_attention(device, problem), data), args.plan, context);
    return context.json ? print_json(report) : print_attention(report, context.style());
  }
  const Attention attention(device, problem);
  draw_operands(args.input, data);
  data.problem = complete(data.problem);
  const AttentionPlan plan = counted_plan(attention.plan(), data);
  report["plan"] = plan_json(plan, args.plan, context);
  AttentionBench bench(device, data);
  if (problem.dtype == DType::kF8_E4M3)
    bench.round_operands(prepare_problem(data.problem, problem.fp8, args.fp8.is_rotated));
  bench.prepare(plan);
  const bool has_files = !args.out.empty() || !args.lse_out.empty();
  sample_if_large(device, report["plan"], args.check ? "--check" : has_files ? "--out" : "");
  bench.enqueue(attention);
  bench.synchronize();
  const std::vector<std::uint16_t> out = bench.read_out(data.problem);
  const std::vector<float> lse = bench.read_lse(data.problem);
  if (const nlohmann::json counts = take_counts(device); !counts.is_null())
    report["counted"] = counts;
  if (!device.is_simulated() && args.runs > 0)
    report["time"] = measure(bench, attention, plan.flops, args.runs);
  if (args.check) {
    report["error"] = check(args, data, plan, out, lse);
    context.exit_status = report["error"]["ok"].get<bool>() ? 0 : 1;
  }
  write_results(args, data.problem, out, lse);
  context.json ? print_json(report) : print_attention(report, context.style());
}

void add_input_options(CLI::App& command, AttentionInput& input) {
  command.add_option("--q", input.q, "queries: an .npy file, with --input the name of a tensor")
      ->type_name("FILE|NAME");
  command.add_option("--k", input.k, "keys, likewise")->type_name("FILE|NAME");
  command.add_option("--v", input.v, "values, likewise")->type_name("FILE|NAME");
  command.add_option("--input", input.file, "a safetensors file that holds the tensors")
      ->check(quiet(CLI::ExistingFile))
      ->type_name("FILE");
  command
      .add_option("--layout", input.layout,
                  "dimensions, outermost first: b batch, n rows, h heads, d; default bnhd or nhd")
      ->type_name("LETTERS");
  command
      .add_option(
          "--dtype", input.dtype,
          "type on the device; default: that of q if it is one. e4m3: rounded there first; the "
          "time is that of attention alone")
      ->check(quiet(CLI::IsMember({"bf16", "f16", "e4m3"})))
      ->type_name("bf16|f16|e4m3");
  command
      .add_option("--cu-seqlens-q", input.cu_q,
                  "packed sequences: [sequences + 1] rows of q where they begin, and the end; "
                  "or as 0,17,300")
      ->type_name("FILE|NAME|LIST");
  command
      .add_option("--cu-seqlens-k", input.cu_kv,
                  "the same for the rows of k and v; default: as those of q")
      ->type_name("FILE|NAME|LIST");
  command
      .add_option("--inputs", input.drawn,
                  "draw tensors of --shape instead: N(0,1); outlier: one value in a thousand also "
                  "gets N(0,100) added. 512 rows are checked")
      ->check(quiet(CLI::IsMember({"normal", "outlier"})))
      ->type_name("normal|outlier");
  command
      .add_option("--shape", input.shape,
                  "batch, heads, kv_heads, queries, keys, head_dim of them; one more number: of "
                  "values")
      ->option_text("B,H,HKV,NQ,NK,D[,DV]")
      ->delimiter(',');
  command.add_option("--sink", input.sink, "[heads]: scores of one more key without a value")
      ->type_name("FILE|NAME");
}

void add_problem_options(CLI::App& command, AttentionInput& input) {
  command.add_option("--kernel", input.kernel, "auto, or one that --plan lists: k1, k2, ... k8")
      ->type_name("NAME")
      ->capture_default_str();
  command.add_flag("--causal", input.causal, "keys after a query's position are hidden");
  command.add_option("--window", input.window, "visible keys before the query, and after it")
      ->type_name("LEFT[,RIGHT]");
  command.add_option("--softcap", input.softcap, "scores s become C * tanh(s / C)")->type_name("C");
  command.add_option("--scale", input.scale, "scale of q . k; default head_dim^-0.5")
      ->type_name("FACTOR");
}

}  // namespace

void add_attention(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "attention", "softmax(scale * q k^T) v, on tensors from files or drawn ones");
  auto args = std::make_shared<AttentionArgs>();
  add_input_options(*command, args->input);
  add_problem_options(*command, args->input);
  add_fp8_options(*command, args->fp8);
  command
      ->add_option("--out", args->out, "write the result: .npy (bf16 as float32) or .safetensors")
      ->type_name("FILE");
  command
      ->add_option("--lse-out", args->lse_out,
                   "write the log sum exp: [batch, heads, rows], packed [heads, rows]")
      ->type_name("FILE");
  command->add_flag("--check", args->check, "compare every row with the float64 reference");
  add_plan_options(*command, args->plan);
  add_runs_option(*command, args->runs);
  command->footer(
      "Heads are grouped if q has more than k. For example:\n"
      "  tilewright attention --q q.npy --k k.npy --v v.npy --causal --check --out out.npy\n"
      "  tilewright attention --input qkv.safetensors --layout hnd --window 128 --sink s.npy\n"
      "  tilewright attention --q q.npy --k k.npy --v v.npy --cu-seqlens-q 0,17,300 --check\n"
      "  tilewright attention --inputs outlier --shape 1,2,2,256,256,128 --kernel k8 --check\n"
      "  tilewright attention --inputs normal --shape 1,2,2,256,256,128 --dtype e4m3 --check");
  command->callback([args, &context] { run_attention(*args, context); });
}

}  // namespace tilewright::cli
