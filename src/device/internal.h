// From public handles to what stands behind them, for Tilewright's own sources.
#pragma once

#include "tilewright/device.h"
#include "tilewright/stream.h"

#include "device/device.h"
#include "device/stream.h"

#include <type_traits>
#include <utility>

namespace tilewright {

/// A friend of the public classes that have one.
struct Internal {
  template <class Handle>
  static const auto& of(const Handle& handle) noexcept {
    return *handle.state_;
  }
};

template <class Handle>
using StateOf = std::remove_cvref_t<decltype(Internal::of(std::declval<const Handle&>()))>;

inline const device::Device& opened(const Device& device) noexcept {
  return Internal::of(device);
}

struct Stream::State {
  device::Stream stream;
};

struct Event::State {
  device::Event event;
};

inline const device::Stream& opened(const Stream& stream) noexcept {
  return Internal::of(stream).stream;
}

inline const device::Event& opened(const Event& event) noexcept {
  return Internal::of(event).event;
}

}  // namespace tilewright
