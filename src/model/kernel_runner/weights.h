// The weights of a model on a device, in the order that its operators take them.
#pragma once

#include "tilewright/buffer.h"
#include "tilewright/moe.h"

#include "model/model.h"
#include "model/projection.h"
#include "model/share.h"
#include "model/weights.h"

#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace tilewright::model {

/// Memory on a device that knows its type.
template <class T>
class DeviceArray {
 public:
  DeviceArray(const Device& device, std::int64_t count)
      : buffer_(device, static_cast<std::size_t>(count) * sizeof(T)), count_(count) {}
  DeviceArray(const Device& device, std::span<const T> values)
      : buffer_(Buffer::from(device, values)), count_(static_cast<std::int64_t>(values.size())) {}

  T* get() const noexcept { return buffer_.as<T>(); }
  std::int64_t count() const noexcept { return count_; }
  Buffer& buffer() noexcept { return buffer_; }
  const Buffer& buffer() const noexcept { return buffer_; }

 private:
  Buffer buffer_;
  std::int64_t count_;
};

using Bf16Array = DeviceArray<std::uint16_t>;
using FloatArray = DeviceArray<float>;
using IntArray = DeviceArray<std::int32_t>;
using ByteArray = DeviceArray<std::uint8_t>;

Bf16Array to_bf16_array(const Device& device, const Vector& values);

struct HyperArrays {
  FloatArray fn, base, scale;
};

struct CompressorArrays {
  FloatArray ape;
  Bf16Array norm;
};

/// Where the results of the first projection of a layer stand in their row.
struct InputColumns {
  std::int64_t q_a = 0, kv = 0;
  std::int64_t compressor_kv = 0, compressor_gate = 0;           ///< CSA, HCA
  std::int64_t index_kv = 0, index_gate = 0, index_weights = 0;  ///< CSA
};

struct LayerArrays {
  /// `has_shared_apart`: the shared expert is one of its own whatever its format.
  LayerArrays(const Device& device, const Config& config, LayerKind kind,
              const LayerWeights& weights, bool has_shared_apart = false);

  LayerKind kind;
  Bf16Array attn_norm, ffn_norm, q_norm, kv_norm;
  FloatArray sink;
  HyperArrays hc_attn, hc_ffn;
  Projection input;  ///< of the normalised input: InputColumns
  InputColumns columns;
  Projection query;  ///< of the normalised q_a: queries, then those of the indexer
  std::int64_t index_query_column = 0;
  Projection wo_a;  ///< of all output groups
  Projection wo_b;
  std::optional<CompressorArrays> compressor, index_compressor;
  Projection router;
  std::optional<FloatArray> router_bias;
  std::optional<IntArray> router_table;          ///< [vocab, experts_per_token]
  tilewright::MoeWeights experts;                ///< with the shared one, if it has their format
  std::optional<tilewright::MoeWeights> shared;  ///< else this, an expert of its own
};

/// A draft layer and what leads to it and away from it; embedding and head are the model's.
struct DraftArrays {
  /// `has_shared_apart`: as LayerArrays.
  DraftArrays(const Device& device, const Config& config, const DraftWeights& weights,
              bool has_shared_apart = false);

  LayerArrays layer;
  Projection e_proj, h_proj;
  Bf16Array enorm, hnorm, norm;
  HyperArrays hc_head;
};

struct ModelArrays {
  /// Of the weights' share. `on_load` is told of the number of layers that are there, also of none.
  ModelArrays(const Device& device, const Weights& weights, const LoadSink& on_load = {},
              bool has_draft = false);

  /// Draft layers come after the others.
  const LayerArrays& layer(std::int64_t number) const {
    const auto idx = static_cast<std::size_t>(number);
    return idx < layers.size() ? layers[idx] : drafts[idx - layers.size()].layer;
  }
  std::int64_t num_layers() const { return std::ssize(layers) + std::ssize(drafts); }

  Bf16Array embed, norm;
  HyperArrays hc_head;
  Projection head;
  std::vector<LayerArrays> layers;
  std::vector<DraftArrays> drafts;  ///< at most one
};

}  // namespace tilewright::model
