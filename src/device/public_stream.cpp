// The public face of this module: streams, events and graphs.
#include "tilewright/graph.h"
#include "tilewright/stream.h"

#include "device/graph.h"
#include "device/internal.h"

#include <utility>

namespace tilewright {

Stream::Stream(const Device& device) : state_(new State{device::Stream(opened(device))}) {}
Stream::~Stream() = default;
Stream::Stream(Stream&& other) noexcept = default;
Stream& Stream::operator=(Stream&& other) noexcept = default;

void* Stream::handle() const noexcept {
  return state_->stream.handle();
}
void Stream::synchronize() const {
  state_->stream.synchronize();
}
bool Stream::is_idle() const {
  return state_->stream.is_idle();
}
void Stream::wait_for(const Event& event) const {
  state_->stream.wait_for(opened(event));
}

Event::Event(const Device& device) : state_(new State{device::Event(opened(device))}) {}
Event::~Event() = default;
Event::Event(Event&& other) noexcept = default;
Event& Event::operator=(Event&& other) noexcept = default;

void* Event::handle() const noexcept {
  return state_->event.handle();
}
void Event::record(const Stream& stream) const {
  state_->event.record(opened(stream));
}
void Event::synchronize() const {
  state_->event.synchronize();
}
bool Event::is_reached() const {
  return state_->event.is_reached();
}

double elapsed_us(const Event& begin, const Event& end) {
  return 1e3 * static_cast<double>(device::elapsed_ms(opened(begin), opened(end)));
}

double StreamTimer::time_us(const Stream& stream, const std::function<void()>& enqueue) const {
  begin_.record(stream);
  enqueue();
  end_.record(stream);
  end_.synchronize();
  return elapsed_us(begin_, end_);
}

struct Graph::State {
  device::Graph graph;
};

Graph::Graph(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Graph::~Graph() = default;
Graph::Graph(Graph&& other) noexcept = default;
Graph& Graph::operator=(Graph&& other) noexcept = default;

Graph Graph::capture(const Stream& stream, const std::function<void()>& record) {
  return Graph(std::make_unique<State>(State{device::Graph::capture(opened(stream), record)}));
}

void Graph::launch(const Stream& stream) const {
  state_->graph.launch(opened(stream));
}

std::vector<std::string> Graph::nodes() const {
  return state_->graph.nodes();
}

}  // namespace tilewright
