/* The C interface of preparing e4m3 operands and of attention over caches, compiled as C99. */
#include "tilewright/tilewright_decode.h" /* still there for programs that include it */

#include "tests/ops/c_api/check.h"
#include "tests/ops/c_api/device.h"

enum { kDims = 64, kKeys = 3 };

static void* at(uint64_t address) {
  return (void*)(uintptr_t)address;
}

static int check_prepare_refusals(const tw_device* device) {
  float signs[kDims];
  int i, negative = 0;
  tw_attention_prepare* prepare = NULL;
  tw_attention_prepare_problem problem;
  tw_attention_operand_sizes sizes;
  memset(&problem, 0, sizeof problem);
  CHECK(tw_attention_prepare_create(device, &problem, &prepare) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "tw_attention_prepare_problem_init") != NULL);
  tw_attention_prepare_problem_init(&problem);
  CHECK(problem.scales == TW_SCALE_SHARING_BLOCK &&
        problem.v_layout == TW_FP8_VALUE_LAYOUT_COLUMNS && problem.is_rotated == 1);
  CHECK(tw_attention_prepare_create(device, &problem, &prepare) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "head_dim = 0") != NULL);
  problem.rope = 3;
  CHECK(tw_attention_prepare_create(device, &problem, &prepare) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "problem.rope = 3; expected TW_ROTARY_PAIRS_NONE = 0, ") != NULL);
  problem.dtype = TW_E4M3;
  CHECK(tw_attention_prepare_create(device, &problem, &prepare) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "problem.dtype = 3") != NULL && prepare == NULL);
  CHECK(tw_attention_prepare_create(NULL, &problem, &prepare) == TW_INVALID_ARGUMENT);
  CHECK(tw_attention_prepare_run(NULL, NULL) == TW_INVALID_ARGUMENT);
  CHECK(tw_attention_prepare_sizes(NULL, &sizes) == TW_INVALID_ARGUMENT);
  tw_attention_prepare_destroy(NULL);
  CHECK(tw_attention_prepare_signs(5, kDims, NULL) == TW_INVALID_ARGUMENT);
  CHECK(tw_attention_prepare_signs(5, -1, signs) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "head_dim = -1") != NULL);
  CHECK(tw_attention_prepare_signs(5, kDims, signs) == TW_OK);
  for (i = 0; i < kDims; ++i) {
    CHECK(signs[i] == 1 || signs[i] == -1);
    negative += signs[i] < 0;
  }
  CHECK(negative > 0 && negative < kDims);
  return 0;
}

/* One row of k, all 2 but one -1, without a rotation: codes 448 and -224, descale 2 / 448. The row
 * of v is 0: of that the largest magnitude counts as 2^-100. No queries. */
static int check_prepare(const tw_device* device) {
  uint16_t rows[2 * kDims];
  uint8_t codes[kDims];
  float descales[2];
  uint64_t in, out, workspace;
  int i;
  tw_attention_prepare* prepare = NULL;
  tw_attention_prepare_problem problem;
  tw_attention_operand_sizes sizes;
  tw_attention_prepare_arguments arguments;
  LOOK_UP(allocate, cu_mem_alloc, "cuMemAlloc_v2");
  LOOK_UP(copy_in, cu_memcpy_htod, "cuMemcpyHtoD_v2");
  LOOK_UP(copy_out, cu_memcpy_dtoh, "cuMemcpyDtoH_v2");
  for (i = 0; i < 2 * kDims; ++i) rows[i] = i == 5 ? 0xbf80 : i < kDims ? 0x4000 : 0;
  tw_attention_prepare_problem_init(&problem);
  problem.kv_len = 1;
  problem.head_dim = kDims;
  problem.scales = TW_SCALE_SHARING_HEAD;
  problem.v_layout = TW_FP8_VALUE_LAYOUT_ROWS;
  problem.is_rotated = 0;
  CHECK(tw_attention_prepare_create(device, &problem, &prepare) == TW_OK);
  CHECK(strstr(tw_attention_prepare_plan_text(prepare), "a scale per head") != NULL);
  tw_attention_operand_sizes_init(&sizes);
  CHECK(tw_attention_prepare_sizes(prepare, &sizes) == TW_OK);
  CHECK(sizes.q8_bytes == 0 && sizes.k8_bytes == kDims && sizes.v8_bytes == kDims);
  CHECK(sizes.num_k_descales == 1 && sizes.num_v_descales == 1 && sizes.num_v_descale_max == 0);
  CHECK(cu_mem_alloc(&in, sizeof rows) == 0 && cu_mem_alloc(&out, 256) == 0);
  CHECK(cu_mem_alloc(&workspace, sizes.workspace_bytes) == 0);
  CHECK(cu_memcpy_htod(in, rows, sizeof rows) == 0);
  tw_attention_prepare_arguments_init(&arguments);
  CHECK(tw_attention_prepare_run(prepare, &arguments) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "the address of k is null") != NULL);
  arguments.k = at(in);
  arguments.v = at(in + kDims * sizeof rows[0]);
  arguments.k8 = at(out);
  arguments.v8 = at(out + kDims);
  arguments.k_descale = at(out + 2 * kDims);
  arguments.v_descale = at(out + 2 * kDims + sizeof descales[0]);
  arguments.workspace = at(workspace);
  CHECK(tw_attention_prepare_run(prepare, &arguments) == TW_OK);
  CHECK(tw_device_synchronize(device) == TW_OK);
  CHECK(cu_memcpy_dtoh(codes, out, sizeof codes) == 0);
  CHECK(cu_memcpy_dtoh(descales, out + 2 * kDims, sizeof descales) == 0);
  for (i = 0; i < kDims; ++i) CHECK(codes[i] == (i == 5 ? 0xf6 : 0x7e));
  CHECK(descales[0] > 0.0044642f && descales[0] < 0.0044643f);
  CHECK(descales[1] > 0 && descales[1] < 1e-30f);
  CHECK(cu_memcpy_dtoh(codes, out + kDims, sizeof codes) == 0);
  for (i = 0; i < kDims; ++i) CHECK(codes[i] == 0);
  tw_attention_prepare_destroy(prepare);
  return 0;
}

