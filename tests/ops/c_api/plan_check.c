/* Plans of the C interface, compiled as C99, without a device: candidates, launches, reasons. */
#include "tests/ops/c_api/check.h"
#include "tests/ops/c_api/device.h"

static int check_good(const tw_device* device) {
  tw_attention_problem problem;
  tw_plan* plan = NULL;
  tw_candidate candidate;
  tw_launch launch;
  size_t i = 0, chosen = 0;
  tw_attention_problem_init(&problem);
  tw_candidate_init(&candidate);
  tw_launch_init(&launch);
  problem.heads = 16;
  problem.q_len = problem.kv_len = 4096;
  problem.head_dim = 128;
  CHECK(tw_attention_plan(device, &problem, &plan) == TW_OK && plan != NULL);
  CHECK(tw_plan_status(plan) == TW_OK && tw_plan_num_reasons(plan) == 0);
  CHECK(strcmp(tw_plan_kernel(plan), "k6") == 0);
  CHECK(strstr(tw_plan_text(plan), "attention_k6_bf16_d128") != NULL);
  CHECK(tw_plan_flops(plan) == 4.0 * 4096 * 4096 * 128 * 16 && tw_plan_bytes(plan) > 0);
  CHECK(strcmp(tw_plan_assumption(plan), "") == 0 && tw_plan_workspace_bytes(plan) == 0);
  CHECK(tw_plan_num_candidates(plan) > 3 && tw_plan_num_launches(plan) == 1);
  for (i = 0; i < tw_plan_num_candidates(plan); ++i) {
    CHECK(tw_plan_candidate(plan, i, &candidate) == TW_OK);
    CHECK((candidate.is_chosen != 0) == (strcmp(candidate.name, "k6") == 0));
    CHECK((candidate.is_chosen != 0) == (strcmp(candidate.reason, "") == 0));
    CHECK((candidate.is_possible != 0) == (candidate.cost_us > 0));
    chosen += candidate.is_chosen != 0;
  }
  CHECK(chosen == 1 && tw_plan_candidate(plan, i, &candidate) == TW_INVALID_ARGUMENT);
  CHECK(tw_plan_launch(plan, 0, &launch) == TW_OK);
  CHECK(strcmp(launch.step, "attend") == 0 && launch.grid_x == 132 && launch.block_x == 384);
  CHECK(launch.grid_y == 1 && launch.cluster == 1 && launch.shared_bytes > 100000);
  CHECK(tw_plan_launch(plan, 1, &launch) == TW_INVALID_ARGUMENT);
  tw_plan_destroy(plan);
  return 0;
}

/* Wrong in C alone, and in what C++ checks: all at once. */
static int check_reasons(const tw_device* device) {
  static const char* const fields[] = {"dtype", "fp8.scales", "heads", "head_dim", "kv_len"};
  tw_attention_problem problem;
  tw_plan* plan = NULL;
  tw_reason reason;
  size_t i = 0;
  tw_attention_problem_init(&problem);
  tw_reason_init(&reason);
  problem.dtype = 77;
  problem.fp8.scales = 78;
  problem.heads = 5;
  problem.kv_heads = 2;
  problem.head_dim = 100;
  problem.kv_len = -1;
  CHECK(tw_attention_plan(device, &problem, &plan) == TW_INVALID_ARGUMENT && plan != NULL);
  CHECK(tw_plan_status(plan) == TW_INVALID_ARGUMENT);
  CHECK(strcmp(tw_plan_text(plan), tw_last_error()) == 0);
  CHECK(tw_plan_num_reasons(plan) == 5 && tw_plan_num_candidates(plan) == 0);
  for (i = 0; i < 5; ++i) {
    CHECK(tw_plan_reason(plan, i, &reason) == TW_OK);
    CHECK(strcmp(reason.field, fields[i]) == 0 && strcmp(reason.rule, "") != 0);
    CHECK(strstr(tw_plan_text(plan), reason.rule) != NULL);
  }
  CHECK(tw_plan_reason(plan, 0, &reason) == TW_OK && strcmp(reason.value, "77") == 0);
  CHECK(strstr(reason.rule, "TW_F16 = 1") != NULL);
  CHECK(tw_plan_reason(plan, 3, &reason) == TW_OK && strcmp(reason.fix, "Pad with zeros.") == 0);
  CHECK(tw_plan_reason(plan, 5, &reason) == TW_INVALID_ARGUMENT);
  tw_plan_destroy(plan);
  /* One of them is enough. */
  tw_attention_problem_init(&problem);
  problem.heads = 1;
  problem.head_dim = 128;
  problem.dtype = 77;
  CHECK(tw_attention_plan(device, &problem, &plan) == TW_INVALID_ARGUMENT);
  CHECK(tw_plan_num_reasons(plan) == 1 && tw_plan_num_launches(plan) == 0);
  tw_plan_destroy(plan);
  return 0;
}

