// Stream capture: what is submitted becomes nodes of a graph instead of being done.
#include "sim/driver/abi/functions.h"
#include "sim/driver/objects/graph.h"
#include "sim/driver/objects/stream.h"

#include <algorithm>

namespace tilewright::sim::abi {

namespace {

using Status = CUstreamCaptureStatus;

thread_local CUstreamCaptureMode thread_mode = CUstreamCaptureMode::kGlobal;

std::shared_ptr<Stream> find_created_stream(CUstream handle) {
  const std::shared_ptr<Stream> stream = find_stream(handle);
  // The legacy stream waits for others implicitly, so that its work belongs to no capture.
  expect(stream != stream->context.legacy_stream, CUresult::kStreamCaptureUnsupported);
  return stream;
}

void begin(Stream& stream, CUstreamCaptureMode mode, std::shared_ptr<Graph> graph) {
  expect(mode >= CUstreamCaptureMode::kGlobal && mode <= CUstreamCaptureMode::kRelaxed);
  expect(stream.current_capture() == nullptr, CUresult::kIllegalState);
  const auto capture = std::make_shared<Capture>();
  capture->is_graph_lent = graph != nullptr;
  capture->graph = graph != nullptr ? std::move(graph) : std::make_shared<Graph>();
  capture->id = Driver::get().next_id();
  capture->origin = &stream;
  capture->thread = std::this_thread::get_id();
  capture->mode = mode;
  stream.current_capture() = capture;
  stream.captured_after.clear();
}

/// Whether every node made by the streams that joined lies before what the origin does next.
bool is_joined(Stream& origin) {
  std::vector<const GraphNode*> reached(origin.captured_after.begin(), origin.captured_after.end());
  for (std::size_t i = 0; i < reached.size(); ++i) {
    for (const GraphNode* node : reached[i]->after) {
      if (std::find(reached.begin(), reached.end(), node) == reached.end()) reached.push_back(node);
    }
  }
  return origin.current_capture()->is_graph_lent ||
         reached.size() == origin.current_capture()->graph->nodes.size();
}

CUgraph handle_of(const Graph& graph) {
  return Registry<CUgraph, Graph>::handle_of(&graph);
}

struct CaptureInfo {
  Status* status = nullptr;
  std::uint64_t* id = nullptr;
  CUgraph* graph = nullptr;
  const CUgraphNode** dependencies = nullptr;
  const CUgraphEdgeData** edges = nullptr;
  size_t* num_dependencies = nullptr;
};

void inform(CUstream handle, const CaptureInfo& out) {
  expect(out.status != nullptr);
  const std::shared_ptr<Stream> stream = find_stream(handle);
  const std::lock_guard lock(stream->mutex);
  *out.status =
      stream->current_capture() == nullptr ? Status::kNone : stream->current_capture()->status;
  if (out.edges != nullptr) *out.edges = nullptr;
  if (*out.status != Status::kActive) return;
  if (out.id != nullptr) *out.id = stream->current_capture()->id;
  if (out.graph != nullptr) {
    *out.graph = Driver::get().graphs.add(stream->current_capture()->graph);
  }
  static_assert(sizeof(CUgraphNode) == sizeof(GraphNode*));
  if (out.dependencies != nullptr) {
    *out.dependencies = reinterpret_cast<const CUgraphNode*>(stream->captured_after.data());
  }
  if (out.num_dependencies != nullptr) *out.num_dependencies = stream->captured_after.size();
}

void update(CUstream handle, CUgraphNode* nodes, size_t count, unsigned flags) {
  const std::shared_ptr<Stream> stream = find_stream(handle);
  const std::lock_guard lock(stream->mutex);
  expect(stream->current_capture() != nullptr, CUresult::kIllegalState);
  expect(flags <= 1 && (count == 0 || nodes != nullptr));
  constexpr unsigned kSet =
      static_cast<unsigned>(CUstreamUpdateCaptureDependencies_flags::kSetCaptureDependencies);
  std::vector<GraphNode*> after;
  if (flags != kSet) after = stream->captured_after;
  for (size_t i = 0; i < count; ++i) {
    GraphNode* const node = Driver::get().graph_nodes.find(nodes[i], CUresult::kInvalidValue).get();
    if (std::find(after.begin(), after.end(), node) == after.end()) after.push_back(node);
  }
  stream->captured_after = std::move(after);
}

}  // namespace

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  return call([&] {
    expect(mode != nullptr);
    std::swap(*mode, thread_mode);
  });
}

