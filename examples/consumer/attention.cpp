// Attention of one head, out = softmax(q k^T / sqrt(d)) v, on a GPU or on the simulator.
#include <cstdio>
#include <vector>

#include <tilewright/attention.h>
#include <tilewright/buffer.h>
#include <tilewright/convert.h>
#include <tilewright/error.h>

namespace tw = tilewright;

int main() try {
  const tw::Device device = tw::Device::open();  // or TILEWRIGHT_DEVICE=cuda:0, sim:h200, ..
  const tw::Attention attention(device, {.q_len = 64, .kv_len = 64, .head_dim = 128});
  std::fputs(attention.plan().to_string().c_str(), stdout);

  // All keys are alike, so that each row of out is the mean of the values: 0.5.
  const std::vector<float> ones(64 * 128, 1.0f);
  std::vector<float> values(64 * 128);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i / 128 % 2 == 0 ? 0.25f : 0.75f;

  const tw::Buffer q = tw::Buffer::from(device, tw::encode(tw::DType::kBF16, ones));
  const tw::Buffer v = tw::Buffer::from(device, tw::encode(tw::DType::kBF16, values));
  tw::Buffer out(device, q.size_bytes()), workspace(device, attention.plan().workspace_bytes);
  out.poison();
  attention.run({.q = q.data(),
                 .k = q.data(),
                 .v = v.data(),
                 .out = out.data(),
                 .workspace = workspace.data()});

  for (const float x : tw::decode(tw::DType::kBF16, out.download())) {
    if (!(x > 0.498f && x < 0.502f)) return std::printf("out has a %g; expected 0.5\n", x), 1;
  }
  std::printf("%s: every element of out is 0.5\n", device.description().c_str());
} catch (const tw::Error& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
