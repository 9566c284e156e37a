// tilewright linear: the operator on a weight of a file, or on drawn ones.

#include "base/error.h"
#include "base/npy.h"
#include "base/safetensors_model.h"
#include "cli/tool/command.h"
#include "cli/tool/plan_options.h"
#include "cli/tool/time_sample.h"
#include "cli/tool/words.h"
#include "formats/minifloat.h"
#include "report/operator_report.h"
#include "verify/attention/data.h"
#include "verify/device_facts.h"
#include "verify/linear_check.h"
#include "verify/linear_data.h"
#include "verify/linear_device.h"
#include "verify/swiglu_linear.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

using nlohmann::json;

struct LinearArgs {
  std::string input, weight = "weight", x, format = "nvfp4", activations = "bf16", kernel = "auto",
                     scales = "auto", out;
  std::int64_t m = 16, n = 512, k = 512, rows = 64;
  bool f32 = false, check = false, accuracy = false;
  bool is_swiglu = false, quantises_out = false;
  double swiglu_limit = std::numeric_limits<double>::infinity();
  PlanArgs plan;
  int runs = 20;
};

LinearWeightData make_weight(const LinearArgs& args, NumberFormat format) {
  // Tensor cores multiply block scales in that are powers of two.
  const bool has_pow2_scales = args.activations == "block_scaled";
  if (!args.input.empty()) return load_weight(args.input, args.weight, format, has_pow2_scales);
  LinearWeightData data = quantise_weight(format, draw_normal_floats(args.n * args.k, 1), args.n,
                                          args.k, has_pow2_scales);
  data.origin = "N(0,1)";
  return data;
}

// Codes of a tensor [..., k]: all rows of it.
std::vector<std::uint16_t> read_x(const LinearArgs& args, const ConstTensorView& view,
                                  std::int64_t k) {
  require(!view.shape.empty() && view.shape.back() == k, ErrorKind::kInvalidArgument,
          "linear: --x {} has shape {}; expected [..., {}], the weight's k", args.x,
          shape_text(view.shape), k);
  return to_codes(view, DType::kBF16, args.x);
}

// x [m, k] rounded to bf16: of a file, or drawn.
std::vector<float> make_x(const LinearArgs& args, std::int64_t k, std::int64_t& m) {
  if (args.x.empty()) {
    m = args.m;
    return draw_normal_floats(m * k, 2);
  }
  std::vector<std::uint16_t> codes;
  if (args.x.ends_with(".npy")) {
    const HostTensor tensor = read_npy(args.x);
    codes = read_x(args, tensor.view(), k);
  } else {
    require(!args.input.empty(), ErrorKind::kInvalidArgument,
            "linear: --x {} is no .npy file; with --input it may be a tensor of that file", args.x);
    codes = read_x(args, SafetensorsModel(args.input).tensor(args.x), k);
  }
  m = static_cast<std::int64_t>(codes.size()) / k;
  std::vector<float> x;
  for (const std::uint16_t code : codes) x.push_back(static_cast<float>(decode(kBf16, code)));
  return x;
}

LinearActivations parse_activations(const std::string& text) {
  return text == "fp8"            ? LinearActivations::kFp8
         : text == "block_scaled" ? LinearActivations::kBlockScaled
                                  : LinearActivations::kBf16;
}

LinearProblem make_problem(const LinearArgs& args, std::int64_t m) {
  LinearProblem problem;
  problem.m = m;
  problem.out_dtype = args.f32 ? DType::kF32 : DType::kBF16;
  problem.kernel = args.kernel;
  if (args.scales == "row") problem.activation_scales = ScaleSharing::kRow;
  if (args.scales == "block") problem.activation_scales = ScaleSharing::kBlock;
  return problem;
}

std::string errors_text(const json& e) {
  return fmt::format("max error {:.3g}, relative rms {:.3g}, cosine {:.8f}",
                     e["max_abs"].get<double>(), e["relative_rms"].get<double>(),
                     e["cosine"].get<double>());
}

void print_check(const json& e, const Style& style) {
  const bool is_ok = e["ok"].get<bool>();
  print(fmt::format("check      {} against {} ({} rows): {}, {:.1f} % of the bound\n",
                    is_ok ? style.good("correct") : style.bad("WRONG"),
                    e["reference"].get<std::string>(), e["rows"].get<std::int64_t>(),
                    errors_text(e), 100 * e["worst_of_bound"].get<double>()));
  if (e["dequantised"]["reference"] != e["reference"])
    print(fmt::format("           against the dequantised weight: {}\n",
                      errors_text(e["dequantised"])));
  if (e.contains("original"))
    print(fmt::format("           against the weight before it was quantised: {}\n",
                      errors_text(e["original"])));
}

