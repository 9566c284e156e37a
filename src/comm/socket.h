// TCP connections with whole messages, for Rendezvous.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tilewright::comm {

using Deadline = std::chrono::steady_clock::time_point;

enum class MessageKind : std::uint8_t {
  kHello,
  kWelcome,
  kRefusal,
  kShare,
  kBarrier,
  kFailure,
  kGoodbye
};

struct Message {
  MessageKind kind = MessageKind::kHello;
  std::string body;
};

/// A file descriptor of a socket, closed with the object. Move-only.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) noexcept : descriptor_(descriptor) {}
  ~Socket() { close(); }
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }

  bool is_open() const noexcept { return descriptor_ >= 0; }
  void close() noexcept;

  /// Errors   DeviceError: the host is not known, the address cannot be used
  static Socket listen(const std::string& host, int port);
  /// Tries until the deadline. Not open if nobody listens there by then.
  /// Errors   DeviceError: the host is not known
  static Socket connect(const std::string& host, int port, Deadline deadline);
  /// Not open if nobody comes by then.
  Socket accept(Deadline deadline) const;

  /// False if the other end is gone.
  bool send(const Message& message) const noexcept;
  enum class Received { kMessage, kNothing, kEnd };
  /// The next message, by then. kEnd: the other end is gone, or sends what is none.
  Received receive(Message& message, Deadline deadline) const noexcept;

 private:
  bool is_readable(Deadline deadline) const noexcept;
  Received receive_bytes(char* to, std::size_t count, Deadline deadline) const noexcept;

  int descriptor_ = -1;
};

}  // namespace tilewright::comm
