// A linear layer on a device: buffers, runs and times.
#pragma once

#include "tilewright/buffer.h"
#include "tilewright/linear.h"
#include "tilewright/stream.h"

#include "verify/clock/clocked_timer.h"

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <vector>

namespace tilewright::cli {

/// The activations of a problem in device memory, and room for results and workspace.
class LinearBench {
 public:
  /// x [m, k] is rounded to bf16.
  LinearBench(const Device& device, std::int64_t k, std::span<const float> x,
              const LinearPlan& plan);

  void enqueue(const Linear& linear);
  void synchronize() const { stream_.synchronize(); }
  std::vector<double> read_out() const;

  /// Times of single runs, each with a cold cache, as a JSON object with the floor.
  nlohmann::json time_cold(const Linear& linear, int runs);

  /// One CUDA graph that runs all of them, `calls` launches in turn, `samples` times: the time of
  /// one call. Cold if their weights together exceed the cache.
  ClockedTimes time_rotating(std::span<const Linear> layers, int calls, int samples);

 private:
  const Device& device_;
  LinearProblem problem_;
  std::int64_t n_;
  Stream stream_;
  StreamTimer timer_;
  Buffer x_, bias_, out_, workspace_;
  std::unique_ptr<Buffer> flush_;
};

/// The least time that an H200 can need, in microseconds: every byte once at 4.3 TB/s, or every
/// product at what it sustains on such numbers, 790 TFLOP/s in bf16 and 1600 in FP8.
double linear_floor_us(const LinearPlan& plan);

}  // namespace tilewright::cli
