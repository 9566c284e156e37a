/* The C interface of DeepSeek-V4's hyper-connections. tilewright.h has rules of use; formulas,
 * shapes and rules of each field stand in hyper_connection.h, under the same names. All pointers of
 * arguments are device addresses. */
#ifndef TILEWRIGHT_TILEWRIGHT_HYPER_CONNECTION_H
#define TILEWRIGHT_TILEWRIGHT_HYPER_CONNECTION_H

#include "tilewright/tilewright.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_hyper_connection_problem {
  size_t struct_bytes;
  int64_t tokens, hidden;
  int32_t stream_dtype; /* TW_BF16 or TW_F32, as the two below */
  int32_t has_merge, has_second, has_mix, is_head;
  int32_t f_dtype, g_dtype;
  int32_t iterations;
  double eps, norm_eps;
} tw_hyper_connection_problem;

typedef struct tw_hyper_connection_arguments {
  size_t struct_bytes;
  const void* streams;
  void* merged;
  const float* mix_before;
  const void *f, *g;
  const float *fn, *base, *scale;
  const void* norm_weight;
  float* mix;
  void* out;
  void* workspace;
  void* stream; /* CUstream; NULL: the default stream */
} tw_hyper_connection_arguments;

typedef struct tw_hyper_connection tw_hyper_connection;

TW_API void tw_hyper_connection_problem_init(tw_hyper_connection_problem* problem);
TW_API void tw_hyper_connection_arguments_init(tw_hyper_connection_arguments* arguments);
TW_API tw_status tw_hyper_connection_create(const tw_device* device,
                                            const tw_hyper_connection_problem* problem,
                                            tw_hyper_connection** connection);
TW_API void tw_hyper_connection_destroy(tw_hyper_connection* connection); /* NULL is allowed */
TW_API size_t tw_hyper_connection_workspace_bytes(const tw_hyper_connection* connection);
TW_API tw_status tw_hyper_connection_run(const tw_hyper_connection* connection,
                                         const tw_hyper_connection_arguments* arguments);

typedef struct tw_hyper_embedding_problem {
  size_t struct_bytes;
  int64_t tokens, hidden, vocab;
  int32_t stream_dtype; /* TW_BF16 or TW_F32 */
} tw_hyper_embedding_problem;

typedef struct tw_hyper_embedding tw_hyper_embedding;

TW_API void tw_hyper_embedding_problem_init(tw_hyper_embedding_problem* problem);
TW_API tw_status tw_hyper_embedding_create(const tw_device* device,
                                           const tw_hyper_embedding_problem* problem,
                                           tw_hyper_embedding** embedding);
TW_API void tw_hyper_embedding_destroy(tw_hyper_embedding* embedding); /* NULL is allowed */
TW_API tw_status tw_hyper_embedding_run(const tw_hyper_embedding* embedding, const void* table,
                                        const int32_t* ids, void* streams, void* stream);

typedef struct tw_rms_norm_problem {
  size_t struct_bytes;
  int64_t rows, cols;
  int32_t x_dtype; /* TW_BF16 or TW_F32 */
  int64_t x_stride, out_stride;
  int32_t has_weight;
  double eps;
} tw_rms_norm_problem;

typedef struct tw_rms_norm tw_rms_norm;

TW_API void tw_rms_norm_problem_init(tw_rms_norm_problem* problem);
TW_API tw_status tw_rms_norm_create(const tw_device* device, const tw_rms_norm_problem* problem,
                                    tw_rms_norm** norm);
TW_API void tw_rms_norm_destroy(tw_rms_norm* norm); /* NULL is allowed */
TW_API tw_status tw_rms_norm_run(const tw_rms_norm* norm, const void* x, const void* weight,
                                 void* out, void* stream);

#ifdef __cplusplus
}
#endif

#endif
