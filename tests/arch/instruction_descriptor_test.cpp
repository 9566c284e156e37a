// The instruction descriptor of tcgen05.mma against the manual's table, bit by bit.
#include "arch/tcgen05_descriptors.h"

#include <gtest/gtest.h>

namespace tilewright::arch {
namespace {

constexpr std::uint32_t bits(std::uint32_t value, int at) {
  return value << at;
}

TEST(InstructionDescriptor, DenseFieldsStandWhereTheManualPutsThem) {
  EXPECT_EQ(encode_mma_instruction(MmaInstruction{.accumulator = MmaAccumulator::kF32,
                                                  .a_type = 1,
                                                  .b_type = 5,
                                                  .a_major = Major::kK,
                                                  .b_major = Major::kMN,
                                                  .m = 256,
                                                  .n = 192}),
            bits(1, 4) | bits(1, 7) | bits(5, 10) | bits(1, 16) | bits(24, 17) | bits(16, 24));
  EXPECT_EQ(encode_mma_instruction(MmaInstruction{
                .accumulator = MmaAccumulator::kF16, .a_major = Major::kMN, .m = 64, .n = 8}),
            bits(1, 15) | bits(1, 17) | bits(4, 24));
}

TEST(InstructionDescriptor, KnownWords) {
  // bf16 x bf16 -> f32, 128 x 128, both K-major: what every Blackwell tutorial prints.
  EXPECT_EQ(encode_mma_instruction(MmaInstruction{.a_type = 1, .b_type = 1}), 0x08200490u);
  // f16, 128 x 256, B MN-major.
  EXPECT_EQ(encode_mma_instruction(MmaInstruction{.b_major = Major::kMN, .n = 256}), 0x08410010u);
}

TEST(InstructionDescriptor, BlockScaledFieldsStandWhereTheManualPutsThem) {
  EXPECT_EQ(encode_mma_instruction(BlockScaledMmaInstruction{.a_type = kMmaF4TypeE2m1,
                                                             .b_type = kMmaF4TypeE2m1,
                                                             .m = 128,
                                                             .n = 64,
                                                             .scale_type = MmaScaleType::kUe4m3,
                                                             .a_scale_id = 2,
                                                             .b_scale_id = 2}),
            bits(2, 4) | bits(1, 7) | bits(1, 10) | bits(8, 17) | bits(1, 27) | bits(2, 29));
  EXPECT_EQ(encode_mma_instruction(
                BlockScaledMmaInstruction{.a_type = static_cast<std::uint32_t>(MmaF8Type::kE4m3),
                                          .b_type = static_cast<std::uint32_t>(MmaF8Type::kE2m1),
                                          .m = 256,
                                          .n = 256,
                                          .scale_type = MmaScaleType::kUe8m0,
                                          .a_scale_id = 3,
                                          .b_scale_id = 1}),
            bits(1, 4) | bits(5, 10) | bits(32, 17) | bits(1, 23) | bits(2, 27) | bits(3, 29));
}

}  // namespace
}  // namespace tilewright::arch
