// Work recorded once and launched many times.
#pragma once

#include "device/stream.h"

#include <functional>
#include <string>
#include <vector>

namespace tilewright::device {

/// An executable CUDA graph. It refers to the buffers, kernels and host memory of the recorded
/// work; keep them alive and in place while it is used. Move-only.
///
/// Thread   one launch at a time
class Graph {
 public:
  /// Runs `record`, which enqueues work on the stream, and on streams that wait for it and that it
  /// waits for in the end. The work is recorded instead of done. Allocation, synchronisation and
  /// synchronous copies are not allowed inside, in this thread; other threads are not affected.
  /// If `record` throws, the capture is ended, what was recorded is dropped, and the exception goes
  /// on its way.
  static Graph capture(const Stream& stream, const std::function<void()>& record);

  /// Enqueues the recorded work on a stream, not necessarily the one of the capture.
  void launch(const Stream& stream) const;

  /// What was recorded, in order: a kernel's name, "memcpy", "memset", "host", or "other".
  /// Errors   Unsupported if the driver cannot tell
  std::vector<std::string> nodes() const;

 private:
  using Recorded = Owned<abi::CUgraph, &abi::DriverFunctions::graph_destroy>;
  using Executable = Owned<abi::CUgraphExec, &abi::DriverFunctions::graph_exec_destroy>;
  Graph(Recorded recorded, Executable executable) noexcept
      : recorded_(std::move(recorded)), executable_(std::move(executable)) {}
  static Recorded record_graph(const Stream& stream, const std::function<void()>& record);
  static Recorded end_capture(const Stream& stream, abi::CUresult& result);

  Recorded recorded_;
  Executable executable_;
};

}  // namespace tilewright::device
