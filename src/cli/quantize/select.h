// Which tensors of a checkpoint `tilewright quantize` changes, and why it leaves others alone.
#pragma once

#include "formats/checkpoint_weight.h"

#include <string>
#include <string_view>
#include <vector>

namespace tilewright::cli {

struct TensorFilter {
  std::vector<std::string> include;  ///< globs (* and ?); empty: "*.weight"
  std::vector<std::string> exclude;
  bool has_default_exclude = true;  ///< norms, embeddings, heads, routers, convolutions, ...
};

/// What is kept in 16 bits by default: globs.
const std::vector<std::string>& default_exclude();

/// * is any text, ? any character.
bool matches_glob(std::string_view glob, std::string_view text);

/// Why the tensor is not changed, in a few words; empty if it is. `format` null: it is dequantised.
std::string reason_to_keep(const SafetensorsModel& model, std::string_view name,
                           const TensorFilter& filter, const BlockFormat* format);

}  // namespace tilewright::cli
