// tilewright quantize: checkpoints to NVFP4, MXFP4 and FP8, and back.

#include "base/env.h"
#include "base/error.h"
#include "cli/quantize/job.h"
#include "cli/tool/command.h"
#include "cli/tool/kernel_times.h"
#include "cli/tool/time_sample.h"

#include <memory>
#include <nlohmann/json.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tilewright::cli {

namespace {

struct QuantizeToolArgs {
  QuantizeJob job;
  std::string format = "nvfp4", rule = "floor", fp8_scales = "ue8m0", names = "auto",
              dtype = "bf16";
  bool is_dequantizing = false, on_host = false, has_no_errors = false, has_own_scales = false,
       has_no_default_exclude = false;
};

// The device to use, none: the host. A GPU if there is one, or what was asked for by name.
std::optional<Device> choose_device(const std::string& spec, bool on_host) {
  if (on_host) return std::nullopt;
  std::string asked = spec;
  if (asked.empty()) asked = env_text("TILEWRIGHT_DEVICE");
  if (!asked.empty() && asked != "auto") return Device::open(asked);
  try {
    return Device::open("cuda");
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kUnsupported) throw;
  }
  return std::nullopt;
}

QuantizeJob job_of(const QuantizeToolArgs& args) {
  QuantizeJob job = args.job;
  if (args.is_dequantizing) {
    job.format.clear();
  } else if (args.format == "mxfp4") {
    job.format = args.rule == "ceil" ? "mxfp4_ceil" : "mxfp4";
  } else if (args.format == "fp8") {
    job.format = args.fp8_scales == "ue8m0" ? "fp8_128x128_ue8m0" : "fp8_128x128";
  } else {
    job.format = "nvfp4";
  }
  // Weights are quantised once: the choice with the least error may cost what it costs.
  if (job.scales.empty()) job.scales = job.format == "nvfp4" ? "four_over_six" : "nearest";
  require(job.format == "nvfp4" || job.scales == "nearest", ErrorKind::kInvalidArgument,
          "quantize: --scales {} is for --format nvfp4", job.scales);
  const bool is_model_opt =
      args.names == "modelopt" || (args.names == "auto" && args.format == "nvfp4");
  job.names = is_model_opt ? CheckpointNames::kModelOpt : CheckpointNames::kDeepSeek;
  job.plain_dtype = dtype_from_string(args.dtype == "bf16"  ? "BF16"
                                      : args.dtype == "f16" ? "F16"
                                                            : "F32")
                        .value();
  job.has_errors = !args.has_no_errors;
  job.shares_scales = !args.has_own_scales;
  job.filter.has_default_exclude = !args.has_no_default_exclude;
  return job;
}

void print_report(const nlohmann::json& report, const Style& style) {
  const bool has_errors = report.contains("relative_rms");
  std::vector<std::string> header = {"tensor", "shape"};
  if (has_errors) header.insert(header.end(), {"relative rms", "cosine"});
  header.push_back("bytes");
  Table table(header);
  const auto percent = [](const nlohmann::json& entry) {
    return fmt::format("{:.1f} %", 100 * entry["bytes_out"].get<double>() /
                                       std::max(entry["bytes_in"].get<double>(), 1.0));
  };
  const auto row = [&](const std::string& name, const std::string& shape,
                       const nlohmann::json& entry) {
    std::vector<std::string> cells = {name, shape};
    if (has_errors) {
      cells.push_back(fmt::format("{:.5f}", entry["relative_rms"].get<double>()));
      cells.push_back(fmt::format("{:.6f}", entry["cosine"].get<double>()));
    }
    cells.push_back(percent(entry));
    table.add(std::move(cells));
  };
  for (const nlohmann::json& entry : report["tensors"])
    row(entry["name"].get<std::string>(),
        fmt::format("{}", fmt::join(entry["shape"].get<std::vector<std::int64_t>>(), " x ")),
        entry);
  row("all", "", report);
  print(table.text(style));
  print(fmt::format("{} tensors changed, {} kept; {:.4g} MB to {:.4g} MB in {:.2f} s on {}\n",
                    report["tensors"].size(), report["kept"].size(),
                    report["bytes_in"].get<double>() * 1e-6,
                    report["bytes_out"].get<double>() * 1e-6, report["seconds"].get<double>(),
                    report["device"].get<std::string>()));
  print(kernel_times_text(report));
  print(fmt::format("written: {}\n", report["out"].get<std::string>()));
}

