// tilewright make-checkpoint: random weights with the names, types and files of a released model.
#include "model/checkpoint/make_checkpoint.h"

#include "base/error.h"
#include "base/progress.h"
#include "cli/tool/command.h"
#include "model/checkpoint/released.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

struct MakeCheckpointArgs {
  std::string folder, like = "flash", experts = "mxfp4";
  bool is_full_size = false;
  std::int64_t layers = 0, num_experts = 0, hidden = 0, drafts = -1;
  std::uint64_t seed = 1;
};

// The schedule of the model with as many layers, experts and columns as were asked for.
model::Config make_config(const MakeCheckpointArgs& args) {
  model::Config c = args.is_full_size ? model::released_config(args.like).value()
                                      : model::small_config(args.like);
  const auto full = model::released_config(args.like).value();
  require(args.layers <= full.num_layers(), ErrorKind::kInvalidArgument,
          "make-checkpoint: --layers {}; expected 1 to {}, as many as {} has", args.layers,
          full.num_layers(), args.like);
  if (args.layers > 0) c.layers.assign(full.layers.begin(), full.layers.begin() + args.layers);
  c.hash_layers = std::min(c.hash_layers, c.num_layers());
  if (args.num_experts > 0) c.experts = args.num_experts;
  c.experts_per_token = std::min(c.experts_per_token, c.experts);
  if (args.hidden > 0) c.hidden = args.hidden;
  if (args.drafts >= 0) c.draft_layers = args.drafts;
  require(
      c.hidden % 128 == 0, ErrorKind::kInvalidArgument,
      "make-checkpoint: --hidden {}; expected a multiple of 128, the width of a block of scales",
      c.hidden);
  return c;
}

void run_make_checkpoint(const MakeCheckpointArgs& args, const Context& context) {
  const model::CheckpointRequest request = {
      .config = make_config(args),
      .experts = args.experts == "nvfp4" ? NumberFormat::kNvfp4 : NumberFormat::kMxfp4,
      .seed = args.seed};
  const auto tensors = model::released_tensors(request.config, request.experts);
  const std::int64_t bytes = std::accumulate(
      tensors.begin(), tensors.end(), std::int64_t{0},
      [](std::int64_t sum, const model::StoredTensor& tensor) { return sum + tensor.bytes(); });
  Progress progress(stderr, "make-checkpoint", bytes, "B");
  model::make_checkpoint(args.folder, request, [&](std::int64_t more) { progress.add(more); });
  progress.finish();
  if (context.json) {
    print_json({{"folder", args.folder},
                {"tensors", tensors.size()},
                {"bytes", bytes},
                {"files", model::num_shards(request.config)}});
    return;
  }
  print(fmt::format("{}: {}; {} tensors, {:.4g} MB, {} files\n", args.folder,
                    model::config_text(request.config), tensors.size(),
                    static_cast<double>(bytes) / 1e6, model::num_shards(request.config)));
}

CLI::Option* add_size(CLI::App& command, const char* name, std::int64_t& to, const char* text) {
  return command.add_option(name, to, text)->check(positive())->type_name("N");
}

}  // namespace

void add_make_checkpoint(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "make-checkpoint", "random weights with the names, types and files of a released model");
  auto args = std::make_shared<MakeCheckpointArgs>();
  command->add_option("folder", args->folder, "where to; new or empty")
      ->required()
      ->type_name("FOLDER");
  command->add_option("--like", args->like, "whose schedule of layers")
      ->check(quiet(CLI::IsMember({"flash", "pro"})))
      ->type_name("flash|pro")
      ->capture_default_str();
  command->add_option("--format", args->experts, "of routed experts; nvfp4: with ModelOpt's names")
      ->check(quiet(CLI::IsMember({"mxfp4", "nvfp4"})))
      ->type_name("mxfp4|nvfp4")
      ->capture_default_str();
  command->add_flag("--full-size", args->is_full_size,
                    "the model's own widths: 3.5 GB a layer of Flash; take few --layers");
  add_size(*command, "--layers", args->layers, "the first ones; default: 5, or all");
  add_size(*command, "--experts", args->num_experts, "routed ones of a layer");
  add_size(*command, "--hidden", args->hidden, "width of the model");
  command->add_option("--drafts", args->drafts, "draft layers (mtp.*); default: 1")
      ->check(not_negative())
      ->type_name("N");
  command->add_option("--seed", args->seed, "of the weights")
      ->type_name("N")
      ->capture_default_str();
  command->footer(
      "A vocabulary of bytes, unless --full-size.\n"
      "For example:\n"
      "  tilewright make-checkpoint small-flash\n"
      "  tilewright generate --model small-flash -p abc --max-tokens 4 --device reference");
  command->callback([args, &context] { run_make_checkpoint(*args, context); });
}

}  // namespace tilewright::cli
