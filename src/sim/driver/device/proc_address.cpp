// cuGetProcAddress: a name without version, and the version of CUDA that the caller was built for,
// lead to the newest function that such a caller knows.
#include "sim/driver/device/export_table.h"
#include "sim/driver/device/unsupported.h"
#include "sim/driver/objects/call.h"

#include <cctype>
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

namespace tilewright::sim::abi {

namespace {

struct Version {
  int since = 0;
  void* function = nullptr;
};

template <class Function>
void* address_of(Function* function) {
  return reinterpret_cast<void*>(function);
}

/// "cuMemAlloc" of "cuMemAlloc_v2".
std::string base_of(const std::string& name) {
  std::size_t end = name.size();
  while (end > 0 && std::isdigit(static_cast<unsigned char>(name[end - 1])) != 0) --end;
  const bool has_version = end < name.size() && end >= 2 && name.compare(end - 2, 2, "_v") == 0;
  return has_version ? name.substr(0, end - 2) : name;
}

using Table = std::unordered_map<std::string, std::vector<Version>>;

struct Export {
  const char* name;
  Version version;
};

/// First a list, then a loop: a statement for each function takes four times longer to compile.
Table make_table() {
  static const Export kExports[] = {
#define TILEWRIGHT_ADD(name, version, ...) {#name, {version, address_of(&name)}},
      TILEWRIGHT_SIM_FUNCTIONS(TILEWRIGHT_ADD) TILEWRIGHT_SIM_UNSUPPORTED_FUNCTIONS(TILEWRIGHT_ADD)
#undef TILEWRIGHT_ADD
#define TILEWRIGHT_ADD(name, version, target) {#name, {version, address_of(&target)}},
          TILEWRIGHT_SIM_OLDER_NAMES(TILEWRIGHT_ADD)
#undef TILEWRIGHT_ADD
  };
  Table table;
  for (const Export& one : kExports) table[base_of(one.name)].push_back(one.version);
  return table;
}

struct Answer {
  void* function = nullptr;
  CUdriverProcAddressQueryResult status = CUdriverProcAddressQueryResult::kSymbolNotFound;
};

Answer look_up(const std::string& name, int cuda_version) {
  static const Table& table = *new Table(make_table());
  const auto found = table.find(base_of(name));
  if (found == table.end()) return {};
  Version best;
  for (const Version& version : found->second) {
    if (version.since <= cuda_version && version.since >= best.since) best = version;
  }
  return {best.function, best.function == nullptr
                             ? CUdriverProcAddressQueryResult::kVersionNotSufficient
                             : CUdriverProcAddressQueryResult::kSuccess};
}

}  // namespace

CUresult cuGetProcAddress_v2(const char* symbol, void** function, int cuda_version,
                             std::uint64_t flags, CUdriverProcAddressQueryResult* status) {
  if (symbol == nullptr || function == nullptr || flags > 2) return CUresult::kInvalidValue;
  return answer([&] {
    const Answer found = look_up(symbol, cuda_version);
    *function = found.function;
    if (status != nullptr) *status = found.status;
    expect(found.function != nullptr, CUresult::kNotFound);
  });
}

CUresult cuGetProcAddress(const char* symbol, void** function, int cuda_version,
                          std::uint64_t flags) {
  return cuGetProcAddress_v2(symbol, function, cuda_version, flags, nullptr);
}

CUresult cuGetExportTable(const void** out, const CUuuid* id) {
  if (out == nullptr || id == nullptr) return CUresult::kInvalidValue;
  *out = find_export_table(*id, __builtin_return_address(0));
  return *out != nullptr ? CUresult::kSuccess : CUresult::kNotFound;
}

}  // namespace tilewright::sim::abi
