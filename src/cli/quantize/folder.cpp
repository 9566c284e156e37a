#include "cli/quantize/folder.h"

#include "base/error.h"
#include "base/json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <system_error>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* kIndexName = "model.safetensors.index.json";
constexpr const char* kConfigName = "config.json";
constexpr const char* kQuantConfigName = "hf_quant_config.json";

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}
bool is_present(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// Files of the input folder that belong to the model but hold no tensors.
bool is_carried_over(const fs::path& file) {
  const std::string name = file.filename().string();
  return file.extension() != ".safetensors" && name != kIndexName && name != kConfigName &&
         name != kQuantConfigName;
}

void require_file(bool is_done, const fs::path& path, const std::error_code& error) {
  require(is_done && !error, ErrorKind::kInvalidArgument, "quantize: {}: {}", path.string(),
          error.message());
}

}  // namespace

CheckpointSource::CheckpointSource(const fs::path& path) : model(path) {
  if (!is_folder(path) && path.extension() != ".json") {
    single = path;
    shards.push_back({path.filename().string(), model.names(), model.files()[0].metadata()});
    return;
  }
  folder = is_folder(path) ? path : path.parent_path();
  const fs::path index = is_folder(path) ? folder / kIndexName : path;
  has_index = is_present(index);
  if (!has_index) {
    shards.push_back({"model.safetensors", model.names(), model.files()[0].metadata()});
    return;
  }
  const MappedFile text(index);
  std::map<std::string, std::vector<std::string>> files;
  for (const auto& [name, file] : parse_safetensors_index(text.text(), index.string()))
    files[file].push_back(name);
  for (auto& [file, names] : files)
    shards.push_back({file, std::move(names), SafetensorsFile(folder / file).metadata()});
}

Json quantization_config(CheckpointNames names, const BlockFormat& format,
                         const std::vector<std::string>& kept_modules) {
  const bool is_ue8m0 = format.scale == kUe8m0, is_e4m3 = format.element == kE4m3;
  if (names == CheckpointNames::kDeepSeek) {
    Json config = {{"quant_method", is_e4m3 ? "fp8" : "mxfp4"},
                   {"fmt", is_e4m3 ? "e4m3" : "e2m1"},
                   {"activation_scheme", "dynamic"},
                   {"weight_block_size", {format.block_rows, format.block_cols}},
                   {"modules_to_not_convert", kept_modules}};
    if (is_ue8m0) config["scale_fmt"] = "ue8m0";
    return config;
  }
  const char* const algorithm = format.has_tensor_scale ? "NVFP4" : is_e4m3 ? "FP8_PB_WO" : "MXFP4";
  Json config = {{"quant_method", "modelopt"},
                 {"quant_algo", algorithm},
                 {"group_size", format.block_cols},
                 {"kv_cache_quant_algo", nullptr},
                 {"producer", {{"name", "tilewright"}, {"version", TILEWRIGHT_VERSION}}},
                 {"ignore", kept_modules}};
  return config;
}

CheckpointOutput::CheckpointOutput(const fs::path& path, const CheckpointSource& source)
    : source_(source), path_(path) {
  if (!path_.has_filename()) path_ = path_.parent_path();  // "folder/"
  if (source.folder.empty()) {
    require(!is_folder(path_), ErrorKind::kInvalidArgument,
            "quantize: {} is a folder, but the input is one file; name a .safetensors file",
            path_.string());
    std::error_code error;
    require(!fs::equivalent(path_, source.single, error), ErrorKind::kInvalidArgument,
            "quantize: {} is the input, whose weights would be lost; name another file",
            path_.string());
    return;
  }
  require(!is_present(path_), ErrorKind::kInvalidArgument,
          "quantize: {} exists; a folder of shards is written as a whole. Name a new folder",
          path_.string());
  folder_.emplace(path_);
}

fs::path CheckpointOutput::path_of(const Shard& shard) const {
  return folder_ ? folder_->path() / shard.file : path_;
}

void CheckpointOutput::write_config(const Json& config) const {
  const fs::path from = source_.folder / kConfigName;
  if (!is_present(from)) return;
  Json model = read_json(from);
  if (model.is_object() && config.is_null()) model.erase("quantization_config");
  if (model.is_object() && !config.is_null()) model["quantization_config"] = config;
  write_json(folder_->path() / kConfigName, model);
}

void CheckpointOutput::finish(const std::map<std::string, std::string>& places, std::int64_t bytes,
                              const Json& config, CheckpointNames names) {
  if (!folder_) return;
  if (source_.has_index)
    write_json(folder_->path() / kIndexName,
               {{"metadata", {{"total_size", bytes}}}, {"weight_map", places}});
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(source_.folder, error)) {
    if (!entry.is_regular_file(error) || !is_carried_over(entry.path())) continue;
    const fs::path to = folder_->path() / entry.path().filename();
    require_file(fs::copy_file(entry.path(), to, error), to, error);
    fs::permissions(to, fs::perms::owner_write, fs::perm_options::add, error);
  }
  write_config(config);
  if (!config.is_null() && names == CheckpointNames::kModelOpt)
    write_json(folder_->path() / kQuantConfigName, {{"producer", config["producer"]},
                                                    {"quantization",
                                                     {{"quant_algo", config["quant_algo"]},
                                                      {"kv_cache_quant_algo", nullptr},
                                                      {"group_size", config["group_size"]},
                                                      {"exclude_modules", config["ignore"]}}}});
  folder_->commit();
}

}  // namespace tilewright::cli