void run_quantize(const QuantizeToolArgs& args, Context& context) {
  refuse_time_sample("quantize writes the results of all CTAs");
  KernelTimes times;
  const std::optional<Device> device =
      args.is_dequantizing ? std::nullopt : choose_device(context.device, args.on_host);
  times.begin(device);
  nlohmann::json report = run_quantize_job(job_of(args), device);
  times.add_to(report);
  report["device"] = device ? device->name() : "the host";
  context.json ? print_json(report) : print_report(report, context.style());
}

void add_format_options(CLI::App& command, QuantizeToolArgs& args) {
  command.add_option("--format", args.format, "format of the result")
      ->check(quiet(CLI::IsMember({"nvfp4", "mxfp4", "fp8"})))
      ->type_name("nvfp4|mxfp4|fp8")
      ->capture_default_str();
  args.job.scales.clear();
  command
      .add_option("--scales", args.job.scales,
                  "nvfp4: four_over_six, the better of amax on 6 and on 4, the default; nearest, "
                  "ModelOpt's; exact_nearest and exact_best, scales with which weights are exact "
                  "in e4m3")
      ->check(quiet(CLI::IsMember({"nearest", "four_over_six", "exact_nearest", "exact_best"})))
      ->type_name("CHOICE");
  command.add_option("--rule", args.rule, "mxfp4: power of two below (OCP) or above amax")
      ->check(quiet(CLI::IsMember({"floor", "ceil"})))
      ->type_name("floor|ceil")
      ->capture_default_str();
  command.add_option("--fp8-scales", args.fp8_scales, "fp8: type of the 128 x 128 block scales")
      ->check(quiet(CLI::IsMember({"ue8m0", "fp32"})))
      ->type_name("ue8m0|fp32")
      ->capture_default_str();
  command
      .add_option("--names", args.names, "of the parts; auto: modelopt for nvfp4, else deepseek")
      ->check(quiet(CLI::IsMember({"auto", "modelopt", "deepseek"})))
      ->type_name("auto|modelopt|deepseek")
      ->capture_default_str();
  command.add_flag("--own-scales", args.has_own_scales,
                   "nvfp4: a scale for each tensor, also of gate and up, and of q, k and v, which "
                   "otherwise share one");
}

}  // namespace

void add_quantize(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("quantize", "weights of a checkpoint to NVFP4, MXFP4 or FP8, and back");
  auto args = std::make_shared<QuantizeToolArgs>();
  command->add_option("in", args->job.in, "a .safetensors file, a folder of them, or its index")
      ->required()
      ->type_name("IN");
  command->add_option("out", args->job.out, "a .safetensors file; of a folder, a new folder")
      ->required()
      ->type_name("OUT");
  add_format_options(*command, *args);
  command
      ->add_option("--include", args->job.filter.include,
                   "only tensors like this (* and ?); default *.weight, matrices")
      ->type_name("GLOB");
  command->add_option("--exclude", args->job.filter.exclude, "no tensors like this")
      ->type_name("GLOB");
  command->add_flag("--no-default-exclude", args->has_no_default_exclude,
                    "also those that are left alone by default");
  command->add_flag(
      "--dequantize", args->is_dequantizing,
      "the other way: quantised weights, of any of the formats and names, to plain ones");
  command->add_option("--dtype", args->dtype, "of dequantised weights")
      ->check(quiet(CLI::IsMember({"bf16", "f16", "f32"})))
      ->type_name("bf16|f16|f32")
      ->capture_default_str();
  command->add_flag("--host", args->on_host, "not on the GPU; the bytes are the same");
  command->add_flag("--no-errors", args->has_no_errors, "do not measure errors");
  command->footer(
      fmt::format("Left alone by default: {}.\n"
                  "Weights that are quantised already (FP8 blocks, MXFP4, NVFP4) may be the input "
                  "too.\nFor example:\n"
                  "  tilewright quantize model.safetensors nvfp4.safetensors --format nvfp4\n"
                  "  tilewright quantize V4/ V4-NVFP4/ --include '*.experts.*.weight'\n"
                  "  tilewright quantize nvfp4.safetensors back.safetensors --dequantize",
                  fmt::join(default_exclude(), " ")));
  command->callback([args, &context] { run_quantize(*args, context); });
}

}  // namespace tilewright::cli
