#include "sim/driver/abi/functions.h"
#include "sim/driver/objects/state.h"

namespace tilewright::sim::abi {

CUresult cuGetErrorName(CUresult error, const char** name) {
  if (name == nullptr) return CUresult::kInvalidValue;
  switch (error) {
#define TILEWRIGHT_CASE(ours, theirs, value, text) \
  case CUresult::ours:                             \
    *name = #theirs;                               \
    return CUresult::kSuccess;
    TILEWRIGHT_SIM_RESULTS(TILEWRIGHT_CASE)
#undef TILEWRIGHT_CASE
  }
  *name = nullptr;
  return CUresult::kInvalidValue;
}

CUresult cuGetErrorString(CUresult error, const char** text) {
  if (text == nullptr) return CUresult::kInvalidValue;
  switch (error) {
#define TILEWRIGHT_CASE(ours, theirs, value, words) \
  case CUresult::ours:                              \
    *text = words;                                  \
    return CUresult::kSuccess;
    TILEWRIGHT_SIM_RESULTS(TILEWRIGHT_CASE)
#undef TILEWRIGHT_CASE
  }
  *text = nullptr;
  return CUresult::kInvalidValue;
}

}  // namespace tilewright::sim::abi
