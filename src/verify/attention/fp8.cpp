#include "verify/attention/fp8.h"

#include "device/device.h"
#include "device/internal.h"

namespace tilewright::cli {

namespace {

using device::Buffer;

template <class T>
T* at_address(const Buffer& buffer) {
  return reinterpret_cast<T*>(buffer.address());
}

}  // namespace

Fp8Operands::Fp8Operands(const Device& device, const AttentionPrepareProblem& problem)
    : prepare_(device, problem),
      q_(opened(device), plan().q8_bytes),
      k_(opened(device), plan().k8_bytes),
      v_(opened(device), plan().v8_bytes),
      q_descale_(opened(device), 4 * plan().num_q_descales),
      k_descale_(opened(device), 4 * plan().num_k_descales),
      v_descale_(opened(device), 4 * plan().num_v_descales),
      v_descale_max_(opened(device), 4 * plan().num_v_descale_max),
      workspace_(opened(device), plan().workspace_bytes) {}

void Fp8Operands::enqueue(const AttentionArguments& from) const {
  prepare_.run({.q = from.q,
                .k = from.k,
                .v = from.v,
                .q8 = at_address<void>(q_),
                .k8 = at_address<void>(k_),
                .v8 = at_address<void>(v_),
                .q_descale = at_address<float>(q_descale_),
                .k_descale = at_address<float>(k_descale_),
                .v_descale = at_address<float>(v_descale_),
                .v_descale_max = at_address<float>(v_descale_max_),
                .cu_q = from.cu_q,
                .cu_kv = from.cu_kv,
                .workspace = at_address<void>(workspace_),
                .stream = from.stream});
}

void Fp8Operands::set(AttentionArguments& a) const {
  a.q = at_address<const void>(q_);
  a.k = at_address<const void>(k_);
  a.v = at_address<const void>(v_);
  a.q_descale = at_address<const float>(q_descale_);
  a.k_descale = at_address<const float>(k_descale_);
  a.v_descale = at_address<const float>(v_descale_);
  a.v_descale_max = at_address<const float>(v_descale_max_);
}

}  // namespace tilewright::cli