static int check_unsupported(void) {
  tw_device* device = NULL;
  tw_attention_problem problem;
  tw_plan* plan = NULL;
  tw_reason reason;
  CHECK(tw_device_open("plan:h200", &device) == TW_OK);
  tw_attention_problem_init(&problem);
  tw_reason_init(&reason);
  problem.heads = problem.kv_heads = 1;
  problem.q_len = problem.kv_len = 64;
  problem.head_dim = 320;
  CHECK(tw_attention_plan(device, &problem, &plan) == TW_UNSUPPORTED);
  CHECK(tw_plan_status(plan) == TW_UNSUPPORTED && tw_plan_num_reasons(plan) > 3);
  CHECK(tw_plan_reason(plan, 0, &reason) == TW_OK && strcmp(reason.field, "kernel") == 0);
  CHECK(strstr(reason.fix, "sim:h200") != NULL);
  tw_plan_destroy(plan);
  tw_device_close(device);
  return 0;
}

/* Those that have more than a problem to plan. */
static int check_sizes(const tw_device* device) {
  tw_kv_layout layout;
  tw_kv_cache_work work;
  tw_moe_weights_info weights;
  tw_moe_problem moe;
  tw_plan* plan = NULL;
  tw_kv_layout_init(&layout);
  tw_kv_cache_work_init(&work);
  layout.num_pages = 10;
  work.tokens = 3;
  work.read_rows = 4;
  CHECK(tw_kv_cache_plan(device, &layout, &work, &plan) == TW_OK);
  CHECK(tw_plan_num_launches(plan) == 2);
  tw_plan_destroy(plan);
  CHECK(tw_inverse_rope_plan(device, 5, 64, 1, &plan) == TW_OK);
  CHECK(strstr(tw_plan_text(plan), "inverse_rope_fp8") != NULL);
  tw_plan_destroy(plan);
  CHECK(tw_inverse_rope_plan(device, -1, -1, 0, &plan) == TW_INVALID_ARGUMENT);
  CHECK(tw_plan_num_reasons(plan) == 2);
  tw_plan_destroy(plan);
  tw_moe_weights_info_init(&weights);
  tw_moe_problem_init(&moe);
  weights.experts = 64;
  weights.hidden = weights.inter = 512;
  moe.tokens = 10;
  moe.topk = 6;
  CHECK(tw_moe_plan(device, &weights, &moe, &plan) == TW_OK);
  CHECK(tw_plan_workspace_bytes(plan) > 0 && strstr(tw_plan_assumption(plan), "experts") != NULL);
  tw_plan_destroy(plan);
  return 0;
}

static int check_addresses(const tw_device* device) {
  tw_rms_norm_problem problem;
  tw_plan* plan = NULL;
  tw_rms_norm_problem_init(&problem);
  CHECK(tw_rms_norm_plan(device, &problem, NULL) == TW_INVALID_ARGUMENT);
  CHECK(tw_rms_norm_plan(NULL, &problem, &plan) == TW_INVALID_ARGUMENT && plan == NULL);
  CHECK(tw_rms_norm_plan(device, NULL, &plan) == TW_INVALID_ARGUMENT && plan == NULL);
  CHECK(strstr(tw_last_error(), "problem is NULL") != NULL);
  CHECK(tw_plan_status(NULL) == TW_INVALID_ARGUMENT && strcmp(tw_plan_text(NULL), "") == 0);
  CHECK(tw_plan_num_reasons(NULL) == 0 && tw_plan_num_candidates(NULL) == 0);
  CHECK(tw_plan_num_launches(NULL) == 0 && tw_plan_workspace_bytes(NULL) == 0);
  CHECK(strcmp(tw_plan_kernel(NULL), "") == 0 && strcmp(tw_plan_assumption(NULL), "") == 0);
  CHECK(tw_plan_flops(NULL) == 0 && tw_plan_bytes(NULL) == 0);
  CHECK(tw_plan_reason(NULL, 0, NULL) == TW_INVALID_ARGUMENT);
  tw_plan_destroy(NULL);
  return 0;
}

int check_plan_c_api(void) {
  tw_device* device = NULL;
  tw_attention* attention = NULL;
  tw_attention_problem problem;
  int line = 0;
  CHECK(tw_device_open("plan:h200", &device) == TW_OK);
  CHECK(tw_device_can_run(device) == 0 && tw_device_can_run(NULL) == 0);
  CHECK(tw_device_context(device) == NULL && tw_device_is_simulated(device) == 0);
  line = check_good(device);
  if (line == 0) line = check_reasons(device);
  if (line == 0) line = check_unsupported();
  if (line == 0) line = check_sizes(device);
  if (line == 0) line = check_addresses(device);
  if (line != 0) return line;
  tw_attention_problem_init(&problem);
  problem.q_len = problem.kv_len = 64;
  problem.heads = 1;
  problem.head_dim = 128;
  CHECK(tw_attention_create(device, &problem, &attention) == TW_UNSUPPORTED);
  CHECK(strstr(tw_last_error(), "plan:h200 plans and does nothing else") != NULL);
  tw_device_close(device);
  return 0;
}
