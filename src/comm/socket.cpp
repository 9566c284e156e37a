#include "comm/socket.h"

#include "base/error.h"
#include "base/quote.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tilewright::comm {

namespace {

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

// What is sent before the body. The mark keeps strangers out who happen to find the port.
struct Header {
  std::uint32_t mark, kind, body_bytes;
};
constexpr std::uint32_t kMark = 0x314b5754;  // "TWK1"
constexpr std::uint32_t kMostBytes = 1 << 16;

Addresses resolve(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  require(error == 0, ErrorKind::kDeviceError,
          "ranks: the host {}, where rank 0 listens, is not known ({}); correct MASTER_ADDR or "
          "TILEWRIGHT_RENDEZVOUS",
          quote(host), ::gai_strerror(error));
  return {found, ::freeaddrinfo};
}

Socket open_for(const addrinfo& address) {
  return Socket(
      ::socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC, address.ai_protocol));
}

int milliseconds_until(Deadline deadline) {
  using std::chrono::milliseconds;
  const auto left =
      std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1 << 30));
}

}  // namespace

void Socket::close() noexcept {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

Socket Socket::listen(const std::string& host, int port) {
  int error = 0;
  const Addresses addresses = resolve(host, port);
  for (const addrinfo* at = addresses.get(); at != nullptr; at = at->ai_next) {
    Socket socket = open_for(*at);
    const int yes = 1;
    ::setsockopt(socket.descriptor_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (::bind(socket.descriptor_, at->ai_addr, at->ai_addrlen) == 0 &&
        ::listen(socket.descriptor_, SOMAXCONN) == 0)
      return socket;
    error = errno;
  }
  fail(ErrorKind::kDeviceError,
       "ranks: rank 0 cannot listen at {}:{} ({}); choose a free port of this host with "
       "TILEWRIGHT_RENDEZVOUS=HOST:PORT, the same for all ranks",
       host, port, std::strerror(error));
}

Socket Socket::connect(const std::string& host, int port, Deadline deadline) {
  const Addresses addresses = resolve(host, port);
  while (true) {
    for (const addrinfo* at = addresses.get(); at != nullptr; at = at->ai_next) {
      Socket socket = open_for(*at);
      if (::connect(socket.descriptor_, at->ai_addr, at->ai_addrlen) == 0) return socket;
    }
    constexpr std::chrono::milliseconds kPause(20);  // rank 0 may come later
    if (std::chrono::steady_clock::now() + kPause > deadline) return {};
    std::this_thread::sleep_for(kPause);
  }
}

Socket Socket::accept(Deadline deadline) const {
  if (!is_readable(deadline)) return {};
  return Socket(::accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC));
}

bool Socket::send(const Message& message) const noexcept {
  const Header header = {kMark, static_cast<std::uint32_t>(message.kind),
                         static_cast<std::uint32_t>(message.body.size())};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  bytes += message.body;
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t sent =
        ::send(descriptor_, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    done += static_cast<std::size_t>(sent);
  }
  return true;
}

bool Socket::is_readable(Deadline deadline) const noexcept {
  while (true) {
    pollfd entry = {descriptor_, POLLIN, 0};
    const int ready = ::poll(&entry, 1, milliseconds_until(deadline));
    if (ready < 0 && errno == EINTR) continue;
    return ready > 0;
  }
}

Socket::Received Socket::receive_bytes(char* to, std::size_t count,
                                       Deadline deadline) const noexcept {
  while (count > 0) {
    if (!is_readable(deadline)) return Received::kNothing;
    const ssize_t got = ::recv(descriptor_, to, count, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Received::kEnd;
    to += got;
    count -= static_cast<std::size_t>(got);
  }
  return Received::kMessage;
}

Socket::Received Socket::receive(Message& message, Deadline deadline) const noexcept {
  if (!is_readable(deadline)) return Received::kNothing;
  // Begun, a message comes as a whole, soon.
  const Deadline soon =
      std::max(deadline, std::chrono::steady_clock::now() + std::chrono::seconds(10));
  Header header{};
  if (receive_bytes(reinterpret_cast<char*>(&header), sizeof header, soon) != Received::kMessage ||
      header.mark != kMark || header.body_bytes > kMostBytes ||
      header.kind > static_cast<std::uint32_t>(MessageKind::kGoodbye))
    return Received::kEnd;
  message.kind = static_cast<MessageKind>(header.kind);
  message.body.assign(header.body_bytes, '\0');
  return receive_bytes(message.body.data(), message.body.size(), soon) == Received::kMessage
             ? Received::kMessage
             : Received::kEnd;
}

}  // namespace tilewright::comm
