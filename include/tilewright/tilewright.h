/* clang-format off */
/* Made by tools/make_c_api.py from tools/c_api; edit that.
 *
 * Tilewright for C99 and everything that calls C: the library libtilewright.so. Formulas, shapes
 * and rules of each member stand in the C++ header of the same operator (attention.h, linear.h,
 * moe.h, ...), under the same names.
 *
 * Every function that can fail returns a status; what went wrong is then the text of
 * tw_last_error(), of the calling thread. No call prints, exits or needs a current CUDA context.
 *
 *     tw_device* device;
 *     if (tw_device_open("auto", &device) != TW_OK) { puts(tw_last_error()); return 1; }
 *     tw_attention_problem problem;
 *     tw_attention_problem_init(&problem);
 *     problem.heads = problem.kv_heads = 16;
 *     problem.q_len = problem.kv_len = 4096;
 *     problem.head_dim = 128;
 *     problem.causal = 1;
 *     tw_attention* attention;
 *     if (tw_attention_create(device, &problem, &attention) != TW_OK) ...
 *     tw_attention_arguments arguments;
 *     tw_attention_arguments_init(&arguments);
 *     arguments.q = q; ...                                 // device addresses
 *     arguments.workspace = ...;                           // tw_attention_workspace_bytes() of it
 *     arguments.stream = stream;                           // CUstream or cudaStream_t
 *     if (tw_attention_run(attention, &arguments) != TW_OK) ...
 *
 * Structs grow: new members come at their end, and existing ones stay where they are. Every struct
 * begins with struct_bytes, its size in the header that the program was compiled with, which
 * tw_NAME_init() fills in beside the defaults, also of the structs inside of it. A program
 * compiled with an older header runs with a newer library; members that it does not know have their
 * defaults. One compiled with a newer header runs with an older library as long as the members that
 * this does not know are 0; else the call is refused.
 *
 * Functions that run an operator only enqueue work on the stream: they allocate nothing, wait for
 * nothing and may be captured in a CUDA graph. Several threads may call them if workspaces and
 * outputs differ. Texts of an operator are valid as long as the operator. */
#ifndef TILEWRIGHT_TILEWRIGHT_H
#define TILEWRIGHT_TILEWRIGHT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TW_API __attribute__((visibility("default")))
#else
#define TW_API
#endif

/* ----------------------------------------------------------------------------------------------
 * Status and devices
 */

typedef enum tw_status {
  TW_OK = 0,
  TW_INVALID_ARGUMENT = 1, /* the call makes no sense; fix it */
  TW_UNSUPPORTED = 2, /* it makes sense, but nothing here can do it */
  TW_OUT_OF_MEMORY = 3,
  TW_DEVICE_ERROR = 4, /* the driver or the device reported a failure */
  TW_PARSE_ERROR = 5,
  TW_CHECK_FAILED = 6,
  TW_INTERNAL = 7 /* a defect in Tilewright; please report it */
} tw_status;
/* Text of the calling thread's last failure; "" if there was none. Valid until its next failure. */
TW_API const char* tw_last_error(void);
/* "0.1.0" */
TW_API const char* tw_version(void);
/* The commit that the library was built from, "cad4f89822a4", with "-dirty" behind it if its
 * sources had changed since; "unknown" outside a checkout. */
TW_API const char* tw_commit(void);

typedef struct tw_device tw_device;
/* "auto", "cuda", "cuda:N", "sim:h200", "sim:b200", "sim:b300"; NULL or "": what
 * TILEWRIGHT_DEVICE says, else auto. "plan:h200", "plan:b200", "plan:b300": no device, but what
 * is known of it, for tw_NAME_plan() alone; everything else is refused. The device's primary
 * context is used, as by the CUDA runtime: addresses and streams of cudaMalloc, PyTorch, ... can
 * be passed as they are. */
TW_API tw_status tw_device_open(const char* spec, tw_device** device);
/* Operators made on the device stay valid. NULL is allowed, here and in every destroy function. */
TW_API void tw_device_close(tw_device* device);
/* One line: name, compute capability, SMs, memory, driver. Valid as long as the device. */
TW_API const char* tw_device_description(const tw_device* device);
/* 1 if kernels run on the CPU; their run time then says nothing about a GPU. */
TW_API int tw_device_is_simulated(const tw_device* device);
/* 0 if it was opened to plan alone. */
TW_API int tw_device_can_run(const tw_device* device);
/* Its CUcontext; NULL if it plans alone. */
TW_API void* tw_device_context(const tw_device* device);
/* A function of its driver by exported name ("cuMemAlloc_v2"), NULL if the driver lacks it: the
 * way to allocate memory on a simulated device. */
TW_API void* tw_device_driver_function(const tw_device* device, const char* exported_name);
/* Waits for all work on the device. */
TW_API tw_status tw_device_synchronize(const tw_device* device);

/* ----------------------------------------------------------------------------------------------
 * Plans
 */

/* What an operator would do with a problem, or every reason why it cannot: tw_NAME_plan() makes
 * one, without loading a kernel, also on a device that plans alone ("plan:h200"). Its result
 * says whether the problem can be done. If it is TW_INVALID_ARGUMENT or TW_UNSUPPORTED, *plan
 * has the reasons; *plan is NULL only if an address is missing or the device failed. Texts of a
 * plan are valid as long as the plan. */
typedef struct tw_plan tw_plan;

/* One thing that is wrong. */
typedef struct tw_reason {
  size_t struct_bytes;
  const char* field; /* of the problem: "head_dim", "fp8.scales"; or "kernel", or "device" */
  const char* value; /* as it is: "96"; the name of the kernel or of the device */
  const char* rule; /* what was expected: "64, 128 or 256"; what the kernel or the device lacks */
  const char* fix; /* what to do: "Pad with zeros."; "" if the rule says it */
} tw_reason;

/* One kernel that could do the problem, or not. */
typedef struct tw_candidate {
  size_t struct_bytes;
  const char* name;
  const char* reason; /* why it is not possible, or not chosen; "" for the chosen one */
  int32_t is_possible;
  int32_t is_automatic; /* possible, and "auto" may take it */
  int32_t is_chosen;
  int32_t reserved;
  /* expected time, by which "auto" chooses; infinity: never measured; 0: not possible */
  double cost_us;
} tw_candidate;

/* One kernel launch. */
typedef struct tw_launch {
  size_t struct_bytes;
  const char* step; /* what it does for the operator: "attend", "quantize" */
  const char* entry; /* as `tilewright kernels` lists it */
  int32_t grid_x, grid_y, grid_z;
  int32_t block_x, block_y, block_z;
  int32_t cluster; /* CTAs along x */
  int32_t shared_bytes; /* dynamic */
} tw_launch;
TW_API void tw_plan_destroy(tw_plan* plan);
/* What tw_NAME_plan() returned. */
TW_API tw_status tw_plan_status(const tw_plan* plan);
/* The plan for people, with all candidates; or the text of the refusal. */
TW_API const char* tw_plan_text(const tw_plan* plan);
/* Name of the chosen candidate; "" where there is nothing to choose. */
TW_API const char* tw_plan_kernel(const tw_plan* plan);
TW_API size_t tw_plan_workspace_bytes(const tw_plan* plan);
/* Of all products. */
TW_API double tw_plan_flops(const tw_plan* plan);
/* Each operand and result once. */
TW_API double tw_plan_bytes(const tw_plan* plan);
/* Of flops and bytes: "full caches"; "" if they are exact. */
TW_API const char* tw_plan_assumption(const tw_plan* plan);
TW_API size_t tw_plan_num_reasons(const tw_plan* plan);
/* Fills in a struct that tw_reason_init() has made; so do the next two. */
TW_API tw_status tw_plan_reason(const tw_plan* plan, size_t index, tw_reason* reason);
TW_API size_t tw_plan_num_candidates(const tw_plan* plan);
TW_API tw_status tw_plan_candidate(const tw_plan* plan, size_t index, tw_candidate* candidate);
TW_API size_t tw_plan_num_launches(const tw_plan* plan);
TW_API tw_status tw_plan_launch(const tw_plan* plan, size_t index, tw_launch* launch);

/* ----------------------------------------------------------------------------------------------
 * Attention
 */

/* Type of the elements of an operand. */
typedef enum tw_dtype {
  TW_BF16 = 0,
  TW_F16 = 1,
  TW_F32 = 2,
  TW_E4M3 = 3,
  TW_E8M0 = 4,
  TW_F4 = 5, /* two e2m1 in a byte */
  TW_ABSENT = -1 /* where a member says what that means */
} tw_dtype;

/* What shares a scale: the scale granularity. Each member says which of them it takes. */
typedef enum tw_scale_sharing {
  TW_SCALE_SHARING_AUTO = 0, /* what fits the other operand */
  TW_SCALE_SHARING_NONE = 1, /* there are no scales */
  TW_SCALE_SHARING_TENSOR = 2,
  TW_SCALE_SHARING_HEAD = 3,
  TW_SCALE_SHARING_ROW = 4,
  TW_SCALE_SHARING_BLOCK = 5
} tw_scale_sharing;

/* How e4m3 values lie in memory. */
typedef enum tw_fp8_value_layout {
  TW_FP8_VALUE_LAYOUT_ROWS = 0, /* as keys */
  TW_FP8_VALUE_LAYOUT_COLUMNS = 1 /* transposed and permuted, as tw_attention_prepare writes them */
} tw_fp8_value_layout;

/* What adds up e4m3 products of probabilities and values. */
typedef enum tw_fp8_accumulation {
  TW_FP8_ACCUMULATION_AUTO = 0,
  TW_FP8_ACCUMULATION_ONE_LEVEL = 1,
  TW_FP8_ACCUMULATION_TWO_LEVEL = 2
} tw_fp8_accumulation;

/* Which elements of a head one angle turns. */
typedef enum tw_rotary_pairs {
  TW_ROTARY_PAIRS_NONE = 0,
  TW_ROTARY_PAIRS_INTERLEAVED = 1, /* 2 i and 2 i + 1 */
  TW_ROTARY_PAIRS_HALVES = 2 /* i and i + rotary_dim / 2 */
} tw_rotary_pairs;

/* Elements from one batch, row, head to the next; all 0: contiguous, head_dim innermost. */
typedef struct tw_strides {
  size_t struct_bytes;
  int64_t batch, row, head;
} tw_strides;

typedef struct tw_fp8_options {
  size_t struct_bytes;
  /* tw_scale_sharing: TW_SCALE_SHARING_TENSOR, TW_SCALE_SHARING_HEAD or TW_SCALE_SHARING_BLOCK;
   * of e4m3 operands; default TW_SCALE_SHARING_TENSOR */
  int32_t scales;
  int32_t v_layout; /* tw_fp8_value_layout; of e4m3 operands */
  int32_t accumulation; /* tw_fp8_accumulation; whenever a kernel computes in e4m3 */
  int32_t reserved;
} tw_fp8_options;

typedef struct tw_attention_problem {
  size_t struct_bytes;
  int32_t dtype; /* TW_BF16, TW_F16 or TW_E4M3; of q, k and v */
  int64_t batch, heads, kv_heads; /* default 1 */
  int64_t q_len, kv_len; /* of every sequence; of the longest if packed */
  int64_t head_dim;
  double scale; /* 0: head_dim^-0.5 */
  int32_t causal;
  int64_t window_left, window_right; /* visible keys before and after; -1: all; default -1 */
  double softcap; /* 0: none; at most 4096 */
  int32_t has_sink, has_lse;
  int32_t is_packed; /* lengths come as cu_q and cu_kv */
  int64_t total_q, total_kv; /* rows of packed tensors */
  tw_strides q_strides, k_strides, v_strides, out_strides;
  const char* kernel; /* NULL or "auto", or a name such as "k6" */
  int32_t out_dtype; /* TW_BF16 or TW_F16; of e4m3 operands; TW_ABSENT: bf16, or dtype */
  int32_t reserved;
  tw_fp8_options fp8;
  int32_t has_q_lengths, has_kv_lengths; /* lengths that only the device knows */
  int64_t page_size; /* keys; 0: no pages */
  int64_t num_pages, max_pages; /* in all, and of a sequence */
  int64_t table_stride; /* 0: max_pages */
  int64_t value_dim; /* of v and out; 0: head_dim */
  int64_t chunk; /* keys of a chunk: a query sees those of its own alone; 0: all keys are one */
  /* TW_BF16, TW_F16 or TW_E4M3; of k and v: TW_ABSENT for dtype, or TW_E4M3 beside queries of 16
   * bits */
  int32_t kv_dtype;
  int32_t reserved2;
} tw_attention_problem;

/* Device addresses; NULL where the problem does not need it. */
typedef struct tw_attention_arguments {
  size_t struct_bytes;
  const void *q, *k, *v;
  void* out;
  float* lse; /* [batch, heads, q_len]; packed [heads, total_q] */
  const float* sink; /* [heads] */
  const int32_t *cu_q, *cu_kv; /* [batch + 1] */
  void* workspace; /* 256-byte aligned */
  void* stream; /* CUstream; NULL: the default stream */
  const float *q_descale, *k_descale, *v_descale; /* scales of e4m3 operands */
  const float* v_descale_max; /* with scales of blocks: [batch, kv_heads] */
  const int32_t *q_lengths, *kv_lengths; /* [batch] */
  const int32_t* block_table; /* [batch, max_pages] */
} tw_attention_arguments;