static int check_merge_and_lists(const tw_device* device) {
  tw_attention_merge* merge = NULL;
  tw_attention_merge_problem problem;
  tw_attention_merge_arguments arguments;
  tw_mask_lists* lists = NULL;
  tw_mask_lists_problem masks;
  memset(&problem, 0, sizeof problem);
  CHECK(tw_attention_merge_create(device, &problem, &merge) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "tw_attention_merge_problem_init") != NULL);
  tw_attention_merge_problem_init(&problem);
  CHECK(problem.part_dtype == TW_F32 && problem.out_dtype == TW_BF16 && problem.parts == 2);
  problem.head_dim = 12;
  CHECK(tw_attention_merge_create(device, &problem, &merge) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "head_dim = 12; expected a multiple of 8") != NULL);
  problem.head_dim = 40;
  problem.rows = 3;
  CHECK(tw_attention_merge_create(device, &problem, &merge) == TW_OK);
  CHECK(strstr(tw_attention_merge_plan_text(merge), "2 parts of F32 to BF16") != NULL);
  tw_attention_merge_arguments_init(&arguments);
  CHECK(tw_attention_merge_run(merge, &arguments) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "the address of part_out is null") != NULL);
  tw_attention_merge_destroy(merge);
  tw_mask_lists_problem_init(&masks);
  CHECK(masks.entry == TW_MASK_ENTRY_BYTES && masks.query_block == 1 && masks.key_block == 1);
  CHECK(tw_mask_lists_create(device, &masks, &lists) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "topk = 0; expected 1 to") != NULL);
  masks.topk = 5;
  masks.entry = TW_MASK_ENTRY_BITS;
  CHECK(tw_mask_lists_create(device, &masks, &lists) == TW_OK);
  CHECK(strstr(tw_mask_lists_plan_text(lists), "rows of bits") != NULL);
  tw_mask_lists_destroy(lists);
  return 0;
}

static int check_append(const tw_device* device) {
  tw_cache_append* append = NULL;
  tw_cache_append_problem problem;
  tw_cache_append_arguments arguments;
  memset(&problem, 0, sizeof problem);
  CHECK(tw_cache_append_create(device, &problem, &append) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "tw_cache_append_problem_init") != NULL);
  tw_cache_append_problem_init(&problem);
  CHECK(problem.batch == 1 && problem.kv_heads == 1 && problem.descale == TW_SCALE_SHARING_NONE);
  problem.head_dim = 12;
  CHECK(tw_cache_append_create(device, &problem, &append) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "head_dim = 12; expected a multiple of 8") != NULL);
  problem.head_dim = 64;
  problem.new_len = 3;
  problem.max_len = 40;
  CHECK(tw_cache_append_create(device, &problem, &append) == TW_OK);
  CHECK(strstr(tw_cache_append_plan_text(append), "3 a sequence of BF16 to BF16") != NULL);
  tw_cache_append_arguments_init(&arguments);
  CHECK(tw_cache_append_run(append, &arguments) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "the address of new_k is null") != NULL);
  tw_cache_append_destroy(append);
  return 0;
}

