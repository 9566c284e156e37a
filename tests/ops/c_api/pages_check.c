/* The C interface of attention over pages, compiled as C99: new tokens go to a cache, queries that
 * are packed attend over it, results are merged with others. Masks become lists. */
#include "tilewright/tilewright.h"

#include "tests/ops/c_api/check.h"
#include "tests/ops/c_api/device.h"

enum {
  kKeyDims = 40, /* no kernel has it: zeros come with the copies */
  kValueDims = 24,
  kPage = 4,
  kPages = 3,
  kNew = 3,
  kRows = 3
};
enum {
  kOne = 0x3f80,
  kFour = 0x4080,
  kFive = 0x40a0,
  kSix = 0x40c0,
  kEight = 0x4100,
  kTwo = 0x4000
};
static const float kLn2 = 0.6931472f;

static void* at(uint64_t address) {
  return (void*)(uintptr_t)address;
}
static int is_near(float x, float right) {
  return x > right - 1e-5f && x < right + 1e-5f;
}
static void fill(uint16_t* row, int n, uint16_t value) {
  int i;
  for (i = 0; i < n; ++i) row[i] = value;
}

/* Memory of the device with these bytes; 0: there is none. */
static uint64_t place(const tw_device* device, const void* data, size_t bytes) {
  uint64_t address = 0;
  allocate cu_mem_alloc;
  copy_in cu_memcpy_htod;
  void* found = tw_device_driver_function(device, "cuMemAlloc_v2");
  memcpy(&cu_mem_alloc, &found, sizeof found);
  found = tw_device_driver_function(device, "cuMemcpyHtoD_v2");
  memcpy(&cu_memcpy_htod, &found, sizeof found);
  if (cu_mem_alloc(&address, bytes) != 0 || cu_memcpy_htod(address, data, bytes) != 0) return 0;
  return address;
}

/* What the steps below share, on the device: two sequences, in pages 2 and 1. */
struct caches {
  uint64_t k, v, table, lengths;
};

/* Sequence 0 has two keys and gets one, sequence 1 gets two. All else is NaN. */
static int check_append(const tw_device* device, struct caches* caches) {
  uint16_t k[kPages * kPage * kKeyDims], v[kPages * kPage * kValueDims];
  uint16_t new_k[kNew * kKeyDims], new_v[kNew * kValueDims];
  const int32_t table[] = {2, 7, 1, -1}, lengths[] = {2, 0}, cu[] = {0, 1, 3};
  int32_t grown[] = {-1, -1};
  uint64_t new_lengths;
  tw_cache_append* append = NULL;
  tw_cache_append_problem problem;
  tw_cache_append_arguments arguments;
  LOOK_UP(copy_out, cu_memcpy_dtoh, "cuMemcpyDtoH_v2");
  memset(k, 0xff, sizeof k);
  memset(v, 0xff, sizeof v);
  memset(new_k, 0, sizeof new_k);
  fill(k + 2 * kPage * kKeyDims, 2 * kKeyDims, 0);
  fill(v + 2 * kPage * kValueDims, kValueDims, 0);
  fill(v + (2 * kPage + 1) * kValueDims, kValueDims, kOne);
  fill(new_v, kValueDims, kFour);
  fill(new_v + kValueDims, kValueDims, kTwo);
  fill(new_v + 2 * kValueDims, kValueDims, kEight);
  tw_cache_append_problem_init(&problem);
  problem.batch = 2;
  problem.head_dim = kKeyDims;
  problem.value_dim = kValueDims;
  problem.is_packed = problem.has_new_lengths = 1;
  problem.total_new = kNew;
  problem.page_size = kPage;
  problem.num_pages = kPages;
  problem.max_pages = 2;
  CHECK(tw_cache_append_create(device, &problem, &append) == TW_OK);
  tw_cache_append_arguments_init(&arguments);
  CHECK((caches->k = place(device, k, sizeof k)) != 0);
  CHECK((caches->v = place(device, v, sizeof v)) != 0);
  CHECK((caches->table = place(device, table, sizeof table)) != 0);
  CHECK((new_lengths = place(device, grown, sizeof grown)) != 0);
  arguments.new_k = at(place(device, new_k, sizeof new_k));
  arguments.new_v = at(place(device, new_v, sizeof new_v));
  arguments.k_cache = at(caches->k);
  arguments.v_cache = at(caches->v);
  arguments.lengths = at(place(device, lengths, sizeof lengths));
  arguments.new_lengths = at(new_lengths);
  arguments.block_table = at(caches->table);
  arguments.cu_new = at(place(device, cu, sizeof cu));
  CHECK(tw_cache_append_run(append, &arguments) == TW_OK);
  CHECK(tw_device_synchronize(device) == TW_OK);
  CHECK(cu_memcpy_dtoh(grown, new_lengths, sizeof grown) == 0);
  CHECK(grown[0] == 3 && grown[1] == 2);
  caches->lengths = new_lengths;
  tw_cache_append_destroy(append);
  return 0;
}

