/* The C interface, compiled as C99. Returns the number of the first check that fails, 0 if none. */
#include "tests/ops/c_api/check.h"

#include "tests/ops/c_api/device.h"

enum { kRows = 70, kHeadDim = 64, kElems = kRows * kHeadDim };

static int check_refusals(const tw_device* device) {
  tw_attention* attention = NULL;
  tw_attention_problem problem;
  CHECK(tw_device_open("gpu", NULL) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "device is NULL") != NULL);
  memset(&problem, 0, sizeof problem);
  CHECK(tw_attention_create(device, &problem, &attention) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "tw_attention_problem_init") != NULL);
  tw_attention_problem_init(&problem);
  problem.head_dim = 264;
  CHECK(tw_attention_create(device, &problem, &attention) == TW_UNSUPPORTED);
  CHECK(strstr(tw_last_error(), "k6, k6_pages: exists for head_dim") != NULL);
  problem.dtype = 9;
  CHECK(tw_attention_create(device, &problem, &attention) == TW_INVALID_ARGUMENT);
  CHECK(attention == NULL);
  CHECK(tw_attention_run(NULL, NULL) == TW_INVALID_ARGUMENT);
  tw_attention_destroy(NULL);
  tw_device_close(NULL);
  return 0;
}

/* All keys are alike, so every row of the result is the mean of the visible rows of v: i / 2. */
static int check_run(const tw_device* device) {
  static uint16_t zeros[kElems], values[kElems], result[kElems];
  uint64_t q, v, out, workspace;
  int row, column;
  tw_attention* attention = NULL;
  tw_attention_problem problem;
  tw_attention_arguments arguments;
  LOOK_UP(set_context, cu_ctx_set_current, "cuCtxSetCurrent");
  LOOK_UP(allocate, cu_mem_alloc, "cuMemAlloc_v2");
  LOOK_UP(copy_in, cu_memcpy_htod, "cuMemcpyHtoD_v2");
  LOOK_UP(copy_out, cu_memcpy_dtoh, "cuMemcpyDtoH_v2");
  for (row = 0; row < kRows; ++row) {
    const float value = (float)(row % 2); /* 0 and 1 in turn */
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    for (column = 0; column < kHeadDim; ++column)
      values[row * kHeadDim + column] = (uint16_t)(bits >> 16);
  }
  tw_attention_problem_init(&problem);
  problem.q_len = problem.kv_len = kRows;
  problem.head_dim = kHeadDim;
  problem.causal = 1;
  CHECK(tw_attention_create(device, &problem, &attention) == TW_OK);
  CHECK(strstr(tw_attention_plan_text(attention), "causal") != NULL);
  CHECK(tw_attention_flops(attention) == 4.0 * kHeadDim * (kRows * (kRows + 1) / 2));
  CHECK(strlen(tw_attention_kernel(attention)) >= 2);
  CHECK(cu_ctx_set_current(tw_device_context(device)) == 0);
  CHECK(cu_mem_alloc(&q, sizeof zeros) == 0 && cu_mem_alloc(&v, sizeof values) == 0);
  CHECK(cu_mem_alloc(&out, sizeof result) == 0);
  CHECK(cu_mem_alloc(&workspace, tw_attention_workspace_bytes(attention) + 1) == 0);
  CHECK(cu_memcpy_htod(q, zeros, sizeof zeros) == 0);
  CHECK(cu_memcpy_htod(v, values, sizeof values) == 0);
  tw_attention_arguments_init(&arguments);
  CHECK(tw_attention_run(attention, &arguments) == TW_INVALID_ARGUMENT);
  CHECK(strcmp(tw_last_error(), "attention: the address of q is null; this call needs it") == 0);
  arguments.q = arguments.k = (const void*)(uintptr_t)q;
  arguments.v = (const void*)(uintptr_t)v;
  arguments.out = (void*)(uintptr_t)out;
  arguments.workspace = (void*)(uintptr_t)workspace;
  CHECK(tw_attention_run(attention, &arguments) == TW_OK);
  CHECK(tw_device_synchronize(device) == TW_OK);
  CHECK(cu_memcpy_dtoh(result, out, sizeof result) == 0);
  tw_attention_destroy(attention);
  for (row = 0; row < kRows; ++row) {
    const float mean = (float)((row + 1) / 2) / (float)(row + 1);
    const uint32_t bits = (uint32_t)result[row * kHeadDim + 5] << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    CHECK(value - mean < 0.01f && mean - value < 0.01f);
  }
  return 0;
}

