#include "base/safetensors_model.h"

#include "base/error.h"
#include "base/json.h"
#include "base/json_node.h"
#include "base/quote.h"
#include "base/similar.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <utility>

namespace tilewright {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIndexName = "model.safetensors.index.json";
constexpr const char* kSingleName = "model.safetensors";

/// Whether joining the name to a folder stays in that folder.
bool is_plain_file_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == name.npos &&
         name.find('\0') == name.npos;
}

/// What cannot be accessed does not exist; std::filesystem would throw an exception of its own.
bool is_present(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

/// The index file or the single file of a folder.
fs::path find_in_folder(const fs::path& folder) {
  for (const char* name : {kIndexName, kSingleName}) {
    if (is_present(folder / name)) return folder / name;
  }
  fail(ErrorKind::kInvalidArgument, "{}: the folder has neither {} nor {}", folder.string(),
       kIndexName, kSingleName);
}

void require_files(const fs::path& folder, const std::set<std::string>& names,
                   std::string_view source) {
  constexpr std::size_t kMaxListed = 10;
  std::vector<std::string> missing;
  for (const std::string& name : names) {
    if (!is_present(folder / name)) missing.push_back(quote(name));
  }
  if (missing.empty()) return;
  const std::size_t num_missing = missing.size();
  missing.resize(std::min(num_missing, kMaxListed));
  fail(ErrorKind::kInvalidArgument, "{}: {} of {} files are missing in {}: {}{}; fetch them",
       source, num_missing, names.size(), folder.string(), fmt::join(missing, ", "),
       num_missing > kMaxListed ? ", ..." : "");
}

}  // namespace

SafetensorsIndex parse_safetensors_index(std::string_view text, std::string_view source) {
  const nlohmann::json json = parse_json(text, source);
  SafetensorsIndex index;
  for (const auto& [name, node] : JsonNode(json, std::string(source)).at("weight_map").members()) {
    const std::string& file = node.as_string();
    if (!is_plain_file_name(file)) {
      node.fail("{} is not the name of a file in the same folder", quote(file));
    }
    index.emplace(name, file);
  }
  return index;
}

SafetensorsModel::SafetensorsModel(const fs::path& path) : source_(path.string()) {
  std::error_code error;  // a path that is no folder, for whatever reason, is opened as a file
  const fs::path file = fs::is_directory(path, error) ? find_in_folder(path) : path;
  if (file.extension() == ".json") {
    open_shards(file);
  } else {
    open_single(file);
  }
  for (const auto& [name, file_idx] : location_) names_.push_back(name);
}

void SafetensorsModel::open_single(const fs::path& path) {
  files_.emplace_back(path);
  for (const SafetensorsEntry& entry : files_[0].entries()) location_.emplace(entry.name, 0);
}

void SafetensorsModel::open_shards(const fs::path& index_path) {
  const MappedFile index_file(index_path);
  const auto index = parse_safetensors_index(index_file.text(), index_path.string());
  std::set<std::string> shards;
  for (const auto& [name, shard] : index) shards.insert(shard);
  const fs::path folder = index_path.has_parent_path() ? index_path.parent_path() : ".";
  require_files(folder, shards, index_path.string());

  std::map<std::string, std::size_t> idx_of_shard;
  for (const std::string& shard : shards) {
    idx_of_shard.emplace(shard, files_.size());
    files_.emplace_back(folder / shard);
  }
  for (const auto& [name, shard] : index) {
    const std::size_t file_idx = idx_of_shard.at(shard);
    if (!files_[file_idx].contains(name)) {
      fail(ErrorKind::kParseError,
           "{}: tensor {} should be in {}, which lacks it; index and files do not belong together",
           index_path.string(), quote(name), quote(shard));
    }
    location_.emplace(name, file_idx);
  }
}

ConstTensorView SafetensorsModel::tensor(std::string_view name) const {
  const auto found = location_.find(name);
  if (found == location_.end()) {
    fail(ErrorKind::kInvalidArgument, "{}: there is no tensor {}; {}", source_, quote(name),
         similar_names(name, {names_.begin(), names_.end()}));
  }
  return files_[found->second].tensor(name);
}

}  // namespace tilewright