static int check_decode_refusals(const tw_device* device) {
  tw_attention_decode* decode = NULL;
  tw_attention_decode_problem problem;
  memset(&problem, 0, sizeof problem);
  CHECK(tw_attention_decode_create(device, &problem, &decode) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "tw_attention_decode_problem_init") != NULL);
  tw_attention_decode_problem_init(&problem);
  CHECK(problem.causal == 1 && problem.window_left == -1);
  problem.head_dim = 264;
  CHECK(tw_attention_decode_create(device, &problem, &decode) == TW_UNSUPPORTED);
  CHECK(strstr(tw_last_error(), "exists for head_dim up to 256, not 264") != NULL);
  problem.kv_dtype = TW_F32;
  CHECK(tw_attention_decode_create(device, &problem, &decode) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "problem.kv_dtype = 2") != NULL);
  problem.kv_dtype = TW_BF16;
  problem.descale = -1;
  CHECK(tw_attention_decode_create(device, &problem, &decode) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "problem.descale = -1") != NULL && decode == NULL);
  CHECK(tw_attention_decode_create(NULL, &problem, &decode) == TW_INVALID_ARGUMENT);
  CHECK(tw_attention_decode_run(NULL, NULL) == TW_INVALID_ARGUMENT);
  CHECK(tw_attention_decode_workspace_bytes(NULL) == 0);
  tw_attention_decode_destroy(NULL);
  return 0;
}

/* All scores are 0. The cache has a value 0 and one 1; the new one is 4: their mean is 5 / 3, and
 * exp of lse is 3. */
static int check_decode(const tw_device* device) {
  uint16_t values[kKeys * kDims], one[kDims], zeros[kKeys * kDims];
  const int32_t length = 2;
  float lse;
  uint64_t q, k, v, row, lengths, sums, out, workspace;
  int i;
  tw_attention_decode* decode = NULL;
  tw_attention_decode_problem problem;
  tw_attention_decode_arguments arguments;
  LOOK_UP(allocate, cu_mem_alloc, "cuMemAlloc_v2");
  LOOK_UP(copy_in, cu_memcpy_htod, "cuMemcpyHtoD_v2");
  LOOK_UP(copy_out, cu_memcpy_dtoh, "cuMemcpyDtoH_v2");
  memset(zeros, 0, sizeof zeros);
  memset(values, 0xff, sizeof values); /* NaN */
  for (i = 0; i < kDims; ++i) values[i] = 0, values[kDims + i] = 0x3f80, one[i] = 0x4080;
  tw_attention_decode_problem_init(&problem);
  problem.head_dim = kDims;
  problem.max_len = kKeys;
  problem.has_lse = problem.append.is_wanted = 1;
  CHECK(tw_attention_decode_create(device, &problem, &decode) == TW_OK);
  CHECK(strstr(tw_attention_decode_plan_text(decode), "decode_bf16_d64_r16") != NULL);
  CHECK(cu_mem_alloc(&q, sizeof one) == 0 && cu_mem_alloc(&out, sizeof one) == 0);
  CHECK(cu_mem_alloc(&k, sizeof zeros) == 0 && cu_mem_alloc(&v, sizeof values) == 0);
  CHECK(cu_mem_alloc(&row, sizeof one) == 0 && cu_mem_alloc(&lengths, sizeof length) == 0);
  CHECK(cu_mem_alloc(&sums, sizeof lse) == 0);
  CHECK(cu_mem_alloc(&workspace, tw_attention_decode_workspace_bytes(decode) + 1) == 0);
  CHECK(cu_memcpy_htod(q, zeros, sizeof one) == 0 && cu_memcpy_htod(k, zeros, sizeof zeros) == 0);
  CHECK(cu_memcpy_htod(v, values, sizeof values) == 0);
  CHECK(cu_memcpy_htod(row, one, sizeof one) == 0);
  CHECK(cu_memcpy_htod(lengths, &length, sizeof length) == 0);
  tw_attention_decode_arguments_init(&arguments);
  CHECK(tw_attention_decode_run(decode, &arguments) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "the address of q is null") != NULL);
  arguments.q = at(q);
  arguments.k_cache = at(k);
  arguments.v_cache = at(v);
  arguments.lengths = at(lengths);
  arguments.new_k = at(q);
  arguments.new_v = at(row);
  arguments.out = at(out);
  arguments.lse = at(sums);
  arguments.workspace = at(workspace);
  CHECK(tw_attention_decode_run(decode, &arguments) == TW_OK);
  CHECK(tw_device_synchronize(device) == TW_OK);
  CHECK(cu_memcpy_dtoh(one, out, sizeof one) == 0 && cu_memcpy_dtoh(&lse, sums, sizeof lse) == 0);
  for (i = 0; i < kDims; ++i) CHECK(one[i] == 0x3fd5); /* 5 / 3 in bf16 */
  CHECK(lse > 1.09861f && lse < 1.09862f);             /* ln 3 */
  CHECK(cu_memcpy_dtoh(values, v, sizeof values) == 0);
  for (i = 0; i < kDims; ++i) CHECK(values[2 * kDims + i] == 0x4080);
  tw_attention_decode_destroy(decode);
  return 0;
}

