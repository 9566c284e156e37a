// How every function of the driver begins and ends: what went wrong inside becomes a CUresult.
#pragma once

#include "sim/driver/abi/abi.h"

#include <string>
#include <string_view>

namespace tilewright::sim {

using abi::CUresult;

/// Thrown inside a call to make it return this result.
struct Failure {
  CUresult result;
};

[[noreturn]] void refuse(CUresult result);

/// refuse() unless the condition holds.
inline void expect(bool condition, CUresult result = CUresult::kInvalidValue) {
  if (!condition) refuse(result);
}

/// "sim: text" on standard error: the one place where the driver speaks to people. A CUresult
/// alone cannot say what to do.
void say(std::string_view text) noexcept;

/// While it is quiet, say() and what the machines report keep their text for take_messages().
void be_quiet(bool quiet) noexcept;
bool is_quiet() noexcept;
/// Whether the text was kept, so that it is not to be printed.
bool keep_message(std::string_view text);
std::string take_messages();

/// The result that stands for the exception being handled. Errors of the simulator are said.
CUresult result_of_exception() noexcept;

/// Runs the body; success unless it throws.
template <class Body>
CUresult answer(Body&& body) noexcept {
  try {
    body();
    return CUresult::kSuccess;
  } catch (...) {
    return result_of_exception();
  }
}

void require_initialized();

/// As answer(), for everything that needs cuInit.
template <class Body>
CUresult call(Body&& body) noexcept {
  return answer([&] {
    require_initialized();
    body();
  });
}

}  // namespace tilewright::sim
