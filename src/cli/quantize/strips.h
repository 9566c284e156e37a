// Quantising a weight strip by strip, on a GPU (or the simulator) or on the host: memory for a few
// strips, however large the matrix.
#pragma once

#include "tilewright/quantize.h"

#include "base/thread_pool.h"
#include "formats/checkpoint_weight.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

namespace tilewright::cli {

/// Sums over elements x of a weight and what became of them, y.
struct ErrorSums {
  double xx = 0, xy = 0, yy = 0, dd = 0;  ///< dd: (x - y)^2

  ErrorSums& operator+=(const ErrorSums& other);
  double relative_rms() const;
  double cosine() const;
};

class StripQuantizer {
 public:
  /// Without a device: on the host.
  StripQuantizer(std::optional<Device> device, std::string format, std::string scales);

  ThreadPool& pool() noexcept { return pool_; }
  const BlockFormat& format() const noexcept { return format_; }

  /// Largest finite magnitude. `done` gets the rows of each strip.
  float find_amax(const CheckpointWeight& weight, const std::function<void(std::int64_t)>& done);

  using Sink = std::function<void(const std::vector<std::uint8_t>& codes,
                                  const std::vector<std::uint8_t>& scales, std::int64_t rows)>;
  /// Hands codes and scales, without padding, to `sink` in the order of rows.
  /// Errors   CheckFailed if the weight holds a NaN or an infinity
  ErrorSums quantize(const CheckpointWeight& weight, std::optional<float> encode_scale,
                     bool has_errors, const Sink& sink);

 private:
  void quantize_strip(const QuantizeProblem& problem, const void* numbers,
                      std::vector<std::uint8_t>& codes, std::vector<std::uint8_t>& scales);
  void run_on_device(const QuantizeProblem& problem, const void* numbers,
                     std::vector<std::uint8_t>& codes, std::vector<std::uint8_t>& scales);
  ErrorSums compare(const CheckpointWeight& weight, std::int64_t first, std::int64_t rows,
                    float tensor_scale, const std::vector<std::uint8_t>& codes,
                    const std::vector<std::uint8_t>& scales);

  std::optional<Device> device_;
  std::string format_name_, scales_;
  BlockFormat format_;
  ThreadPool pool_;
  std::map<std::vector<std::int64_t>, Quantize> operators_;  // rows, cols, dtype, bits of G
};

/// Rows of a strip: whole blocks, about 32 MB of fp32.
std::int64_t strip_rows(std::int64_t cols);

}  // namespace tilewright::cli
