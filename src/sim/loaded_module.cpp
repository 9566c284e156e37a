#include "sim/loaded_module.h"

#include "base/error.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace tilewright::sim {

namespace {

bool is_in_memory(const Variable& variable) {
  return variable.space == Space::kGlobal || variable.space == Space::kConst;
}

}  // namespace

Loaded::Loaded(Module module, GlobalMemory& memory, int device_target, bool fuses)
    : module_(std::move(module)), memory_(memory), fuses_(fuses) {
  try {
    place_variables();
  } catch (...) {
    release();
    throw;
  }
  for (const Function& function : module_.functions) {
    if (function.is_entry) kernels_.push_back(translate(function, device_target));
  }
}

std::vector<KernelInfo> Loaded::kernels() const {
  std::vector<KernelInfo> out;
  for (const auto& code : kernels_) out.push_back(code->info);
  return out;
}

std::vector<VariableInfo> Loaded::variables() const {
  std::vector<VariableInfo> out;
  for (std::size_t i = 0; i < module_.variables.size(); ++i) {
    if (addresses_[i] == 0) continue;
    out.push_back({module_.variables[i].name, addresses_[i], module_.variables[i].size_bytes});
  }
  return out;
}

const KernelCode* Loaded::find(const std::string& name) const {
  const auto at =
      std::ranges::find_if(kernels_, [&](const auto& code) { return code->info.name == name; });
  return at == kernels_.end() ? nullptr : at->get();
}

// They are filled here and now, so that a short text could ask for all of the host's memory.
void Loaded::refuse_too_much() const {
  constexpr std::uint64_t kMostBytes = std::uint64_t{4} << 30;
  std::uint64_t sum = 0;
  for (const Variable& variable : module_.variables) {
    if (is_in_memory(variable)) sum += variable.size_bytes;
    require(sum <= kMostBytes, ErrorKind::kUnsupported,
            "{}: with {} the global and constant variables have {} bytes or more; at most {} are "
            "supported. Allocate memory instead (cuMemAlloc)",
            module_.name, variable.name, sum, kMostBytes);
  }
}

void Loaded::place_variables() {
  refuse_too_much();
  addresses_.resize(module_.variables.size());
  for (std::size_t i = 0; i < addresses_.size(); ++i) {
    const Variable& variable = module_.variables[i];
    if (!is_in_memory(variable) || variable.size_bytes == 0) continue;
    addresses_[i] = memory_.allocate(
        variable.size_bytes,
        fmt::format("{} variable {} of {}", name_of(variable.space), variable.name, module_.name),
        std::max<std::uint64_t>(256, variable.align_bytes));
  }
  for (std::size_t i = 0; i < addresses_.size(); ++i) {
    if (addresses_[i] != 0) fill(module_.variables[i], addresses_[i]);
  }
}

void Loaded::fill(const Variable& variable, std::uint64_t address) const {
  auto* bytes = reinterpret_cast<std::byte*>(address);
  std::memset(bytes, 0, variable.size_bytes);
  if (!variable.initial.empty()) {
    std::memcpy(bytes, variable.initial.data(),
                std::min<std::size_t>(variable.initial.size(), variable.size_bytes));
  }
  for (const Relocation& relocation : variable.relocations) {
    std::uint64_t value = relocation.is_function ? function_address(relocation.target)
                                                 : addresses_.at(relocation.target);
    value += static_cast<std::uint64_t>(relocation.addend);
    value >>= relocation.shift_bits;
    if (relocation.offset_bytes + relocation.size_bytes <= variable.size_bytes) {
      std::memcpy(bytes + relocation.offset_bytes, &value, relocation.size_bytes);
    }
  }
}

// A function that cannot be translated is a problem of its own; the others are usable.
std::unique_ptr<KernelCode> Loaded::translate(const Function& function, int device_target) const {
  try {
    return CodeBuilder(module_, addresses_, device_target, fuses_).build(function);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInternal) throw;
    auto broken = std::make_unique<KernelCode>();
    broken->module = &module_;
    broken->info.name = function.name;
    broken->info.bounds = function.bounds;
    broken->info.problem = error.what();
    return broken;
  }
}

void Loaded::release() {
  for (const std::uint64_t address : addresses_) {
    if (address != 0) memory_.free(address);
  }
  addresses_.clear();
}

}  // namespace tilewright::sim
