// How every function of the runtime begins and ends: what went wrong inside becomes a cudaError,
// which is also the calling thread's last error.
#pragma once

#include "sim/driver/abi/functions.h"
#include "sim/runtime/abi.h"

#include <string_view>

namespace tilewright::sim::runtime {

/// Thrown inside a call to make it return this error.
struct Failure {
  cudaError error;
};

[[noreturn]] void refuse(cudaError error);

inline void expect(bool condition, cudaError error = cudaError::kInvalidValue) {
  if (!condition) refuse(error);
}

/// The codes of the driver that the runtime knows are the runtime's too.
inline cudaError error_of(CUresult result) noexcept {
  return static_cast<cudaError>(result);
}

/// Fails with the runtime's error unless the driver's call succeeded.
inline void check(CUresult result) {
  if (result != CUresult::kSuccess) refuse(error_of(result));
}

/// "sim: text" on standard error, for what an error code cannot say.
void say(std::string_view text) noexcept;

/// The error that stands for the exception being handled.
cudaError error_of_exception() noexcept;

/// Makes it the thread's last error unless it is success; returns it.
cudaError remember(cudaError error) noexcept;

/// Success unless the body throws.
template <class Body>
cudaError answer(Body&& body) noexcept {
  try {
    body();
    return cudaError::kSuccess;
  } catch (...) {
    return remember(error_of_exception());
  }
}

/// The driver is initialised once; the error is that of cuInit.
void require_driver();

/// The calling thread has a context: the one that is current, else its device's primary one.
void require_context();

/// The device of the current context, else the one that the thread chose.
int current_device();

/// As answer(), for what needs the driver but no context.
template <class Body>
cudaError with_driver(Body&& body) noexcept {
  return answer([&] {
    require_driver();
    body();
  });
}

/// As answer(), for everything else.
template <class Body>
cudaError in_context(Body&& body) noexcept {
  return answer([&] {
    require_context();
    body();
  });
}

inline CUdeviceptr address_of(const void* pointer) noexcept {
  return reinterpret_cast<CUdeviceptr>(pointer);
}

}  // namespace tilewright::sim::runtime