CUresult cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode) {
  return call([&] {
    const std::shared_ptr<Stream> stream = find_created_stream(handle);
    const std::lock_guard lock(stream->mutex);
    begin(*stream, mode, nullptr);
  });
}

CUresult cuStreamBeginCapture(CUstream handle) {
  return cuStreamBeginCapture_v2(handle, CUstreamCaptureMode::kGlobal);
}

CUresult cuStreamBeginCaptureToGraph(CUstream handle, CUgraph graph, const CUgraphNode* nodes,
                                     const CUgraphEdgeData*, size_t count,
                                     CUstreamCaptureMode mode) {
  return call([&] {
    const std::shared_ptr<Stream> stream = find_created_stream(handle);
    const std::lock_guard lock(stream->mutex);
    expect(count == 0 || nodes != nullptr);
    std::vector<GraphNode*> after;
    for (size_t i = 0; i < count; ++i) {
      after.push_back(Driver::get().graph_nodes.find(nodes[i], CUresult::kInvalidValue).get());
    }
    begin(*stream, mode, Driver::get().graphs.find(graph, CUresult::kInvalidValue));
    stream->captured_after = std::move(after);
  });
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph* out) {
  return call([&] {
    expect(out != nullptr);
    *out = nullptr;
    const std::shared_ptr<Stream> stream = find_stream(handle);
    const std::lock_guard lock(stream->mutex);
    const std::shared_ptr<Capture> capture = stream->current_capture();
    expect(capture != nullptr, CUresult::kIllegalState);
    expect(capture->origin == stream.get(), CUresult::kStreamCaptureUnmatched);
    expect(capture->mode == CUstreamCaptureMode::kRelaxed ||
               capture->thread == std::this_thread::get_id(),
           CUresult::kStreamCaptureWrongThread);
    const bool is_whole = capture->status == Status::kActive;
    const bool has_no_loose_end = is_whole && is_joined(*stream);
    capture->is_over = true;
    if (!is_whole || !has_no_loose_end) {
      if (!capture->is_graph_lent) {
        Driver::get().graphs.take_if([&](const Graph& g) { return &g == capture->graph.get(); });
      }
      refuse(is_whole ? CUresult::kStreamCaptureUnjoined : CUresult::kStreamCaptureInvalidated);
    }
    *out = capture->is_graph_lent ? handle_of(*capture->graph)
                                  : Driver::get().graphs.add(capture->graph);
  });
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* out) {
  return call([&] { inform(handle, {.status = out}); });
}

CUresult cuStreamGetCaptureInfo(CUstream handle, CUstreamCaptureStatus* status, std::uint64_t* id) {
  return call([&] { inform(handle, {.status = status, .id = id}); });
}

CUresult cuStreamGetCaptureInfo_v2(CUstream handle, CUstreamCaptureStatus* status,
                                   std::uint64_t* id, CUgraph* graph,
                                   const CUgraphNode** dependencies, size_t* count) {
  return call([&] {
    inform(handle, {.status = status,
                    .id = id,
                    .graph = graph,
                    .dependencies = dependencies,
                    .num_dependencies = count});
  });
}

CUresult cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus* status,
                                   std::uint64_t* id, CUgraph* graph,
                                   const CUgraphNode** dependencies, const CUgraphEdgeData** edges,
                                   size_t* count) {
  return call([&] { inform(handle, {status, id, graph, dependencies, edges, count}); });
}

CUresult cuStreamUpdateCaptureDependencies(CUstream handle, CUgraphNode* nodes, size_t count,
                                           unsigned flags) {
  return call([&] { update(handle, nodes, count, flags); });
}

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream handle, CUgraphNode* nodes,
                                              const CUgraphEdgeData*, size_t count,
                                              unsigned flags) {
  return call([&] { update(handle, nodes, count, flags); });
}

}  // namespace tilewright::sim::abi
