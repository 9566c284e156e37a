// Whether ranks that run one program each do the same, before they compute together.
#pragma once

#include "tilewright/buffer.h"
#include "tilewright/device.h"
#include "tilewright/stream.h"

#include "comm/communicator.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tilewright::model {

/// What a rank was told, as 64 bits (FNV-1a) that hang on all of it and on its order.
class Told {
 public:
  template <class T>
  void add(const T& value) {
    static_assert(std::has_unique_object_representations_v<T> || std::is_same_v<T, double>);
    add_bytes(std::as_bytes(std::span(&value, 1)));
  }
  template <class T>
  void add(const std::vector<T>& values) {
    add(values.size());
    add_bytes(std::as_bytes(std::span(values)));
  }
  std::uint64_t hash() const noexcept { return hash_; }

 private:
  void add_bytes(std::span<const std::byte> bytes) noexcept;

  std::uint64_t hash_ = 14695981039346656037U;
};

/// The ranks of a communicator, each with requests of its own program. Between two steps of the
/// model all of them meet: they compare how many requests they were given, and which, and learn
/// which requests another rank cancels. A step of ranks that differ would take other tokens on each
/// of them, or wait for ever.
///
/// A meeting is an exchange of 128 bytes of each rank, on a stream of its own.
///
/// Thread   one at a time
class Agreement {
 public:
  Agreement(const Device& device, std::shared_ptr<comm::Communicator> comm);
  /// This rank leaves: a step in which the others wait for it ends with a sentence.
  ~Agreement();
  Agreement(const Agreement&) = delete;
  Agreement& operator=(const Agreement&) = delete;

  /// Numbers of requests that some rank cancels, each once and in order: `own`, and those of
  /// others. `requests` and `told`: how many this rank was given so far, and what.
  /// Errors   InvalidArgument, on all ranks in the same words, if they were given different ones
  ///          (so none is told: it could hear that another failed first); DeviceError if a rank has
  ///          failed or does not come, or what fails here, of which the others are told
  std::vector<std::int64_t> meet(std::int64_t requests, const Told& told,
                                 std::span<const std::int64_t> own);
  /// Tells the other ranks that this one has failed and why.
  void tell_failure(std::string_view reason) noexcept { comm_->tell_failure(reason); }

 private:
  struct Brought;  // what a rank brings to a meeting
  static void require_the_same(const std::vector<Brought>& ranks);
  std::vector<Brought> exchange(const Brought& own);

  std::shared_ptr<comm::Communicator> comm_;
  Stream stream_;
  Buffer own_, all_;
};

}  // namespace tilewright::model
