// What a device gave for the programs of tests/ptx: tests/golden/hardware/ptx, written by
// tools/ptx/record_ptx.py. exceptions.json says what has no recording or another result, and why.
#pragma once

#include "base/json.h"

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

namespace tilewright::sim {

/// By file and kernel.
inline const nlohmann::json& ptx_recordings() {
  static const nlohmann::json recordings = [] {
    const std::string folder = std::string(TILEWRIGHT_SOURCE_DIR) + "/tests/golden/hardware/ptx";
    nlohmann::json all = nlohmann::json::object();
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().filename() != "exceptions.json") {
        all.update(read_json(entry.path()).at("files"));
      }
    }
    return all;
  }();
  return recordings;
}

/// Reasons, by "file" or "file kernel".
inline const nlohmann::json& ptx_exceptions(const std::string& kind) {
  static const nlohmann::json exceptions =
      read_json(std::string(TILEWRIGHT_SOURCE_DIR) + "/tests/golden/hardware/ptx/exceptions.json");
  return exceptions.at(kind);
}
inline bool is_exception(const std::string& kind, const std::string& file,
                         const std::string& kernel) {
  const nlohmann::json& reasons = ptx_exceptions(kind);
  return reasons.contains(file) || reasons.contains(file + " " + kernel);
}

/// nullptr if there is none.
inline const nlohmann::json* recording_of(const std::string& file, const std::string& kernel) {
  const auto found = ptx_recordings().find(file);
  if (found == ptx_recordings().end() || !found->contains(kernel)) return nullptr;
  return &found->at(kernel);
}

/// The results of a kernel if they are not those that its file names, else nothing.
inline std::vector<std::uint64_t> recorded_results(const std::string& file,
                                                   const std::string& kernel) {
  std::vector<std::uint64_t> words;
  const nlohmann::json* recording = recording_of(file, kernel);
  if (recording == nullptr || !recording->contains("differs") ||
      is_exception("differs", file, kernel)) {
    return words;
  }
  for (const nlohmann::json& row : recording->at("differs")) {
    std::istringstream stream(row.get<std::string>());
    for (std::string word; stream >> word;) words.push_back(std::stoull(word, nullptr, 16));
  }
  return words;
}

}  // namespace tilewright::sim
