// Between the public names of caches and those that kernels know.
#pragma once

#include "tilewright/cache.h"

#include "formats/kv_page.h"

namespace tilewright::ops {

constexpr KvFormat to_kernel(KvCacheFormat format) noexcept {
  switch (format) {
    case KvCacheFormat::kBf16:
      return KvFormat::kBf16;
    case KvCacheFormat::kFp8:
      return KvFormat::kFp8;
    case KvCacheFormat::kNvfp4:
      return KvFormat::kNvfp4;
  }
  return KvFormat::kBf16;
}

}  // namespace tilewright::ops
