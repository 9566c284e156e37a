#include "ops/c_api/handles.h"

#include <algorithm>

namespace c_api = tilewright::c_api;

tw_status tw_attention_prepare_sizes(const tw_attention_prepare* prepare,
                                     tw_attention_operand_sizes* sizes) {
  const char* const function = "tw_attention_prepare_sizes";
  return c_api::guarded([&] {
    c_api::require_address(prepare, function, "prepare");
    c_api::require_address(sizes, function, "sizes");
    using Version = c_api::Version<tw_attention_operand_sizes>;
    tw_attention_operand_sizes found = Version::defaults();
    const tilewright::AttentionPreparePlan& plan = prepare->op.plan();
    found.q8_bytes = plan.q8_bytes;
    found.k8_bytes = plan.k8_bytes;
    found.v8_bytes = plan.v8_bytes;
    found.num_q_descales = plan.num_q_descales;
    found.num_k_descales = plan.num_k_descales;
    found.num_v_descales = plan.num_v_descales;
    found.num_v_descale_max = plan.num_v_descale_max;
    found.workspace_bytes = plan.workspace_bytes;
    c_api::write_struct(Version::kShape, &found, sizes, {function, "sizes"});
  });
}

tw_status tw_attention_prepare_signs(uint64_t seed, int64_t head_dim, float* signs) {
  const char* const function = "tw_attention_prepare_signs";
  return c_api::guarded([&] {
    c_api::require_address(signs, function, "signs");
    tilewright::require(head_dim >= 0, tilewright::ErrorKind::kInvalidArgument,
                        "{}: head_dim = {}; expected 0 or more", function, head_dim);
    std::ranges::copy(tilewright::attention_signs(seed, head_dim), signs);
  });
}
