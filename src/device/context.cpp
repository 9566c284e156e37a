#include "device/context.h"

namespace tilewright::device {

using abi::CUcontext;
using abi::CUresult;

CurrentContext::CurrentContext(const Driver& driver, CUcontext context) : driver_(driver) {
  enter(context);
  driver.check(result_, function_);
}

CurrentContext::CurrentContext(const Driver& driver, CUcontext context, std::nothrow_t) noexcept
    : driver_(driver) {
  enter(context);
  driver.note_release(result_, function_);
}

CurrentContext::~CurrentContext() {
  if (!is_pushed_) return;
  CUcontext popped = nullptr;
  driver_.note_release(driver_.cu.ctx_pop_current(&popped), "cuCtxPopCurrent");
}

void CurrentContext::enter(CUcontext context) noexcept {
  CUcontext current = nullptr;
  function_ = "cuCtxGetCurrent";
  result_ = driver_.cu.ctx_get_current(&current);
  if (result_ != CUresult::kSuccess || current == context) return;
  function_ = "cuCtxPushCurrent";
  result_ = driver_.cu.ctx_push_current(context);
  is_pushed_ = result_ == CUresult::kSuccess;
}

}  // namespace tilewright::device
