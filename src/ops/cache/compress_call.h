// A call of a compressor as its kernels have it.
#pragma once

#include "tilewright/compressor.h"

#include "kernels/sparse_attention/cache/compress.h"

#include <cstdint>

namespace tilewright::ops {

/// Checked arguments, and the CTAs of the launch.
struct CompressCall {
  kernels::CompressParams params = {};
  std::int64_t entry_ctas = 0, state_ctas = 0;
  bool is_one_launch = false;

  /// Errors   InvalidArgument if an address is missing or misaligned
  CompressCall(const Compressor& compressor, int num_sms, const CompressorArguments& arguments);
  std::int64_t ctas() const noexcept { return entry_ctas + state_ctas; }
};

}  // namespace tilewright::ops