/* Weights and activations are all ones, so every result is k = 64 times the global scale 0.5. */
static int check_linear(const tw_device* device) {
  enum { kN = 32, kK = 64, kM = 3 };
  static uint8_t codes[kN * kK / 2], scales[kN * kK / 16];
  static uint16_t ones[kM * kK], result[kM * kN];
  uint64_t x, out;
  int i;
  tw_linear_weight_source source;
  tw_linear_weight* weight = NULL;
  tw_linear_problem problem;
  tw_linear* linear = NULL;
  tw_linear_arguments arguments;
  LOOK_UP(allocate, cu_mem_alloc, "cuMemAlloc_v2");
  LOOK_UP(copy_in, cu_memcpy_htod, "cuMemcpyHtoD_v2");
  LOOK_UP(copy_out, cu_memcpy_dtoh, "cuMemcpyDtoH_v2");
  memset(codes, 0x22, sizeof codes);
  memset(scales, 0x38, sizeof scales);
  for (i = 0; i < kM * kK; ++i) ones[i] = 0x3f80;
  tw_linear_weight_source_init(&source);
  source.n = kN;
  source.k = kK;
  source.values = codes;
  source.scales = scales;
  CHECK(tw_linear_weight_prepare(device, &source, &weight) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "global scale") != NULL && weight == NULL);
  source.global_scale = 0.5f;
  CHECK(tw_linear_weight_prepare(device, &source, &weight) == TW_OK);
  CHECK(tw_linear_weight_bytes(weight) == 576 * (kN / 16) * (kK / 64));
  memset(&problem, 0, sizeof problem);
  CHECK(tw_linear_create(weight, &problem, &linear) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "tw_linear_problem_init") != NULL);
  tw_linear_problem_init(&problem);
  problem.m = kM;
  CHECK(tw_linear_create(weight, &problem, &linear) == TW_OK);
  tw_linear_weight_destroy(weight); /* the operator keeps what it needs */
  CHECK(tw_linear_flops(linear) == 2.0 * kM * kN * kK && tw_linear_bytes(linear) > 0);
  CHECK(strstr(tw_linear_plan_text(linear), tw_linear_kernel(linear)) != NULL);
  CHECK(tw_linear_workspace_bytes(linear) == 0);
  CHECK(cu_mem_alloc(&x, sizeof ones) == 0 && cu_mem_alloc(&out, sizeof result) == 0);
  CHECK(cu_memcpy_htod(x, ones, sizeof ones) == 0);
  tw_linear_arguments_init(&arguments);
  CHECK(tw_linear_run(linear, &arguments) == TW_INVALID_ARGUMENT);
  arguments.x = (const void*)(uintptr_t)x;
  arguments.out = (void*)(uintptr_t)out;
  CHECK(tw_linear_run(linear, &arguments) == TW_OK);
  CHECK(tw_device_synchronize(device) == TW_OK);
  CHECK(cu_memcpy_dtoh(result, out, sizeof result) == 0);
  for (i = 0; i < kM * kN; ++i) CHECK(result[i] == 0x4200); /* 32 */
  tw_linear_destroy(linear);
  tw_linear_destroy(NULL);
  tw_linear_weight_destroy(NULL);
  return 0;
}

