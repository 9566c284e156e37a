#include "cli/quantize/select.h"

#include <algorithm>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

bool matches_any(const std::vector<std::string>& globs, std::string_view name) {
  return std::ranges::any_of(globs, [&](const auto& glob) { return matches_glob(glob, name); });
}

}  // namespace

const std::vector<std::string>& default_exclude() {
  static const std::vector<std::string> kGlobs = {"*norm*",
                                                  "*embed*",
                                                  "*lm_head*",
                                                  "head.weight",
                                                  "*.head.weight",
                                                  "*.gate.*",
                                                  "gate.weight",
                                                  "*router*",
                                                  "*conv*",
                                                  "*compressor*",
                                                  "*.hc_*",
                                                  "*weights_proj*",
                                                  "*shared_expert_gate*"};
  return kGlobs;
}

bool matches_glob(std::string_view glob, std::string_view text) {
  std::size_t g = 0, t = 0, star = glob.npos, star_text = 0;
  while (t < text.size()) {
    if (g < glob.size() && glob[g] == '*') {
      star = g++;
      star_text = t;
    } else if (g < glob.size() && (glob[g] == '?' || glob[g] == text[t])) {
      ++g;
      ++t;
    } else if (star != glob.npos) {  // the last star takes one more
      g = star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
  return std::ranges::all_of(glob.substr(g), [](char c) { return c == '*'; });
}

std::string reason_to_keep(const SafetensorsModel& model, std::string_view name,
                           const TensorFilter& filter, const BlockFormat* format) {
  static const std::vector<std::string> kWeights = {"*.weight"};
  if (!matches_any(filter.include.empty() ? kWeights : filter.include, name)) return "not included";
  if (!name.ends_with(".weight")) return "its name does not end in .weight";
  if (matches_any(filter.exclude, name)) return "excluded";
  if (filter.has_default_exclude && matches_any(default_exclude(), name))
    return "excluded by default";
  if (model.tensor(name).shape.size() != 2) return "not a matrix";
  const DType dtype = model.tensor(name).dtype;
  const bool is_plain = dtype == DType::kBF16 || dtype == DType::kF16 || dtype == DType::kF32;
  if (format == nullptr && is_plain) return "not quantised";
  const CheckpointWeight weight = find_checkpoint_weight(model, name);
  if (weight.rows == 0 || weight.cols == 0) return "empty";
  if (format != nullptr && format->block_rows == 1 && weight.cols % format->block_cols != 0)
    return fmt::format("{} columns are no multiple of {}", weight.cols, format->block_cols);
  return {};
}

}  // namespace tilewright::cli