/* Attention over whole sequences. */
typedef struct tw_attention tw_attention;
TW_API tw_status tw_attention_create(const tw_device* device, const tw_attention_problem* problem,
                                     tw_attention** attention);
TW_API tw_status tw_attention_plan(const tw_device* device, const tw_attention_problem* problem,
                                   tw_plan** plan);
TW_API void tw_attention_destroy(tw_attention* attention);
TW_API const char* tw_attention_plan_text(const tw_attention* attention);
TW_API const char* tw_attention_kernel(const tw_attention* attention);
TW_API size_t tw_attention_workspace_bytes(const tw_attention* attention);
/* 2 * (head_dim + value_dim) for every visible score. */
TW_API double tw_attention_flops(const tw_attention* attention);
TW_API tw_status tw_attention_run(const tw_attention* attention,
                                  const tw_attention_arguments* arguments);

/* ----------------------------------------------------------------------------------------------
 * Merging partial results of attention
 */

typedef struct tw_attention_merge_problem {
  size_t struct_bytes;
  int32_t part_dtype; /* TW_F32, TW_BF16 or TW_F16; of parts; default TW_F32 */
  int32_t out_dtype; /* TW_F32, TW_BF16 or TW_F16; default TW_BF16 */
  int64_t parts; /* 1 to 1024; default 2 */
  int64_t batch; /* default 1 */
  int64_t rows;
  int64_t heads; /* default 1 */
  int64_t head_dim; /* a multiple of 8 up to 4096 */
  int32_t has_sink, has_lse;
  int64_t part_stride, lse_part_stride; /* elements from part to part; 0: contiguous */
  tw_strides part_strides, out_strides;
  tw_strides lse_part_strides, lse_strides; /* all 0: contiguous, [.., heads, rows] */
  tw_strides other_strides, lse_other_strides; /* of a second part elsewhere; all 0: as the first */
} tw_attention_merge_problem;

/* Device addresses; NULL where the problem does not need it. */
typedef struct tw_attention_merge_arguments {
  size_t struct_bytes;
  const void* part_out; /* [parts, batch, rows, heads, head_dim], or the first of two */
  const float* part_lse; /* [parts, batch, heads, rows], or the first of two */
  const void* other_out; /* of two parts in memory of their own, the second */
  const float* other_lse;
  void* out; /* [batch, rows, heads, head_dim] */
  float* lse; /* [batch, heads, rows] */
  const float* sink; /* [heads] */
  void* stream; /* CUstream; NULL: the default stream */
} tw_attention_merge_arguments;

/* Partial results of attention over parts of the keys, merged into that over all of them. */
typedef struct tw_attention_merge tw_attention_merge;
TW_API tw_status tw_attention_merge_create(const tw_device* device,
                                           const tw_attention_merge_problem* problem,
                                           tw_attention_merge** merge);
TW_API tw_status tw_attention_merge_plan(const tw_device* device,
                                         const tw_attention_merge_problem* problem, tw_plan** plan);
TW_API void tw_attention_merge_destroy(tw_attention_merge* merge);
TW_API const char* tw_attention_merge_plan_text(const tw_attention_merge* merge);
TW_API double tw_attention_merge_bytes(const tw_attention_merge* merge);
TW_API tw_status tw_attention_merge_run(const tw_attention_merge* merge,
                                        const tw_attention_merge_arguments* arguments);

/* ----------------------------------------------------------------------------------------------
 * Preparing e4m3 operands of attention
 */

typedef struct tw_attention_prepare_problem {
  size_t struct_bytes;
  int32_t dtype; /* TW_BF16 or TW_F16; of what is read */
  int64_t batch, heads, kv_heads; /* default 1 */
  int64_t q_len, kv_len; /* of every sequence; of the longest if packed */
  int64_t head_dim; /* 64, 128 or 256 */
  int32_t is_packed; /* lengths come as cu_q and cu_kv */
  int64_t total_q, total_kv; /* rows of packed tensors */
  tw_strides q_strides, k_strides, v_strides;
  tw_strides q8_strides, k8_strides, v8_strides; /* of the quantised values */
  /* tw_scale_sharing: TW_SCALE_SHARING_TENSOR, TW_SCALE_SHARING_HEAD or TW_SCALE_SHARING_BLOCK;
   * default TW_SCALE_SHARING_BLOCK */
  int32_t scales;
  int32_t v_layout; /* tw_fp8_value_layout; default TW_FP8_VALUE_LAYOUT_COLUMNS */
  int32_t is_rotated; /* default 1 */
  uint64_t sign_seed;
  int32_t rope; /* tw_rotary_pairs */
  int64_t rotary_dim; /* 0: head_dim */
  int64_t rope_positions; /* rows of the table of angles */
  int32_t has_positions; /* positions come as lists */
  int32_t reserved;
} tw_attention_prepare_problem;

/* Device addresses; NULL where the problem does not need it. */
typedef struct tw_attention_prepare_arguments {
  size_t struct_bytes;
  const void *q, *k, *v;
  void *q8, *k8, *v8;
  float *q_descale, *k_descale, *v_descale;
  float* v_descale_max; /* with scales of blocks */
  const int32_t *cu_q, *cu_kv; /* [batch + 1] */
  const float* rope; /* [rope_positions, rotary_dim]: cosines, then sines */
  const int32_t *q_positions, *k_positions;
  void* workspace; /* 256-byte aligned */
  void* stream; /* CUstream; NULL: the default stream */
} tw_attention_prepare_arguments;

/* What the results of tw_attention_prepare need. */
typedef struct tw_attention_operand_sizes {
  size_t struct_bytes;
  size_t q8_bytes, k8_bytes, v8_bytes;
  size_t num_q_descales, num_k_descales, num_v_descales;
  size_t num_v_descale_max;
  size_t workspace_bytes;
} tw_attention_operand_sizes;

/* E4m3 operands of attention: rotated, scaled, quantised. */
typedef struct tw_attention_prepare tw_attention_prepare;
TW_API tw_status tw_attention_prepare_create(const tw_device* device,
                                             const tw_attention_prepare_problem* problem,
                                             tw_attention_prepare** prepare);
TW_API tw_status tw_attention_prepare_plan(const tw_device* device,
                                           const tw_attention_prepare_problem* problem,
                                           tw_plan** plan);
TW_API void tw_attention_prepare_destroy(tw_attention_prepare* prepare);
TW_API const char* tw_attention_prepare_plan_text(const tw_attention_prepare* prepare);
TW_API tw_status tw_attention_prepare_run(const tw_attention_prepare* prepare,
                                          const tw_attention_prepare_arguments* arguments);
/* Fills in sizes, which tw_attention_operand_sizes_init() has made. */
TW_API tw_status tw_attention_prepare_sizes(const tw_attention_prepare* prepare,
                                            tw_attention_operand_sizes* sizes);
/* The signs of a rotation, for a caller that rotates elsewhere: signs[head_dim], on the host. */
TW_API tw_status tw_attention_prepare_signs(uint64_t seed, int64_t head_dim, float* signs);

/* ----------------------------------------------------------------------------------------------
 * Decode attention
 */

/* New keys and values, which are written before attention. */
typedef struct tw_decode_append {
  size_t struct_bytes;
  int32_t is_wanted;
  int32_t rotary; /* tw_rotary_pairs */
  int64_t rotary_dim;
  int64_t max_position; /* rows of cos and sin */
} tw_decode_append;

typedef struct tw_attention_decode_problem {
  size_t struct_bytes;
  int32_t dtype; /* TW_BF16 or TW_F16; of q, out, new_k and new_v */
  int32_t kv_dtype; /* TW_BF16, TW_F16 or TW_E4M3; dtype or TW_E4M3 */
  int64_t batch, q_len, heads, kv_heads; /* default 1 */
  int64_t head_dim;
  int64_t max_len; /* without pages */
  int64_t page_size; /* 0: no pages */
  int64_t num_pages, max_pages;
  int64_t table_stride; /* 0: max_pages */
  double scale; /* 0: head_dim^-0.5 */
  int32_t causal; /* default 1 */
  int64_t window_left; /* -1: all; default -1 */
  double softcap; /* 0: none */
  /* tw_scale_sharing: TW_SCALE_SHARING_NONE, TW_SCALE_SHARING_TENSOR or TW_SCALE_SHARING_HEAD;
   * of an e4m3 cache; default TW_SCALE_SHARING_NONE */
  int32_t descale;
  int32_t has_sink, has_lse;
  tw_decode_append append;
  tw_strides q_strides, out_strides, new_k_strides, new_v_strides;
  tw_strides cache_strides; /* batch: from page to page */
  int64_t splits; /* 0: by the lengths */
  const char* kernel; /* NULL or "auto", or a name that the plan's text lists */
  int64_t chunk; /* keys of a chunk: a query sees those of its own alone; 0: all keys are one */
} tw_attention_decode_problem;

/* Device addresses; NULL where the problem does not need it. */
typedef struct tw_attention_decode_arguments {
  size_t struct_bytes;
  const void* q;
  void *k_cache, *v_cache;
  const int32_t* lengths;
  const int32_t* block_table;
  const float *k_descale, *v_descale;
  const void *new_k, *new_v;
  const float* cos; /* with append and rotary pairs [max_position, rotary_dim / 2] */
  const float* sin;
  void* out;
  float* lse;
  const float* sink;
  void* workspace; /* 256-byte aligned */
  void* stream; /* CUstream; NULL: the default stream */
} tw_attention_decode_arguments;

/* Attention of a few new tokens over long caches. */
typedef struct tw_attention_decode tw_attention_decode;
TW_API tw_status tw_attention_decode_create(const tw_device* device,
                                            const tw_attention_decode_problem* problem,
                                            tw_attention_decode** decode);
TW_API tw_status tw_attention_decode_plan(const tw_device* device,
                                          const tw_attention_decode_problem* problem,
                                          tw_plan** plan);
TW_API void tw_attention_decode_destroy(tw_attention_decode* decode);
TW_API const char* tw_attention_decode_plan_text(const tw_attention_decode* decode);
TW_API const char* tw_attention_decode_kernel(const tw_attention_decode* decode);
TW_API size_t tw_attention_decode_workspace_bytes(const tw_attention_decode* decode);
TW_API tw_status tw_attention_decode_run(const tw_attention_decode* decode,
                                         const tw_attention_decode_arguments* arguments);

/* ----------------------------------------------------------------------------------------------
 * New keys and values in caches
 */

typedef struct tw_cache_append_problem {
  size_t struct_bytes;
  /* TW_BF16, TW_F16 or TW_E4M3; of q, new_k and new_v; TW_E4M3: codes, copied as they are */
  int32_t dtype;
  int32_t kv_dtype; /* TW_BF16, TW_F16 or TW_E4M3; dtype or TW_E4M3 */
  int64_t batch, kv_heads; /* default 1 */
  int64_t new_len; /* new tokens of every sequence; 0 if they are packed */
  int64_t head_dim, value_dim; /* multiples of 8; value_dim 0: head_dim */
  int32_t is_packed; /* cu_new says whose the new tokens are */
  int32_t reserved;
  int64_t total_new; /* rows of packed new_k */
  int64_t heads; /* of q; 0: no queries are turned */
  int64_t q_len; /* of every sequence; 0 if they are packed */
  int32_t is_q_packed;
  int32_t reserved2;
  int64_t total_q; /* rows of packed q */
  int64_t max_len; /* without pages */
  int64_t page_size; /* 0: no pages */
  int64_t num_pages, max_pages;
  int64_t table_stride; /* 0: max_pages */
  /* tw_scale_sharing: TW_SCALE_SHARING_NONE, TW_SCALE_SHARING_TENSOR or TW_SCALE_SHARING_HEAD;
   * of an e4m3 cache; default TW_SCALE_SHARING_NONE */
  int32_t descale;
  int32_t rotary; /* tw_rotary_pairs */
  int64_t rotary_dim; /* a multiple of 16 up to head_dim */
  int64_t max_position; /* rows of cos and sin */
  int32_t has_rotary_lengths; /* positions count from rotary_lengths */
  int32_t is_one_position; /* all queries of a sequence turn as its first */
  int32_t has_new_lengths; /* new_lengths is written */
  int32_t reserved3;
  tw_strides q_strides, turned_q_strides, new_k_strides, new_v_strides;
  tw_strides k_cache_strides, v_cache_strides; /* batch: from page to page */
} tw_cache_append_problem;

/* Device addresses; NULL where the problem does not need it. */
typedef struct tw_cache_append_arguments {
  size_t struct_bytes;
  const void *q, *new_k, *new_v;
  void* turned_q;
  void *k_cache, *v_cache;
  const int32_t* lengths;
  const int32_t* rotary_lengths;
  int32_t* new_lengths;
  const int32_t* block_table;
  const int32_t *cu_new, *cu_q; /* [batch + 1] */
  const float *k_descale, *v_descale;
  const float* cos; /* [max_position, rotary_dim / 2] */
  const float* sin;
  void* stream; /* CUstream; NULL: the default stream */
} tw_cache_append_arguments;

