#include "comm/rendezvous.h"

#include "base/error.h"
#include "comm/socket.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <exception>
#include <utility>

#include <fmt/format.h>

namespace tilewright::comm {

namespace {

constexpr std::chrono::milliseconds kStrangerTime(2000);

std::string hello_of(const Launch& launch) {
  return fmt::format("{} {}", launch.rank, launch.size);
}

bool parse_hello(const Message& message, int& rank, int& size) {
  return message.kind == MessageKind::kHello &&
         std::sscanf(message.body.c_str(), "%d %d", &rank, &size) == 2;
}

// A reason becomes part of one line.
std::string one_line(std::string_view text) {
  std::string line(text.substr(0, 2000));
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

}  // namespace

struct Rendezvous::State {
  // The connection to a rank: rank 0 has one to every other rank, these have one to rank 0.
  struct Peer {
    int rank = 0;
    Socket socket = {};
    std::deque<Message> inbox = {};
    bool has_left = false;
    std::chrono::steady_clock::time_point left_at = {};
  };

  Launch launch;
  std::chrono::milliseconds timeout{};
  std::vector<Peer> peers;
  std::string failure;
  bool has_said_goodbye = false;

  Deadline deadline() const { return std::chrono::steady_clock::now() + timeout; }
  std::string name(int rank) const { return fmt::format("rank {} of {}", rank, launch.size); }

