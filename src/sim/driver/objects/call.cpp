#include "sim/driver/objects/call.h"

#include "base/error.h"
#include "sim/driver/objects/state.h"

#include <cstdio>
#include <new>
#include <string>

namespace tilewright::sim {

namespace {

CUresult result_of(ErrorKind kind) noexcept {
  switch (kind) {
    case ErrorKind::kInvalidArgument:
      return CUresult::kInvalidValue;
    case ErrorKind::kUnsupported:
      return CUresult::kNotSupported;
    case ErrorKind::kOutOfMemory:
      return CUresult::kOutOfMemory;
    case ErrorKind::kParseError:
      return CUresult::kInvalidPtx;
    case ErrorKind::kDeviceError:
    case ErrorKind::kCheckFailed:
      return CUresult::kLaunchFailed;
    case ErrorKind::kInternal:
      break;
  }
  return CUresult::kUnknown;
}

}  // namespace

void refuse(CUresult result) {
  throw Failure{result};
}

void say(std::string_view text) noexcept {
  const bool has_prefix = text.starts_with("sim: ");
  const bool has_end = text.ends_with('\n');
  std::fprintf(stderr, "%s%.*s%s", has_prefix ? "" : "sim: ", static_cast<int>(text.size()),
               text.data(), has_end ? "" : "\n");
}

CUresult result_of_exception() noexcept {
  try {
    throw;
  } catch (const Failure& failure) {
    return failure.result;
  } catch (const Error& error) {
    // Running out of memory is an answer that programs expect and act on.
    if (error.kind() != ErrorKind::kOutOfMemory) say(error.what());
    return result_of(error.kind());
  } catch (const std::bad_alloc&) {
    return CUresult::kOutOfMemory;
  } catch (const std::exception& error) {
    say(error.what());
    return CUresult::kUnknown;
  } catch (...) {
    return CUresult::kUnknown;
  }
}

void require_initialized() {
  const Driver& driver = Driver::get();
  expect(!driver.is_closed(), CUresult::kDeinitialized);
  expect(driver.is_initialized(), CUresult::kNotInitialized);
}

}  // namespace tilewright::sim