/* New keys and values written to caches, any number of them for any number of queries. */
typedef struct tw_cache_append tw_cache_append;
TW_API tw_status tw_cache_append_create(const tw_device* device,
                                        const tw_cache_append_problem* problem,
                                        tw_cache_append** append);
TW_API tw_status tw_cache_append_plan(const tw_device* device,
                                      const tw_cache_append_problem* problem, tw_plan** plan);
TW_API void tw_cache_append_destroy(tw_cache_append* append);
TW_API const char* tw_cache_append_plan_text(const tw_cache_append* append);
TW_API double tw_cache_append_bytes(const tw_cache_append* append);
TW_API tw_status tw_cache_append_run(const tw_cache_append* append,
                                     const tw_cache_append_arguments* arguments);

/* ----------------------------------------------------------------------------------------------
 * Linear layers
 */

/* How a weight, a cache or keys of the indexer store numbers. */
typedef enum tw_number_format {
  TW_NUMBER_FORMAT_BF16 = 0,
  TW_NUMBER_FORMAT_FP8 = 1, /* e4m3 */
  TW_NUMBER_FORMAT_MXFP4 = 2, /* e2m1, a ue8m0 scale for each 32 */
  TW_NUMBER_FORMAT_NVFP4 = 3 /* e2m1, an e4m3 scale for each 16 */
} tw_number_format;

/* What the tensor cores multiply a weight with. */
typedef enum tw_linear_activations {
  TW_LINEAR_ACTIVATIONS_BF16 = 0, /* as they are */
  TW_LINEAR_ACTIVATIONS_FP8 = 1, /* rounded to e4m3 */
  TW_LINEAR_ACTIVATIONS_BLOCK_SCALED = 2 /* on Blackwell: NVFP4 by NVFP4 weights, MXFP8 by others */
} tw_linear_activations;

/* The order of one-byte block scales in memory. */
typedef enum tw_scale_order {
  TW_SCALE_ORDER_PLAIN = 0,
  TW_SCALE_ORDER_128X4 = 1 /* as Blackwell's tensor cores read them */
} tw_scale_order;

/* As tilewright::LinearWeightSource and the activations that the weight is prepared for.
 * Addresses are host addresses, or all of the device. */
typedef struct tw_linear_weight_source {
  size_t struct_bytes;
  int32_t format; /* tw_number_format; default TW_NUMBER_FORMAT_NVFP4 */
  int32_t activations; /* tw_linear_activations */
  int64_t n, k; /* out and in features */
  const void* values; /* [n, k]: bf16, e4m3, or two e2m1 in a byte */
  const void* scales; /* NULL for bf16 */
  int32_t scale_dtype; /* TW_F32 or TW_E8M0; of fp8; default TW_F32 */
  int32_t scale_order; /* tw_scale_order; of the 4-bit formats */
  float global_scale; /* of nvfp4; 0: missing */
  int32_t is_global_scale_reciprocal;
  int32_t accepts_any_global_scale;
  int32_t reserved;
  /* for block-scaled weights: values are a gate's, these those of up; or NULL */
  const void* up_values;
  const void* up_scales; /* the same for scales */
  /* of rows, each of which takes k columns of x of its own; for tw_linear; default 1 */
  int64_t groups;
} tw_linear_weight_source;

typedef struct tw_linear_weight tw_linear_weight;
/* Checks and reorders the weight and copies it to the device. */
TW_API tw_status tw_linear_weight_prepare(const tw_device* device,
                                          const tw_linear_weight_source* source,
                                          tw_linear_weight** weight);
/* Operators made on the weight stay valid. NULL is allowed. */
TW_API void tw_linear_weight_destroy(tw_linear_weight* weight);
TW_API size_t tw_linear_weight_bytes(const tw_linear_weight* weight);

/* What a plan depends on. */
typedef struct tw_linear_weight_info {
  size_t struct_bytes;
  int32_t format; /* tw_number_format; default TW_NUMBER_FORMAT_NVFP4 */
  int32_t activations; /* tw_linear_activations */
  int64_t n, k; /* out and in features */
  int64_t groups; /* of rows; default 1 */
} tw_linear_weight_info;

typedef struct tw_linear_problem {
  size_t struct_bytes;
  int64_t m;
  int32_t x_dtype; /* TW_BF16 or TW_E4M3; TW_E4M3: with x_scales, for FP8 activations */
  /* tw_scale_sharing: TW_SCALE_SHARING_AUTO, TW_SCALE_SHARING_ROW or TW_SCALE_SHARING_BLOCK; of
   * FP8 activations; blocks of 128 */
  int32_t activation_scales;
  int32_t out_dtype; /* TW_BF16 or TW_F32 */
  int32_t has_bias;
  int64_t x_stride, out_stride; /* elements from row to row; 0: contiguous */
  const char* kernel; /* NULL or "auto", or a name that the plan's text lists */
} tw_linear_problem;

/* Device addresses; NULL where the problem does not need it. */
typedef struct tw_linear_arguments {
  size_t struct_bytes;
  const void* x;
  const float* x_scales;
  const float* bias; /* [n] */
  void* out;
  void* workspace; /* 256-byte aligned */
  void* stream; /* CUstream; NULL: the default stream */
} tw_linear_arguments;

/* Linear layers with weights of 4, 8 or 16 bits. */
typedef struct tw_linear tw_linear;
TW_API tw_status tw_linear_create(const tw_linear_weight* weight, const tw_linear_problem* problem,
                                  tw_linear** linear);
TW_API tw_status tw_linear_plan(const tw_device* device, const tw_linear_weight_info* weight,
                                const tw_linear_problem* problem, tw_plan** plan);
TW_API void tw_linear_destroy(tw_linear* linear);
TW_API const char* tw_linear_plan_text(const tw_linear* linear);
TW_API const char* tw_linear_kernel(const tw_linear* linear);
TW_API size_t tw_linear_workspace_bytes(const tw_linear* linear);
/* 2 m n k. */
TW_API double tw_linear_flops(const tw_linear* linear);
/* Weight, x and out, each once. */
TW_API double tw_linear_bytes(const tw_linear* linear);
TW_API tw_status tw_linear_run(const tw_linear* linear, const tw_linear_arguments* arguments);

/* ----------------------------------------------------------------------------------------------
 * Block-scaled linear layers
 */

typedef struct tw_block_scaled_weight tw_block_scaled_weight;
/* Checks a weight, pads and reorders it for Blackwell's tensor cores, and copies it to the
 * device; `activations` does not count. */
TW_API tw_status tw_block_scaled_weight_prepare(const tw_device* device,
                                                const tw_linear_weight_source* source,
                                                tw_block_scaled_weight** weight);
/* Operators made on the weight stay valid. NULL is allowed. */
TW_API void tw_block_scaled_weight_destroy(tw_block_scaled_weight* weight);
TW_API size_t tw_block_scaled_weight_bytes(const tw_block_scaled_weight* weight);

/* What a plan depends on. */
typedef struct tw_block_scaled_weight_info {
  size_t struct_bytes;
  int32_t format; /* tw_number_format; default TW_NUMBER_FORMAT_NVFP4 */
  int64_t n, k; /* out and in features; n of a gate and up together */
  int32_t is_gate_up; /* rows are a gate's and up's: results are SwiGLU of both */
  int32_t reserved;
} tw_block_scaled_weight_info;

typedef struct tw_block_scaled_problem {
  size_t struct_bytes;
  int64_t m;
  /* TW_BF16, TW_F4 or TW_E4M3; TW_F4: NVFP4, TW_E4M3: MXFP8 of a gate and up, with scales */
  int32_t out_dtype;
  int64_t x_row_bytes, out_row_bytes; /* from row to row; 0: contiguous */
  const char* kernel; /* NULL or "auto", or a name that the plan's text lists */
  double swiglu_limit; /* of a gate and up; 0: none */
} tw_block_scaled_problem;

/* Device addresses; NULL where the problem does not need it. Scales are in 128x4 order. */
typedef struct tw_block_scaled_arguments {
  size_t struct_bytes;
  const void* x; /* codes as the weight's format wants them: e2m1 for nvfp4, else e4m3 */
  const void* x_scales; /* e4m3 for 16, or ue8m0 for 32 */
  void* out;
  void* out_scales; /* of TW_F4 and TW_E4M3 */
  float x_tensor_scale; /* scale of x; default 1 */
  float out_encode_scale; /* TW_F4: out is stored times this; default 1 */
  void* stream; /* CUstream; NULL: the default stream */
} tw_block_scaled_arguments;

/* Linear layers on Blackwell's block-scaled tensor cores: activations and weights as they are. */
typedef struct tw_block_scaled_linear tw_block_scaled_linear;
TW_API tw_status tw_block_scaled_linear_create(const tw_block_scaled_weight* weight,
                                               const tw_block_scaled_problem* problem,
                                               tw_block_scaled_linear** linear);
TW_API tw_status tw_block_scaled_linear_plan(const tw_device* device,
                                             const tw_block_scaled_weight_info* weight,
                                             const tw_block_scaled_problem* problem,
                                             tw_plan** plan);
TW_API void tw_block_scaled_linear_destroy(tw_block_scaled_linear* linear);
TW_API const char* tw_block_scaled_linear_plan_text(const tw_block_scaled_linear* linear);
TW_API const char* tw_block_scaled_linear_kernel(const tw_block_scaled_linear* linear);
/* What a call reads. */
TW_API size_t tw_block_scaled_linear_x_bytes(const tw_block_scaled_linear* linear);
TW_API size_t tw_block_scaled_linear_x_scales_bytes(const tw_block_scaled_linear* linear);
/* What it writes. */
TW_API size_t tw_block_scaled_linear_out_bytes(const tw_block_scaled_linear* linear);
TW_API size_t tw_block_scaled_linear_out_scales_bytes(const tw_block_scaled_linear* linear);
/* 2 m n k. */
TW_API double tw_block_scaled_linear_flops(const tw_block_scaled_linear* linear);
/* Weight, x, out and scales, each once. */
TW_API double tw_block_scaled_linear_bytes(const tw_block_scaled_linear* linear);
TW_API tw_status tw_block_scaled_linear_run(const tw_block_scaled_linear* linear,
                                            const tw_block_scaled_arguments* arguments);

/* ----------------------------------------------------------------------------------------------
 * Quantising
 */

typedef struct tw_quantize_problem {
  size_t struct_bytes;
  const char* format; /* NULL: "nvfp4"; "mxfp4", "fp8_1x128", "fp8_token", "fp8_128x128", ... */
  const char* scales; /* nvfp4: NULL or "nearest", "four_over_six", "exact_nearest", "exact_best" */
  int32_t dtype; /* TW_BF16, TW_F16 or TW_F32; of the numbers */
  int64_t rows, cols;
  int64_t row_stride; /* elements; 0: cols */
  int32_t has_row_index;
  int64_t out_rows, out_cols; /* 0: rounded up to whole blocks */
  int32_t has_operand_order;
  int32_t has_128x4_scales;
  int32_t has_block_major_scales;
  float encode_scale; /* nvfp4: G; 0: found from the largest magnitude */
  int32_t has_encode_scale_address;
  int32_t reserved;
} tw_quantize_problem;

/* Device addresses, of tw_quantize_on_host host addresses; NULL where the problem does not need
 * it. */
typedef struct tw_quantize_arguments {
  size_t struct_bytes;
  const void* in;
  const int32_t* row_index; /* [rows] */
  void *codes, *scales;
  const float* encode_scale;
  float* tensor_scale; /* nvfp4: where 1 / G goes, or NULL */
  void* workspace; /* 256-byte aligned */
  void* stream; /* CUstream; NULL: the default stream */
} tw_quantize_arguments;

/* Rows of numbers to codes and block scales. */
typedef struct tw_quantize tw_quantize;
TW_API tw_status tw_quantize_create(const tw_device* device, const tw_quantize_problem* problem,
                                    tw_quantize** quantize);
TW_API tw_status tw_quantize_plan(const tw_device* device, const tw_quantize_problem* problem,
                                  tw_plan** plan);
TW_API void tw_quantize_destroy(tw_quantize* quantize);
TW_API const char* tw_quantize_plan_text(const tw_quantize* quantize);
TW_API size_t tw_quantize_workspace_bytes(const tw_quantize* quantize);
TW_API tw_status tw_quantize_run(const tw_quantize* quantize,
                                 const tw_quantize_arguments* arguments);
/* Bytes of codes and of scales that a problem gives, on a device or on the host. */
TW_API tw_status tw_quantize_sizes(const tw_quantize_problem* problem, size_t* code_bytes,
                                   size_t* scale_bytes);
/* The same on the host, with the same bytes. num_threads 0: as many as there are. */
TW_API tw_status tw_quantize_on_host(const tw_quantize_problem* problem,
                                     const tw_quantize_arguments* arguments, int32_t num_threads);

