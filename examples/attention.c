/* Attention from C99: 2 sequences, 4 heads that share one KV head, causal; compared with plain loops. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tilewright/tilewright_buffer.h>

enum { kBatch = 2, kHeads = 4, kLength = 40, kDim = 64 };
static float q[kBatch][kLength][kHeads][kDim], k[kBatch][kLength][kDim], v[kBatch][kLength][kDim];
static float out[kBatch][kLength][kHeads][kDim];

static void check(tw_status status) {
  if (status == TW_OK) return;
  fprintf(stderr, "%s\n", tw_last_error());
  exit(1);
}

/* Numbers from -1 to 1, exact in bf16, on the device. */
static tw_buffer* operand(const tw_device* device, float* numbers, size_t count, unsigned seed) {
  unsigned short* bf16 = malloc(2 * count);
  tw_buffer* buffer;
  for (size_t i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    numbers[i] = (float)(int)(seed >> 25) / 64.0f - 1.0f;
  }
  check(tw_encode(TW_BF16, numbers, count, bf16));
  check(tw_buffer_create(device, 2 * count, &buffer));
  check(tw_buffer_upload(buffer, 0, bf16, 2 * count));
  free(bf16);
  return buffer;
}

/* Row i of one head: softmax over the keys up to i. */
static double expected(int b, int i, int h, int d) {
  double sum = 0, weighted = 0;
  for (int j = 0; j <= i; ++j) {
    double score = 0;
    for (int c = 0; c < kDim; ++c) score += (double)q[b][i][h][c] * k[b][j][c];
    sum += exp(score / 8);
    weighted += exp(score / 8) * v[b][j][d];
  }
  return weighted / sum;
}

int main(void) {
  static unsigned short bf16[sizeof out / sizeof(float)];
  const size_t count = sizeof out / sizeof(float);
  tw_device* device;
  tw_attention* attention;
  tw_buffer *result, *workspace;
  tw_attention_problem problem;
  tw_attention_arguments arguments;
  double worst = 0;
  check(tw_device_open(NULL, &device));
  tw_attention_problem_init(&problem);
  problem.batch = kBatch;
  problem.heads = kHeads;
  problem.q_len = problem.kv_len = kLength;
  problem.head_dim = kDim;
  problem.causal = 1;
  check(tw_attention_create(device, &problem, &attention));

  tw_buffer* operands[3] = {operand(device, &q[0][0][0][0], count, 1),
                            operand(device, &k[0][0][0], count / kHeads, 2),
                            operand(device, &v[0][0][0], count / kHeads, 3)};
  check(tw_buffer_create(device, 2 * count, &result));
  check(tw_buffer_fill(result, 0xff));
  check(tw_buffer_create(device, tw_attention_workspace_bytes(attention), &workspace));
  tw_attention_arguments_init(&arguments);
  arguments.q = tw_buffer_data(operands[0]);
  arguments.k = tw_buffer_data(operands[1]);
  arguments.v = tw_buffer_data(operands[2]);
  arguments.out = tw_buffer_data(result);
  arguments.workspace = tw_buffer_data(workspace);
  check(tw_attention_run(attention, &arguments));
  check(tw_buffer_download(result, 0, bf16, sizeof bf16));
  check(tw_decode(TW_BF16, bf16, count, &out[0][0][0][0]));

  for (int b = 0; b < kBatch; ++b)
    for (int i = 0; i < kLength; ++i)
      for (int h = 0; h < kHeads; ++h)
        for (int d = 0; d < kDim; ++d) {
          const double error = fabs(out[b][i][h][d] - expected(b, i, h, d));
          if (!(error <= worst)) worst = error;
        }
  printf("%s: %s, largest error %.4f\n", tw_device_description(device),
         tw_attention_kernel(attention), worst);
  for (int i = 0; i < 3; ++i) tw_buffer_destroy(operands[i]);
  tw_buffer_destroy(result);
  tw_buffer_destroy(workspace);
  tw_attention_destroy(attention);
  tw_device_close(device);
  return worst < 0.02
             ? 0
             : 1; /* P and out are bf16: 2^-8 of at most 1 each, and the exponential's error */
}
