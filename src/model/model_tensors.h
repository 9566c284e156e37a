// The tensors of a DeepSeek-V4 model by name, role and shape: the one place that knows them all.
#pragma once

#include "model/weights.h"

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::model {

/// A dimension and the name of the config.json value that it follows from.
struct Dim {
  std::string_view name;
  std::int64_t size;
};

/// What a reader is told of a tensor beside its name and shape.
struct TensorPlace {
  TensorRole role;
  std::int64_t expert = -1;  ///< number of the routed expert that it belongs to; -1: none
};

/// Is asked for every tensor of a model in turn. What it returns goes into ModelWeights.
class TensorReader {
 public:
  virtual ~TensorReader() = default;

  /// The tensors that follow are those of this layer; draft layers come after the others, -1 is the
  /// whole model.
  virtual void begin_layer(std::int64_t /*layer*/) {}
  /// Whether ModelWeights gets this routed expert. Its tensors are asked for all the same.
  virtual bool keeps_expert(std::int64_t /*expert*/) const { return true; }

  /// `name`.weight.
  virtual Matrix matrix(TensorPlace place, const std::string& name, Dim rows, Dim cols) = 0;
  /// A plain tensor of any rank as fp32.
  virtual Vector vector(TensorPlace place, const std::string& name,
                        std::initializer_list<Dim> dims) = 0;
  /// Whole numbers from 0 to below `limit`.
  virtual std::vector<std::int32_t> table(TensorPlace place, const std::string& name, Dim rows,
                                          Dim cols, Dim limit) = 0;
};

/// Asks for all tensors of the main model, and with `has_drafts` for those of its draft layers.
ModelWeights read_model(const Config& config, TensorReader& reader, bool has_drafts = false);

}  // namespace tilewright::model
