/* Tilewright for C99 and everything that calls C: the library libtilewright.so.
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
 *     tw_attention_arguments arguments = {q, k, v, out};   // device addresses
 *     arguments.workspace = ...;                           // tw_attention_workspace_bytes() of it
 *     arguments.stream = stream;                           // CUstream or cudaStream_t
 *     if (tw_attention_run(attention, &arguments) != TW_OK) ...
 */
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

typedef enum tw_status {
  TW_OK = 0,
  TW_INVALID_ARGUMENT = 1, /* the call makes no sense; fix it */
  TW_UNSUPPORTED = 2,      /* it makes sense, but nothing here can do it */
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
 * sources had changed since; "unknown" if nobody knew. */
TW_API const char* tw_commit(void);

typedef struct tw_device tw_device;

/* "auto", "cuda", "cuda:N", "sim:h200", "sim:b200", "sim:b300"; NULL or "": what TILEWRIGHT_DEVICE
 * says, else auto. The device's primary context is used, as by the CUDA runtime: addresses and
 * streams of cudaMalloc, PyTorch, ... can be passed as they are. */
TW_API tw_status tw_device_open(const char* spec, tw_device** device);
/* Operators made on the device stay valid. NULL is allowed, here and in tw_attention_destroy. */
TW_API void tw_device_close(tw_device* device);
/* One line: name, compute capability, multiprocessors, memory, driver. Valid as long as it. */
TW_API const char* tw_device_description(const tw_device* device);
/* 1 if kernels run on the CPU; their run time then says nothing about a GPU. */
TW_API int tw_device_is_simulated(const tw_device* device);
/* Its CUcontext, and a function of its driver by exported name ("cuMemAlloc_v2"), NULL if the
 * driver lacks it: the way to allocate memory on a simulated device. */
TW_API void* tw_device_context(const tw_device* device);
TW_API void* tw_device_driver_function(const tw_device* device, const char* exported_name);
/* Waits for all work on the device. */
TW_API tw_status tw_device_synchronize(const tw_device* device);

typedef enum tw_dtype { TW_BF16 = 0, TW_F16 = 1, TW_F32 = 2, TW_E4M3 = 3, TW_E8M0 = 4 } tw_dtype;

/* Elements from one batch, row, head to the next; all 0: contiguous, head_dim innermost. */
typedef struct tw_strides {
  int64_t batch, row, head;
} tw_strides;

/* What shares a factor in e4m3 operands: attention.h has the shapes of the factors. */
typedef enum tw_fp8_scales {
  TW_SCALES_TENSOR = 0,
  TW_SCALES_HEAD = 1,
  TW_SCALES_BLOCK = 2
} tw_fp8_scales;
typedef enum tw_fp8_accumulation {
  TW_SUMS_AUTO = 0,
  TW_SUMS_ONE_LEVEL = 1,
  TW_SUMS_TWO_LEVEL = 2
} tw_fp8_accumulation;

/* Which elements of a head are a pair that is turned by one angle: 2i and 2i + 1, or i and
 * i + rotary_dim / 2. */
typedef enum tw_rotary {
  TW_ROTARY_NONE = 0,
  TW_ROTARY_INTERLEAVED = 1,
  TW_ROTARY_HALVES = 2
} tw_rotary;

/* As tilewright::AttentionProblem in attention.h, which explains every member. Fill it with
 * tw_attention_problem_init(), which sets struct_bytes; then set what you need. */
typedef struct tw_attention_problem {
  size_t struct_bytes;
  int32_t dtype; /* tw_dtype of q, k and v: TW_BF16, TW_F16, TW_E4M3 */
  int32_t causal;
  int64_t batch, heads, kv_heads;
  int64_t q_len, kv_len; /* of every sequence; of the longest if packed */
  int64_t head_dim;
  double scale;                      /* 0: head_dim^-0.5 */
  double softcap;                    /* 0: none; at most 4096 */
  int64_t window_left, window_right; /* visible keys before and after; -1: all */
  int32_t has_sink, has_lse;
  int32_t is_packed;         /* lengths come as cu_q and cu_kv */
  int32_t out_dtype;         /* of TW_E4M3 operands: TW_BF16 or TW_F16; else not read */
  int64_t total_q, total_kv; /* rows of packed tensors */
  tw_strides q_strides, k_strides, v_strides, out_strides;
  const char* kernel;       /* NULL or "auto", or a name such as "k6" */
  int32_t fp8_scales;       /* tw_fp8_scales of TW_E4M3 operands */
  int32_t fp8_v_columns;    /* 1: values transposed and permuted, as Fp8ValueLayout::kColumns */
  int32_t fp8_accumulation; /* tw_fp8_accumulation, whenever a kernel computes in e4m3 */
  int32_t reserved;
} tw_attention_problem;

TW_API void tw_attention_problem_init(tw_attention_problem* problem);

/* Device addresses; NULL where the problem does not need it. */
typedef struct tw_attention_arguments {
  const void *q, *k, *v;
  void* out;
  float* lse;                  /* [batch, heads, q_len]; packed [heads, total_q] */
  const float* sink;           /* [heads] */
  const int32_t *cu_q, *cu_kv; /* [batch + 1] */
  void* workspace;             /* 256-byte aligned */
  void* stream;                /* CUstream; NULL: the default stream */
  const float *q_descale, *k_descale, *v_descale; /* of TW_E4M3 operands */
  const float* v_descale_max;                     /* TW_SCALES_BLOCK: [batch, kv_heads] */
} tw_attention_arguments;

typedef struct tw_attention tw_attention;

/* Checks the problem, chooses a kernel and loads it. */
TW_API tw_status tw_attention_create(const tw_device* device, const tw_attention_problem* problem,
                                     tw_attention** attention);
TW_API void tw_attention_destroy(tw_attention* attention);
/* What will run and why, a few lines; and the kernel's name. Valid as long as the operator. */
TW_API const char* tw_attention_plan_text(const tw_attention* attention);
TW_API const char* tw_attention_kernel(const tw_attention* attention);
TW_API size_t tw_attention_workspace_bytes(const tw_attention* attention);
/* 4 * head_dim for every visible score. */
TW_API double tw_attention_flops(const tw_attention* attention);
/* Enqueues the work on the stream: allocates nothing, waits for nothing, may be captured in a CUDA
 * graph. Several threads may call it if workspaces and outputs differ. */
TW_API tw_status tw_attention_run(const tw_attention* attention,
                                  const tw_attention_arguments* arguments);

/* Linear layers with weights of 4, 8 or 16 bits: tilewright/linear.h explains every member.
 *
 *     tw_linear_weight_source source;
 *     tw_linear_weight_source_init(&source);
 *     source.format = TW_WEIGHT_NVFP4;
 *     source.n = source.k = 7168;
 *     source.values = codes; source.scales = scales;       // host or device addresses
 *     source.global_scale = 2.1e-4f;
 *     tw_linear_weight* weight;
 *     if (tw_linear_weight_prepare(device, &source, &weight) != TW_OK) ...
 *     tw_linear_problem problem;
 *     tw_linear_problem_init(&problem);
 *     problem.m = 32;
 *     tw_linear* linear;
 *     if (tw_linear_create(weight, &problem, &linear) != TW_OK) ...
 *     tw_linear_arguments arguments = {x, NULL, NULL, out, workspace, stream};
 *     if (tw_linear_run(linear, &arguments) != TW_OK) ...
 */
typedef enum tw_weight_format {
  TW_WEIGHT_BF16 = 0,
  TW_WEIGHT_FP8 = 1, /* e4m3, scales of 128 x 128 blocks */
  TW_WEIGHT_MXFP4 = 2,
  TW_WEIGHT_NVFP4 = 3
} tw_weight_format;

/* What a weight is multiplied with: bf16 as it is, or rounded to FP8. */
typedef enum tw_activations { TW_ACTIVATIONS_BF16 = 0, TW_ACTIVATIONS_FP8 = 1 } tw_activations;

typedef struct tw_linear_weight_source {
  size_t struct_bytes;
  int32_t format;         /* tw_weight_format */
  int32_t activations;    /* tw_activations */
  int64_t n, k;           /* out and in features */
  const void* values;     /* [n, k]: bf16, e4m3, or two e2m1 in a byte */
  const void* scales;     /* NULL for bf16 */
  int32_t scale_dtype;    /* of TW_WEIGHT_FP8: TW_F32 or TW_E8M0 */
  int32_t is_scale_128x4; /* of the 4-bit formats */
  float global_scale;     /* of TW_WEIGHT_NVFP4; 0: missing */
  int32_t is_global_scale_reciprocal;
  int32_t accepts_any_global_scale;
  int32_t reserved;
} tw_linear_weight_source;

TW_API void tw_linear_weight_source_init(tw_linear_weight_source* source);

typedef struct tw_linear_weight tw_linear_weight;

/* Checks and reorders the weight and copies it to the device. */
TW_API tw_status tw_linear_weight_prepare(const tw_device* device,
                                          const tw_linear_weight_source* source,
                                          tw_linear_weight** weight);
/* Operators made on the weight stay valid. NULL is allowed. */
TW_API void tw_linear_weight_destroy(tw_linear_weight* weight);
TW_API size_t tw_linear_weight_bytes(const tw_linear_weight* weight);

typedef struct tw_linear_problem {
  size_t struct_bytes;
  int32_t x_dtype;   /* TW_BF16; or TW_E4M3 with x_scales, for TW_ACTIVATIONS_FP8 */
  int32_t out_dtype; /* TW_BF16 or TW_F32 */
  int32_t has_bias;
  int32_t activation_scales; /* of FP8 activations: 0 automatic, 1 per row, 2 per 128 of a row */
  int64_t m;
  int64_t x_stride, out_stride; /* elements from row to row; 0: contiguous */
  const char* kernel;           /* NULL or "auto", or a name that the plan's text lists */
} tw_linear_problem;

TW_API void tw_linear_problem_init(tw_linear_problem* problem);

/* Device addresses; NULL where the problem does not need it. */
typedef struct tw_linear_arguments {
  const void* x;
  const float* x_scales;
  const float* bias; /* [n] */
  void* out;
  void* workspace; /* 256-byte aligned */
  void* stream;    /* CUstream; NULL: the default stream */
} tw_linear_arguments;

typedef struct tw_linear tw_linear;

TW_API tw_status tw_linear_create(const tw_linear_weight* weight, const tw_linear_problem* problem,
                                  tw_linear** linear);
TW_API void tw_linear_destroy(tw_linear* linear);
TW_API const char* tw_linear_plan_text(const tw_linear* linear);
TW_API const char* tw_linear_kernel(const tw_linear* linear);
TW_API size_t tw_linear_workspace_bytes(const tw_linear* linear);
TW_API double tw_linear_flops(const tw_linear* linear); /* 2 m n k */
TW_API double tw_linear_bytes(const tw_linear* linear); /* weight, x and out, each once */
/* As tw_attention_run. */
TW_API tw_status tw_linear_run(const tw_linear* linear, const tw_linear_arguments* arguments);

/* As tilewright::QuantizeProblem in quantize.h, which explains every member. Fill it with
 * tw_quantize_problem_init(), which sets struct_bytes; then set what you need. */
typedef struct tw_quantize_problem {
  size_t struct_bytes;
  const char* format; /* NULL: "nvfp4"; "mxfp4", "fp8_1x128", "fp8_token", "fp8_128x128", ... */
  const char* scales; /* nvfp4: NULL or "nearest", "four_over_six", "exact_nearest", "exact_best" */
  int32_t dtype;      /* of the numbers: TW_BF16, TW_F16 or TW_F32 */
  int32_t has_row_index;
  int64_t rows, cols;
  int64_t row_stride;         /* elements; 0: cols */
  int64_t out_rows, out_cols; /* 0: rounded up to whole blocks */
  int32_t has_operand_order, has_128x4_scales, has_block_major_scales;
  int32_t has_encode_scale_address;
  float encode_scale; /* nvfp4: G; 0: found from the largest magnitude */
  int32_t reserved;
} tw_quantize_problem;

TW_API void tw_quantize_problem_init(tw_quantize_problem* problem);

/* Device addresses, of tw_quantize_on_host host addresses; NULL where the problem does not need
 * it. */
typedef struct tw_quantize_arguments {
  const void* in;
  const int32_t* row_index; /* [rows] */
  void *codes, *scales;
  const float* encode_scale;
  float* tensor_scale; /* nvfp4: where 1 / G goes, or NULL */
  void* workspace;     /* 256-byte aligned */
  void* stream;        /* CUstream; NULL: the default stream */
} tw_quantize_arguments;

typedef struct tw_quantize tw_quantize;

TW_API tw_status tw_quantize_create(const tw_device* device, const tw_quantize_problem* problem,
                                    tw_quantize** quantize);
TW_API void tw_quantize_destroy(tw_quantize* quantize);
/* What will run, a few lines; valid as long as the operator. */
TW_API const char* tw_quantize_plan_text(const tw_quantize* quantize);
TW_API size_t tw_quantize_workspace_bytes(const tw_quantize* quantize);
/* Enqueues one kernel: allocates nothing, waits for nothing, may be captured in a CUDA graph. */
TW_API tw_status tw_quantize_run(const tw_quantize* quantize,
                                 const tw_quantize_arguments* arguments);

/* Bytes of codes and of scales that a problem gives, on a device or on the host. */
TW_API tw_status tw_quantize_sizes(const tw_quantize_problem* problem, size_t* code_bytes,
                                   size_t* scale_bytes);
/* The same on the host, with the same bytes. num_threads 0: as many as there are. */
TW_API tw_status tw_quantize_on_host(const tw_quantize_problem* problem,
                                     const tw_quantize_arguments* arguments, int32_t num_threads);

/* The experts of a Mixture-of-Experts layer: as tilewright::MoeWeightsSource in moe.h. Arrays of
 * `experts` weights; the shared ones are NULL or one weight each. All have the same format. */
typedef struct tw_moe_weights_source {
  size_t struct_bytes;
  int64_t experts;
  const tw_linear_weight_source *gate, *up, *down; /* w1, w3 [inter, hidden], w2 [hidden, inter] */
  const tw_linear_weight_source *shared_gate, *shared_up, *shared_down;
} tw_moe_weights_source;

TW_API void tw_moe_weights_source_init(tw_moe_weights_source* source);

typedef struct tw_moe_weights tw_moe_weights;

/* Checks and reorders all experts and copies them to the device. `activations` of the first gate
 * counts for all. */
TW_API tw_status tw_moe_weights_prepare(const tw_device* device,
                                        const tw_moe_weights_source* source,
                                        tw_moe_weights** weights);
/* Operators made on them stay valid. NULL is allowed. */
TW_API void tw_moe_weights_destroy(tw_moe_weights* weights);
TW_API size_t tw_moe_weights_bytes(const tw_moe_weights* weights);

typedef enum tw_moe_routing {
  TW_ROUTING_GIVEN = 0,  /* ids and weights come with the call */
  TW_ROUTING_LOGITS = 1, /* the topk largest of score(logits) + bias */
  TW_ROUTING_HASH = 2    /* a table by token id; the logits give the weights */
} tw_moe_routing;
typedef enum tw_moe_score { TW_SCORE_SOFTMAX = 0, TW_SCORE_SQRT_SOFTPLUS = 1 } tw_moe_score;

/* As tilewright::MoeProblem in moe.h. */
typedef struct tw_moe_problem {
  size_t struct_bytes;
  int64_t tokens, topk;
  int32_t routing;   /* tw_moe_routing */
  int32_t score;     /* tw_moe_score */
  int32_t normalize; /* 1 */
  int32_t has_bias;
  double route_scale;  /* 1 */
  int64_t vocab;       /* rows of the table of TW_ROUTING_HASH */
  double swiglu_limit; /* 0: none */
  int32_t weight_after_down;
  int32_t out_dtype;  /* TW_BF16 or TW_F32 */
  const char* kernel; /* NULL or "auto", or a name that the plan's text lists */
} tw_moe_problem;

TW_API void tw_moe_problem_init(tw_moe_problem* problem);

/* Device addresses; NULL where the problem does not need it. */
typedef struct tw_moe_arguments {
  const void* x;            /* bf16 [tokens, hidden] */
  const int32_t* ids;       /* [tokens, topk] */
  const float* weights;     /* [tokens, topk] */
  const float* logits;      /* [tokens, experts] */
  const float* bias;        /* [experts] */
  const int32_t* token_ids; /* [tokens] */
  const int32_t* table;     /* [vocab, topk] */
  void* out;                /* [tokens, hidden] */
  void* workspace;          /* 256-byte aligned */
  void* stream;             /* CUstream; NULL: the default stream */
} tw_moe_arguments;

typedef struct tw_moe tw_moe;

TW_API tw_status tw_moe_create(const tw_moe_weights* weights, const tw_moe_problem* problem,
                               tw_moe** moe);
TW_API void tw_moe_destroy(tw_moe* moe);
TW_API const char* tw_moe_plan_text(const tw_moe* moe);
TW_API const char* tw_moe_kernel(const tw_moe* moe);
TW_API size_t tw_moe_workspace_bytes(const tw_moe* moe);
/* As tw_attention_run. */
TW_API tw_status tw_moe_run(const tw_moe* moe, const tw_moe_arguments* arguments);
/* Waits for the stream; TW_INVALID_ARGUMENT if the last run with these arguments dropped ids that
 * are no experts, or that stand twice in a token's row. */
TW_API tw_status tw_moe_check(const tw_moe* moe, const tw_moe_arguments* arguments);

/* DeepSeek-V4's attention over chosen rows of paged caches: as tilewright::SparseAttention in
 * sparse_attention.h, which explains every member; page bytes stand in cache.h. */
typedef enum tw_kv_format { TW_KV_BF16 = 0, TW_KV_FP8 = 1, TW_KV_NVFP4 = 2 } tw_kv_format;
typedef enum tw_sparse_lengths {
  TW_LENGTHS_FULL = 0,     /* all topk entries count */
  TW_LENGTHS_BATCH = 1,    /* lengths [batch] */
  TW_LENGTHS_PER_QUERY = 2 /* lengths [batch, q_len] */
} tw_sparse_lengths;

typedef struct tw_sparse_list {
  int32_t format;  /* tw_kv_format, the same for both lists */
  int32_t lengths; /* tw_sparse_lengths */
  int64_t page_size, num_pages;
  int64_t page_stride_bytes; /* 0: that of the format */
  int64_t topk;              /* entries of each query's list; 0: there is no such list */
  int64_t index_stride;      /* elements from query to query; 0: topk */
} tw_sparse_list;

typedef struct tw_sparse_attention_problem {
  size_t struct_bytes;
  int64_t batch, q_len, heads;
  double scale; /* 0: 512^-0.5 */
  tw_sparse_list window, compressed;
  int32_t has_sink, has_lse, has_max_logits, reserved;
  tw_strides q_strides, out_strides, lse_strides; /* row: from query to query */
  const char* kernel; /* NULL or "auto", or a name that the plan's text lists */
} tw_sparse_attention_problem;

TW_API void tw_sparse_attention_problem_init(tw_sparse_attention_problem* problem);

/* Device addresses; NULL where the problem does not need it. */
typedef struct tw_sparse_attention_arguments {
  const void* q; /* bf16 [batch, q_len, heads, 512] */
  const void* window_pages;
  const int32_t *window_indices, *window_lengths;
  const void* compressed_pages;
  const int32_t *compressed_indices, *compressed_lengths;
  void* out;               /* as q */
  float *lse, *max_logits; /* [batch, q_len, heads] */
  const float* sink;       /* [heads] */
  void* workspace;         /* 256-byte aligned */
  void* stream;            /* CUstream; NULL: the default stream */
  int32_t keeps_schedule;  /* 1: the workspace holds the schedule of the same lengths */
  int32_t reserved;
} tw_sparse_attention_arguments;

typedef struct tw_sparse_attention tw_sparse_attention;

TW_API tw_status tw_sparse_attention_create(const tw_device* device,
                                            const tw_sparse_attention_problem* problem,
                                            tw_sparse_attention** attention);
TW_API void tw_sparse_attention_destroy(tw_sparse_attention* attention);
TW_API const char* tw_sparse_attention_plan_text(const tw_sparse_attention* attention);
TW_API const char* tw_sparse_attention_kernel(const tw_sparse_attention* attention);
TW_API size_t tw_sparse_attention_workspace_bytes(const tw_sparse_attention* attention);
/* As tw_attention_run. */
TW_API tw_status tw_sparse_attention_run(const tw_sparse_attention* attention,
                                         const tw_sparse_attention_arguments* arguments);

#ifdef __cplusplus
}
#endif

#endif /* TILEWRIGHT_TILEWRIGHT_H */
