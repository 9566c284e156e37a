#include "comm/nccl_library.h"

#include "base/env.h"
#include "base/error.h"

#include <utility>

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

namespace tilewright::comm {

namespace {

constexpr const char* kNcclName = "libnccl.so.2";
constexpr const char* kNcclAdvice =
    "Several GPUs need NCCL 2.18 or later: install it (Debian, Ubuntu: libnccl2; pip: "
    "nvidia-nccl-cu13), and name its file in TILEWRIGHT_NCCL_LIBRARY if the dynamic loader does "
    "not "
    "find it";

std::string version_text(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

std::string loaded_path(void* library, const std::string& name) {
  link_map* map = nullptr;
  const bool is_known = ::dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr;
  return is_known ? map->l_name : name;
}

template <class Function>
void find_symbol(void* library, const char* name, const std::string& path, Function& to) {
  to = reinterpret_cast<Function>(::dlsym(library, name));
  require(to != nullptr, ErrorKind::kUnsupported, "NCCL: {} has no function {}. {}", path, name,
          kNcclAdvice);
}

}  // namespace

std::shared_ptr<const NcclLibrary> NcclLibrary::open(const std::string& path) {
  std::string name = path.empty() ? env_text(kVariable) : path;
  if (name.empty()) name = kNcclName;
  void* const library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const reason = ::dlerror();
    fail(ErrorKind::kUnsupported, "NCCL: {} cannot be loaded ({}). {}", name,
         reason != nullptr ? reason : "no reason given", kNcclAdvice);
  }
  std::shared_ptr<NcclLibrary> result(new NcclLibrary);
  result->path_ = loaded_path(library, name);
#define TILEWRIGHT_FIND(member, exported, returned, parameters) \
  find_symbol(library, #exported, result->path_, result->call.member);
  TILEWRIGHT_NCCL_FUNCTIONS(TILEWRIGHT_FIND)
#undef TILEWRIGHT_FIND
  const nccl_abi::Result got = result->call.get_version(&result->version_);
  require(got == nccl_abi::kSuccess, ErrorKind::kUnsupported,
          "NCCL: {} does not tell its version ({}). {}", result->path_,
          result->call.get_error_string(got), kNcclAdvice);
  require(result->version_ >= kLeastVersion, ErrorKind::kUnsupported, "NCCL: {} is version {}. {}",
          result->path_, version_text(result->version_), kNcclAdvice);
  return result;
}

std::string NcclLibrary::description() const {
  return fmt::format("NCCL {} ({})", version_text(version_), path_);
}

}  // namespace tilewright::comm