/* ----------------------------------------------------------------------------------------------
 * Mixture of experts
 */

/* As tilewright::MoeWeightsSource: arrays of `experts` weights; the shared ones are NULL or one
 * weight each. All have the same format; `activations` of the first gate counts for all. */
typedef struct tw_moe_weights_source {
  size_t struct_bytes;
  int64_t experts;
  const tw_linear_weight_source *gate, *up, *down; /* w1, w3 [inter, hidden], w2 [hidden, inter] */
  const tw_linear_weight_source *shared_gate, *shared_up, *shared_down;
} tw_moe_weights_source;

typedef struct tw_moe_weights tw_moe_weights;
/* Checks and reorders all experts and copies them to the device. */
TW_API tw_status tw_moe_weights_prepare(const tw_device* device,
                                        const tw_moe_weights_source* source,
                                        tw_moe_weights** weights);
/* Operators made on them stay valid. NULL is allowed. */
TW_API void tw_moe_weights_destroy(tw_moe_weights* weights);
TW_API size_t tw_moe_weights_bytes(const tw_moe_weights* weights);

/* What a plan depends on. */
typedef struct tw_moe_weights_info {
  size_t struct_bytes;
  int32_t format; /* tw_number_format; default TW_NUMBER_FORMAT_NVFP4 */
  int32_t activations; /* tw_linear_activations */
  int64_t experts, hidden, inter;
  int32_t has_shared;
  int32_t reserved;
} tw_moe_weights_info;

/* What chooses the experts of a token. */
typedef enum tw_moe_routing {
  TW_MOE_ROUTING_GIVEN = 0, /* ids and weights come with the call */
  TW_MOE_ROUTING_LOGITS = 1, /* the topk largest of score(logits) + bias */
  TW_MOE_ROUTING_HASH = 2, /* a table by token id; the logits give the weights */
  TW_MOE_ROUTING_GROUPED = 3, /* none: x, out [experts, tokens, hidden] have the tokens of each expert */
  TW_MOE_ROUTING_CONTIGUOUS = 4, /* none: x, out [tokens, hidden], expert after expert */
  TW_MOE_ROUTING_SINGLE = 5 /* none: one expert, a shared one, has all tokens; ids and weights are not read */
} tw_moe_routing;

typedef enum tw_moe_score {
  TW_MOE_SCORE_SOFTMAX = 0,
  TW_MOE_SCORE_SQRT_SOFTPLUS = 1
} tw_moe_score;

typedef struct tw_moe_problem {
  size_t struct_bytes;
  int64_t tokens, topk;
  int32_t routing; /* tw_moe_routing */
  int32_t score; /* tw_moe_score */
  int32_t normalize; /* default 1 */
  int32_t has_bias;
  double route_scale; /* default 1 */
  int64_t vocab; /* rows of the table of TW_MOE_ROUTING_HASH */
  int64_t logits_stride; /* elements from token to token of the logits; 0: experts */
  double swiglu_limit; /* 0: none */
  int32_t weight_after_down;
  int32_t out_dtype; /* TW_BF16 or TW_F32 */
  const char* kernel; /* NULL or "auto", or a name that the plan's text lists */
  /* grouped tokens: of an expert, for the choice of a kernel; 0: as many as fit */
  int64_t expected_tokens;
  /* experts that are routed over, if the weights are a share of them; 0: the weights are those
   * of all */
  int64_t all_experts;
  int64_t first_expert; /* of the weights, with all_experts */
} tw_moe_problem;

/* Device addresses; NULL where the problem does not need it. */
typedef struct tw_moe_arguments {
  size_t struct_bytes;
  const void* x; /* bf16 [tokens, hidden] */
  const int32_t* ids; /* [tokens, topk] */
  const float* weights; /* [tokens, topk] */
  const float* logits; /* [tokens, experts] */
  const float* bias; /* [experts] */
  const int32_t* token_ids; /* [tokens] */
  const int32_t* table; /* [vocab, topk] */
  void* out; /* [tokens, hidden] */
  void* workspace; /* 256-byte aligned */
  void* stream; /* CUstream; NULL: the default stream */
  const int32_t* counts; /* [experts], of grouped tokens */
} tw_moe_arguments;

/* Experts chosen for each token, and their sum. */
typedef struct tw_moe tw_moe;
TW_API tw_status tw_moe_create(const tw_moe_weights* weights, const tw_moe_problem* problem,
                               tw_moe** moe);
TW_API tw_status tw_moe_plan(const tw_device* device, const tw_moe_weights_info* weights,
                             const tw_moe_problem* problem, tw_plan** plan);
TW_API void tw_moe_destroy(tw_moe* moe);
TW_API const char* tw_moe_plan_text(const tw_moe* moe);
TW_API const char* tw_moe_kernel(const tw_moe* moe);
TW_API size_t tw_moe_workspace_bytes(const tw_moe* moe);
TW_API tw_status tw_moe_run(const tw_moe* moe, const tw_moe_arguments* arguments);
/* Waits for the stream; TW_INVALID_ARGUMENT if the last run with these arguments dropped ids
 * that are no experts, or that stand twice in a token's row, or if counts of grouped tokens were
 * out of range. */
TW_API tw_status tw_moe_check(const tw_moe* moe, const tw_moe_arguments* arguments);

/* ----------------------------------------------------------------------------------------------
 * DeepSeek-V4: sparse attention over paged caches
 */

/* What has a length of its own. */
typedef enum tw_sparse_lengths {
  TW_SPARSE_LENGTHS_FULL = 0, /* all topk entries count */
  TW_SPARSE_LENGTHS_PER_BATCH = 1, /* lengths [batch] */
  TW_SPARSE_LENGTHS_PER_QUERY = 2 /* lengths [batch, q_len] */
} tw_sparse_lengths;

/* A paged cache; cache.h has the bytes of a page. */
typedef struct tw_kv_layout {
  size_t struct_bytes;
  /* tw_number_format: TW_NUMBER_FORMAT_BF16, TW_NUMBER_FORMAT_FP8 or TW_NUMBER_FORMAT_NVFP4;
   * default TW_NUMBER_FORMAT_FP8 */
  int32_t format;
  int64_t page_size; /* default 64 */
  int64_t num_pages;
  int64_t page_stride_bytes; /* 0: that of the format */
} tw_kv_layout;

typedef struct tw_sparse_list {
  size_t struct_bytes;
  tw_kv_layout cache; /* of one format in both lists */
  int64_t topk; /* entries of each query's list; 0: there is no such list */
  int64_t index_stride; /* elements from query to query; 0: topk */
  int32_t lengths; /* tw_sparse_lengths */
  int32_t reserved;
} tw_sparse_list;

typedef struct tw_sparse_attention_problem {
  size_t struct_bytes;
  int64_t batch, q_len; /* default 1 */
  int64_t heads;
  double scale; /* 0: head_dim^-0.5 */
  tw_sparse_list window, compressed;
  int32_t has_sink, has_lse, has_max_logits;
  tw_strides q_strides, out_strides;
  tw_strides lse_strides; /* of lse and max_logits */
  const char* kernel; /* NULL or "auto", or a name that the plan's text lists */
  int32_t positive_empty_lse; /* 1: lse of a query without a valid row is +inf, not -inf */
  int32_t reserved;
  int64_t head_dim; /* of q and of the rows as keys: 512, or 576 (DeepSeek-V3); default 512 */
} tw_sparse_attention_problem;

typedef struct tw_sparse_list_arguments {
  size_t struct_bytes;
  const void* pages;
  const int32_t *indices, *lengths;
} tw_sparse_list_arguments;

/* Device addresses; NULL where the problem does not need it. */
typedef struct tw_sparse_attention_arguments {
  size_t struct_bytes;
  const void* q; /* bf16 [batch, q_len, heads, head_dim] */
  tw_sparse_list_arguments window, compressed;
  void* out; /* bf16 [batch, q_len, heads, 512] */
  float* lse; /* [batch, q_len, heads] */
  float* max_logits; /* [batch, q_len, heads] */
  const float* sink; /* [heads] */
  void* workspace; /* 256-byte aligned */
  int32_t reuses_schedule; /* 1: the workspace holds the schedule of the same lengths */
  void* stream; /* CUstream; NULL: the default stream */
} tw_sparse_attention_arguments;

/* Attention over rows of paged caches that lists choose. */
typedef struct tw_sparse_attention tw_sparse_attention;
TW_API tw_status tw_sparse_attention_create(const tw_device* device,
                                            const tw_sparse_attention_problem* problem,
                                            tw_sparse_attention** attention);
TW_API tw_status tw_sparse_attention_plan(const tw_device* device,
                                          const tw_sparse_attention_problem* problem,
                                          tw_plan** plan);
TW_API void tw_sparse_attention_destroy(tw_sparse_attention* attention);
TW_API const char* tw_sparse_attention_plan_text(const tw_sparse_attention* attention);
TW_API const char* tw_sparse_attention_kernel(const tw_sparse_attention* attention);
TW_API size_t tw_sparse_attention_workspace_bytes(const tw_sparse_attention* attention);
TW_API tw_status tw_sparse_attention_run(const tw_sparse_attention* attention,
                                         const tw_sparse_attention_arguments* arguments);

/* ----------------------------------------------------------------------------------------------
 * Attention whose values are keys as well
 */

/* MLA over pages of 576: k is v + 512 elements, q is qv + 512, strides are those of rows of 576. */
typedef struct tw_latent_attention_problem {
  size_t struct_bytes;
  int32_t dtype; /* TW_BF16 or TW_F16 */
  int32_t reserved;
  int64_t batch, q_len, heads, kv_heads; /* default 1 */
  int64_t value_dim; /* 256 or 512; default 512 */
  int32_t has_qv; /* 0: k alone makes scores; default 1 */
  int32_t reserved2;
  int64_t max_len; /* without pages */
  int64_t page_size; /* 8, 16, 32 or a multiple of 64; 0: no pages */
  int64_t num_pages, max_pages;
  int64_t table_stride; /* 0: max_pages */
  double scale; /* 0: (64 + value_dim)^-0.5, without qv 1/8 */
  int32_t causal; /* default 1 */
  int32_t has_sink, has_lse;
  int32_t positive_empty_lse; /* 1: lse of a row without a visible key is +inf, not -inf */
  tw_strides q_strides, qv_strides, out_strides, lse_strides;
  tw_strides k_strides, v_strides; /* batch: from page to page */
  const char* kernel; /* NULL or "auto", or a name that the plan's text lists */
} tw_latent_attention_problem;

/* Device addresses; NULL where the problem does not need it. */
typedef struct tw_latent_attention_arguments {
  size_t struct_bytes;
  const void* q; /* [batch, q_len, heads, 64] */
  const void* qv; /* [batch, q_len, heads, value_dim] */
  const void *k, *v;
  const int32_t* lengths; /* [batch] */
  const int32_t* block_table; /* [batch, max_pages] */
  void* out; /* [batch, q_len, heads, value_dim] */
  float* lse; /* [batch, heads, q_len] */
  const float* sink; /* [heads] */
  void* workspace; /* 256-byte aligned */
  int32_t reuses_schedule; /* 1: the workspace holds the schedule of the same lengths */
  int32_t reserved;
  void* stream; /* CUstream; NULL: the default stream */
} tw_latent_attention_arguments;

/* Attention over all keys, of values that make scores beside narrow keys: MLA, qv. */
typedef struct tw_latent_attention tw_latent_attention;
TW_API tw_status tw_latent_attention_create(const tw_device* device,
                                            const tw_latent_attention_problem* problem,
                                            tw_latent_attention** attention);
TW_API tw_status tw_latent_attention_plan(const tw_device* device,
                                          const tw_latent_attention_problem* problem,
                                          tw_plan** plan);
TW_API void tw_latent_attention_destroy(tw_latent_attention* attention);
TW_API const char* tw_latent_attention_plan_text(const tw_latent_attention* attention);
TW_API const char* tw_latent_attention_kernel(const tw_latent_attention* attention);
TW_API size_t tw_latent_attention_workspace_bytes(const tw_latent_attention* attention);
TW_API tw_status tw_latent_attention_run(const tw_latent_attention* attention,
                                         const tw_latent_attention_arguments* arguments);

/* ----------------------------------------------------------------------------------------------
 * Lists of the keys that a mask shows
 */

/* What an entry of a mask is. */
typedef enum tw_mask_entry {
  TW_MASK_ENTRY_BYTES = 0, /* a byte, set if it is not 0 */
  TW_MASK_ENTRY_BITS = 1 /* bit e % 8 of byte e / 8 of its row */
} tw_mask_entry;

typedef struct tw_mask_lists_problem {
  size_t struct_bytes;
  int32_t entry; /* tw_mask_entry */
  int64_t batch; /* default 1 */
  int64_t rows, keys;
  int64_t query_block; /* rows that share an entry; default 1 */
  int64_t key_block; /* keys that share an entry; default 1 */
  int64_t topk; /* entries of a list */
  int64_t index_stride; /* elements from list to list; 0: topk */
  int64_t mask_batch_bytes, mask_row_bytes; /* strides; 0: contiguous */
  int64_t page_size; /* 0: indices are keys, else slots of a paged cache */
  int64_t table_stride; /* elements from batch to batch; 0: contiguous */
  int32_t has_totals;
  int32_t reserved;
} tw_mask_lists_problem;

