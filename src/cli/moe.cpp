// tilewright moe: the operator on a layer of a checkpoint, or on drawn operands.
#include "tilewright/buffer.h"
#include "tilewright/stream.h"

#include "cli/tool/command.h"
#include "cli/tool/plan_options.h"
#include "cli/tool/time_sample.h"
#include "report/operator_report.h"
#include "verify/attention/data.h"
#include "verify/device_facts.h"
#include "verify/moe_layer.h"

#include <bit>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

using nlohmann::json;

struct MoeArgs {
  MoeLayerSource layer;
  std::string activations = "bf16", kernel = "auto", routing = "logits";
  std::int64_t tokens = 7;
  bool check = false;
  PlanArgs plan;
  int runs = 20;
};

LinearActivations parse_moe_activations(const std::string& text) {
  if (text == "block_scaled") return LinearActivations::kBlockScaled;
  return text == "fp8" ? LinearActivations::kFp8 : LinearActivations::kBf16;
}

MoeProblem to_moe_problem(const MoeArgs& args, const MoeLayer& layer) {
  MoeProblem p = {.tokens = args.tokens, .topk = layer.topk};
  p.kernel = args.kernel;
  p.score = layer.score;
  p.route_scale = layer.route_scale;
  if (layer.limit > 0) p.swiglu_limit = layer.limit;
  if (args.routing == "given") return p;
  p.routing = layer.table.empty() ? MoeRouting::kLogits : MoeRouting::kHash;
  p.has_bias = !layer.bias.empty() && layer.table.empty();
  p.vocab = layer.vocab();
  return p;
}

void print_moe(const json& report, const Style& style) {
  print(fmt::format("layer      {}\n", report["layer"].get<std::string>()));
  print_operator_report(report, style);
  if (!report.contains("error")) return;
  const json& e = report["error"];
  print(fmt::format(
      "check      {}: relative rms {:.3g} (at most {:g}), cosine {:.7f}, max error "
      "{:.3g}, against {}\n",
      e["ok"].get<bool>() ? style.good("correct") : style.bad("WRONG"),
      e["relative_rms"].get<double>(), e["most_rms"].get<double>(), e["cosine"].get<double>(),
      e["max_abs"].get<double>(), e["reference"].get<std::string>()));
}

// Operands and results in device memory.
class MoeCallBuffers {
 public:
  MoeCallBuffers(const Device& device, const MoeLayer& layer, const MoeLayerInputs& inputs,
                 const MoePlan& plan)
      : stream_(device),
        timer_(device),
        x_(Buffer::from(device, inputs.x)),
        logits_(Buffer::from(device, inputs.logits)),
        bias_(Buffer::from(device, layer.bias)),
        token_ids_(Buffer::from(device, inputs.token_ids)),
        table_(Buffer::from(device, layer.table)),
        ids_(Buffer::from(device, inputs.ids)),
        weights_(Buffer::from(device, inputs.weights)),
        out_(device, inputs.x.size() * 2),
        workspace_(device, plan.workspace_bytes) {
    out_.poison();
  }

  MoeArguments arguments() const {
    return {.x = x_.data(),
            .ids = ids_.as<std::int32_t>(),
            .weights = weights_.as<float>(),
            .logits = logits_.as<float>(),
            .bias = bias_.as<float>(),
            .token_ids = token_ids_.as<std::int32_t>(),
            .table = table_.as<std::int32_t>(),
            .out = out_.data(),
            .workspace = workspace_.data(),
            .stream = stream_.handle()};
  }
  double time_us(const Moe& moe) const {
    return timer_.time_us(stream_, [&] { moe.run(arguments()); });
  }
  std::vector<std::uint16_t> out() const { return out_.to_vector<std::uint16_t>(); }

 private:
  Stream stream_;
  StreamTimer timer_;
  Buffer x_, logits_, bias_, token_ids_, table_, ids_, weights_, out_, workspace_;
};

json measure_moe(const Moe& moe, const MoeCallBuffers& buffers, int runs) {
  std::vector<double> samples;
  for (int i = 0; i < runs; ++i) samples.push_back(buffers.time_us(moe));
  return time_summary(samples);
}