/* nvfp4 on the device and on the host: the same bytes. */
static int check_quantize(const tw_device* device) {
  static uint16_t numbers[2 * 64];
  static uint8_t codes[2 * 32], scales[2 * 4], host_codes[2 * 32], host_scales[2 * 4];
  uint64_t in, out, workspace;
  size_t code_bytes, scale_bytes;
  int i;
  tw_quantize* quantize = NULL;
  tw_quantize_problem problem;
  tw_quantize_arguments arguments;
  LOOK_UP(set_context, cu_ctx_set_current, "cuCtxSetCurrent");
  LOOK_UP(allocate, cu_mem_alloc, "cuMemAlloc_v2");
  LOOK_UP(copy_in, cu_memcpy_htod, "cuMemcpyHtoD_v2");
  LOOK_UP(copy_out, cu_memcpy_dtoh, "cuMemcpyDtoH_v2");
  for (i = 0; i < 2 * 64; ++i) numbers[i] = (uint16_t)(0x3e00 + 37 * i % 509);
  memset(&problem, 0, sizeof problem);
  CHECK(tw_quantize_create(device, &problem, &quantize) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "tw_quantize_problem_init") != NULL);
  tw_quantize_problem_init(&problem);
  problem.rows = 2;
  problem.cols = 64;
  problem.dtype = TW_E4M3;
  CHECK(tw_quantize_sizes(&problem, &code_bytes, &scale_bytes) == TW_INVALID_ARGUMENT);
  problem.dtype = TW_BF16;
  CHECK(tw_quantize_sizes(&problem, &code_bytes, &scale_bytes) == TW_OK);
  CHECK(code_bytes == sizeof codes && scale_bytes == sizeof scales);
  CHECK(tw_quantize_create(device, &problem, &quantize) == TW_OK);
  CHECK(strstr(tw_quantize_plan_text(quantize), "quantize_nvfp4_amax_bf16") != NULL);
  CHECK(cu_ctx_set_current(tw_device_context(device)) == 0);
  CHECK(cu_mem_alloc(&in, sizeof numbers) == 0 && cu_mem_alloc(&out, 256) == 0);
  CHECK(cu_mem_alloc(&workspace, tw_quantize_workspace_bytes(quantize)) == 0);
  CHECK(cu_memcpy_htod(in, numbers, sizeof numbers) == 0);
  tw_quantize_arguments_init(&arguments);
  CHECK(tw_quantize_run(quantize, &arguments) == TW_INVALID_ARGUMENT);
  arguments.in = (const void*)(uintptr_t)in;
  arguments.codes = (void*)(uintptr_t)out;
  arguments.scales = (void*)(uintptr_t)(out + 128);
  arguments.workspace = (void*)(uintptr_t)workspace;
  CHECK(tw_quantize_run(quantize, &arguments) == TW_OK);
  CHECK(tw_device_synchronize(device) == TW_OK);
  CHECK(cu_memcpy_dtoh(codes, out, sizeof codes) == 0);
  CHECK(cu_memcpy_dtoh(scales, out + 128, sizeof scales) == 0);
  tw_quantize_destroy(quantize);
  arguments.in = numbers;
  arguments.codes = host_codes;
  arguments.scales = host_scales;
  CHECK(tw_quantize_on_host(&problem, &arguments, 1) == TW_OK);
  CHECK(memcmp(codes, host_codes, sizeof codes) == 0);
  CHECK(memcmp(scales, host_scales, sizeof scales) == 0);
  return 0;
}