/* Device addresses; NULL where the problem does not need it. */
typedef struct tw_mask_lists_arguments {
  size_t struct_bytes;
  const void* mask; /* [batch, ceil(rows / query_block), ceil(keys / key_block)] entries */
  int32_t* indices; /* [batch, rows, topk]; -1 behind the last key */
  int32_t* lengths; /* [batch, rows]: keys of a list, at most topk */
  int32_t* totals; /* [batch, rows]: keys that the mask shows */
  const int32_t* block_table; /* [batch, ceil(keys / page_size)] */
  void* stream; /* CUstream; NULL: the default stream */
} tw_mask_lists_arguments;

/* Masks of keys made into lists of them. */
typedef struct tw_mask_lists tw_mask_lists;
TW_API tw_status tw_mask_lists_create(const tw_device* device, const tw_mask_lists_problem* problem,
                                      tw_mask_lists** lists);
TW_API tw_status tw_mask_lists_plan(const tw_device* device, const tw_mask_lists_problem* problem,
                                    tw_plan** plan);
TW_API void tw_mask_lists_destroy(tw_mask_lists* lists);
TW_API const char* tw_mask_lists_plan_text(const tw_mask_lists* lists);
TW_API double tw_mask_lists_bytes(const tw_mask_lists* lists);
TW_API tw_status tw_mask_lists_run(const tw_mask_lists* lists,
                                   const tw_mask_lists_arguments* arguments);

/* ----------------------------------------------------------------------------------------------
 * DeepSeek-V4: rows of caches, lists of them, compressors
 */

/* Angles of rotary positions. DeepSeek-V4 has theta 10000, and 160000 with has_yarn. */
typedef struct tw_rope_options {
  size_t struct_bytes;
  double theta; /* default 10000 */
  int32_t has_yarn;
  double factor; /* 0: 16 */
  double original_positions; /* 0: 65536 */
  double beta_fast; /* 0: 32 */
  double beta_slow; /* 0: 1 */
} tw_rope_options;
/* table [positions, 64] of host memory: of each position from `first` on 32 cosines, 32 sines. */
TW_API tw_status tw_rope_table(const tw_rope_options* options, int64_t positions, int64_t first,
                               float* table);

typedef struct tw_sequence_batch {
  size_t struct_bytes;
  int64_t batch, q_len;
  const int32_t* offsets; /* [batch + 1] */
  const int32_t* starts; /* [batch] */
} tw_sequence_batch;

typedef struct tw_sequence_pages {
  size_t struct_bytes;
  const int32_t* pages; /* [batch, blocks] */
  int64_t blocks, stride;
} tw_sequence_pages;

typedef struct tw_kv_write_arguments {
  size_t struct_bytes;
  int64_t tokens, heads;
  double eps; /* default 1e-6 */
  const void* q;
  void* q_out;
  int64_t q_token_stride, q_head_stride;
  const void* kv;
  int32_t kv_dtype; /* TW_BF16 or TW_F32 */
  int64_t kv_stride;
  const void* kv_weight;
  const int32_t* positions;
  const float* rope;
  int64_t rope_positions;
  const int32_t* slots;
  void* pages;
  void* kv_out;
  void* stream; /* CUstream; NULL: the default stream */
} tw_kv_write_arguments;

typedef struct tw_kv_read_arguments {
  size_t struct_bytes;
  int64_t count;
  const int32_t* rows; /* [count] */
  const void* pages;
  void* out; /* bf16 [count, 512] */
  int64_t out_stride; /* elements; 0: 512 */
  void* stream;
} tw_kv_read_arguments;

typedef enum tw_kv_list_kind {
  TW_KV_LIST_KIND_WRITE = 0,
  TW_KV_LIST_KIND_WINDOW = 1,
  TW_KV_LIST_KIND_ENTRIES = 2
} tw_kv_list_kind;

typedef struct tw_kv_list_arguments {
  size_t struct_bytes;
  int32_t kind; /* tw_kv_list_kind */
  int64_t tokens;
  tw_sequence_batch sequences;
  tw_sequence_pages table;
  int64_t ring;
  int64_t window; /* default 128 */
  int64_t ratio; /* default 4 */
  int64_t list_len; /* default 1 */
  int64_t list_stride;
  int32_t* lists;
  int32_t* lengths;
  int32_t* positions;
  void* stream;
} tw_kv_list_arguments;

/* What one step asks of a cache; what is 0 is not done. */
typedef struct tw_kv_cache_work {
  size_t struct_bytes;
  int64_t tokens, heads; /* written */
  int64_t list_len; /* rows of the list of each token */
  int64_t read_rows;
} tw_kv_cache_work;

/* Rows of a paged cache: written, read, listed for attention. */
typedef struct tw_kv_cache tw_kv_cache;
TW_API tw_status tw_kv_cache_create(const tw_device* device, const tw_kv_layout* layout,
                                    tw_kv_cache** cache);
TW_API tw_status tw_kv_cache_plan(const tw_device* device, const tw_kv_layout* layout,
                                  const tw_kv_cache_work* work, tw_plan** plan);
TW_API void tw_kv_cache_destroy(tw_kv_cache* cache);
TW_API tw_status tw_kv_cache_write(const tw_kv_cache* cache,
                                   const tw_kv_write_arguments* arguments);
TW_API tw_status tw_kv_cache_read(const tw_kv_cache* cache, const tw_kv_read_arguments* arguments);
TW_API tw_status tw_kv_cache_list(const tw_kv_cache* cache, const tw_kv_list_arguments* arguments);
/* Of all pages: what the caller allocates. */
TW_API size_t tw_kv_cache_bytes(const tw_kv_cache* cache);

typedef struct tw_inverse_rope_arguments {
  size_t struct_bytes;
  int64_t tokens, heads;
  void* out;
  int64_t token_stride, head_stride;
  const int32_t* positions;
  const float* rope;
  int64_t rope_positions;
  void* codes;
  void* scales;
  int32_t has_pow2_scales, has_block_major_scales, has_operand_order;
  void* stream;
} tw_inverse_rope_arguments;

/* Takes the rotation out of what attention gives, and quantises it if codes are wanted. */
typedef struct tw_inverse_rope tw_inverse_rope;
TW_API tw_status tw_inverse_rope_create(const tw_device* device, tw_inverse_rope** rope);
TW_API tw_status tw_inverse_rope_plan(const tw_device* device, int64_t tokens, int64_t heads,
                                      int32_t has_codes, tw_plan** plan);
TW_API void tw_inverse_rope_destroy(tw_inverse_rope* rope);
TW_API tw_status tw_inverse_rope_run(const tw_inverse_rope* rope,
                                     const tw_inverse_rope_arguments* arguments);

typedef enum tw_compressor_kind {
  TW_COMPRESSOR_KIND_CSA = 0,
  TW_COMPRESSOR_KIND_HCA = 1,
  TW_COMPRESSOR_KIND_INDEX_FP8 = 2,
  TW_COMPRESSOR_KIND_INDEX_MXFP4 = 3
} tw_compressor_kind;

typedef struct tw_compressor_problem {
  size_t struct_bytes;
  int32_t kind; /* tw_compressor_kind */
  tw_kv_layout cache;
  int64_t state_slots, ring;
  double eps; /* default 1e-6 */
} tw_compressor_problem;

typedef struct tw_compressor_arguments {
  size_t struct_bytes;
  tw_sequence_batch sequences;
  int64_t max_tokens; /* default 1 */
  const float* kv;
  const float* gate;
  int64_t kv_stride, gate_stride;
  const float* ape;
  const void* norm_weight;
  const float* rope;
  int64_t rope_positions;
  void* state;
  const int32_t* state_slots;
  tw_sequence_pages table;
  void* pages;
  void* stream;
} tw_compressor_arguments;

/* Pools tokens to rows of a compressed cache, or to keys of the indexer. */
typedef struct tw_compressor tw_compressor;
TW_API tw_status tw_compressor_create(const tw_device* device, const tw_compressor_problem* problem,
                                      tw_compressor** compressor);
TW_API tw_status tw_compressor_plan(const tw_device* device, const tw_compressor_problem* problem,
                                    int64_t batch, int64_t max_tokens, tw_plan** plan);
TW_API void tw_compressor_destroy(tw_compressor* compressor);
TW_API size_t tw_compressor_state_bytes(const tw_compressor* compressor);
TW_API size_t tw_compressor_cache_bytes(const tw_compressor* compressor);
TW_API tw_status tw_compressor_run(const tw_compressor* compressor,
                                   const tw_compressor_arguments* arguments);

/* ----------------------------------------------------------------------------------------------
 * DeepSeek-V4: lightning indexer
 */

typedef struct tw_indexer_problem {
  size_t struct_bytes;
  /* tw_number_format: TW_NUMBER_FORMAT_MXFP4 or TW_NUMBER_FORMAT_FP8; default
   * TW_NUMBER_FORMAT_MXFP4 */
  int32_t format;
  int64_t heads; /* default 64 */
  int64_t topk; /* default 512 */
  int64_t ratio; /* default 4 */
  int64_t max_len;
  tw_kv_layout keys; /* its format does not count */
  tw_kv_layout rows; /* only sizes count; num_pages 0: rows are entries */
  int32_t fill_logits;
  int32_t reserved;
} tw_indexer_problem;

typedef struct tw_indexer_arguments {
  size_t struct_bytes;
  int64_t tokens;
  tw_sequence_batch sequences; /* starts are not used */
  const int32_t* positions;
  const int32_t* lengths; /* NULL: by the positions */
  const void* q;
  int64_t q_token_stride, q_head_stride;
  const void* weights;
  int32_t weights_dtype; /* TW_BF16 or TW_F32 */
  int64_t weights_stride;
  const float* rope;
  int64_t rope_positions;
  const void* key_pages;
  tw_sequence_pages key_table, row_table;
  int32_t* rows;
  int64_t rows_stride;
  int32_t* counts; /* or NULL */
  void* workspace;
  int32_t reuses_schedule;
  void* stream; /* CUstream; NULL: the default stream */
} tw_indexer_arguments;

/* Which compressed entries a token attends to. */
typedef struct tw_indexer tw_indexer;
TW_API tw_status tw_indexer_create(const tw_device* device, const tw_indexer_problem* problem,
                                   tw_indexer** indexer);
TW_API tw_status tw_indexer_plan(const tw_device* device, const tw_indexer_problem* problem,
                                 int64_t tokens, int64_t batch, tw_plan** plan);
TW_API void tw_indexer_destroy(tw_indexer* indexer);
TW_API size_t tw_indexer_key_cache_bytes(const tw_indexer* indexer);
TW_API tw_status tw_indexer_run(const tw_indexer* indexer, const tw_indexer_arguments* arguments);
/* 0 if a number makes no sense. */
TW_API size_t tw_indexer_workspace_bytes(const tw_indexer* indexer, int64_t tokens, int64_t batch);

typedef struct tw_indexer_logits_problem {
  size_t struct_bytes;
  /* tw_number_format: TW_NUMBER_FORMAT_FP8 or TW_NUMBER_FORMAT_MXFP4; default
   * TW_NUMBER_FORMAT_FP8 */
  int32_t format;
  int64_t heads; /* default 64 */
  int64_t max_len; /* most logits of a token */
  tw_kv_layout keys; /* its format does not count; num_pages 0: keys have no pages */
  int32_t is_compressed; /* without pages: column 0 is the first key that a token sees */
  int32_t fill_logits; /* with -inf, where there is no key */
} tw_indexer_logits_problem;

typedef struct tw_indexer_logits_arguments {
  size_t struct_bytes;
  int64_t tokens;
  tw_sequence_batch sequences; /* with pages; starts are not used */
  const int32_t* starts; /* [tokens], without pages; NULL: all 0 */
  const int32_t* ends; /* [tokens] */
  const void* q; /* codes [tokens, heads, 128 or 64 bytes] */
  const void* q_scales; /* MXFP4: ue8m0 [tokens, heads, 4] */
  const float* weights; /* [tokens, heads] */
  const void* keys; /* pages, or codes [num_keys, 128 or 64 bytes] */
  const void* key_scales; /* without pages: [num_keys] of 4 bytes */
  int64_t num_keys; /* without pages */
  tw_sequence_pages key_table; /* with pages */
  float* logits; /* [tokens, columns] */
  int64_t logits_stride; /* elements; 0: columns */
  int64_t columns; /* 0: max_len */
  void* workspace;
  int32_t reuses_schedule;
  void* stream; /* CUstream; NULL: the default stream */
} tw_indexer_logits_arguments;

/* Logits of the indexer from queries and keys that are quantised already. */
typedef struct tw_indexer_logits tw_indexer_logits;
TW_API tw_status tw_indexer_logits_create(const tw_device* device,
                                          const tw_indexer_logits_problem* problem,
                                          tw_indexer_logits** logits);
