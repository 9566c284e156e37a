// Public memory and streams, on the simulator and, where there is one, on a GPU.
#include "tilewright/buffer.h"

#include "tilewright/error.h"
#include "tilewright/stream.h"

#include <cmath>
#include <cstdint>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

template <class Call>
std::string invalid(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    return error.what();
  }
  return "no error";
}

class PublicBuffer : public ::testing::Test {
 protected:
  Device device_ = Device::open("sim:h200");
};

TEST_F(PublicBuffer, ElementsComeBack) {
  const std::vector<std::int32_t> numbers = {1, -2, 3};
  const Buffer buffer = Buffer::from(device_, numbers);
  EXPECT_EQ(buffer.size_bytes(), 12u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 256, 0u);
  EXPECT_EQ(buffer.as<std::int32_t>(), buffer.data());
  EXPECT_EQ(buffer.to_vector<std::int32_t>(), numbers);
}

TEST_F(PublicBuffer, PartsAreCopiedAtTheirOffset) {
  Buffer buffer(device_, 4);
  buffer.fill(std::byte{7});
  buffer.upload(std::vector{std::byte{1}, std::byte{2}}, 1);
  EXPECT_EQ(buffer.to_vector<std::uint8_t>(), (std::vector<std::uint8_t>{7, 1, 2, 7}));
  std::vector<std::byte> part(2);
  buffer.download(part, 2);
  EXPECT_EQ(part, (std::vector{std::byte{2}, std::byte{7}}));
}

TEST_F(PublicBuffer, PoisonIsNaN) {
  Buffer buffer(device_, 16);
  buffer.poison();
  EXPECT_THAT(buffer.to_vector<float>(), Each(::testing::IsNan()));
}

TEST_F(PublicBuffer, ErrorsNameTheSizes) {
  Buffer buffer(device_, 10);
  std::vector<std::byte> bytes(8);
  EXPECT_THAT(invalid([&] { buffer.upload(bytes, 4); }),
              HasSubstr("Buffer::upload: 8 bytes at offset 4 do not fit into a buffer of 10 bytes; "
                        "6 are left there"));
  EXPECT_THAT(invalid([&] { buffer.download(bytes, 11); }), HasSubstr("Buffer::download: 8 bytes"));
  EXPECT_THAT(invalid([&] { buffer.to_vector<float>(); }),
              HasSubstr("a buffer of 10 bytes does not hold whole elements of 4 bytes"));
}

TEST_F(PublicBuffer, MovesKeepTheMemoryAndEmptyOnesHaveNone) {
  Buffer buffer = Buffer::from(device_, std::vector<float>{1.5f});
  void* const address = buffer.data();
  Buffer moved = std::move(buffer);
  EXPECT_EQ(moved.data(), address);
  moved = Buffer(device_, 0);
  EXPECT_EQ(moved.data(), nullptr);
  EXPECT_TRUE(moved.download().empty());
}

TEST_F(PublicBuffer, StreamsAreNotTheDefaultStream) {
  const Stream stream(device_);
  EXPECT_NE(stream.handle(), nullptr);
  stream.synchronize();
}

TEST(GpuPublicBuffer, ElementsComeBack) {
  std::optional<Device> device;
  try {
    device = Device::open("cuda");
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  const std::vector<float> numbers(1000, 0.25f);
  EXPECT_EQ(Buffer::from(*device, numbers).to_vector<float>(), numbers);
}

}  // namespace
}  // namespace tilewright