void print_linear(const json& report, const Style& style) {
  print(report["plan"]["text"].get<std::string>());
  if (report.contains("prepared"))
    print(fmt::format("prepared   {:.3g} MB on the device in {:.3g} ms: {:.2f} GB/s\n",
                      report["prepared"]["bytes"].get<double>() * 1e-6,
                      report["prepared"]["ms"].get<double>(),
                      report["prepared"]["gb_per_s"].get<double>()));
  if (report.contains("time")) {
    const json& time = report["time"];
    print(fmt::format("{}; floor {:.2f} us\n", time_line(time, style, 2, " with a cold cache"),
                      time["floor_us"].get<double>()));
  }
  if (report.contains("counted"))
    print(counted_line(report["counted"]) + "; not measured: a simulator\n" +
          predicted_line(report["counted"]));
  if (report.contains("error")) print_check(report["error"], style);
}

LinearWeight prepare(const Device& device, const LinearWeightData& data,
                     LinearActivations activations, json& report) {
  const auto begin = std::chrono::steady_clock::now();
  LinearWeight weight = LinearWeight::prepare(device, data.source, activations);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const auto bytes = static_cast<double>(weight.bytes());
  report["prepared"] = {
      {"bytes", bytes}, {"ms", 1e3 * seconds}, {"gb_per_s", 1e-9 * bytes / seconds}};
  return weight;
}

void write_out(const LinearArgs& args, std::span<const double> out, std::int64_t m,
               std::int64_t n) {
  if (args.out.empty()) return;
  HostTensor tensor(DType::kF32, {m, n});
  std::ranges::transform(out, tensor.elems<float>().begin(),
                         [](double x) { return static_cast<float>(x); });
  write_npy(args.out, tensor.view());
}

void run_linear(const LinearArgs& args, Context& context) {
  request_counts();
  const Device device = Device::open(context.device);
  const LinearWeightData data = make_weight(args, parse_number_format(args.format));
  std::int64_t m = 0;
  const std::vector<float> x = make_x(args, data.k, m);
  json report = {{"device", device.description()}, {"weight", data.origin}};
  const LinearActivations activations = parse_activations(args.activations);
  const LinearProblem problem = make_problem(args, m);
  if (args.plan.only) {
    report["plan"] =
        plan_json(plan_linear(device, {data.source.format, activations, data.n, data.k}, problem),
                  args.plan, context);
    return context.json ? print_json(report) : print_linear(report, context.style());
  }
  const LinearWeight weight = prepare(device, data, activations, report);
  const Linear linear(weight, problem);
  report["plan"] = plan_json(linear.plan(), args.plan, context);
  LinearBench bench(device, data.k, x, linear.plan());
  sample_if_large(device, report["plan"], args.check ? "--check" : args.out.empty() ? "" : "--out");
  bench.enqueue(linear);
  bench.synchronize();
  const std::vector<double> out = bench.read_out();
  if (const json counts = take_counts(device); !counts.is_null()) report["counted"] = counts;
  if (!device.is_simulated() && args.runs > 0 && m > 0)
    report["time"] = bench.time_cold(linear, args.runs);
  if (args.check) {
    const LinearReport checked = check_linear(data, linear.plan(), x, out, args.rows);
    report["error"] = to_json(checked);
    context.exit_status = checked.is_ok() ? 0 : 1;
  }
  write_out(args, out, m, data.n);
  context.json ? print_json(report) : print_linear(report, context.style());
}