TW_API tw_status tw_indexer_logits_plan(const tw_device* device,
                                        const tw_indexer_logits_problem* problem, int64_t tokens,
                                        int64_t batch, tw_plan** plan);
TW_API void tw_indexer_logits_destroy(tw_indexer_logits* logits);
TW_API tw_status tw_indexer_logits_run(const tw_indexer_logits* logits,
                                       const tw_indexer_logits_arguments* arguments);
/* 0 if a number makes no sense. */
TW_API size_t tw_indexer_logits_workspace_bytes(const tw_indexer_logits* logits, int64_t tokens,
                                                int64_t batch);

/* ----------------------------------------------------------------------------------------------
 * DeepSeek-V4: hyper-connections
 */

typedef struct tw_hyper_connection_problem {
  size_t struct_bytes;
  int64_t tokens, hidden;
  int32_t stream_dtype; /* TW_BF16 or TW_F32 */
  int32_t has_merge;
  int32_t has_second;
  int32_t has_mix; /* default 1 */
  int32_t is_head;
  int32_t result_dtype, second_dtype; /* TW_BF16 or TW_F32 */
  int32_t iterations; /* default 20 */
  double eps, norm_eps; /* default 1e-6 */
} tw_hyper_connection_problem;

typedef struct tw_hyper_connection_arguments {
  size_t struct_bytes;
  const void* streams;
  void* merged;
  const float* mix_before;
  const void *result, *second_result;
  const float *mix_weight, *mix_bias, *mix_scale;
  const void* norm_weight;
  float* mix;
  void* out;
  void* workspace;
  void* stream; /* CUstream; NULL: the default stream */
} tw_hyper_connection_arguments;

/* From one sub-layer to the next through four streams. */
typedef struct tw_hyper_connection tw_hyper_connection;
TW_API tw_status tw_hyper_connection_create(const tw_device* device,
                                            const tw_hyper_connection_problem* problem,
                                            tw_hyper_connection** connection);
TW_API tw_status tw_hyper_connection_plan(const tw_device* device,
                                          const tw_hyper_connection_problem* problem,
                                          tw_plan** plan);
TW_API void tw_hyper_connection_destroy(tw_hyper_connection* connection);
TW_API size_t tw_hyper_connection_workspace_bytes(const tw_hyper_connection* connection);
TW_API tw_status tw_hyper_connection_run(const tw_hyper_connection* connection,
                                         const tw_hyper_connection_arguments* arguments);

typedef struct tw_hyper_embedding_problem {
  size_t struct_bytes;
  int64_t tokens, hidden, vocab;
  int32_t stream_dtype; /* TW_BF16 or TW_F32 */
  int32_t reserved;
} tw_hyper_embedding_problem;

typedef struct tw_hyper_embedding_arguments {
  size_t struct_bytes;
  const void* table; /* bf16 [vocab, hidden] */
  const int32_t* ids; /* [tokens] */
  void* streams; /* [tokens, 4, hidden] */
  void* stream; /* CUstream; NULL: the default stream */
} tw_hyper_embedding_arguments;

/* Rows of a table into the streams. */
typedef struct tw_hyper_embedding tw_hyper_embedding;
TW_API tw_status tw_hyper_embedding_create(const tw_device* device,
                                           const tw_hyper_embedding_problem* problem,
                                           tw_hyper_embedding** embedding);
TW_API tw_status tw_hyper_embedding_plan(const tw_device* device,
                                         const tw_hyper_embedding_problem* problem, tw_plan** plan);
TW_API void tw_hyper_embedding_destroy(tw_hyper_embedding* embedding);
TW_API tw_status tw_hyper_embedding_run(const tw_hyper_embedding* embedding,
                                        const tw_hyper_embedding_arguments* arguments);

typedef struct tw_rms_norm_problem {
  size_t struct_bytes;
  int64_t rows, cols;
  int32_t x_dtype; /* TW_BF16 or TW_F32 */
  int64_t x_stride, out_stride;
  int32_t has_weight; /* default 1 */
  double eps; /* default 1e-6 */
} tw_rms_norm_problem;

typedef struct tw_rms_norm_arguments {
  size_t struct_bytes;
  const void* x; /* [rows, cols] */
  const void* weight; /* bf16 [cols] */
  void* out; /* bf16 [rows, cols] */
  void* stream; /* CUstream; NULL: the default stream */
} tw_rms_norm_arguments;

/* Rows divided by their root mean square. */
typedef struct tw_rms_norm tw_rms_norm;
TW_API tw_status tw_rms_norm_create(const tw_device* device, const tw_rms_norm_problem* problem,
                                    tw_rms_norm** norm);
TW_API tw_status tw_rms_norm_plan(const tw_device* device, const tw_rms_norm_problem* problem,
                                  tw_plan** plan);
TW_API void tw_rms_norm_destroy(tw_rms_norm* norm);
TW_API tw_status tw_rms_norm_run(const tw_rms_norm* norm, const tw_rms_norm_arguments* arguments);

/* ----------------------------------------------------------------------------------------------
 * Sampling
 */

typedef struct tw_sample_problem {
  size_t struct_bytes;
  int64_t rows, vocab;
  int32_t logits_dtype; /* TW_F32 or TW_BF16; default TW_F32 */
  int32_t reserved;
  int64_t parts; /* arrays that divide the vocabulary; default 1 */
  int64_t row_stride; /* elements; 0: vocab / parts, rounded up to a multiple of 4 */
  int64_t part_stride; /* elements; 0: rows * row_stride */
} tw_sample_problem;

/* Device addresses. Where one is NULL all rows have the default. */
typedef struct tw_sample_arguments {
  size_t struct_bytes;
  const void* logits; /* [parts, rows, vocab / parts] */
  const float* temperature; /* [rows]; 0: the token with the largest logit. Default 0 */
  const int32_t* top_k; /* [rows]; 0: all. Default 0 */
  const float* top_p; /* [rows]; above 0. Default 1 */
  const float* min_p; /* [rows]; at most 1. Default 0 */
  const uint64_t* seeds; /* [rows, 2]. Default 0 */
  const int32_t* positions; /* [rows]; below 0: the row takes no part. Default 0 */
  int32_t* ids; /* [rows] */
  float* log_probs; /* [rows]; NULL: not wanted */
  void* stream; /* CUstream; NULL: the default stream */
} tw_sample_arguments;

/* The next tokens of rows of logits. */
typedef struct tw_sample tw_sample;
TW_API tw_status tw_sample_create(const tw_device* device, const tw_sample_problem* problem,
                                  tw_sample** sample);
TW_API tw_status tw_sample_plan(const tw_device* device, const tw_sample_problem* problem,
                                tw_plan** plan);
TW_API void tw_sample_destroy(tw_sample* sample);
TW_API const char* tw_sample_plan_text(const tw_sample* sample);
TW_API const char* tw_sample_kernel(const tw_sample* sample);
TW_API tw_status tw_sample_run(const tw_sample* sample, const tw_sample_arguments* arguments);

typedef struct tw_gather_rows_problem {
  size_t struct_bytes;
  int64_t rows, x_rows;
  int64_t cols; /* a multiple of 8 */
} tw_gather_rows_problem;

typedef struct tw_gather_rows_arguments {
  size_t struct_bytes;
  const void* x; /* bf16 [x_rows, cols] */
  const int32_t* index; /* [rows] */
  void* out; /* bf16 [rows, cols] */
  void* stream; /* CUstream; NULL: the default stream */
} tw_gather_rows_arguments;

/* Rows of a matrix that a list chooses; zeros for an index outside of it. */
typedef struct tw_gather_rows tw_gather_rows;
TW_API tw_status tw_gather_rows_create(const tw_device* device,
                                       const tw_gather_rows_problem* problem,
                                       tw_gather_rows** gather);
TW_API tw_status tw_gather_rows_plan(const tw_device* device, const tw_gather_rows_problem* problem,
                                     tw_plan** plan);
TW_API void tw_gather_rows_destroy(tw_gather_rows* gather);
TW_API const char* tw_gather_rows_plan_text(const tw_gather_rows* gather);
TW_API tw_status tw_gather_rows_run(const tw_gather_rows* gather,
                                    const tw_gather_rows_arguments* arguments);

/* ----------------------------------------------------------------------------------------------
 * Layouts
 */
/* The result of an operation of the algebra (`tilewright layout eval --help` lists them), "eval"
 * for the layout itself, as JSON: {"value": N} for a number, else shape, stride, text, rank,
 * depth, size, cosize, swizzle and coalesced form. An operand is a layout as CuTe prints it, the
 * name of an atom, a tuple or a number. The text is valid until the thread's next call of a
 * function of this section. */
TW_API tw_status tw_layout_evaluate(const char* operation, const char* const* operands,
                                    size_t num_operands, const char** json);
/* The offsets of linear coordinates begin, begin + 1, ... A coordinate layout has none. */
TW_API tw_status tw_layout_values(const char* layout, int64_t begin, size_t count, int64_t* values);
/* SVG, as `tilewright layout draw`. drawn_as: "offsets", "tv", "memory", "tmem"; NULL: what
 * fits, and for an atom how it is meant. tile: rows and columns, of tv; window: first row, end
 * row, first column, end column, an end of -1 for all; NULL: all. element_bits: 0 for the
 * default. */
TW_API tw_status tw_layout_draw(const char* layout, const char* drawn_as, const int64_t* tile,
                                int32_t element_bits, const int32_t* window, const char** svg);
/* The named layouts of the hardware: [{"name", "family", "kind", "layout", "element_bits",
 * "summary"}]. */
TW_API tw_status tw_layout_atoms(const char** json);
/* Whether the accumulator of one MMA can be read as the operand of the next, and if not, what
 * must move: {"verdict", "explanation", ...}. Both are names of atoms. */
TW_API tw_status tw_layout_handoff(const char* from, const char* to, const char** json);
/* The same through Tensor Memory, as written and as read. */
TW_API tw_status tw_layout_draw_handoff(const char* from, const char* to, const char** svg);

/* ----------------------------------------------------------------------------------------------
 * Number formats on the host
 */
/* {"formats": [{"name", "bits", "exponent_bits", "mantissa_bits", "max"}], "block_formats":
 * [{"name", "element", "scale", "block_rows", "block_cols", "has_tensor_scale"}]}. Valid as long
 * as the library. */
TW_API tw_status tw_formats(const char** json);
/* rounding: "nearest_even", "nearest_away", "toward_zero", "up" or "down"; NULL: nearest_even.
 * is_saturating: 1: the largest finite number, 0: infinity or NaN where the format has it, -1:
 * as the instruction does by default. */
TW_API tw_status tw_format_encode(const char* format, const char* rounding, int32_t is_saturating,
                                  const double* values, size_t count, uint32_t* codes);
TW_API tw_status tw_format_decode(const char* format, const uint32_t* codes, size_t count,
                                  double* values);
/* Of a row-major matrix, whose rows and columns are padded to whole blocks. */
TW_API tw_status tw_block_quantize_sizes(const char* format, int64_t rows, int64_t cols,
                                         size_t* code_bytes, size_t* scale_bytes);
/* codes: packed, of the padded matrix. encode_scale: 0 for that of the largest magnitude.
 * scale_choice, of nvfp4: "nearest", "four_over_six", "exact_nearest", "exact_best"; NULL:
 * nearest. */
TW_API tw_status tw_block_quantize(const char* format, const float* values, int64_t rows,
                                   int64_t cols, float encode_scale, const char* scale_choice,
                                   uint8_t* codes, uint8_t* scales, float* tensor_scale);
TW_API tw_status tw_block_dequantize(const char* format, const uint8_t* codes,
                                     const uint8_t* scales, float tensor_scale, int64_t rows,
                                     int64_t cols, float* values);
/* Code i at bit i * bits, of 4, 6 or 8: (count * bits + 7) / 8 bytes. */
TW_API tw_status tw_codes_pack(int32_t bits, const uint8_t* codes, size_t count, uint8_t* bytes);
TW_API tw_status tw_codes_unpack(int32_t bits, const uint8_t* bytes, size_t count, uint8_t* codes);

/* ----------------------------------------------------------------------------------------------
 * Tokenizer
 */

/* What becomes of a text that contains the name of an added token, such as "<think>". */
typedef enum tw_added_tokens {
  TW_ADDED_TOKENS_MATCH = 0, /* it is that token */
  TW_ADDED_TOKENS_AS_TEXT = 1 /* it is text like any other */
} tw_added_tokens;

typedef enum tw_chat_role {
  TW_CHAT_ROLE_USER = 0,
  TW_CHAT_ROLE_SYSTEM = 1,
  TW_CHAT_ROLE_ASSISTANT = 2
} tw_chat_role;

typedef enum tw_chat_mode {
  TW_CHAT_MODE_CHAT = 0,
  TW_CHAT_MODE_THINKING = 1
} tw_chat_mode;

typedef struct tw_chat_message {
  size_t struct_bytes;
  int32_t role; /* tw_chat_role */
  int32_t reserved;
  const char* content; /* UTF-8 */
  const char* reasoning; /* an assistant's, before its answer; thinking mode alone shows it */
} tw_chat_message;

