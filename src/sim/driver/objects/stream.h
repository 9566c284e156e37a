// Streams, and what it means to capture them.
#pragma once

#include "sim/driver/objects/work.h"

namespace tilewright::sim {

/// A graph that grows by what is submitted to one or several streams.
struct Capture {
  std::shared_ptr<Graph> graph;
  std::uint64_t id = 0;
  Stream* origin = nullptr;
  std::thread::id thread;
  abi::CUstreamCaptureMode mode = abi::CUstreamCaptureMode::kGlobal;
  abi::CUstreamCaptureStatus status = abi::CUstreamCaptureStatus::kActive;
  bool is_graph_lent = false;  ///< cuStreamBeginCaptureToGraph
  bool is_over = false;        ///< streams that joined find out when they look
};

struct Stream {
  explicit Stream(Context& context_) : context(context_), id(Driver::get().next_id()) {}

  Context& context;
  const std::uint64_t id;
  unsigned flags = 0;
  int priority = 0;
  std::map<abi::CUlaunchAttributeID, abi::CUlaunchAttributeValue> attributes;

  std::recursive_mutex mutex;  ///< of what follows
  /// The capture that the stream takes part in, or nullptr.
  std::shared_ptr<Capture>& current_capture();
  std::vector<GraphNode*> captured_after;  ///< what the next node depends on

 private:
  std::shared_ptr<Capture> capture_;
};

/// The object of a handle: 0 and 1 are the legacy stream, 2 is the thread's own.
/// Errors   Failure: CUDA_ERROR_INVALID_HANDLE; INVALID_CONTEXT for 0 to 2 without one
std::shared_ptr<Stream> find_stream(abi::CUstream handle);

/// For calls that a capture forbids: they fail and break the capture.
void require_not_captured(Stream& stream);

inline constexpr int kLeastPriority = 0;
inline constexpr int kGreatestPriority = -5;

}  // namespace tilewright::sim
