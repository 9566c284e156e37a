#include "cli/quantize/job.h"

#include "base/error.h"
#include "base/json.h"
#include "base/progress.h"
#include "base/quote.h"
#include "base/safetensors_writer.h"
#include "cli/quantize/folder.h"
#include "cli/quantize/strips.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

using Json = nlohmann::json;

enum class Fate { kCopy, kQuantize, kDequantize };

// A tensor of the input and what it becomes.
struct TensorPlan {
  std::string name;
  Fate fate = Fate::kCopy;
  std::string reason;  // why it is copied
  std::int64_t bytes_in = 0;
  std::vector<CheckpointPart> parts;
};

std::int64_t bytes_of(DType dtype, const std::vector<std::int64_t>& shape) {
  return checked_num_bytes(dtype, shape, "quantize");
}

std::span<const std::byte> bytes_of(const ConstTensorView& view) {
  return {static_cast<const std::byte*>(view.data),
          static_cast<std::size_t>(bytes_of(view.dtype, view.shape))};
}

// Weights that serving code multiplies as one matrix share a tensor scale: gate and up, q, k and v.
std::string scale_group(const std::string& name) {
  static const std::pair<const char*, const char*> kMembers[] = {{".gate_proj.", ".gate_up."},
                                                                 {".up_proj.", ".gate_up."},
                                                                 {".w1.", ".w13."},
                                                                 {".w3.", ".w13."},
                                                                 {".q_proj.", ".qkv."},
                                                                 {".k_proj.", ".qkv."},
                                                                 {".v_proj.", ".qkv."}};
  for (const auto& [member, group] : kMembers) {
    const std::size_t at = name.rfind(member);
    if (at != name.npos)
      return name.substr(0, at) + group + name.substr(at + std::string_view(member).size());
  }
  return name;
}

class Job {
 public:
  Job(const QuantizeJob& job, const std::optional<Device>& device)
      : job_(job),
        source_(job.in),
        strips_(device, job.format.empty() ? "nvfp4" : job.format, job.scales) {
    for (const std::string& name : source_.model.names()) plan_tensor(name);
  }

  Json run();

 private:
  bool is_dequantizing() const { return job_.format.empty(); }
  void plan_tensor(const std::string& name);
  void find_scales(Progress& progress);
  void write_shard(const Shard& shard, const std::filesystem::path& path, Progress& progress);
  void write_copy(SafetensorsWriter& writer, const TensorPlan& plan, Progress& progress);
  void write_quantized(SafetensorsWriter& writer, const TensorPlan& plan, Progress& progress);
  void write_plain(SafetensorsWriter& writer, const TensorPlan& plan, Progress& progress);
  std::int64_t total_bytes() const;
  Json report(double seconds) const;
  std::vector<std::string> kept_modules() const;

  const QuantizeJob& job_;
  CheckpointSource source_;
  StripQuantizer strips_;
  std::map<std::string, TensorPlan> plans_;
  std::map<std::string, float> encode_scales_;  // of groups
  Json tensors_ = Json::array();
  ErrorSums total_;
};

void Job::plan_tensor(const std::string& name) {
  const SafetensorsModel& model = source_.model;
  const ConstTensorView view = model.tensor(name);
  TensorPlan plan = {name, Fate::kCopy, {}, bytes_of(view.dtype, view.shape), {}};
  const BlockFormat* const format = is_dequantizing() ? nullptr : &strips_.format();
  if (is_checkpoint_companion(model, name)) {
    const std::string weight = name.substr(0, name.rfind('.')) + ".weight";
    if (reason_to_keep(model, weight, job_.filter, format).empty()) return;  // goes with its weight
    plan.reason = "belongs to a tensor that is kept";
  } else {
    plan.reason = reason_to_keep(model, name, job_.filter, format);
  }
  plan.parts = {{name, view.dtype, view.shape}};
  if (plan.reason.empty()) {
    const CheckpointWeight weight = find_checkpoint_weight(model, name);
    for (const std::string& companion : weight.companions) {
      const ConstTensorView part = model.tensor(companion);
      plan.bytes_in += bytes_of(part.dtype, part.shape);
    }
    plan.fate = is_dequantizing() ? Fate::kDequantize : Fate::kQuantize;
    plan.parts = {{name, job_.plain_dtype, {weight.rows, weight.cols}}};
    if (!is_dequantizing())
      plan.parts = checkpoint_parts(job_.names, *format, name, weight.rows, weight.cols);
  }
  plans_.emplace(name, std::move(plan));
}