/* Immutable: several threads may use one. Texts are UTF-8 with their size; zeros may be in them.
 * What is written goes to memory of the caller with room for `capacity` elements: NULL asks only
 * how many there are, which is always told; without enough room nothing is written, and the call
 * is refused. */
typedef struct tw_tokenizer tw_tokenizer;
/* A tokenizer.json, or the folder that has it. NULL: 256 tokens, each the byte of its number. */
TW_API tw_status tw_tokenizer_open(const char* path, tw_tokenizer** tokenizer);
/* The same from text; `source` stands for it in messages. */
TW_API tw_status tw_tokenizer_parse(const char* text, size_t text_bytes, const char* source,
                                    tw_tokenizer** tokenizer);
/* Streams made of it stay valid. */
TW_API void tw_tokenizer_destroy(tw_tokenizer* tokenizer);
/* Number of tokens with the added ones; ids are below it. */
TW_API int64_t tw_tokenizer_vocab_size(const tw_tokenizer* tokenizer);
/* added_tokens: one of tw_added_tokens. As many ids as the text has bytes are always enough. */
TW_API tw_status tw_tokenizer_encode(const tw_tokenizer* tokenizer, const char* text,
                                     size_t text_bytes, int32_t added_tokens, int32_t* ids,
                                     size_t capacity, size_t* num_ids);
/* The conversation as DeepSeek-V4 reads it, with what opens the assistant's turn behind the last
 * message of the user. mode: one of tw_chat_mode. All messages are made by
 * tw_chat_message_init(). */
TW_API tw_status tw_tokenizer_chat(const tw_tokenizer* tokenizer, const tw_chat_message* messages,
                                   size_t num_messages, int32_t mode, int32_t* ids, size_t capacity,
                                   size_t* num_ids);
/* What is not UTF-8 becomes U+FFFD. No zero is put at the end. */
TW_API tw_status tw_tokenizer_decode(const tw_tokenizer* tokenizer, const int32_t* ids,
                                     size_t num_ids, char* text, size_t capacity,
                                     size_t* text_bytes);
/* The bytes of a token, which need not be whole characters. Valid as long as the tokenizer. */
TW_API tw_status tw_tokenizer_token_bytes(const tw_tokenizer* tokenizer, int32_t id,
                                          const char** bytes, size_t* num_bytes);
/* 1 if the file calls the token special: no text, but a mark in it. */
TW_API int tw_tokenizer_is_special(const tw_tokenizer* tokenizer, int32_t id);
/* The token of an added token's name; -1 if there is none. */
TW_API int32_t tw_tokenizer_find_added(const tw_tokenizer* tokenizer, const char* name);

/* Tokens to text as they come: a character is given out when its last byte is there, never a
 * part of one. For one thread at a time. */
typedef struct tw_token_stream tw_token_stream;
TW_API tw_status tw_token_stream_create(const tw_tokenizer* tokenizer, tw_token_stream** stream);
TW_API void tw_token_stream_destroy(tw_token_stream* stream);
/* The characters that the token completes, perhaps none. The text ends with a zero and is valid
 * until the next call with the stream. */
TW_API tw_status tw_token_stream_add(tw_token_stream* stream, int32_t id, const char** text,
                                     size_t* text_bytes);
/* What is left of a character that never ended: U+FFFD, or nothing. Another text may follow
 * then. */
TW_API tw_status tw_token_stream_finish(tw_token_stream* stream, const char** text,
                                        size_t* text_bytes);

/* ----------------------------------------------------------------------------------------------
 * Language models
 */

/* Why a prompt's continuation is at its end. */
typedef enum tw_llm_finish {
  TW_LLM_FINISH_NONE = 0, /* it goes on */
  TW_LLM_FINISH_END = 1, /* the token ends a text */
  TW_LLM_FINISH_LENGTH = 2, /* max_tokens, or the model's room */
  TW_LLM_FINISH_CANCELLED = 3 /* another rank has cancelled it */
} tw_llm_finish;

/* NULL stands for what is written first. */
typedef struct tw_llm_options {
  size_t struct_bytes;
  const char* device; /* as tw_device_open; "reference": the model in float64, without a device */
  const char* kv; /* rows of caches: "fp8", "bf16", "nvfp4"; "exact": reference alone */
  const char* index; /* keys of the indexer: "mxfp4", "fp8"; "bf16": reference alone */
  /* routed ones: "stored", "bf16", "fp8", "mxfp4", "nvfp4", converted if need be */
  const char* experts;
  int64_t max_tokens; /* of a sequence, prompt and continuation together; default 4096 */
  int64_t sequences; /* the most that run at the same time; default 16 */
  int64_t cache_tokens; /* of all that run; 0: max_tokens for each */
  int64_t step_tokens; /* of all in one step, up to 2048; default 256 */
  int32_t has_draft; /* 1: speculative decoding with the checkpoint's draft layer */
  int32_t reserved;
  int64_t gpus; /* ranks that share the model, a GPU each; 0: not asked for */
  const char* parallel; /* what they divide: "tensor" (also if NULL), "expert" */
} tw_llm_options;

typedef struct tw_llm_sampling {
  size_t struct_bytes;
  double temperature; /* 0: the likeliest token */
  int64_t top_k; /* only so many of the likeliest; 0: all */
  double top_p; /* of these the likeliest whose probabilities reach this sum; default 1 */
  uint64_t seed; /* prompts with one seed draw differently, by their number */
  int64_t max_tokens; /* new ones; fewer if the model's room ends; default 64 */
  int32_t ignores_end; /* 1: go on behind eos_token_id of config.json */
  int32_t reserved;
  double min_p; /* of top_k those whose probability is at least so much of the largest; at most 1 */
} tw_llm_sampling;

/* A DeepSeek-V4 model with the caches of some sequences; for one thread at a time. Every step
 * gives each sequence that runs its next token and takes prompts along, in chunks. A prompt
 * waits until a sequence is free and the caches have room for it and all its new tokens; those
 * behind it wait, too. With gpus or parallel ranks share it: processes that torchrun, mpirun or
 * srun has started, which all make the same calls and get the same tokens; on a simulated device
 * threads of this process. */
typedef struct tw_llm tw_llm;
/* Reads the checkpoint in a folder to the device. options: NULL, or made by
 * tw_llm_options_init(). */
TW_API tw_status tw_llm_open(const char* folder, const tw_llm_options* options, tw_llm** llm);
TW_API void tw_llm_destroy(tw_llm* llm);
/* One line: what runs where, with which formats. Valid as long as the model. */
TW_API const char* tw_llm_description(const tw_llm* llm);
TW_API int64_t tw_llm_vocab_size(const tw_llm* llm);
/* Adds a prompt, which ends with a token of `ends`, too, and gives its number: 0, 1, ...
 * sampling: NULL, or made by tw_llm_sampling_init(). A prompt that could never run is refused. */
TW_API tw_status tw_llm_add(tw_llm* llm, const int32_t* prompt, size_t num_prompt,
                            const tw_llm_sampling* sampling, const int32_t* ends, size_t num_ends,
                            int64_t* request);
/* 0 if it has ended, or there never was one. No token of it comes any more. On other ranks it
 * ends with the next step, with TW_LLM_FINISH_CANCELLED. */
TW_API int tw_llm_cancel(tw_llm* llm, int64_t request);
/* The next token of any prompt, after a step of the model if none is left of the last one.
 * finish: one of tw_llm_finish. A request of -1: every prompt has ended. A token of -1: none,
 * for max_tokens of 0, or of a prompt that another rank has cancelled. An error of one rank is
 * told to all. */
TW_API tw_status tw_llm_next(tw_llm* llm, int64_t* request, int32_t* token, int32_t* finish);
/* So far: passes through the model, tokens that it read and wrote, tokens that the draft layer
 * guessed and a step took along, and those of them that were right. NULL where it is of no
 * interest. */
TW_API tw_status tw_llm_counts(const tw_llm* llm, int64_t* steps, int64_t* prompt_tokens,
                               int64_t* new_tokens, int64_t* drafted, int64_t* accepted);

/* ----------------------------------------------------------------------------------------------
 * tw_NAME_init() of every struct: sizes, then defaults, which the library fills in
 */

TW_API void tw_reason_set_defaults(tw_reason* given);
static inline void tw_reason_init(tw_reason* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_reason_set_defaults(given);
}

TW_API void tw_candidate_set_defaults(tw_candidate* given);
static inline void tw_candidate_init(tw_candidate* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_candidate_set_defaults(given);
}

TW_API void tw_launch_set_defaults(tw_launch* given);
static inline void tw_launch_init(tw_launch* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_launch_set_defaults(given);
}

TW_API void tw_strides_set_defaults(tw_strides* given);
static inline void tw_strides_init(tw_strides* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_strides_set_defaults(given);
}

TW_API void tw_fp8_options_set_defaults(tw_fp8_options* given);
static inline void tw_fp8_options_init(tw_fp8_options* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_fp8_options_set_defaults(given);
}

TW_API void tw_attention_problem_set_defaults(tw_attention_problem* given);
static inline void tw_attention_problem_init(tw_attention_problem* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  given->q_strides.struct_bytes = sizeof given->q_strides;
  given->k_strides.struct_bytes = sizeof given->k_strides;
  given->v_strides.struct_bytes = sizeof given->v_strides;
  given->out_strides.struct_bytes = sizeof given->out_strides;
  given->fp8.struct_bytes = sizeof given->fp8;
  tw_attention_problem_set_defaults(given);
}

TW_API void tw_attention_arguments_set_defaults(tw_attention_arguments* given);
static inline void tw_attention_arguments_init(tw_attention_arguments* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_attention_arguments_set_defaults(given);
}

TW_API void tw_attention_merge_problem_set_defaults(tw_attention_merge_problem* given);
static inline void tw_attention_merge_problem_init(tw_attention_merge_problem* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  given->part_strides.struct_bytes = sizeof given->part_strides;
  given->out_strides.struct_bytes = sizeof given->out_strides;
  given->lse_part_strides.struct_bytes = sizeof given->lse_part_strides;
  given->lse_strides.struct_bytes = sizeof given->lse_strides;
  given->other_strides.struct_bytes = sizeof given->other_strides;
  given->lse_other_strides.struct_bytes = sizeof given->lse_other_strides;
  tw_attention_merge_problem_set_defaults(given);
}

TW_API void tw_attention_merge_arguments_set_defaults(tw_attention_merge_arguments* given);
static inline void tw_attention_merge_arguments_init(tw_attention_merge_arguments* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_attention_merge_arguments_set_defaults(given);
}

TW_API void tw_attention_prepare_problem_set_defaults(tw_attention_prepare_problem* given);
static inline void tw_attention_prepare_problem_init(tw_attention_prepare_problem* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  given->q_strides.struct_bytes = sizeof given->q_strides;
  given->k_strides.struct_bytes = sizeof given->k_strides;
  given->v_strides.struct_bytes = sizeof given->v_strides;
  given->q8_strides.struct_bytes = sizeof given->q8_strides;
  given->k8_strides.struct_bytes = sizeof given->k8_strides;
  given->v8_strides.struct_bytes = sizeof given->v8_strides;
  tw_attention_prepare_problem_set_defaults(given);
}

TW_API void tw_attention_prepare_arguments_set_defaults(tw_attention_prepare_arguments* given);
static inline void tw_attention_prepare_arguments_init(tw_attention_prepare_arguments* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_attention_prepare_arguments_set_defaults(given);
}

TW_API void tw_attention_operand_sizes_set_defaults(tw_attention_operand_sizes* given);
static inline void tw_attention_operand_sizes_init(tw_attention_operand_sizes* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_attention_operand_sizes_set_defaults(given);
}

TW_API void tw_decode_append_set_defaults(tw_decode_append* given);
static inline void tw_decode_append_init(tw_decode_append* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_decode_append_set_defaults(given);
}

TW_API void tw_attention_decode_problem_set_defaults(tw_attention_decode_problem* given);
static inline void tw_attention_decode_problem_init(tw_attention_decode_problem* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  given->append.struct_bytes = sizeof given->append;
  given->q_strides.struct_bytes = sizeof given->q_strides;
  given->out_strides.struct_bytes = sizeof given->out_strides;
  given->new_k_strides.struct_bytes = sizeof given->new_k_strides;
  given->new_v_strides.struct_bytes = sizeof given->new_v_strides;
  given->cache_strides.struct_bytes = sizeof given->cache_strides;
  tw_attention_decode_problem_set_defaults(given);
}

TW_API void tw_attention_decode_arguments_set_defaults(tw_attention_decode_arguments* given);
static inline void tw_attention_decode_arguments_init(tw_attention_decode_arguments* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_attention_decode_arguments_set_defaults(given);
}

TW_API void tw_cache_append_problem_set_defaults(tw_cache_append_problem* given);
static inline void tw_cache_append_problem_init(tw_cache_append_problem* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  given->q_strides.struct_bytes = sizeof given->q_strides;
  given->turned_q_strides.struct_bytes = sizeof given->turned_q_strides;
  given->new_k_strides.struct_bytes = sizeof given->new_k_strides;
  given->new_v_strides.struct_bytes = sizeof given->new_v_strides;
  given->k_cache_strides.struct_bytes = sizeof given->k_cache_strides;
  given->v_cache_strides.struct_bytes = sizeof given->v_cache_strides;
  tw_cache_append_problem_set_defaults(given);
}

