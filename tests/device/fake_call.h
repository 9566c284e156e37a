// How every function of the fake driver begins: log, lock, fail if a test asked for it, check that
// a context is current.
#pragma once

#include "fake_state.h"

#include <mutex>
#include <string>
#include <type_traits>

namespace tilewright::device::fake {

State& state();
/// The calling thread's stack of contexts; the current one is the last.
std::vector<abi::CUcontext>& contexts();

/// The number of a handle, which is a pointer or an address.
template <class Handle>
std::uint64_t number_of(Handle handle) {
  if constexpr (std::is_pointer_v<Handle>)
    return reinterpret_cast<std::uint64_t>(handle);
  else
    return handle;
}

enum class Needs { kNothing, kInit, kContext };

class Call {
 public:
  explicit Call(const char* function, Needs needs = Needs::kContext)
      : lock_(state().mutex), function_(function) {
    State& s = state();
    s.calls.emplace_back(function);
    if (is_to_fail(s)) {
      ++s.failures_delivered;
      result_ = s.failing_result;
      is_injected_ = true;
    } else if (needs != Needs::kNothing && !s.is_initialized) {
      result_ = misuse(abi::CUresult::kNotInitialized, "before cuInit");
    } else if (needs == Needs::kContext && (contexts().empty() || !contexts().back())) {
      result_ = misuse(abi::CUresult::kInvalidContext, "without a current context");
    }
  }

  bool is_failed() const { return result_ != abi::CUresult::kSuccess; }
  abi::CUresult result() const { return result_; }

  /// The call is wrong in a way that no correct program shows.
  abi::CUresult misuse(abi::CUresult result, const std::string& what) {
    state().violations.push_back(std::string(function_) + " " + what);
    return result;
  }

  /// The object behind a handle, which must be of this kind and of the current context.
  template <class Handle>
  Object* find(Handle handle, const std::string& kind) {
    const auto found = state().objects.find(number_of(handle));
    if (found == state().objects.end() || found->second.kind != kind) {
      misuse(abi::CUresult::kInvalidHandle, "with a handle that is no live " + kind);
      return nullptr;
    }
    if (found->second.context != contexts().back()) {
      misuse(abi::CUresult::kInvalidContext, "with a " + kind + " of another context");
      return nullptr;
    }
    return &found->second;
  }

  /// A new handle for the object.
  template <class Handle>
  Handle add(Object object) {
    object.context = contexts().empty() ? nullptr : contexts().back();
    const std::uint64_t handle = state().next_handle += 0x10;
    state().objects[handle] = std::move(object);
    return reinterpret_cast<Handle>(handle);
  }

  /// Gives a handle back. A test's failure is reported after the fact: what a caller can do about a
  /// release that failed is nothing, so it must not count as a leak.
  template <class Handle>
  abi::CUresult release(Handle handle, const std::string& kind) {
    if (is_failed() && !is_injected_) return result_;
    if (find(handle, kind) == nullptr) return abi::CUresult::kInvalidHandle;
    state().objects.erase(number_of(handle));
    return result_;
  }

 private:
  bool is_to_fail(State& s) {
    if (s.failing_function == function_) {
      s.failing_function.clear();
      return true;
    }
    if (!s.calls_until_failure) return false;
    if ((*s.calls_until_failure)-- > 0) return false;
    s.calls_until_failure.reset();
    return true;
  }

  std::lock_guard<std::recursive_mutex> lock_;
  const char* function_;
  abi::CUresult result_ = abi::CUresult::kSuccess;
  bool is_injected_ = false;
};

/// Runs the work now, or records it if the stream is being captured, as a launch of `kernel` if it
/// is one. The default stream runs it.
abi::CUresult enqueue(Call& call, abi::CUstream stream, std::function<void()> work,
                      const std::string& kernel = "");

/// Whether this thread captures a stream, which forbids the call; it then breaks the capture.
bool breaks_capture();
/// The stream that the calling thread captures; null if none.
abi::CUstream& captured_stream();

}  // namespace tilewright::device::fake