std::int64_t Job::total_bytes() const {
  std::int64_t total = 0;
  for (const auto& [name, plan] : plans_) {
    const bool is_read_twice = plan.fate == Fate::kQuantize && strips_.format().has_tensor_scale;
    total += plan.bytes_in * (is_read_twice ? 2 : 1);
  }
  return total;
}

// nvfp4: G of every group, from the largest magnitude of its members.
void Job::find_scales(Progress& progress) {
  if (is_dequantizing() || !strips_.format().has_tensor_scale) return;
  static const std::map<std::string, ScaleChoice> kChoices = {
      {"nearest", ScaleChoice::kNearest},
      {"four_over_six", ScaleChoice::kFourOverSix},
      {"exact_nearest", ScaleChoice::kExactNearest},
      {"exact_best", ScaleChoice::kExactBest}};
  std::map<std::string, float> amax;
  for (const auto& [name, plan] : plans_) {
    if (plan.fate != Fate::kQuantize) continue;
    const CheckpointWeight weight = find_checkpoint_weight(source_.model, name);
    const std::int64_t row_bytes = plan.bytes_in / weight.rows;
    const float found =
        strips_.find_amax(weight, [&](std::int64_t rows) { progress.add(rows * row_bytes); });
    float& most = amax[job_.shares_scales ? scale_group(name) : name];
    most = std::max(most, found);
  }
  for (const auto& [group, most] : amax)
    encode_scales_[group] = tensor_encode_scale(strips_.format(), most, kChoices.at(job_.scales));
}

void Job::write_copy(SafetensorsWriter& writer, const TensorPlan& plan, Progress& progress) {
  constexpr std::size_t kPiece = std::size_t{64} << 20;
  std::span<const std::byte> bytes = bytes_of(source_.model.tensor(plan.name));
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(kPiece, bytes.size()));
    writer.append(plan.name, piece);
    progress.add(static_cast<std::int64_t>(piece.size()));
    bytes = bytes.subspan(piece.size());
  }
}

void Job::write_quantized(SafetensorsWriter& writer, const TensorPlan& plan, Progress& progress) {
  const CheckpointWeight weight = find_checkpoint_weight(source_.model, plan.name);
  std::optional<float> encode_scale;
  if (strips_.format().has_tensor_scale)
    encode_scale = encode_scales_.at(job_.shares_scales ? scale_group(plan.name) : plan.name);
  const std::int64_t row_bytes = plan.bytes_in / weight.rows;
  const ErrorSums sums =
      strips_.quantize(weight, encode_scale, job_.has_errors,
                       [&](const std::vector<std::uint8_t>& codes,
                           const std::vector<std::uint8_t>& scales, std::int64_t rows) {
                         writer.append(plan.parts[0].name, std::as_bytes(std::span(codes)));
                         writer.append(plan.parts[1].name, std::as_bytes(std::span(scales)));
                         progress.add(rows * row_bytes);
                       });
  if (encode_scale) {
    const float tensor_scale = 1 / *encode_scale;
    writer.append(plan.parts[2].name, std::as_bytes(std::span(&tensor_scale, 1)));
  }
  std::int64_t bytes_out = 0;
  for (const CheckpointPart& part : plan.parts) bytes_out += bytes_of(part.dtype, part.shape);
  Json entry = {{"name", plan.name},
                {"shape", {weight.rows, weight.cols}},
                {"bytes_in", plan.bytes_in},
                {"bytes_out", bytes_out}};
  if (!weight.format.empty()) entry["from"] = weight.format;
  if (job_.has_errors) {
    entry["relative_rms"] = sums.relative_rms();
    entry["cosine"] = sums.cosine();
    total_ += sums;
  }
  tensors_.push_back(std::move(entry));
}

void Job::write_plain(SafetensorsWriter& writer, const TensorPlan& plan, Progress& progress) {
  const CheckpointWeight weight = find_checkpoint_weight(source_.model, plan.name);
  const std::int64_t step = strip_rows(weight.cols), row_bytes = plan.bytes_in / weight.rows;
  for (std::int64_t first = 0; first < weight.rows; first += step) {
    const std::int64_t last = std::min(first + step, weight.rows);
    const std::vector<float> values = read_checkpoint_rows(weight, first, last);
    if (job_.plain_dtype == DType::kF32) {
      writer.append(plan.name, std::as_bytes(std::span(values)));
    } else {
      const FormatSpec& format = job_.plain_dtype == DType::kF16 ? kFp16 : kBf16;
      std::vector<std::uint16_t> codes;
      for (const float x : values) codes.push_back(static_cast<std::uint16_t>(encode(format, x)));
      writer.append(plan.name, std::as_bytes(std::span(codes)));
    }
    progress.add((last - first) * row_bytes);
  }
  tensors_.push_back({{"name", plan.name},
                      {"shape", {weight.rows, weight.cols}},
                      {"from", weight.format},
                      {"bytes_in", plan.bytes_in},
                      {"bytes_out", bytes_of(plan.parts[0].dtype, plan.parts[0].shape)}});
}

