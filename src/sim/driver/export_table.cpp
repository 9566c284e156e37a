#include "sim/driver/export_table.h"

#include "sim/driver/state.h"

namespace tilewright::sim {

const void* find_export_table(const abi::CUuuid&) noexcept {
  return nullptr;
}

}  // namespace tilewright::sim
