#include "verify/attention/fp8.h"

namespace tilewright::cli {

Fp8Operands::Fp8Operands(const Device& device, const AttentionPrepareProblem& problem)
    : prepare_(device, problem),
      q_(device, plan().q8_bytes),
      k_(device, plan().k8_bytes),
      v_(device, plan().v8_bytes),
      q_descale_(device, 4 * plan().num_q_descales),
      k_descale_(device, 4 * plan().num_k_descales),
      v_descale_(device, 4 * plan().num_v_descales),
      v_descale_max_(device, 4 * plan().num_v_descale_max),
      workspace_(device, plan().workspace_bytes) {}

void Fp8Operands::enqueue(const AttentionArguments& from) const {
  prepare_.run({.q = from.q,
                .k = from.k,
                .v = from.v,
                .q8 = q_.data(),
                .k8 = k_.data(),
                .v8 = v_.data(),
                .q_descale = q_descale_.as<float>(),
                .k_descale = k_descale_.as<float>(),
                .v_descale = v_descale_.as<float>(),
                .v_descale_max = v_descale_max_.as<float>(),
                .cu_q = from.cu_q,
                .cu_kv = from.cu_kv,
                .workspace = workspace_.data(),
                .stream = from.stream});
}

void Fp8Operands::set(AttentionArguments& a) const {
  a.q = q_.data();
  a.k = k_.data();
  a.v = v_.data();
  a.q_descale = q_descale_.as<const float>();
  a.k_descale = k_descale_.as<const float>();
  a.v_descale = v_descale_.as<const float>();
  a.v_descale_max = v_descale_max_.as<const float>();
}

}  // namespace tilewright::cli
