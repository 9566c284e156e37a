// The bundled model, a copy of it with another config.json, and the golden file of its stages.
#pragma once

#include "base/json.h"
#include "model/float64/reference_runner.h"
#include "model/float64/trace.h"
#include "tests/base/scoped_folder.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::model {

inline const std::string kTinyModel =
    std::string(TILEWRIGHT_SOURCE_DIR) + "/examples/models/tiny-dsv4";
/// Stages of layers 0, 1 and 2 and all logits, by tools/golden/make_model_golden.py, run "p144".
inline const std::string kTinyGolden = std::string(TILEWRIGHT_TEST_DATA) + "/dsv4/tiny.safetensors";

/// The weights of a folder, the bundled ones by default, behind a config.json that `change` has
/// been at.
class ChangedModel {
 public:
  explicit ChangedModel(const std::function<void(nlohmann::json&)>& change,
                        const std::filesystem::path& from = kTinyModel) {
    namespace fs = std::filesystem;
    for (const fs::directory_entry& entry : fs::directory_iterator(from)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("model")) fs::create_symlink(entry.path(), folder_ / name);
    }
    nlohmann::json config = read_json(from / "config.json");
    change(config);
    write_json(folder_ / "config.json", config);
  }
  std::string path() const { return folder_ / ""; }

 private:
  ScopedFolder folder_;
};

/// The first half of the rows and the second exchanged, in a copy.
inline void swap_rows(Matrix& matrix, std::vector<std::uint8_t>& copy) {
  const auto half = static_cast<std::size_t>(matrix.rows / 2 * matrix.cols) *
                    static_cast<std::size_t>(bits_per_elem(matrix.codes.dtype) / 8);
  const auto* from = static_cast<const std::uint8_t*>(matrix.codes.data);
  copy.assign(from + half, from + 2 * half);
  copy.insert(copy.end(), from, from + half);
  matrix.codes.data = copy.data();
}

inline RunnerOptions options_of(const std::string& mode) {
  RunnerOptions options;
  if (mode == "exact") options.kv = std::nullopt;
  return options;
}

/// The first `tokens` of the golden prompt through the float64 model, in chunks.
inline std::vector<TraceResult> trace_tiny(std::shared_ptr<const Weights> weights,
                                           const std::string& mode, std::size_t tokens = 144,
                                           std::size_t chunk = 144) {
  Trace trace(kTinyGolden, "p144", mode);
  const auto runner = make_reference_runner(std::move(weights), options_of(mode));
  runner->set_stage_sink([&](const Stage& stage) { trace.receive(stage); });
  runner->start(1);
  const auto& ids = trace.input_ids();
  for (std::size_t first = 0; first < tokens; first += chunk) {
    const auto last = std::min(first + chunk, tokens);
    const std::vector<std::int32_t> part(ids.begin() + static_cast<std::ptrdiff_t>(first),
                                         ids.begin() + static_cast<std::ptrdiff_t>(last));
    runner->forward({&part, 1}, LogitRows::kLast);
  }
  return trace.results();
}

/// The first stage that is not met, "" if all are.
inline std::string first_difference(const std::vector<TraceResult>& results) {
  for (const TraceResult& result : results)
    if (!result.is_met) return result.name;
  return "";
}

}  // namespace tilewright::model
