// A module on a machine: translated, and its variables in memory.
#pragma once

#include "sim/compile/code_builder.h"
#include "sim/state/global_memory.h"
#include "sim/state/launch.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tilewright::sim {

/// It owns the memory of its variables. A function that cannot be translated has its problem in
/// KernelInfo; the others are usable.
class Loaded final : public LoadedModule {
 public:
  /// Errors   Unsupported if variables are more than 4 GiB; OutOfMemory
  Loaded(Module module, GlobalMemory& memory, int device_target, bool fuses);
  ~Loaded() override { release(); }

  const Module& syntax() const override { return module_; }
  std::vector<KernelInfo> kernels() const override;
  std::vector<VariableInfo> variables() const override;
  /// nullptr if there is none of that name.
  const KernelCode* find(const std::string& name) const;

 private:
  void refuse_too_much() const;
  void place_variables();
  void fill(const Variable& variable, std::uint64_t address) const;
  std::unique_ptr<KernelCode> translate(const Function& function, int device_target) const;
  void release();

  Module module_;
  GlobalMemory& memory_;
  bool fuses_;
  VariableAddresses addresses_;
  std::vector<std::unique_ptr<KernelCode>> kernels_;
};

}  // namespace tilewright::sim
