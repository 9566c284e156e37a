// Work that is recorded once and launched many times.
#pragma once

#include "tilewright/stream.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tilewright {

/// An executable CUDA graph: many launches for the price of one. It refers to the addresses that
/// the recorded work was given; keep operators, buffers and workspaces alive and in place while the
/// graph is used. What lies at the addresses may change from launch to launch. Move-only.
///
///     Graph graph = Graph::capture(stream, [&] {
///       for (const Attention& layer : layers) layer.run({..., .stream = stream.handle()});
///     });
///     graph.launch(stream);
///
/// Thread   one launch at a time
class Graph {
 public:
  /// Runs `record`, which enqueues work on the stream, or on streams that wait for it and that it
  /// waits for in the end. The work is recorded and instantiated, not done. Inside, this thread may
  /// not allocate, synchronise or copy by Buffer; other threads are not affected. If `record`
  /// throws, what was recorded is dropped and the exception goes on its way.
  /// Errors   DeviceError, also if `record` did what it may not
  static Graph capture(const Stream& stream, const std::function<void()>& record);
  ~Graph();
  Graph(Graph&& other) noexcept;
  Graph& operator=(Graph&& other) noexcept;

  /// Enqueues the recorded work on a stream, not necessarily the one of the capture.
  /// Errors   DeviceError
  void launch(const Stream& stream) const;
  /// What was recorded, in order: the name of a kernel, "memcpy", "memset", "host", or "other".
  /// Errors   Unsupported if the driver cannot tell (before CUDA 12.3); DeviceError
  std::vector<std::string> nodes() const;

 private:
  struct State;
  explicit Graph(std::unique_ptr<State> state) noexcept;

  std::unique_ptr<State> state_;
};

}  // namespace tilewright
