// The model in float64, made of src/reference: what `--device reference` runs.
#pragma once

#include "model/model.h"

#include <memory>

namespace tilewright::model {

/// A runner without kernels: plain loops over doubles, on the threads of this machine.
///
/// kv nothing  no rounding anywhere (mode `exact` of a reference file)
/// kv kFp8     with index kMxfp4: mode `quant`. What a cache keeps is rounded, everything else
///             stays float64: q, and every row of a cache, after each of pooling, norm and rotation
///             to bf16; the first 448 numbers of a row to the format of the cache; the indexer's
///             queries and keys to bf16, again after the Hadamard transform, then to its format
/// Stages      all those of a reference file
/// `weights` is shared: several runners may use one.
std::unique_ptr<Runner> make_reference_runner(std::shared_ptr<const Weights> weights,
                                              const RunnerOptions& options);

}  // namespace tilewright::model
