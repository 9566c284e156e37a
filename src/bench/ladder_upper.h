// The last pages of the ladder's report: products of e4m3, and attention of new tokens.
#pragma once

#include "bench/ladder_log.h"

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace tilewright::cli {

/// TFLOP/s of a point; 0 if there are none.
double value_of(const std::optional<LadderPoint>& point);
/// Of a kernel in plots. Peers come last and have the last colours.
int color_of(const LadderView& view, std::size_t kernel);
/// "512", "1k", "2k".
std::vector<std::string> length_labels(const LadderGroup& group);

/// Kernels of e4m3 under their own roof, the best one of 16 bits beside; empty without times.
std::string fp8_section(const LadderView& view);
/// All of `log` that has times, between the roofs of memory and products, and log["decode"] by
/// lengths; empty without that.
std::string decode_section(const LadderView& view, const nlohmann::json& log);

}  // namespace tilewright::cli
