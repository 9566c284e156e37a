#include "cli/info/checkpoint.h"

#include "base/error.h"
#include "base/safetensors_model.h"
#include "cli/tool/model_options.h"
#include "model/checkpoint/memory.h"
#include "model/checkpoint/released.h"

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

using nlohmann::json;

// What is asked about: the weights' formats by name, and how much there is of them.
struct Subject {
  model::Config config;
  std::string experts = "mxfp4";
  std::int64_t bytes = 0, tensors = 0;
  std::shared_ptr<const SafetensorsModel> files;  // of a folder
};

Subject released_subject(const std::string& name) {
  Subject subject = {.config = model::released_config(name).value(), .files = {}};
  for (const model::StoredTensor& tensor : model::released_tensors(subject.config)) {
    subject.bytes += tensor.bytes();
    ++subject.tensors;
  }
  return subject;
}

// Every tensor of a folder is found and has the shape that config.json gives it.
Subject folder_subject(const std::string& folder) {
  Subject subject = {.config = model::read_config(folder), .files = {}};
  const model::Weights weights(
      folder, model::WeightsOptions{.has_drafts = subject.config.draft_layers > 0});
  subject.experts = weights.expert_format();
  subject.bytes = weights.num_bytes();
  subject.files = std::make_shared<const SafetensorsModel>(folder);
  subject.tensors = std::ssize(subject.files->names());
  return subject;
}

Subject subject_of(const std::string& checkpoint) {
  return model::released_config(checkpoint) ? released_subject(checkpoint)
                                            : folder_subject(checkpoint);
}

model::MemoryRequest request_of(const CheckpointInfoArgs& args, const Subject& subject,
                                const model::Share& share) {
  ModelArgs formats;
  formats.kv = args.kv;
  formats.index = args.index;
  model::MemoryRequest request = {
      .step = {.config = subject.config,
               .share = share,
               .options = runner_options(formats, args.context),
               .sequences = args.sequences,
               .tokens = std::min(args.step_tokens, args.sequences * args.context)},
      .has_drafts = subject.config.draft_layers > 0};
  if (const auto format = number_format_from_string(subject.experts))
    request.step.experts = *format;
  if (subject.files)
    request.format_of = [files = subject.files](const std::string& name) {
      return find_checkpoint_weight(*files, name, ScaleCheck::kLater).format;
    };
  return request;
}

struct Row {
  model::Share share;
  model::MemoryUse use;
  model::MemoryFit fit;
};

// `notes`: why a number of ranks has no row.
std::vector<Row> make_rows(const CheckpointInfoArgs& args, const Subject& subject,
                           const Device& device, std::int64_t available,
                           std::vector<std::string>& notes) {
  std::vector<Row> rows;
  for (const auto scheme : {model::Scheme::kExpertParallel, model::Scheme::kTensorParallel}) {
    for (const std::int64_t world : args.ranks) {
      const model::Share share = {scheme, 0, world};
      if (world == 1 && scheme == model::Scheme::kTensorParallel) continue;  // the same as above
      try {
        model::check_share(share, subject.config);
      } catch (const Error& error) {
        notes.push_back(fmt::format("{}: {}", to_string(scheme), error.what()));
        continue;
      }
      const model::MemoryRequest request = request_of(args, subject, share);
      rows.push_back({share, memory_use(device, request), memory_fit(device, request, available)});
    }
  }
  return rows;
}

std::string gb(std::int64_t bytes) {
  return fmt::format("{:.2f}", static_cast<double>(bytes) / 1e9);
}

void print_rows(const std::vector<Row>& rows, std::int64_t available, const Style& style) {
  Table table({"ranks", "scheme", "experts", "layers", "vocabulary", "drafts", "caches", "step",
               "total", "fits", "most sequences", "most context"});
  for (const Row& row : rows)
    table.add({std::to_string(row.share.world),
               row.share.world == 1 ? "-" : to_string(row.share.scheme), gb(row.use.experts),
               gb(row.use.layers), gb(row.use.vocabulary), gb(row.use.drafts), gb(row.use.caches),
               gb(row.use.step), gb(row.use.total()), row.use.total() <= available ? "yes" : "no",
               std::to_string(row.fit.sequences), std::to_string(row.fit.context)});
  print(table.text(style));
}