TW_API void tw_cache_append_arguments_set_defaults(tw_cache_append_arguments* given);
static inline void tw_cache_append_arguments_init(tw_cache_append_arguments* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_cache_append_arguments_set_defaults(given);
}

TW_API void tw_linear_weight_source_set_defaults(tw_linear_weight_source* given);
static inline void tw_linear_weight_source_init(tw_linear_weight_source* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_linear_weight_source_set_defaults(given);
}

TW_API void tw_linear_weight_info_set_defaults(tw_linear_weight_info* given);
static inline void tw_linear_weight_info_init(tw_linear_weight_info* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_linear_weight_info_set_defaults(given);
}

TW_API void tw_linear_problem_set_defaults(tw_linear_problem* given);
static inline void tw_linear_problem_init(tw_linear_problem* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_linear_problem_set_defaults(given);
}

TW_API void tw_linear_arguments_set_defaults(tw_linear_arguments* given);
static inline void tw_linear_arguments_init(tw_linear_arguments* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_linear_arguments_set_defaults(given);
}

TW_API void tw_block_scaled_weight_info_set_defaults(tw_block_scaled_weight_info* given);
static inline void tw_block_scaled_weight_info_init(tw_block_scaled_weight_info* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_block_scaled_weight_info_set_defaults(given);
}

TW_API void tw_block_scaled_problem_set_defaults(tw_block_scaled_problem* given);
static inline void tw_block_scaled_problem_init(tw_block_scaled_problem* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_block_scaled_problem_set_defaults(given);
}

TW_API void tw_block_scaled_arguments_set_defaults(tw_block_scaled_arguments* given);
static inline void tw_block_scaled_arguments_init(tw_block_scaled_arguments* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_block_scaled_arguments_set_defaults(given);
}

TW_API void tw_quantize_problem_set_defaults(tw_quantize_problem* given);
static inline void tw_quantize_problem_init(tw_quantize_problem* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_quantize_problem_set_defaults(given);
}

TW_API void tw_quantize_arguments_set_defaults(tw_quantize_arguments* given);
static inline void tw_quantize_arguments_init(tw_quantize_arguments* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_quantize_arguments_set_defaults(given);
}

TW_API void tw_moe_weights_source_set_defaults(tw_moe_weights_source* given);
static inline void tw_moe_weights_source_init(tw_moe_weights_source* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_moe_weights_source_set_defaults(given);
}

TW_API void tw_moe_weights_info_set_defaults(tw_moe_weights_info* given);
static inline void tw_moe_weights_info_init(tw_moe_weights_info* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_moe_weights_info_set_defaults(given);
}

TW_API void tw_moe_problem_set_defaults(tw_moe_problem* given);
static inline void tw_moe_problem_init(tw_moe_problem* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_moe_problem_set_defaults(given);
}

TW_API void tw_moe_arguments_set_defaults(tw_moe_arguments* given);
static inline void tw_moe_arguments_init(tw_moe_arguments* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_moe_arguments_set_defaults(given);
}

TW_API void tw_kv_layout_set_defaults(tw_kv_layout* given);
static inline void tw_kv_layout_init(tw_kv_layout* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_kv_layout_set_defaults(given);
}

TW_API void tw_sparse_list_set_defaults(tw_sparse_list* given);
static inline void tw_sparse_list_init(tw_sparse_list* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  given->cache.struct_bytes = sizeof given->cache;
  tw_sparse_list_set_defaults(given);
}

TW_API void tw_sparse_attention_problem_set_defaults(tw_sparse_attention_problem* given);
static inline void tw_sparse_attention_problem_init(tw_sparse_attention_problem* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  given->window.struct_bytes = sizeof given->window;
  given->window.cache.struct_bytes = sizeof given->window.cache;
  given->compressed.struct_bytes = sizeof given->compressed;
  given->compressed.cache.struct_bytes = sizeof given->compressed.cache;
  given->q_strides.struct_bytes = sizeof given->q_strides;
  given->out_strides.struct_bytes = sizeof given->out_strides;
  given->lse_strides.struct_bytes = sizeof given->lse_strides;
  tw_sparse_attention_problem_set_defaults(given);
}

TW_API void tw_sparse_list_arguments_set_defaults(tw_sparse_list_arguments* given);
static inline void tw_sparse_list_arguments_init(tw_sparse_list_arguments* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_sparse_list_arguments_set_defaults(given);
}

TW_API void tw_sparse_attention_arguments_set_defaults(tw_sparse_attention_arguments* given);
static inline void tw_sparse_attention_arguments_init(tw_sparse_attention_arguments* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  given->window.struct_bytes = sizeof given->window;
  given->compressed.struct_bytes = sizeof given->compressed;
  tw_sparse_attention_arguments_set_defaults(given);
}

TW_API void tw_latent_attention_problem_set_defaults(tw_latent_attention_problem* given);
static inline void tw_latent_attention_problem_init(tw_latent_attention_problem* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  given->q_strides.struct_bytes = sizeof given->q_strides;
  given->qv_strides.struct_bytes = sizeof given->qv_strides;
  given->out_strides.struct_bytes = sizeof given->out_strides;
  given->lse_strides.struct_bytes = sizeof given->lse_strides;
  given->k_strides.struct_bytes = sizeof given->k_strides;
  given->v_strides.struct_bytes = sizeof given->v_strides;
  tw_latent_attention_problem_set_defaults(given);
}

TW_API void tw_latent_attention_arguments_set_defaults(tw_latent_attention_arguments* given);
static inline void tw_latent_attention_arguments_init(tw_latent_attention_arguments* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_latent_attention_arguments_set_defaults(given);
}

TW_API void tw_mask_lists_problem_set_defaults(tw_mask_lists_problem* given);
static inline void tw_mask_lists_problem_init(tw_mask_lists_problem* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_mask_lists_problem_set_defaults(given);
}

TW_API void tw_mask_lists_arguments_set_defaults(tw_mask_lists_arguments* given);
static inline void tw_mask_lists_arguments_init(tw_mask_lists_arguments* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_mask_lists_arguments_set_defaults(given);
}

TW_API void tw_rope_options_set_defaults(tw_rope_options* given);
static inline void tw_rope_options_init(tw_rope_options* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_rope_options_set_defaults(given);
}

TW_API void tw_sequence_batch_set_defaults(tw_sequence_batch* given);
static inline void tw_sequence_batch_init(tw_sequence_batch* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_sequence_batch_set_defaults(given);
}

TW_API void tw_sequence_pages_set_defaults(tw_sequence_pages* given);
static inline void tw_sequence_pages_init(tw_sequence_pages* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_sequence_pages_set_defaults(given);
}

TW_API void tw_kv_write_arguments_set_defaults(tw_kv_write_arguments* given);
static inline void tw_kv_write_arguments_init(tw_kv_write_arguments* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_kv_write_arguments_set_defaults(given);
}

TW_API void tw_kv_read_arguments_set_defaults(tw_kv_read_arguments* given);
static inline void tw_kv_read_arguments_init(tw_kv_read_arguments* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_kv_read_arguments_set_defaults(given);
}

TW_API void tw_kv_list_arguments_set_defaults(tw_kv_list_arguments* given);
static inline void tw_kv_list_arguments_init(tw_kv_list_arguments* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  given->sequences.struct_bytes = sizeof given->sequences;
  given->table.struct_bytes = sizeof given->table;
  tw_kv_list_arguments_set_defaults(given);
}

TW_API void tw_kv_cache_work_set_defaults(tw_kv_cache_work* given);
static inline void tw_kv_cache_work_init(tw_kv_cache_work* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_kv_cache_work_set_defaults(given);
}

TW_API void tw_inverse_rope_arguments_set_defaults(tw_inverse_rope_arguments* given);
static inline void tw_inverse_rope_arguments_init(tw_inverse_rope_arguments* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_inverse_rope_arguments_set_defaults(given);
}

TW_API void tw_compressor_problem_set_defaults(tw_compressor_problem* given);
static inline void tw_compressor_problem_init(tw_compressor_problem* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  given->cache.struct_bytes = sizeof given->cache;
  tw_compressor_problem_set_defaults(given);
}

TW_API void tw_compressor_arguments_set_defaults(tw_compressor_arguments* given);
static inline void tw_compressor_arguments_init(tw_compressor_arguments* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  given->sequences.struct_bytes = sizeof given->sequences;
  given->table.struct_bytes = sizeof given->table;
  tw_compressor_arguments_set_defaults(given);
}

TW_API void tw_indexer_problem_set_defaults(tw_indexer_problem* given);
static inline void tw_indexer_problem_init(tw_indexer_problem* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  given->keys.struct_bytes = sizeof given->keys;
  given->rows.struct_bytes = sizeof given->rows;
  tw_indexer_problem_set_defaults(given);
}

TW_API void tw_indexer_arguments_set_defaults(tw_indexer_arguments* given);
static inline void tw_indexer_arguments_init(tw_indexer_arguments* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  given->sequences.struct_bytes = sizeof given->sequences;
  given->key_table.struct_bytes = sizeof given->key_table;
  given->row_table.struct_bytes = sizeof given->row_table;
  tw_indexer_arguments_set_defaults(given);
}

TW_API void tw_indexer_logits_problem_set_defaults(tw_indexer_logits_problem* given);
static inline void tw_indexer_logits_problem_init(tw_indexer_logits_problem* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  given->keys.struct_bytes = sizeof given->keys;
  tw_indexer_logits_problem_set_defaults(given);
}

TW_API void tw_indexer_logits_arguments_set_defaults(tw_indexer_logits_arguments* given);
static inline void tw_indexer_logits_arguments_init(tw_indexer_logits_arguments* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  given->sequences.struct_bytes = sizeof given->sequences;
  given->key_table.struct_bytes = sizeof given->key_table;
  tw_indexer_logits_arguments_set_defaults(given);
}

TW_API void tw_hyper_connection_problem_set_defaults(tw_hyper_connection_problem* given);
static inline void tw_hyper_connection_problem_init(tw_hyper_connection_problem* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_hyper_connection_problem_set_defaults(given);
}

TW_API void tw_hyper_connection_arguments_set_defaults(tw_hyper_connection_arguments* given);
static inline void tw_hyper_connection_arguments_init(tw_hyper_connection_arguments* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_hyper_connection_arguments_set_defaults(given);
}

TW_API void tw_hyper_embedding_problem_set_defaults(tw_hyper_embedding_problem* given);
static inline void tw_hyper_embedding_problem_init(tw_hyper_embedding_problem* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_hyper_embedding_problem_set_defaults(given);
}

TW_API void tw_hyper_embedding_arguments_set_defaults(tw_hyper_embedding_arguments* given);
static inline void tw_hyper_embedding_arguments_init(tw_hyper_embedding_arguments* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_hyper_embedding_arguments_set_defaults(given);
}

TW_API void tw_rms_norm_problem_set_defaults(tw_rms_norm_problem* given);
static inline void tw_rms_norm_problem_init(tw_rms_norm_problem* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_rms_norm_problem_set_defaults(given);
}

TW_API void tw_rms_norm_arguments_set_defaults(tw_rms_norm_arguments* given);
static inline void tw_rms_norm_arguments_init(tw_rms_norm_arguments* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_rms_norm_arguments_set_defaults(given);
}

TW_API void tw_sample_problem_set_defaults(tw_sample_problem* given);
static inline void tw_sample_problem_init(tw_sample_problem* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_sample_problem_set_defaults(given);
}

TW_API void tw_sample_arguments_set_defaults(tw_sample_arguments* given);
static inline void tw_sample_arguments_init(tw_sample_arguments* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_sample_arguments_set_defaults(given);
}

TW_API void tw_gather_rows_problem_set_defaults(tw_gather_rows_problem* given);
static inline void tw_gather_rows_problem_init(tw_gather_rows_problem* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_gather_rows_problem_set_defaults(given);
}

TW_API void tw_gather_rows_arguments_set_defaults(tw_gather_rows_arguments* given);
static inline void tw_gather_rows_arguments_init(tw_gather_rows_arguments* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_gather_rows_arguments_set_defaults(given);
}

TW_API void tw_chat_message_set_defaults(tw_chat_message* given);
static inline void tw_chat_message_init(tw_chat_message* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_chat_message_set_defaults(given);
}

TW_API void tw_llm_options_set_defaults(tw_llm_options* given);
static inline void tw_llm_options_init(tw_llm_options* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_llm_options_set_defaults(given);
}

TW_API void tw_llm_sampling_set_defaults(tw_llm_sampling* given);
static inline void tw_llm_sampling_init(tw_llm_sampling* given) {
  if (given == NULL) return;
  given->struct_bytes = sizeof *given;
  tw_llm_sampling_set_defaults(given);
}

#ifdef __cplusplus
}
#endif

#endif /* TILEWRIGHT_TILEWRIGHT_H */