/* One query without rows: out 0, lse -inf or, if asked for, +inf; and what is refused. */
static int check_sparse_attention(const tw_device* device) {
  static uint16_t out_host[512];
  static const int32_t nothing[1] = {-1};
  float lse_host = 0;
  uint64_t q, indices, pages, out, lse, workspace;
  tw_sparse_attention* attention = NULL;
  tw_sparse_attention_problem problem;
  tw_sparse_attention_arguments arguments;
  LOOK_UP(set_context, cu_ctx_set_current, "cuCtxSetCurrent");
  LOOK_UP(allocate, cu_mem_alloc, "cuMemAlloc_v2");
  LOOK_UP(copy_in, cu_memcpy_htod, "cuMemcpyHtoD_v2");
  LOOK_UP(copy_out, cu_memcpy_dtoh, "cuMemcpyDtoH_v2");
  memset(&problem, 0, sizeof problem);
  CHECK(tw_sparse_attention_create(device, &problem, &attention) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "tw_sparse_attention_problem_init") != NULL);
  tw_sparse_attention_problem_init(&problem);
  problem.heads = 129;
  CHECK(tw_sparse_attention_create(device, &problem, &attention) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "heads = 129") != NULL);
  problem.window.cache.format = 7;
  CHECK(tw_sparse_attention_create(device, &problem, &attention) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(),
               "problem.window.cache.format = 7; expected TW_NUMBER_FORMAT_BF16") != NULL);
  problem.window.cache.format = TW_NUMBER_FORMAT_FP8;
  problem.heads = 1;
  problem.has_lse = 1;
  problem.window.topk = 1;
  problem.window.cache.num_pages = 3;
  CHECK(tw_sparse_attention_create(device, &problem, &attention) == TW_OK);
  CHECK(strlen(tw_sparse_attention_kernel(attention)) > 2);
  CHECK(strstr(tw_sparse_attention_plan_text(attention), "pages of 64") != NULL);
  CHECK(cu_ctx_set_current(tw_device_context(device)) == 0);
  CHECK(cu_mem_alloc(&q, sizeof out_host) == 0 && cu_mem_alloc(&out, sizeof out_host) == 0);
  CHECK(cu_mem_alloc(&indices, 4) == 0 && cu_mem_alloc(&lse, 4) == 0);
  CHECK(cu_mem_alloc(&pages, 3 * 37440) == 0);
  CHECK(cu_mem_alloc(&workspace, tw_sparse_attention_workspace_bytes(attention) + 1) == 0);
  CHECK(cu_memcpy_htod(q, out_host, sizeof out_host) == 0);
  CHECK(cu_memcpy_htod(indices, nothing, sizeof nothing) == 0);
  tw_sparse_attention_arguments_init(&arguments);
  CHECK(tw_sparse_attention_run(attention, &arguments) == TW_INVALID_ARGUMENT);
  arguments.q = (const void*)(uintptr_t)q;
  arguments.window.pages = (const void*)(uintptr_t)pages;
  arguments.window.indices = (const int32_t*)(uintptr_t)indices;
  arguments.out = (void*)(uintptr_t)out;
  arguments.lse = (float*)(uintptr_t)lse;
  arguments.workspace = (void*)(uintptr_t)workspace;
  CHECK(tw_sparse_attention_run(attention, &arguments) == TW_OK);
  CHECK(tw_device_synchronize(device) == TW_OK);
  memset(out_host, 1, sizeof out_host);
  CHECK(cu_memcpy_dtoh(out_host, out, sizeof out_host) == 0);
  CHECK(cu_memcpy_dtoh(&lse_host, lse, sizeof lse_host) == 0);
  CHECK(out_host[0] == 0 && out_host[511] == 0 && lse_host < -1e30f);
  tw_sparse_attention_destroy(attention);
  problem.positive_empty_lse = 1;
  CHECK(tw_sparse_attention_create(device, &problem, &attention) == TW_OK);
  CHECK(tw_sparse_attention_run(attention, &arguments) == TW_OK);
  CHECK(tw_device_synchronize(device) == TW_OK);
  CHECK(cu_memcpy_dtoh(&lse_host, lse, sizeof lse_host) == 0);
  CHECK(lse_host > 1e30f);
  tw_sparse_attention_destroy(attention);
  tw_sparse_attention_destroy(NULL);
  return 0;
}

static int check_moe_refusals(const tw_device* device) {
  tw_moe_weights* weights = NULL;
  tw_moe* moe = NULL;
  tw_moe_weights_source source;
  tw_moe_problem problem;
  memset(&source, 0, sizeof source);
  CHECK(tw_moe_weights_prepare(device, &source, &weights) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "tw_moe_weights_source_init") != NULL);
  tw_moe_weights_source_init(&source);
  CHECK(tw_moe_weights_prepare(device, &source, &weights) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "experts = 0") != NULL);
  source.experts = 8;
  CHECK(tw_moe_weights_prepare(device, &source, &weights) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "gate is NULL") != NULL);
  tw_moe_problem_init(&problem);
  CHECK(problem.normalize == 1 && problem.route_scale == 1);
  CHECK(tw_moe_create(weights, &problem, &moe) == TW_INVALID_ARGUMENT);
  CHECK(weights == NULL && moe == NULL);
  CHECK(tw_moe_run(NULL, NULL) == TW_INVALID_ARGUMENT);
  CHECK(tw_moe_check(NULL, NULL) == TW_INVALID_ARGUMENT);
  tw_moe_destroy(NULL);
  tw_moe_weights_destroy(NULL);
  return 0;
}

int check_c_api(const char* spec) {
  tw_device* device = NULL;
  int line;
  CHECK(strlen(tw_version()) >= 5);
  CHECK(strlen(tw_commit()) >= 7);
  CHECK(tw_device_open("nonsense", &device) == TW_INVALID_ARGUMENT);
  CHECK(device == NULL && strstr(tw_last_error(), "nonsense") != NULL);
  CHECK(tw_device_open(spec, &device) == TW_OK);
  CHECK(strlen(tw_device_description(device)) > 10);
  line = check_refusals(device);
  if (line == 0) line = check_run(device);
  if (line == 0) line = check_linear(device);
  if (line == 0) line = check_quantize(device);
  if (line == 0) line = check_moe_refusals(device);
  if (line == 0) line = check_sparse_attention(device);
  tw_device_close(device);
  return line;
}