// Gate and up of n columns each by the block-scaled operator, whose epilogue has the SwiGLU.
void run_swiglu(const LinearArgs& args, Context& context) {
  require(args.input.empty() && args.out.empty() && !args.f32, ErrorKind::kInvalidArgument,
          "linear: --swiglu draws gate and up and writes bf16 or codes; expected no --input, --out "
          "or --f32");
  request_counts();
  const Device device = Device::open(context.device);
  std::int64_t m = 0;
  const std::vector<float> x = make_x(args, args.k, m);
  json report = {{"device", device.description()}, {"weight", "N(0,1)"}};
  BlockScaledProblem problem = {.m = m, .kernel = args.kernel, .swiglu_limit = args.swiglu_limit};
  const NumberFormat format = parse_number_format(args.format);
  if (args.quantises_out)
    problem.out_dtype = format == NumberFormat::kNvfp4 ? DType::kF4 : DType::kF8_E4M3;
  const BlockScaledPlan plan =
      plan_block_scaled_linear(device, {format, 2 * args.n, args.k, true}, problem);
  report["plan"] = plan_json(plan, args.plan, context);
  if (!args.plan.only) {
    const GateAndUp weights(format, args.n, args.k);
    const BlockScaledLinear linear(BlockScaledWeight::prepare(device, weights.source()), problem);
    SwigluRun run(device, weights, x, linear.plan());
    sample_if_large(device, report["plan"], args.check ? "--check" : "");
    run.run(linear);
    device.synchronize();
    if (const json counts = take_counts(device); !counts.is_null()) report["counted"] = counts;
    if (args.check) {
      const SwigluErrors checked = run.check(args.rows);
      report["error"] = to_json(checked);
      context.exit_status = checked.is_ok() ? 0 : 1;
    }
  }
  context.json ? print_json(report) : print_linear(report, context.style());
}

// The kernel of that name, or if the device has none such, of FP8 activations the one that it takes
// for them, else none.
std::optional<std::string> accuracy_kernel(const Device& device, const LinearWeightData& data,
                                           const LinearArgs& args, bool is_fp8, std::int64_t m) {
  LinearArgs any = args;
  any.kernel = "auto";
  try {
    const LinearPlan plan = plan_linear(
        device, {data.source.format, parse_activations(is_fp8 ? "fp8" : "bf16"), data.n, data.k},
        make_problem(any, m));
    const bool is_there = std::ranges::any_of(plan.candidates, [&](const Candidate& candidate) {
      return candidate.name == args.kernel && candidate.is_possible;
    });
    if (is_there) return args.kernel;
    return is_fp8 ? std::optional(plan.kernel) : std::nullopt;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kUnsupported) throw;
    return std::nullopt;
  }
}

// Every format and kind of activations on one weight: what their roundings cost.
void run_accuracy(const LinearArgs& args, Context& context) {
  const Device device = Device::open(context.device);
  json rows = json::array();
  Table table({"weight", "activations", "kernel", "rms as the kernel rounds", "rms", "cosine",
               "rms", "cosine"});
  for (const char* const format : {"nvfp4", "mxfp4", "fp8", "bf16"}) {
    LinearArgs one = args;
    one.format = format;
    const LinearWeightData data = make_weight(one, parse_number_format(format));
    std::int64_t m = 0;
    const std::vector<float> x = make_x(one, data.k, m);
    for (const char* const kernel :
         {"band", "wide_bf16_t128_r2", "wide_e4m3_row", "wide_e4m3_128"}) {
      const bool is_fp8 = std::string_view(kernel).starts_with("wide_e4m3");
      one.scales = std::string_view(kernel).ends_with("row") ? "row" : "block";
      one.kernel = is_fp8 ? fmt::format("wide_e4m3_{}_{}128", *format == 'f' ? "fp8" : "fp4",
                                        one.scales == "row" ? "t" : "g")
                          : kernel;
      if (is_fp8 && std::string_view(format) == "bf16") continue;
      const auto chosen = accuracy_kernel(device, data, one, is_fp8, m);
      if (!chosen) continue;
      one.kernel = *chosen;
      json ignored;
      const LinearWeight weight =
          prepare(device, data, parse_activations(is_fp8 ? "fp8" : "bf16"), ignored);
      const Linear linear(weight, make_problem(one, m));
      LinearBench bench(device, data.k, x, linear.plan());
      bench.enqueue(linear);
      bench.synchronize();
      const LinearReport r = check_linear(data, linear.plan(), x, bench.read_out(), args.rows);
      if (!r.is_ok()) context.exit_status = 1;
      json row = to_json(r);
      row["weight"] = format;
      row["kernel"] = one.kernel;
      row["origin"] = data.origin;
      rows.push_back(row);
      table.add({format, is_fp8 ? (one.scales == "row" ? "fp8 per row" : "fp8 per 128") : "bf16",
                 one.kernel, fmt::format("{:.5f}", r.same.relative_rms),
                 fmt::format("{:.5f}", r.dequantised.relative_rms),
                 fmt::format("{:.7f}", r.dequantised.cosine),
                 fmt::format("{:.5f}", r.original.relative_rms),
                 fmt::format("{:.5f}", r.original.cosine)});
    }
  }
  if (context.json) return print_json({{"device", device.description()}, {"rows", rows}});
  print("against dequantised weights (rms, cosine), then against the original weight\n" +
        table.text(context.style()));
}