/* All scores are 0, so results are means. The query of sequence 0 stands at key 2, and its chunk of
 * two keys begins there: 4. That of sequence 1 sees both keys: 5. The third row is in no use. */
static int check_attention(const tw_device* device, const struct caches* caches, uint64_t* out,
                           uint64_t* lse) {
  uint16_t q[kRows * kKeyDims], results[kRows * kValueDims];
  float sums[kRows] = {7, 7, 7};
  const int32_t cu[] = {0, 1, 3}, used[] = {1, 1};
  size_t workspace_bytes;
  uint64_t workspace;
  int i;
  tw_attention* attention = NULL;
  tw_attention_problem problem;
  tw_attention_arguments arguments;
  LOOK_UP(allocate, cu_mem_alloc, "cuMemAlloc_v2");
  LOOK_UP(copy_out, cu_memcpy_dtoh, "cuMemcpyDtoH_v2");
  memset(q, 0, sizeof q);
  fill(results, kRows * kValueDims, kOne);
  tw_attention_problem_init(&problem);
  problem.batch = 2;
  problem.q_len = 2;
  problem.kv_len = 2 * kPage;
  problem.head_dim = kKeyDims;
  problem.value_dim = kValueDims;
  problem.is_packed = problem.has_q_lengths = problem.has_kv_lengths = problem.has_lse = 1;
  problem.total_q = kRows;
  problem.page_size = kPage;
  problem.num_pages = kPages;
  problem.max_pages = 2;
  problem.window_left = 1;
  problem.window_right = 0;
  problem.chunk = 2;
  CHECK(tw_attention_create(device, &problem, &attention) == TW_OK);
  workspace_bytes = tw_attention_workspace_bytes(attention);
  CHECK(cu_mem_alloc(&workspace, workspace_bytes + 1) == 0);
  tw_attention_arguments_init(&arguments);
  CHECK((*out = place(device, results, sizeof results)) != 0);
  CHECK((*lse = place(device, sums, sizeof sums)) != 0);
  arguments.q = at(place(device, q, sizeof q));
  arguments.k = at(caches->k);
  arguments.v = at(caches->v);
  arguments.out = at(*out);
  arguments.lse = at(*lse);
  arguments.cu_q = at(place(device, cu, sizeof cu));
  arguments.q_lengths = at(place(device, used, sizeof used));
  arguments.kv_lengths = at(caches->lengths);
  arguments.block_table = at(caches->table);
  arguments.workspace = at(workspace);
  CHECK(tw_attention_run(attention, &arguments) == TW_OK);
  CHECK(tw_device_synchronize(device) == TW_OK);
  CHECK(cu_memcpy_dtoh(results, *out, sizeof results) == 0);
  CHECK(cu_memcpy_dtoh(sums, *lse, sizeof sums) == 0);
  for (i = 0; i < kValueDims; ++i) {
    CHECK(results[i] == kFour && results[kValueDims + i] == kFive);
    CHECK(results[2 * kValueDims + i] == kOne);
  }
  CHECK(is_near(sums[0], 0) && is_near(sums[1], kLn2) && sums[2] == 7);
  tw_attention_destroy(attention);
  return 0;
}

