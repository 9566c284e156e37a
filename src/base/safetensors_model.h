// Reading the tensors of a model that lie in one safetensors file or in several.
#pragma once

#include "base/safetensors.h"

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright {

/// Tensor name to the name of the file that holds it.
using SafetensorsIndex = std::map<std::string, std::string, std::less<>>;

/// Reads the text of a `model.safetensors.index.json`: an object with the member "weight_map", an
/// object of file names; everything else in it is ignored.
/// Errors   ParseError as parse_json and JsonNode, and for a file name that leads out of the folder
SafetensorsIndex parse_safetensors_index(std::string_view text, std::string_view source);

/// All tensors of a model, by name, as views into mapped files.
class SafetensorsModel {
 public:
  /// `path` is a folder, an index file (*.json) or a single .safetensors file. A folder is read by
  /// its `model.safetensors.index.json`, or its `model.safetensors` if it has no index. All files
  /// that the index names are opened and checked at once. Tensors that it does not name do not
  /// exist.
  /// Errors   InvalidArgument if a file is missing (all missing ones are listed); ParseError as
  ///          parse_safetensors, and if a file lacks a tensor that the index promises
  explicit SafetensorsModel(const std::filesystem::path& path);

  /// In alphabetical order.
  const std::vector<std::string>& names() const noexcept { return names_; }
  bool contains(std::string_view name) const { return location_.contains(name); }

  /// A view that is valid as long as this object; possibly unaligned, see SafetensorsFile::tensor.
  /// Errors   InvalidArgument if there is no such tensor; the message lists similar names
  ConstTensorView tensor(std::string_view name) const;

  const std::vector<SafetensorsFile>& files() const noexcept { return files_; }

 private:
  void open_single(const std::filesystem::path& path);
  void open_shards(const std::filesystem::path& index_path);

  std::string source_;
  std::vector<SafetensorsFile> files_;
  std::vector<std::string> names_;
  std::map<std::string, std::size_t, std::less<>> location_;  // name -> index into files_
};

}  // namespace tilewright
