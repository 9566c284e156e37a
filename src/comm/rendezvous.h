// How processes find each other, and find out that one of them has died.
#pragma once

#include "comm/launcher.h"

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::comm {

/// Rank 0 listens, every other rank connects, and the connections stay. What goes over them is a
/// few bytes at the start; afterwards a connection that ends is how a rank's death is noticed.
///
/// Thread   one at a time
class Rendezvous {
 public:
  /// Waits until all ranks are there.
  /// Errors   InvalidArgument if they do not agree on how many they are, or two have one rank;
  ///          DeviceError if the address cannot be used, or not all come in time
  explicit Rendezvous(const Launch& launch,
                      std::chrono::milliseconds timeout = std::chrono::minutes(5));
  ~Rendezvous();  ///< as leave()
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  int rank() const noexcept;
  int size() const noexcept;

  /// The bytes of rank 0, which are as many on all ranks.
  /// Errors   DeviceError if a rank has failed or does not come in time
  void share(std::vector<std::byte>& bytes);
  /// Returns when all ranks have called it. Errors as share().
  void barrier();
  /// Looks at the connections, without waiting. "" as long as all is well, else a sentence: "rank 2
  /// of 4 failed: ...", "rank 2 of 4 has ended without a word".
  std::string failure();
  /// A rank that has said goodbye, of those that this one is connected with, as a name: "rank 2 of
  /// 4"; "" if there is none. Also looks at the connections.
  std::string left();
  /// Says goodbye, unless an exception is on its way: a rank that is done has not died.
  void leave() noexcept;
  /// Tells all ranks that this one has failed and why.
  void tell_failure(std::string_view reason) noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tilewright::comm