  void gather_ranks();
  void welcome(Socket socket);
  void connect_to_rank_0();
  void note_failure(std::string text);
  void take(Peer& peer, Message message);
  bool read(Peer& peer, Deadline until);
  static bool has_gone(const Peer& peer);
  Message expect(Peer& peer, MessageKind kind);
  void send(Peer& peer, const Message& message);
  void look();
};

void Rendezvous::State::welcome(Socket socket) {
  Message message;
  int rank = 0, size = 0;
  const Deadline soon = std::chrono::steady_clock::now() + kStrangerTime;
  if (socket.receive(message, soon) != Socket::Received::kMessage ||
      !parse_hello(message, rank, size))
    return;  // not one of ours
  std::string problem;
  if (size != launch.size)
    problem = fmt::format(
        "rank {} was started as one of {} ranks, rank 0 as one of {}; start all "
        "with the same number",
        rank, size, launch.size);
  else if (rank < 1 || rank >= size ||
           std::any_of(peers.begin(), peers.end(), [&](const Peer& p) { return p.rank == rank; }))
    problem = fmt::format("two processes are rank {} of {}; every process needs a rank of its own",
                          rank, size);
  if (problem.empty()) {
    peers.push_back({.rank = rank, .socket = std::move(socket)});
    return;
  }
  socket.send({MessageKind::kRefusal, problem});
  note_failure(problem);  // those that wait for their welcome get this instead
  fail(ErrorKind::kInvalidArgument, "ranks: {}", problem);
}

void Rendezvous::State::gather_ranks() {
  const Socket listening = Socket::listen(launch.host, launch.port);
  const Deadline until = deadline();
  while (static_cast<int>(peers.size()) + 1 < launch.size) {
    Socket socket = listening.accept(until);
    if (socket.is_open()) welcome(std::move(socket));
    if (std::chrono::steady_clock::now() < until) continue;
    const std::string problem = fmt::format(
        "{} of {} ranks came to {}:{} within {:g} s; start all of them, with the same address",
        peers.size() + 1, launch.size, launch.host, launch.port,
        std::chrono::duration<double>(timeout).count());
    note_failure(problem);
    fail(ErrorKind::kDeviceError, "ranks: {}", problem);
  }
  std::sort(peers.begin(), peers.end(),
            [](const Peer& a, const Peer& b) { return a.rank < b.rank; });
  for (Peer& peer : peers) send(peer, {MessageKind::kWelcome, {}});
}

void Rendezvous::State::connect_to_rank_0() {
  peers.push_back({.rank = 0, .socket = Socket::connect(launch.host, launch.port, deadline())});
  Peer& rank_0 = peers.back();
  require(
      rank_0.socket.is_open(), ErrorKind::kDeviceError,
      "ranks: {} cannot reach rank 0 at {}:{}; nobody listens there after {:g} s. Start rank 0, "
      "or correct the address",
      name(launch.rank), launch.host, launch.port, std::chrono::duration<double>(timeout).count());
  send(rank_0, {MessageKind::kHello, hello_of(launch)});
  expect(rank_0, MessageKind::kWelcome);
}

// Rank 0 tells everybody; the others know it from rank 0, or tell rank 0.
void Rendezvous::State::note_failure(std::string text) {
  if (!failure.empty()) return;
  failure = one_line(text);
  if (launch.rank != 0) return;
  for (const Peer& peer : peers)
    if (peer.socket.is_open()) peer.socket.send({MessageKind::kFailure, failure});
}

void Rendezvous::State::take(Peer& peer, Message message) {
  if (message.kind == MessageKind::kFailure)
    note_failure(std::move(message.body));
  else if (message.kind == MessageKind::kGoodbye)
    peer.has_left = true, peer.left_at = std::chrono::steady_clock::now();
  else
    peer.inbox.push_back(std::move(message));
}

// Takes one message if there is one by then.
bool Rendezvous::State::read(Peer& peer, Deadline until) {
  if (!peer.socket.is_open()) return false;
  Message message;
  switch (peer.socket.receive(message, until)) {
    case Socket::Received::kMessage:
      take(peer, std::move(message));
      return true;
    case Socket::Received::kNothing:
      return false;
    case Socket::Received::kEnd:
      peer.socket.close();
      if (!peer.has_left) note_failure(name(peer.rank) + " has ended without a word");
      return false;
  }
  return false;
}

// One that has said goodbye may be on its way to a last barrier, before it frees what others read.
bool Rendezvous::State::has_gone(const Peer& peer) {
  constexpr std::chrono::seconds kLastBarrier(2);
  return peer.has_left &&
         (!peer.socket.is_open() || std::chrono::steady_clock::now() - peer.left_at > kLastBarrier);
}

Message Rendezvous::State::expect(Peer& peer, MessageKind kind) {
  const Deadline until = deadline();
  while (true) {
    require(failure.empty(), ErrorKind::kDeviceError, "ranks: {}", failure);
    if (!peer.inbox.empty()) {
      Message message = std::move(peer.inbox.front());
      peer.inbox.pop_front();
      require(message.kind != MessageKind::kRefusal, ErrorKind::kInvalidArgument, "ranks: {}",
              message.body);
      if (message.kind == kind) return message;
      note_failure(
          fmt::format("{} does something else than {}; all ranks have to make the same "
                      "calls",
                      name(peer.rank), name(launch.rank)));
      continue;
    }
    if (has_gone(peer))
      note_failure(
          fmt::format("{} has ended, and {} waits for it", name(peer.rank), name(launch.rank)));
    else if (std::chrono::steady_clock::now() >= until)
      note_failure(fmt::format("{} has waited {:g} s for {}", name(launch.rank),
                               std::chrono::duration<double>(timeout).count(), name(peer.rank)));
    else if (!read(peer, std::min(until, std::chrono::steady_clock::now() +
                                             std::chrono::milliseconds(50))))
      look();  // another one may have failed meanwhile
  }
}

void Rendezvous::State::send(Peer& peer, const Message& message) {
  if (peer.socket.is_open() && peer.socket.send(message)) return;
  look();  // it may have said why
  if (!peer.has_left) note_failure(name(peer.rank) + " has ended without a word");
  note_failure(fmt::format("{} has ended, and {} sends to it", name(peer.rank), name(launch.rank)));
  fail(ErrorKind::kDeviceError, "ranks: {}", failure);
}

void Rendezvous::State::look() {
  for (Peer& peer : peers)
    while (read(peer, std::chrono::steady_clock::now())) {
    }
}

Rendezvous::Rendezvous(const Launch& launch, std::chrono::milliseconds timeout)
    : state_(std::make_unique<State>()) {
  require(launch.size >= 1 && launch.rank >= 0 && launch.rank < launch.size,
          ErrorKind::kInvalidArgument, "ranks: rank {} of {}; expected a rank from 0 to {}",
          launch.rank, launch.size, launch.size - 1);
  state_->launch = launch;
  state_->timeout = timeout;
  if (launch.size == 1) return;
  if (launch.rank == 0)
    state_->gather_ranks();
  else
    state_->connect_to_rank_0();
}

Rendezvous::~Rendezvous() {
  leave();
}

void Rendezvous::leave() noexcept {
  if (std::uncaught_exceptions() > 0) return;  // an error ends this rank: that is no goodbye
  if (std::exchange(state_->has_said_goodbye, true)) return;
  for (const State::Peer& peer : state_->peers)
    if (peer.socket.is_open()) peer.socket.send({MessageKind::kGoodbye, {}});
}

int Rendezvous::rank() const noexcept {
  return state_->launch.rank;
}

int Rendezvous::size() const noexcept {
  return state_->launch.size;
}

void Rendezvous::share(std::vector<std::byte>& bytes) {
  if (rank() == 0) {
    const std::string body(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    for (State::Peer& peer : state_->peers) state_->send(peer, {MessageKind::kShare, body});
    return;
  }
  const Message message = state_->expect(state_->peers[0], MessageKind::kShare);
  require(message.body.size() == bytes.size(), ErrorKind::kInvalidArgument,
          "ranks: rank 0 shares {} bytes, rank {} expects {}; run the same version on all ranks",
          message.body.size(), rank(), bytes.size());
  if (!bytes.empty()) std::memcpy(bytes.data(), message.body.data(), bytes.size());
}

void Rendezvous::barrier() {
  const Message here = {MessageKind::kBarrier, {}};
  if (rank() == 0) {
    for (State::Peer& peer : state_->peers) state_->expect(peer, MessageKind::kBarrier);
    for (State::Peer& peer : state_->peers) state_->send(peer, here);
  } else {
    state_->send(state_->peers[0], here);
    state_->expect(state_->peers[0], MessageKind::kBarrier);
  }
}

std::string Rendezvous::failure() {
  state_->look();
  return state_->failure;
}

std::string Rendezvous::left() {
  state_->look();
  for (const State::Peer& peer : state_->peers)
    if (peer.has_left) return state_->name(peer.rank);
  return "";
}

void Rendezvous::tell_failure(std::string_view reason) noexcept {
  const std::string text = fmt::format("{} failed: {}", state_->name(rank()), one_line(reason));
  state_->note_failure(text);
  if (rank() == 0) return;
  for (const State::Peer& peer : state_->peers)
    if (peer.socket.is_open()) peer.socket.send({MessageKind::kFailure, text});
}

}  // namespace tilewright::comm