/* With a part of values 8, which saw as many keys as the first row did, and none for the second. */
static int check_merge(const tw_device* device, uint64_t part, uint64_t part_lse) {
  uint16_t other[2 * kValueDims], results[2 * kValueDims];
  float other_lse[] = {0, 0}, sums[2];
  const uint32_t minus_infinity = 0xff800000u;
  int i;
  tw_attention_merge* merge = NULL;
  tw_attention_merge_problem problem;
  tw_attention_merge_arguments arguments;
  LOOK_UP(copy_out, cu_memcpy_dtoh, "cuMemcpyDtoH_v2");
  fill(other, 2 * kValueDims, kEight);
  memcpy(&other_lse[1], &minus_infinity, sizeof minus_infinity);
  tw_attention_merge_problem_init(&problem);
  problem.part_dtype = TW_BF16;
  problem.rows = 2;
  problem.head_dim = kValueDims;
  problem.has_lse = 1;
  CHECK(tw_attention_merge_create(device, &problem, &merge) == TW_OK);
  tw_attention_merge_arguments_init(&arguments);
  arguments.part_out = at(part);
  arguments.part_lse = at(part_lse);
  arguments.other_out = at(place(device, other, sizeof other));
  arguments.other_lse = at(place(device, other_lse, sizeof other_lse));
  arguments.out = at(part); /* in place */
  arguments.lse = at(part_lse);
  CHECK(tw_attention_merge_run(merge, &arguments) == TW_OK);
  CHECK(tw_device_synchronize(device) == TW_OK);
  CHECK(cu_memcpy_dtoh(results, part, sizeof results) == 0);
  CHECK(cu_memcpy_dtoh(sums, part_lse, sizeof sums) == 0);
  for (i = 0; i < kValueDims; ++i) CHECK(results[i] == kSix && results[kValueDims + i] == kFive);
  CHECK(is_near(sums[0], kLn2) && is_near(sums[1], kLn2));
  tw_attention_merge_destroy(merge);
  return 0;
}

static int check_lists(const tw_device* device) {
  const uint8_t mask[] = {0, 1, 1, 0, 9, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1};
  int32_t indices[9], lengths[3], totals[3];
  uint64_t lists, list_lengths, list_totals;
  tw_mask_lists* operation = NULL;
  tw_mask_lists_problem problem;
  tw_mask_lists_arguments arguments;
  LOOK_UP(copy_out, cu_memcpy_dtoh, "cuMemcpyDtoH_v2");
  memset(indices, 0x55, sizeof indices);
  tw_mask_lists_problem_init(&problem);
  problem.rows = 3;
  problem.keys = 5;
  problem.topk = 3;
  problem.has_totals = 1;
  CHECK(tw_mask_lists_create(device, &problem, &operation) == TW_OK);
  CHECK((lists = place(device, indices, sizeof indices)) != 0);
  CHECK((list_lengths = place(device, indices, sizeof lengths)) != 0);
  CHECK((list_totals = place(device, indices, sizeof totals)) != 0);
  tw_mask_lists_arguments_init(&arguments);
  arguments.mask = at(place(device, mask, sizeof mask));
  arguments.indices = at(lists);
  arguments.lengths = at(list_lengths);
  arguments.totals = at(list_totals);
  CHECK(tw_mask_lists_run(operation, &arguments) == TW_OK);
  CHECK(tw_device_synchronize(device) == TW_OK);
  CHECK(cu_memcpy_dtoh(indices, lists, sizeof indices) == 0);
  CHECK(cu_memcpy_dtoh(lengths, list_lengths, sizeof lengths) == 0);
  CHECK(cu_memcpy_dtoh(totals, list_totals, sizeof totals) == 0);
  CHECK(indices[0] == 1 && indices[1] == 2 && indices[2] == 4);
  CHECK(indices[3] == -1 && indices[4] == -1 && indices[5] == -1);
  CHECK(indices[6] == 0 && indices[7] == 1 && indices[8] == 2);
  CHECK(lengths[0] == 3 && lengths[1] == 0 && lengths[2] == 3);
  CHECK(totals[0] == 3 && totals[1] == 0 && totals[2] == 5);
  tw_mask_lists_destroy(operation);
  return 0;
}

static int check_all(const tw_device* device) {
  struct caches caches;
  uint64_t out, lse;
  int line;
  LOOK_UP(set_context, cu_ctx_set_current, "cuCtxSetCurrent");
  CHECK(cu_ctx_set_current(tw_device_context(device)) == 0);
  line = check_append(device, &caches);
  if (line == 0) line = check_attention(device, &caches, &out, &lse);
  if (line == 0) line = check_merge(device, out, lse);
  if (line == 0) line = check_lists(device);
  return line;
}

int check_pages_c_api(const char* spec) {
  tw_device* device = NULL;
  int line = 0;
  CHECK(tw_device_open(spec, &device) == TW_OK);
  line = check_all(device);
  tw_device_close(device);
  return line;
}
