/* Attention from C99: causal, 4 heads, compared with plain loops. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tilewright/tilewright_buffer.h>

enum { kLength = 40, kHeads = 4, kDim = 64, kRow = kHeads * kDim, kCount = kLength * kRow };
static float q[kCount], k[kCount], v[kCount], out[kCount]; /* [kLength, kHeads, kDim] */
static unsigned short bf16[kCount];

#define TRY(call) ((call) == TW_OK ? (void)0 : (fprintf(stderr, "%s\n", tw_last_error()), exit(1)))

/* Element d of query i in a head, whose first element is `h`: softmax over the keys up to i. */
static double expected(int i, int h, int d) {
  double sum = 0, weighted = 0;
  for (int j = 0; j <= i; ++j) {
    double score = 0;
    for (int c = h; c < h + kDim; ++c) score += (double)q[i * kRow + c] * k[j * kRow + c];
    sum += exp(score / 8);
    weighted += exp(score / 8) * v[j * kRow + h + d];
  }
  return weighted / sum;
}

/* Numbers of -1 to 1 that bf16 has, or NaN where something is to be written, on the device. */
static tw_buffer* upload(const tw_device* device, float* numbers, int is_result) {
  tw_buffer* buffer;
  for (int i = 0; i < kCount; ++i) numbers[i] = is_result ? NAN : (rand() % 129 - 64) / 64.0f;
  TRY(tw_encode(TW_BF16, numbers, kCount, bf16));
  TRY(tw_buffer_create(device, sizeof bf16, &buffer));
  TRY(tw_buffer_upload(buffer, 0, bf16, sizeof bf16));
  return buffer;
}

int main(void) {
  tw_device* device;
  TRY(tw_device_open(NULL, &device));
  tw_attention_problem problem;
  tw_attention_problem_init(&problem);
  problem.heads = problem.kv_heads = kHeads;
  problem.q_len = problem.kv_len = kLength;
  problem.head_dim = kDim;
  problem.causal = 1;
  tw_attention* attention;
  TRY(tw_attention_create(device, &problem, &attention));

  tw_buffer *buffers[5] = {upload(device, q, 0), upload(device, k, 0), upload(device, v, 0),
                           upload(device, out, 1)},
            **workspace = &buffers[4];
  TRY(tw_buffer_create(device, tw_attention_workspace_bytes(attention), workspace));
  TRY(tw_buffer_fill(*workspace, 0xff)); /* it may hold anything */
  tw_attention_arguments arguments;
  tw_attention_arguments_init(&arguments);
  arguments.q = tw_buffer_data(buffers[0]);
  arguments.k = tw_buffer_data(buffers[1]);
  arguments.v = tw_buffer_data(buffers[2]);
  arguments.out = tw_buffer_data(buffers[3]);
  arguments.workspace = tw_buffer_data(*workspace);
  TRY(tw_attention_run(attention, &arguments));
  TRY(tw_buffer_download(buffers[3], 0, bf16, sizeof bf16));
  TRY(tw_decode(TW_BF16, bf16, kCount, out));

  double worst = 0;
  for (int n = 0; n < kCount; ++n) {
    const double error = fabs(out[n] - expected(n / kRow, n % kRow / kDim * kDim, n % kDim));
    if (error > worst || isnan(error)) worst = error; /* a NaN stays */
  }
  printf("%s: largest error %.4f\n", tw_device_description(device), worst);
  for (int i = 0; i < 5; ++i) tw_buffer_destroy(buffers[i]);
  tw_attention_destroy(attention);
  tw_device_close(device);
  return worst < 0.02 ? 0 : 1; /* probabilities and out are bf16: 2^-8 of at most 1 each */
}
