/* Structs of other versions: shorter, longer, and not filled in. */
#include "tests/ops/c_api/check.h"
#include "tests/ops/c_api/device.h"

#include <stdio.h>

enum { kAdded = 16 };

/* As newer headers could have them: members behind ours. */
typedef struct newer_problem {
  tw_attention_problem ours;
  int64_t added[kAdded / 8];
} newer_problem;

static int check_shorter(const tw_device* device) {
  tw_attention* attention = NULL;
  tw_attention_problem problem;
  tw_attention_problem_init(&problem);
  problem.head_dim = 64;
  problem.window_right = 3;
  problem.softcap = -1; /* refused if it is read */
  problem.struct_bytes = offsetof(tw_attention_problem, softcap);
  CHECK(tw_attention_create(device, &problem, &attention) == TW_OK);
  CHECK(strstr(tw_attention_plan_text(attention), "window") != NULL);
  tw_attention_destroy(attention);
  problem.struct_bytes = offsetof(tw_attention_problem, has_sink);
  CHECK(tw_attention_create(device, &problem, &attention) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "softcap = -1") != NULL);
  problem.struct_bytes = offsetof(tw_attention_problem, q_strides) + 8; /* in a struct inside */
  CHECK(tw_attention_create(device, &problem, &attention) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "problem.q_strides.struct_bytes = ") != NULL);
  return 0;
}

static int check_longer(const tw_device* device) {
  tw_attention* attention = NULL;
  newer_problem problem;
  char text[128];
  memset(&problem, 0xa5, sizeof problem);
  tw_attention_problem_init(&problem.ours); /* as a newer header's does, but for the next line */
  problem.ours.struct_bytes = sizeof problem;
  tw_attention_problem_set_defaults(&problem.ours);
  CHECK(problem.ours.struct_bytes == sizeof problem && problem.ours.heads == 1);
  CHECK(problem.added[0] == 0 && problem.added[1] == 0);
  problem.ours.head_dim = 64;
  CHECK(tw_attention_create(device, (tw_attention_problem*)&problem, &attention) == TW_OK);
  tw_attention_destroy(attention);
  problem.added[1] = 1;
  CHECK(tw_attention_create(device, &problem.ours, &attention) == TW_INVALID_ARGUMENT);
  snprintf(text, sizeof text, "struct_bytes = %zu, but this library knows %zu bytes",
           sizeof problem, sizeof problem.ours);
  CHECK(strstr(tw_last_error(), text) != NULL);
  CHECK(attention == NULL);
  return 0;
}

static int check_not_filled_in(const tw_device* device) {
  static const size_t wrong[] = {0, 4, 12, sizeof(tw_attention_problem) + 8192, ~(size_t)0};
  tw_attention* attention = NULL;
  tw_attention_problem problem;
  size_t i;
  for (i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
    tw_attention_problem_init(&problem);
    problem.head_dim = 64;
    problem.struct_bytes = wrong[i];
    CHECK(tw_attention_create(device, &problem, &attention) == TW_INVALID_ARGUMENT);
    CHECK(strstr(tw_last_error(), "Fill it in with tw_attention_problem_init()") != NULL);
  }
  tw_attention_problem_init(&problem);
  memset(&problem.k_strides, 0, sizeof problem.k_strides);
  CHECK(tw_attention_create(device, &problem, &attention) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "problem.k_strides.struct_bytes = 0; expected 32") != NULL);
  CHECK(strstr(tw_last_error(), "tw_strides_init()") != NULL);
  tw_attention_problem_init(NULL);
  tw_attention_problem_set_defaults(NULL);
  return 0;
}

/* What the library fills in ends where the caller's struct does. */
static int check_results(const tw_device* device) {
  tw_attention_prepare* prepare = NULL;
  tw_attention_prepare_problem problem;
  tw_attention_operand_sizes sizes;
  tw_attention_prepare_problem_init(&problem);
  problem.q_len = problem.kv_len = 1;
  problem.head_dim = 64;
  CHECK(tw_attention_prepare_create(device, &problem, &prepare) == TW_OK);
  tw_attention_operand_sizes_init(&sizes);
  sizes.v8_bytes = 12345;
  sizes.struct_bytes = offsetof(tw_attention_operand_sizes, v8_bytes);
  CHECK(tw_attention_prepare_sizes(prepare, &sizes) == TW_OK);
  CHECK(sizes.q8_bytes == 64 && sizes.k8_bytes == 64 && sizes.v8_bytes == 12345);
  tw_attention_prepare_destroy(prepare);
  return 0;
}

/* Experts lie as far apart as the caller's header says. */
static int check_arrays(const tw_device* device) {
  enum { kExperts = 2, kSize = 128 };
  static uint16_t ones[kSize * kSize];
  struct {
    tw_linear_weight_source ours;
    int64_t added;
  } experts[kExperts];
  tw_moe_weights_source source;
  tw_moe_weights* weights = NULL;
  int i;
  for (i = 0; i < kExperts; ++i) {
    tw_linear_weight_source_init(&experts[i].ours);
    experts[i].ours.struct_bytes = sizeof experts[i];
    experts[i].ours.format = TW_NUMBER_FORMAT_BF16;
    experts[i].ours.n = experts[i].ours.k = kSize;
    experts[i].ours.values = ones;
    experts[i].added = 0;
  }
  tw_moe_weights_source_init(&source);
  source.experts = kExperts;
  source.gate = source.up = source.down = &experts[0].ours;
  CHECK(tw_moe_weights_prepare(device, &source, &weights) == TW_OK);
  CHECK(tw_moe_weights_bytes(weights) >= kExperts * 3 * sizeof ones);
  tw_moe_weights_destroy(weights);
  experts[1].added = 1;
  CHECK(tw_moe_weights_prepare(device, &source, &weights) == TW_INVALID_ARGUMENT);
  experts[1].added = 0;
  experts[1].ours.format = 9;
  CHECK(tw_moe_weights_prepare(device, &source, &weights) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "source.gate.format = 9") != NULL);
  return 0;
}

int check_versions_c_api(const char* spec) {
  tw_device* device = NULL;
  int line;
  CHECK(tw_device_open(spec, &device) == TW_OK);
  line = check_shorter(device);
  if (line == 0) line = check_longer(device);
  if (line == 0) line = check_not_filled_in(device);
  if (line == 0) line = check_results(device);
  if (line == 0) line = check_arrays(device);
  tw_device_close(device);
  return line;
}