void Job::write_shard(const Shard& shard, const std::filesystem::path& path, Progress& progress) {
  std::vector<SafetensorsSpec> specs;
  for (const std::string& name : shard.names) {
    const auto plan = plans_.find(name);
    if (plan == plans_.end()) continue;
    for (const CheckpointPart& part : plan->second.parts)
      specs.push_back({part.name, part.dtype, part.shape});
  }
  SafetensorsMetadata metadata = shard.metadata;
  if (is_dequantizing()) {
    metadata.erase("quantization_config");
  } else {
    metadata["quantization_config"] =
        quantization_config(job_.names, strips_.format(), kept_modules()).dump();
  }
  SafetensorsWriter writer(path, std::move(specs), metadata);
  for (const std::string& name : shard.names) {
    const auto plan = plans_.find(name);
    if (plan == plans_.end()) continue;
    if (plan->second.fate == Fate::kCopy) write_copy(writer, plan->second, progress);
    if (plan->second.fate == Fate::kQuantize) write_quantized(writer, plan->second, progress);
    if (plan->second.fate == Fate::kDequantize) write_plain(writer, plan->second, progress);
  }
  writer.finish();
}

// Matrices that stay as they are, without ".weight": what runtimes must not expect in codes.
std::vector<std::string> Job::kept_modules() const {
  std::vector<std::string> modules;
  for (const auto& [name, plan] : plans_) {
    constexpr std::string_view kWeight = ".weight";
    if (plan.fate == Fate::kCopy && name.ends_with(kWeight) && plan.parts[0].shape.size() == 2)
      modules.push_back(name.substr(0, name.size() - kWeight.size()));
  }
  return modules;
}

Json Job::report(double seconds) const {
  Json kept = Json::array();
  std::int64_t bytes_in = 0, bytes_out = 0;
  for (const auto& [name, plan] : plans_) {
    bytes_in += plan.bytes_in;
    for (const CheckpointPart& part : plan.parts) bytes_out += bytes_of(part.dtype, part.shape);
    if (plan.fate == Fate::kCopy) kept.push_back({{"name", name}, {"reason", plan.reason}});
  }
  Json report = {{"in", job_.in},     {"out", job_.out},      {"tensors", tensors_},
                 {"kept", kept},      {"bytes_in", bytes_in}, {"bytes_out", bytes_out},
                 {"seconds", seconds}};
  if (!is_dequantizing()) {
    report["format"] = job_.format;
    report["scales"] = job_.scales;
    report["names"] = job_.names == CheckpointNames::kModelOpt ? "modelopt" : "deepseek";
  }
  if (!is_dequantizing() && job_.has_errors && !tensors_.empty()) {
    report["relative_rms"] = total_.relative_rms();
    report["cosine"] = total_.cosine();
  }
  return report;
}

Json Job::run() {
  const auto begin = std::chrono::steady_clock::now();
  const bool has_work = std::ranges::any_of(
      plans_, [](const auto& entry) { return entry.second.fate != Fate::kCopy; });
  require(has_work, ErrorKind::kInvalidArgument,
          "quantize: no tensor of {} is to be changed. See which are excluded by default with "
          "--help, and name some with --include",
          job_.in);
  CheckpointOutput output(job_.out, source_);
  Progress progress(stderr, is_dequantizing() ? "dequantize" : "quantize", total_bytes(), "B");
  find_scales(progress);
  for (const Shard& shard : source_.shards) write_shard(shard, output.path_of(shard), progress);
  std::map<std::string, std::string> places;
  std::int64_t bytes = 0;
  for (const Shard& shard : source_.shards) {
    for (const std::string& name : shard.names) {
      const auto plan = plans_.find(name);
      if (plan == plans_.end()) continue;
      for (const CheckpointPart& part : plan->second.parts) {
        places[part.name] = shard.file;
        bytes += bytes_of(part.dtype, part.shape);
      }
    }
  }
  const Json config = is_dequantizing()
                          ? Json()
                          : quantization_config(job_.names, strips_.format(), kept_modules());
  output.finish(places, bytes, config, job_.names);
  progress.finish();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  return report(elapsed.count());
}

}  // namespace

Json run_quantize_job(const QuantizeJob& job, const std::optional<Device>& device) {
  return Job(job, device).run();
}

}  // namespace tilewright::cli
