#include "model/checkpoint/make_checkpoint.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/safetensors_writer.h"
#include "formats/minifloat.h"
#include "model/checkpoint/draw.h"
#include "model/checkpoint/released.h"

#include <cstring>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

namespace tilewright::model {
namespace {

namespace fs = std::filesystem;

std::span<const std::byte> bytes_of(const std::vector<std::uint8_t>& values) {
  return std::as_bytes(std::span(values));
}

// Draws every tensor and appends it to the file that it belongs to.
class CheckpointWriter final : public TensorReader {
 public:
  CheckpointWriter(const fs::path& folder, const CheckpointRequest& request,
                   const std::function<void(std::int64_t)>& progress)
      : folder_(folder), request_(request), progress_(progress) {
    for (StoredTensor& tensor : released_tensors(request.config, request.experts))
      tensors_.emplace(tensor.name, std::move(tensor));
    std::map<std::int64_t, std::vector<SafetensorsSpec>> specs;
    for (const auto& [name, tensor] : tensors_)
      specs[shard_of(request.config, tensor)].push_back({name, tensor.dtype, tensor.shape});
    for (auto& [shard, list] : specs) {
      left_[shard] = std::ssize(list);
      files_.emplace(
          shard, std::make_unique<SafetensorsWriter>(path_of(shard), std::move(list), metadata()));
    }
  }

  Matrix matrix(TensorPlace place, const std::string& name, Dim rows, Dim cols) override {
    const std::string weight = name + ".weight";
    const StoredTensor& codes = tensors_.at(weight);
    const std::string format = format_of(codes);
    const DrawnMatrix drawn =
        draw_matrix(format, rows.size, cols.size, drawn_deviation(place.role, cols.size),
                    NamedRandom(request_.seed, weight));
    write(weight, bytes_of(drawn.codes));
    if (format.empty()) return {};
    if (format != "nvfp4") {
      write(name + ".scale", bytes_of(drawn.scales));
      return {};
    }
    const float activations = 1;
    write(name + ".weight_scale", bytes_of(drawn.scales));
    write(name + ".weight_scale_2", std::as_bytes(std::span(&drawn.tensor_scale, 1)));
    write(name + ".input_scale", std::as_bytes(std::span(&activations, 1)));
    return {};
  }

  Vector vector(TensorPlace place, const std::string& name, std::initializer_list<Dim>) override {
    const StoredTensor& tensor = tensors_.at(name);
    const Vector values = draw_vector(place.role, name, tensor.rows() * tensor.cols(),
                                      NamedRandom(request_.seed, name));
    if (tensor.dtype == DType::kF32) {
      write(name, std::as_bytes(std::span(values)));
      return {};
    }
    std::vector<std::uint16_t> codes;
    for (const float x : values) codes.push_back(static_cast<std::uint16_t>(encode(kBf16, x)));
    write(name, std::as_bytes(std::span(codes)));
    return {};
  }

  std::vector<std::int32_t> table(TensorPlace, const std::string& name, Dim rows, Dim cols,
                                  Dim limit) override {
    const auto ids = draw_table(rows.size, cols.size, limit.size, NamedRandom(request_.seed, name));
    const std::vector<std::int64_t> wide(ids.begin(), ids.end());
    write(name, std::as_bytes(std::span(wide)));
    return {};
  }

  // The index of all files.
  nlohmann::json index() const {
    nlohmann::json map = nlohmann::json::object();
    std::int64_t total = 0;
    for (const auto& [name, tensor] : tensors_) {
      map[name] = shard_name(shard_of(request_.config, tensor), num_shards(request_.config));
      total += tensor.bytes();
    }
    return {{"metadata", {{"total_size", total}}}, {"weight_map", std::move(map)}};
  }

 private:
  static SafetensorsMetadata metadata() { return {{"format", "pt"}}; }

  fs::path path_of(std::int64_t shard) const {
    return folder_ / shard_name(shard, num_shards(request_.config));
  }

  static std::string format_of(const StoredTensor& codes) {
    if (codes.dtype == DType::kF8_E4M3) return "fp8_128x128_ue8m0";
    if (codes.dtype == DType::kI8) return "mxfp4";
    return codes.dtype == DType::kU8 ? "nvfp4" : "";
  }

  // A file is finished with its last tensor.
  void write(const std::string& name, std::span<const std::byte> bytes) {
    const std::int64_t shard = shard_of(request_.config, tensors_.at(name));
    files_.at(shard)->append(name, bytes);
    if (progress_) progress_(std::ssize(bytes));
    if (--left_.at(shard) > 0) return;
    files_.at(shard)->finish();
    files_.erase(shard);
  }

  fs::path folder_;
  const CheckpointRequest& request_;
  const std::function<void(std::int64_t)>& progress_;
  std::map<std::string, StoredTensor> tensors_;
  std::map<std::int64_t, std::unique_ptr<SafetensorsWriter>> files_;
  std::map<std::int64_t, std::int64_t> left_;  // tensors that a file waits for
};

// What cannot be made is said when the folder itself is.
void make_parents(const fs::path& folder) {
  const fs::path parent = (folder.has_filename() ? folder : folder.parent_path()).parent_path();
  std::error_code ignored;
  if (!parent.empty()) fs::create_directories(parent, ignored);
}

}  // namespace

Config small_config(std::string_view like) {
  const auto released = released_config(like);
  require(released.has_value(), ErrorKind::kInvalidArgument,
          "{} is no model that is known; expected flash or pro", like);
  Config c = *released;
  c.hidden = 256;
  c.heads = 8;
  c.q_rank = 128;
  c.o_groups = 2;
  c.o_rank = 128;
  c.layers.resize(5);
  c.index_heads = 8;
  c.index_topk = 32;
  c.experts = 8;
  c.experts_per_token = 2;
  c.inter = 256;
  c.vocab = 256;
  return c;
}

void make_checkpoint(const fs::path& folder, const CheckpointRequest& request,
                     const std::function<void(std::int64_t)>& progress) {
  std::error_code error;
  const bool is_present = fs::exists(folder, error);
  require(!is_present || (fs::is_directory(folder, error) && fs::is_empty(folder, error)),
          ErrorKind::kInvalidArgument,
          "{}: cannot write a checkpoint there; expected a name that is free, or an empty folder",
          folder.string());
  if (!is_present) make_parents(folder);
  AtomicFolder written(folder);
  CheckpointWriter writer(written.path(), request, progress);
  read_model(request.config, writer, true);
  write_json(written.path() / "model.safetensors.index.json", writer.index());
  nlohmann::json config = config_json(request.config);
  if (request.experts == NumberFormat::kMxfp4) config["expert_dtype"] = "fp4";
  config["quantization_config"] = {{"quant_method", "fp8"},
                                   {"fmt", "e4m3"},
                                   {"activation_scheme", "dynamic"},
                                   {"weight_block_size", {128, 128}},
                                   {"scale_fmt", "ue8m0"}};
  write_json(written.path() / "config.json", config);
  written.commit();
}

}  // namespace tilewright::model
