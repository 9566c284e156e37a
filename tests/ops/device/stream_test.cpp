// Public streams, events, graphs and timers, on the simulator and, where there is one, on a GPU.
#include "tilewright/stream.h"

#include "tilewright/buffer.h"
#include "tilewright/convert.h"
#include "tilewright/error.h"
#include "tilewright/graph.h"
#include "tilewright/hyper_connection.h"
#include "tilewright/kernels.h"

#include <cmath>
#include <cstdint>
#include <optional>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

class PublicStream : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    try {
      device_ = Device::open(GetParam());
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
    // Once it is loaded, the simulator is what the loader finds as libcuda.so.1.
    if (device_->is_simulated() != std::string(GetParam()).starts_with("sim"))
      GTEST_SKIP() << "no GPU";
  }
  const Device& device() const { return *device_; }
  Buffer zeros(std::size_t size_bytes) const {
    Buffer buffer(device(), size_bytes);
    buffer.fill(std::byte{0});
    return buffer;
  }

 private:
  std::optional<Device> device_;
};

template <class Call>
std::string device_error(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kDeviceError);
    return error.what();
  }
  return "no error";
}

TEST_P(PublicStream, WorkIsDoneInTheOrderOfTheStream) {
  const Stream stream(device());
  Buffer buffer = zeros(8);
  buffer.fill(std::byte{1}, stream);
  buffer.fill(std::byte{2}, stream);
  stream.synchronize();
  EXPECT_TRUE(stream.is_idle());
  EXPECT_THAT(buffer.to_vector<std::uint8_t>(), Each(2));
}

TEST_P(PublicStream, AnEventOrdersTwoStreams) {
  const Stream first(device()), second(device());
  const Event event(device());
  EXPECT_NE(event.handle(), nullptr);
  EXPECT_TRUE(event.is_reached());  // nothing was recorded
  Buffer from = zeros(1 << 20), to = zeros(1 << 20);
  from.fill(std::byte{3}, first);
  event.record(first);
  second.wait_for(event);
  copy_on_device(second, from.data(), to.data(), to.size_bytes());
  second.synchronize();
  EXPECT_TRUE(event.is_reached());
  event.synchronize();
  EXPECT_THAT(to.to_vector<std::uint8_t>(), Each(3));
}

TEST_P(PublicStream, TimesAreTakenAroundTheWorkWhichIsDoneThen) {
  const Stream stream(device());
  const StreamTimer timer(device());
  Buffer buffer = zeros(64);
  const double us = timer.time_us(stream, [&] { buffer.fill(std::byte{4}, stream); });
  EXPECT_GE(us, 0);
  EXPECT_LT(us, 60e6);
  EXPECT_THAT(buffer.to_vector<std::uint8_t>(), Each(4));
  EXPECT_THROW(timer.time_us(stream, [] { throw std::runtime_error("from the work"); }),
               std::runtime_error);
}

TEST_P(PublicStream, TimesOfWhatWasNotRecordedAreErrors) {
  const Event begin(device()), end(device());
  EXPECT_THAT(device_error([&] { elapsed_us(begin, end); }),
              HasSubstr("both events must be made with timing, recorded, and reached"));
}

TEST_P(PublicStream, MemoryOfOthersIsReadByItsAddress) {
  const Buffer buffer = Buffer::from(device(), std::vector<std::int32_t>{5, 6, 7});
  std::int32_t second = 0;
  copy_to_host(device(), buffer.as<std::int32_t>() + 1,
               std::as_writable_bytes(std::span(&second, 1)));
  EXPECT_EQ(second, 6);
  copy_to_host(device(), nullptr, {});
  copy_on_device(Stream(device()), nullptr, nullptr, 0);
  EXPECT_THAT(device_error([&] {
                copy_to_host(device(), nullptr, std::as_writable_bytes(std::span(&second, 1)));
              }),
              HasSubstr("cuMemcpyDtoH"));
}

TEST_P(PublicStream, AGraphDoesNothingUntilItIsLaunchedOnAnyStream) {
  const Stream stream(device()), other(device());
  Buffer buffer = zeros(16);
  Graph captured = Graph::capture(stream, [&] { buffer.fill(std::byte{8}, stream); });
  const Graph graph = std::move(captured);
  stream.synchronize();
  EXPECT_THAT(buffer.to_vector<std::uint8_t>(), Each(0));
  for (int i = 0; i < 2; ++i) {
    buffer.fill(std::byte{1});
    graph.launch(other);
    other.synchronize();
    EXPECT_THAT(buffer.to_vector<std::uint8_t>(), Each(8));
  }
}

TEST_P(PublicStream, AnExceptionEndsTheCaptureAndTheStreamCanBeUsedAgain) {
  const Stream stream(device());
  Buffer buffer = zeros(4);
  EXPECT_THROW(Graph::capture(stream,
                              [&] {
                                buffer.fill(std::byte{9}, stream);
                                throw std::runtime_error("from the recording");
                              }),
               std::runtime_error);
  EXPECT_THAT(device_error([&] { Graph::capture(stream, [&] { stream.synchronize(); }); }),
              HasSubstr("cuStreamSynchronize"));
  buffer.fill(std::byte{2}, stream);
  stream.synchronize();
  EXPECT_THAT(buffer.to_vector<std::uint8_t>(), Each(2));
}

// An operator in a graph takes what its addresses hold when the graph is launched.
TEST_P(PublicStream, AGraphRunsAnOperatorOnWhatIsThereThen) {
  if (embedded_kernels().empty()) GTEST_SKIP() << "built without kernels";
  constexpr std::int64_t kCols = 256;
  const RmsNorm norm(device(), {.rows = 1, .cols = kCols, .has_weight = false});
  Buffer x = zeros(kCols * 2), out(device(), kCols * 2);
  out.poison();
  const Stream stream(device());
  const Graph graph = Graph::capture(
      stream, [&] { norm.run({.x = x.data(), .out = out.data(), .stream = stream.handle()}); });
  for (const float value : {2.0f, -8.0f}) {
    x.upload(encode(DType::kBF16, std::vector<float>(kCols, value)));
    graph.launch(stream);
    stream.synchronize();
    EXPECT_THAT(decode(DType::kBF16, out.download()), Each(std::copysign(1.0f, value)));
  }
}

INSTANTIATE_TEST_SUITE_P(Simulator, PublicStream, ::testing::Values("sim:h200", "sim:b200"),
                         [](const auto& chip) { return std::string(chip.param).substr(4); });
INSTANTIATE_TEST_SUITE_P(Gpu, PublicStream, ::testing::Values("cuda"),
                         [](const auto&) { return std::string("first"); });

}  // namespace
}  // namespace tilewright
