// Weights without a checkpoint: random ones of any size, to time a model with.
#pragma once

#include "tilewright/format.h"

#include "model/weights.h"

#include <cstdint>
#include <memory>

namespace tilewright::model {

struct SyntheticRequest {
  Config config;
  Share share = {};
  NumberFormat experts = NumberFormat::kMxfp4;  ///< or kNvfp4
  bool has_drafts = false;
  std::uint64_t seed = 1;
  std::int64_t different_experts = 1;  ///< of a layer; the others are the same as these in turn
};

/// Weights in the formats of a released checkpoint (draw.h), a rank's share of them. Matrices of
/// one role and shape are the same memory in all layers and experts, so that the host holds one of
/// each, or `different_experts`: 2.4 GB for V4-Flash. Experts that are the same are reordered once
/// and then copied on the device; products and bytes of a step are those of any weights, and
/// routing is near uniform.
/// Errors   as check_share
std::shared_ptr<const Weights> synthetic_weights(const SyntheticRequest& request);

/// The published sizes of "flash" or "pro" with the first `layers` layers; 0: all.
/// Errors   InvalidArgument for another name or more layers than there are
Config synthetic_config(std::string_view like, std::int64_t layers = 0);

}  // namespace tilewright::model