void run_moe(const MoeArgs& args, Context& context) {
  request_counts();
  const Device device = Device::open(context.device);
  MoeLayer layer = load_moe_layer(args.layer);
  const MoeProblem problem = to_moe_problem(args, layer);
  layer.info.activations = parse_moe_activations(args.activations);
  const MoeWeightsInfo& info = layer.info;
  json report = {{"device", device.description()}, {"layer", layer.name}};
  report["plan"] = plan_json(plan_moe(device, info, problem), args.plan, context);
  if (args.plan.only) return context.json ? print_json(report) : print_moe(report, context.style());
  draw_moe_weights(layer);
  const MoeLayerInputs inputs = draw_moe_inputs(layer, args.tokens);
  const MoeWeights weights = MoeWeights::prepare(device, layer.source(), info.activations);
  const Moe moe(weights, problem);
  const MoeCallBuffers buffers(device, layer, inputs, moe.plan());
  sample_if_large(device, report["plan"], args.check ? "--check" : "");
  moe.run(buffers.arguments());
  moe.check(buffers.arguments());
  if (const json counts = take_counts(device); !counts.is_null()) report["counted"] = counts;
  if (args.check) {
    report["error"] = check_moe_layer(layer, inputs, problem, buffers.out(), moe.plan().kernel);
    context.exit_status = report["error"]["ok"].get<bool>() ? 0 : 1;
  }
  if (!device.is_simulated() && args.runs > 0)
    report["time"] = measure_moe(moe, buffers, args.runs);
  context.json ? print_json(report) : print_moe(report, context.style());
}

}  // namespace

void add_moe(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("moe", "a Mixture-of-Experts layer of a checkpoint, or a drawn one");
  auto args = std::make_shared<MoeArgs>();
  command
      ->add_option("--input", args->layer.file,
                   "a safetensors file, a folder of them, or its index, with tensors named as in "
                   "DeepSeek-V4 checkpoints")
      ->check(quiet(CLI::ExistingPath))
      ->type_name("FILE");
  command->add_option("--layer", args->layer.layer, "number of the layer in it")
      ->capture_default_str()
      ->type_name("N");
  command
      ->add_option("--shape", args->layer.shape,
                   "without --input: v3, v4-flash, v4-pro, small or EXPERTS/TOPK/HIDDEN/INTER")
      ->capture_default_str()
      ->type_name("SHAPE");
  command
      ->add_option("--format", args->layer.format,
                   "that plain weights are quantised to; others of a file stay as they are")
      ->check(quiet(CLI::IsMember({"nvfp4", "mxfp4", "fp8", "bf16"})))
      ->capture_default_str()
      ->type_name("nvfp4|mxfp4|fp8|bf16");
  command
      ->add_option("--topk", args->layer.topk,
                   "experts of a token; default: as the shape or the checkpoint says")
      ->check(quiet(CLI::Range(1, 1 << 20)))
      ->type_name("K");
  command->add_option("--activations", args->activations, "what the weights are prepared for")
      ->check(quiet(CLI::IsMember({"bf16", "fp8", "block_scaled"})))
      ->capture_default_str()
      ->type_name("bf16|fp8|block_scaled");
  command->add_option("--tokens", args->tokens, "drawn from N(0,1)")
      ->check(quiet(CLI::Range(0, 65536)))
      ->capture_default_str()
      ->type_name("N");
  command->add_option("--routing", args->routing, "experts by the logits of a router, or given")
      ->check(quiet(CLI::IsMember({"logits", "given"})))
      ->capture_default_str()
      ->type_name("logits|given");
  command->add_option("--kernel", args->kernel, "auto, or one that --plan lists")
      ->capture_default_str()
      ->type_name("NAME");
  command->add_flag("--check", args->check, "compare every token with the float64 reference");
  add_plan_options(*command, args->plan);
  add_runs_option(*command, args->runs);
  command->footer("For example:\n  tilewright moe --shape 8/2/256/128 --tokens 40 --check");
  command->callback([args, &context] { run_moe(*args, context); });
}

}  // namespace tilewright::cli
