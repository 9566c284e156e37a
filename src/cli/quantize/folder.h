// Checkpoints as files: one safetensors file, or a folder of shards with an index and a config.
#pragma once

#include "base/file.h"
#include "formats/checkpoint_weight.h"

#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace tilewright::cli {

/// One file of the input and the tensors that are read from it.
struct Shard {
  std::string file;  ///< name without folder
  std::vector<std::string> names;
  SafetensorsMetadata metadata;
};

struct CheckpointSource {
  /// Errors   as SafetensorsModel
  explicit CheckpointSource(const std::filesystem::path& path);

  SafetensorsModel model;
  std::vector<Shard> shards;
  std::filesystem::path folder;  ///< empty: a single file
  std::filesystem::path single;  ///< that one
  bool has_index = false;
};

/// What runtimes read to know that a checkpoint is quantised.
nlohmann::json quantization_config(CheckpointNames names, const BlockFormat& format,
                                   const std::vector<std::string>& kept_modules);

/// A file, or a folder that gets its name in finish(); without that nothing is left (AtomicFolder).
class CheckpointOutput {
 public:
  /// Errors   InvalidArgument if `path` is the input, or a folder that exists already
  CheckpointOutput(const std::filesystem::path& path, const CheckpointSource& source);

  std::filesystem::path path_of(const Shard& shard) const;
  /// Index, configuration and the other files of the folder. `places`: tensor to file; `config`
  /// null: not quantised.
  void finish(const std::map<std::string, std::string>& places, std::int64_t bytes,
              const nlohmann::json& config, CheckpointNames names);

 private:
  void write_config(const nlohmann::json& config) const;

  const CheckpointSource& source_;
  std::filesystem::path path_;
  std::optional<AtomicFolder> folder_;  // empty: a single file
};

}  // namespace tilewright::cli