/* All scores are 0. Values are 0 and 1, and NaN behind them: their mean is 1 / 2, and exp of lse is
 * 2. */
static int check_latent(const tw_device* device) {
  enum { kWide = 256 };
  uint16_t values[kKeys * kWide], zeros[kKeys * kWide];
  const int32_t length = 2;
  float lse;
  uint64_t q, k, v, lengths, sums, out, workspace;
  int i;
  tw_latent_attention* attention = NULL;
  tw_latent_attention_problem problem;
  tw_latent_attention_arguments arguments;
  LOOK_UP(allocate, cu_mem_alloc, "cuMemAlloc_v2");
  LOOK_UP(copy_in, cu_memcpy_htod, "cuMemcpyHtoD_v2");
  LOOK_UP(copy_out, cu_memcpy_dtoh, "cuMemcpyDtoH_v2");
  memset(zeros, 0, sizeof zeros);
  memset(values, 0xff, sizeof values);
  for (i = 0; i < kWide; ++i) values[i] = 0, values[kWide + i] = 0x3f80;
  tw_latent_attention_problem_init(&problem);
  CHECK(problem.causal == 1 && problem.has_qv == 1 && problem.value_dim == 512);
  problem.value_dim = 100;
  CHECK(tw_latent_attention_create(device, &problem, &attention) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "value_dim = 100; expected 256 or 512") != NULL);
  problem.value_dim = kWide;
  problem.max_len = kKeys;
  problem.has_lse = 1;
  CHECK(tw_latent_attention_create(device, &problem, &attention) == TW_OK);
  CHECK(strstr(tw_latent_attention_plan_text(attention), "values of 256 that make") != NULL);
  CHECK(cu_mem_alloc(&q, sizeof zeros) == 0 && cu_mem_alloc(&out, kWide * 2) == 0);
  CHECK(cu_mem_alloc(&k, sizeof zeros) == 0 && cu_mem_alloc(&v, sizeof values) == 0);
  CHECK(cu_mem_alloc(&lengths, sizeof length) == 0 && cu_mem_alloc(&sums, sizeof lse) == 0);
  CHECK(cu_mem_alloc(&workspace, tw_latent_attention_workspace_bytes(attention) + 1) == 0);
  CHECK(cu_memcpy_htod(q, zeros, sizeof zeros) == 0);
  CHECK(cu_memcpy_htod(k, zeros, sizeof zeros) == 0);
  CHECK(cu_memcpy_htod(v, values, sizeof values) == 0);
  CHECK(cu_memcpy_htod(lengths, &length, sizeof length) == 0);
  tw_latent_attention_arguments_init(&arguments);
  arguments.q = at(q);
  CHECK(tw_latent_attention_run(attention, &arguments) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "the address of qv is null") != NULL);
  arguments.qv = at(q);
  arguments.k = at(k);
  arguments.v = at(v);
  arguments.lengths = at(lengths);
  arguments.out = at(out);
  arguments.lse = at(sums);
  arguments.workspace = at(workspace);
  CHECK(tw_latent_attention_run(attention, &arguments) == TW_OK);
  CHECK(tw_device_synchronize(device) == TW_OK);
  CHECK(cu_memcpy_dtoh(values, out, kWide * 2) == 0);
  CHECK(cu_memcpy_dtoh(&lse, sums, sizeof lse) == 0);
  for (i = 0; i < kWide; ++i) CHECK(values[i] == 0x3f00);
  CHECK(lse > 0.693146f && lse < 0.693148f); /* ln 2 */
  tw_latent_attention_destroy(attention);
  return 0;
}

static int check_all(const tw_device* device) {
  int line;
  LOOK_UP(set_context, cu_ctx_set_current, "cuCtxSetCurrent");
  CHECK(cu_ctx_set_current(tw_device_context(device)) == 0);
  line = check_prepare_refusals(device);
  if (line == 0) line = check_merge_and_lists(device);
  if (line == 0) line = check_append(device);
  if (line == 0) line = check_prepare(device);
  if (line == 0) line = check_decode_refusals(device);
  if (line == 0) line = check_decode(device);
  if (line == 0) line = check_latent(device);
  return line;
}

int check_attention_c_api(const char* spec) {
  tw_device* device = NULL;
  int line = 0;
  CHECK(tw_device_open(spec, &device) == TW_OK);
  line = check_all(device);
  tw_device_close(device);
  return line;
}