void add_options(CLI::App& command, LinearArgs& args) {
  command
      .add_option("--input", args.input,
                  "a safetensors file with the weight, a folder of them, or its index")
      ->check(quiet(CLI::ExistingPath))
      ->type_name("FILE");
  command.add_option("--weight", args.weight, "the weight's name; its scales are found beside it")
      ->type_name("NAME")
      ->capture_default_str();
  command
      .add_option("--x", args.x, "activations [..., k]: .npy, or a tensor of --input; else drawn")
      ->type_name("FILE|NAME");
  command
      .add_option("--format", args.format,
                  "what a plain weight is quantised to: bf16, fp8, mxfp4, nvfp4")
      ->capture_default_str()
      ->type_name("FORMAT")
      ->check(quiet(CLI::IsMember({"bf16", "fp8", "mxfp4", "nvfp4"})));
  command
      .add_option(
          "--activations", args.activations,
          "bf16 (W4A16), fp8 (W4A8), or block_scaled: on Blackwell, x in NVFP4 by nvfp4, in "
          "MXFP8 by mxfp4 and fp8")
      ->capture_default_str()
      ->type_name("TYPE")
      ->check(quiet(CLI::IsMember({"bf16", "fp8", "block_scaled"})));
  command
      .add_option("--activation-scales", args.scales,
                  "of fp8 activations: one for a row, or for a block of 128 of it")
      ->capture_default_str()
      ->type_name("auto|row|block")
      ->check(one_of({"auto", "row", "block"}, {{"128", "block"}}));
  for (const auto& [name, at, what] :
       {std::tuple{"--m", &args.m, "rows of drawn activations"},
        std::tuple{"--n", &args.n, "out features of a drawn weight"},
        std::tuple{"--k", &args.k, "in features of a drawn weight"},
        std::tuple{"--rows", &args.rows, "rows that --check compares"}}) {
    command.add_option(name, *at, what)
        ->capture_default_str()
        ->type_name("N")
        ->check(quiet(CLI::Range(std::int64_t{0}, std::int64_t{1} << 24)));
  }
}

}  // namespace

void add_linear(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("linear", "x W^T with weights of 4, 8 or 16 bits, from a file or drawn");
  auto args = std::make_shared<LinearArgs>();
  add_options(*command, *args);
  command->add_option("--kernel", args->kernel, "auto, or one that --plan lists")
      ->capture_default_str()
      ->type_name("NAME");
  command->add_flag("--f32", args->f32, "results in fp32 instead of bf16");
  command->add_option("--out", args->out, "write the result as float32 .npy")->type_name("FILE");
  command->add_flag("--check", args->check, "compare with float64");
  add_plan_options(*command, args->plan);
  command->add_flag("--swiglu", args->is_swiglu,
                    "on Blackwell: silu(x gate^T) * (x up^T) of a gate and up of n rows each");
  command->add_option("--swiglu-limit", args->swiglu_limit, "of gate and up; none if left out")
      ->type_name("LIMIT")
      ->check(positive());
  command->add_flag("--quantised-out", args->quantises_out,
                    "of --swiglu: NVFP4 of nvfp4 weights, MXFP8 of others, instead of bf16");
  command->add_flag("--accuracy", args->accuracy, "every format and kernel on this weight");
  add_runs_option(*command, args->runs);
  command->footer(
      "For example:\n"
      "  tilewright linear --m 8 --n 7168 --k 7168 --plan\n"
      "  tilewright linear --input model.safetensors --weight layers.0.ffn.w1.weight --check\n"
      "  tilewright linear --m 64 --activations fp8 --check\n"
      "  tilewright linear --m 64 --swiglu --check --device sim:b200");
  command->callback([args, &context] {
    if (args->is_swiglu) return run_swiglu(*args, context);
    args->accuracy ? run_accuracy(*args, context) : run_linear(*args, context);
  });
}

}  // namespace tilewright::cli
