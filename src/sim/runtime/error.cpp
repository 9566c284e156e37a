// Errors: their names and texts, and the last one of each thread.
#include "sim/runtime/answer.h"

#include <cstdio>
#include <exception>
#include <new>

namespace tilewright::sim::runtime {

namespace {

thread_local cudaError last_error = cudaError::kSuccess;

/// Whether the error means that the context is broken: such an error stays.
bool is_sticky(cudaError error) noexcept {
  switch (error) {
    case cudaError::kECCUncorrectable:
    case cudaError::kNvlinkUncorrectable:
    case cudaError::kIllegalAddress:
    case cudaError::kLaunchTimeout:
    case cudaError::kAssert:
    case cudaError::kHardwareStackError:
    case cudaError::kIllegalInstruction:
    case cudaError::kMisalignedAddress:
    case cudaError::kInvalidAddressSpace:
    case cudaError::kInvalidPc:
    case cudaError::kLaunchFailure:
    case cudaError::kTensorMemoryLeak:
      return true;
    default:
      return false;
  }
}

struct Words {
  const char* name = "unrecognized error code";
  const char* text = "unrecognized error code";
};

Words words_of(cudaError error) noexcept {
  switch (error) {
#define TILEWRIGHT_CASE(ours, theirs, value, text) \
  case cudaError::ours:                            \
    return {#theirs, text};
    TILEWRIGHT_SIM_RUNTIME_ERRORS(TILEWRIGHT_CASE)
#undef TILEWRIGHT_CASE
  }
  return {};
}

}  // namespace

void refuse(cudaError error) {
  throw Failure{error};
}

void say(std::string_view text) noexcept {
  std::fprintf(stderr, "sim: %.*s\n", static_cast<int>(text.size()), text.data());
}

cudaError error_of_exception() noexcept {
  try {
    throw;
  } catch (const Failure& failure) {
    return failure.error;
  } catch (const std::bad_alloc&) {
    return cudaError::kMemoryAllocation;
  } catch (...) {
    return cudaError::kUnknown;
  }
}

cudaError remember(cudaError error) noexcept {
  if (error != cudaError::kSuccess && error != cudaError::kNotReady) last_error = error;
  return error;
}

void forget_last_error() noexcept {
  last_error = cudaError::kSuccess;
}

extern "C" {

cudaError cudaGetLastError() {
  const cudaError error = last_error;
  if (!is_sticky(error)) last_error = cudaError::kSuccess;
  return error;
}

cudaError cudaPeekAtLastError() {
  return last_error;
}

const char* cudaGetErrorName(cudaError error) {
  return words_of(error).name;
}

const char* cudaGetErrorString(cudaError error) {
  return words_of(error).text;
}

}  // extern "C"

}  // namespace tilewright::sim::runtime