json to_json(const Row& row, std::int64_t available) {
  return {{"ranks", row.share.world},
          {"scheme", to_string(row.share.scheme)},
          {"experts_bytes", row.use.experts},
          {"layers_bytes", row.use.layers},
          {"vocabulary_bytes", row.use.vocabulary},
          {"drafts_bytes", row.use.drafts},
          {"caches_bytes", row.use.caches},
          {"step_bytes", row.use.step},
          {"total_bytes", row.use.total()},
          {"fits", row.use.total() <= available},
          {"most_sequences", row.fit.sequences},
          {"most_context", row.fit.context}};
}

}  // namespace

void add_checkpoint_info_options(CLI::App& command, CheckpointInfoArgs& args) {
  command
      .add_option("--checkpoint", args.checkpoint,
                  "instead: what a model takes of a device's memory; a folder, or flash or pro "
                  "for the released sizes")
      ->type_name("DIR|flash|pro");
  const auto add_size = [&](const char* name, std::int64_t& to, const char* text) {
    command.add_option(name, to, text)
        ->check(positive())
        ->needs("--checkpoint")
        ->type_name("N")
        ->capture_default_str();
  };
  command.add_option("--ranks", args.ranks, "numbers of devices, with commas; default: 1,2,4,8")
      ->delimiter(',')
      ->check(positive())
      ->needs("--checkpoint")
      ->type_name("N,N,...");
  add_size("--context", args.context, "tokens of a sequence");
  add_size("--sequences", args.sequences, "on each rank (tensor parallel: in all)");
  add_size("--step-tokens", args.step_tokens, "the most new tokens of a step");
  command.add_option("--kv", args.kv, "number format of window and compressed rows")
      ->check(quiet(CLI::IsMember({"bf16", "fp8", "nvfp4"})))
      ->needs("--checkpoint")
      ->type_name("bf16|fp8|nvfp4")
      ->capture_default_str();
  command.add_option("--index", args.index, "number format of the indexer's keys")
      ->check(quiet(CLI::IsMember({"fp8", "mxfp4"})))
      ->needs("--checkpoint")
      ->type_name("fp8|mxfp4")
      ->capture_default_str();
  command.add_option("--memory", args.memory_gb, "GB of a device; default: an H200's")
      ->check(positive())
      ->needs("--checkpoint")
      ->type_name("GB");
}

void run_checkpoint_info(const CheckpointInfoArgs& args, const Context& context) {
  const Subject subject = subject_of(args.checkpoint);
  const Device device = Device::open("plan:h200");
  const auto available = args.memory_gb > 0 ? static_cast<std::int64_t>(args.memory_gb * 1e9)
                                            : static_cast<std::int64_t>(device.memory_bytes());
  std::vector<std::string> notes;
  const auto rows = make_rows(args, subject, device, available, notes);
  if (context.json) {
    json list = json::array();
    for (const Row& row : rows) list.push_back(to_json(row, available));
    print_json({{"checkpoint", args.checkpoint},
                {"model", config_text(subject.config)},
                {"tensors", subject.tensors},
                {"bytes", subject.bytes},
                {"device_bytes", available},
                {"context", args.context},
                {"sequences", args.sequences},
                {"ranks", list},
                {"notes", notes}});
    return;
  }
  print(fmt::format("{}: {}\n{} tensors, {} GB, experts in {}\n\n",
                    context.style().bold(args.checkpoint), config_text(subject.config),
                    subject.tensors, gb(subject.bytes), subject.experts));
  print(fmt::format(
      "GB on each device of {} GB; sequences on a rank: {}, context {}, rows {}, "
      "keys {}, steps of {} tokens\n",
      gb(available), args.sequences, args.context, args.kv, args.index, args.step_tokens));
  print_rows(rows, available, context.style());
  for (const std::string& note : notes) print(note + "\n");
}

}  // namespace tilewright::cli
