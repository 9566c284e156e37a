/* Attention from C99: causal, one head, compared with plain loops. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tilewright/tilewright_buffer.h>

enum { kQ, kK, kV, kOut, kTensors, kLength = 150, kDim = 64, kCount = kLength * kDim };
static float x[kTensors][kLength][kDim];
static unsigned short bf16[kCount];

#define TRY(call) ((call) == TW_OK ? (void)0 : (fprintf(stderr, "%s\n", tw_last_error()), exit(1)))

/* Element d of the result for query i: softmax over the keys up to i. */
static double expected(int i, int d) {
  double sum = 0, weighted = 0;
  for (int j = 0; j <= i; ++j) {
    double score = 0;
    for (int c = 0; c < kDim; ++c) score += (double)x[kQ][i][c] * x[kK][j][c];
    sum += exp(score / 8);
    weighted += exp(score / 8) * x[kV][j][d];
  }
  return weighted / sum;
}

int main(void) {
  tw_device* device;
  TRY(tw_device_open(NULL, &device));
  tw_attention_problem problem;
  tw_attention_problem_init(&problem);
  problem.q_len = problem.kv_len = kLength, problem.head_dim = kDim, problem.causal = 1;
  tw_attention* attention;
  TRY(tw_attention_create(device, &problem, &attention));

  tw_buffer *buffers[kTensors], *workspace;
  for (int t = 0; t < kTensors; ++t) { /* -1 to 1, exact in bf16; the result replaces NaNs */
    for (int n = 0; n < kCount; ++n)
      x[t][n / kDim][n % kDim] = t == kOut ? NAN : (rand() % 129 - 64) / 64.0f;
    TRY(tw_encode(TW_BF16, x[t][0], kCount, bf16));
    TRY(tw_buffer_create(device, sizeof bf16, &buffers[t]));
    TRY(tw_buffer_upload(buffers[t], 0, bf16, sizeof bf16));
  }
  TRY(tw_buffer_create(device, tw_attention_workspace_bytes(attention), &workspace));
  tw_attention_arguments arguments;
  tw_attention_arguments_init(&arguments);
  arguments.q = tw_buffer_data(buffers[kQ]), arguments.k = tw_buffer_data(buffers[kK]);
  arguments.v = tw_buffer_data(buffers[kV]), arguments.out = tw_buffer_data(buffers[kOut]);
  arguments.workspace = tw_buffer_data(workspace);
  TRY(tw_attention_run(attention, &arguments));
  TRY(tw_buffer_download(buffers[kOut], 0, bf16, sizeof bf16));
  TRY(tw_decode(TW_BF16, bf16, kCount, x[kOut][0]));
  double worst = 0; /* probabilities and out are bf16: 2^-8 of at most 1 each */
  for (int n = 0; n < kCount; ++n) {
    const double error = fabs(x[kOut][n / kDim][n % kDim] - expected(n / kDim, n % kDim));
    if (error > worst || isnan(error)) worst = error; /* a NaN stays */
  }
  printf("%s: largest error %.4f\n", tw_device_description(device), worst);
  for (int t = 0; t < kTensors; ++t) tw_buffer_destroy(buffers[t]);
  tw_buffer_destroy(workspace), tw_attention_destroy(attention), tw_device_close(device);
  return worst < 0.02 ? 0 : 1;
}
