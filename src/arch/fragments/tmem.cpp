#include "arch/fragments/tmem.h"

#include "base/error.h"

namespace tilewright::arch::law {

void a_in_tmem_is_not_described_for_ws(int m) {
  fail(ErrorKind::kUnsupported,
       "tmem_a: A in Tensor Memory for .ws with M = {} is not described by the PTX manual; use M = "
       "64 or 128 without "
       ".ws, or a pair of CTAs",
       m);
}

}  // namespace tilewright::arch::law
