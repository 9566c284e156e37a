#include "base/safetensors_writer.h"

#include "tests/base/expect_error.h"
#include "tests/base/golden_io.h"
#include "tests/base/scoped_folder.h"

#include <array>
#include <cstring>

namespace tilewright {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::map<std::string, ConstTensorView> views_of(
    const std::map<std::string, GoldenTensor>& tensors) {
  std::map<std::string, ConstTensorView> views;
  for (const auto& [name, tensor] : tensors) {
    const void* const data = tensor.bytes.data();
    views.emplace(name, contiguous_view(data, tensor.dtype, tensor.shape));
  }
  return views;
}

TEST(WriteSafetensors, WritesTheSameBytesAsTheReference) {
  const ScopedFolder folder;
  const auto tensors = golden_safetensors("numpy_types.safetensors");
  write_safetensors(folder / "a", views_of(tensors), {{"made by", "numpy \u2713"}});
  EXPECT_EQ(bytes_of_file(folder / "a"), bytes_of_file(golden_io_path("numpy_types.safetensors")));
  write_safetensors(folder / "none", {});
  EXPECT_EQ(bytes_of_file(folder / "none"),
            bytes_of_file(golden_io_path("no_tensors.safetensors")));
}

TEST(WriteSafetensors, WritesTypesThatNumpyLacks) {
  const ScopedFolder folder;
  const auto tensors = golden_safetensors("raw_types.safetensors");
  write_safetensors(folder / "a", views_of(tensors));
  const SafetensorsFile file(folder / "a");
  EXPECT_EQ(file.entries().size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    const HostTensor copy(file.tensor(name));
    EXPECT_EQ(copy.dtype(), tensor.dtype) << name;
    EXPECT_TRUE(std::ranges::equal(copy.bytes(), tensor.bytes)) << name;
  }
}

TEST(WriteSafetensors, KeepsSeveralMetadataEntries) {
  const ScopedFolder folder;
  const SafetensorsMetadata metadata = {{"format", "pt"}, {"quote \" \n", "{\"a\": [1]}"}};
  write_safetensors(folder / "a", {}, metadata);
  EXPECT_EQ(SafetensorsFile(folder / "a").metadata(), metadata);
}

TEST(WriteSafetensors, RefusesStridedViews) {
  const ScopedFolder folder;
  const std::array<float, 8> data{};
  const ConstTensorView view = {data.data(), DType::kF32, {2, 3}, {4, 1}};
  EXPECT_THAT(
      error_of(ErrorKind::kUnsupported,
               [&] {
                 write_safetensors(folder / "a", {{"w", view}});
               }),
      EndsWith("a: tensor \"w\": shape [2, 3] with strides [4, 1] is not contiguous; make it "
               "contiguous first"));
  EXPECT_THAT(folder.names(), IsEmpty());
}

TEST(SafetensorsWriter, TakesPiecesInAnyOrder) {
  const ScopedFolder folder;
  SafetensorsWriter writer(folder / "a", {{"x", DType::kU8, {6}}, {"y", DType::kI16, {2}}});
  writer.append("x", bytes_of("ab"));
  writer.append("y", bytes_of("0123"));
  writer.append("x", bytes_of("cdef"));
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
  writer.finish();
  EXPECT_THAT(folder.names(), ElementsAre("a"));
  const SafetensorsFile file(folder / "a");
  EXPECT_EQ(std::memcmp(file.tensor("x").data, "abcdef", 6), 0);
  EXPECT_EQ(std::memcmp(file.tensor("y").data, "0123", 4), 0);
}

TEST(SafetensorsWriter, AlignsDataAndPutsWideTypesFirst) {
  const ScopedFolder folder;
  for (const std::size_t name_bytes : {1, 2, 3, 4, 5, 6, 7, 8}) {
    const std::string name(name_bytes, 'n');
    SafetensorsWriter writer(folder / "a", {{name, DType::kU8, {3}}, {"wide", DType::kF64, {1}}});
    writer.append(name, bytes_of("abc"));
    writer.append("wide", bytes_of("01234567"));
    writer.finish();
    const SafetensorsFile file(folder / "a");
    EXPECT_EQ(file.entries().at(0).name, "wide");
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(file.tensor("wide").data) % 8, 0u);
  }
}

TEST(SafetensorsWriter, WritesTensorsWithoutElements) {
  const ScopedFolder folder;
  SafetensorsWriter(folder / "a", {{"none", DType::kF32, {3, 0}}}).finish();
  EXPECT_THAT(SafetensorsFile(folder / "a").tensor("none").shape, ElementsAre(3, 0));
}

std::string writer_error(std::vector<SafetensorsSpec> specs,
                         const SafetensorsMetadata& metadata = {}) {
  const ScopedFolder folder;
  const std::string message = error_of(ErrorKind::kInvalidArgument, [&] {
    SafetensorsWriter(folder / "a", std::move(specs), metadata);
  });
  EXPECT_THAT(folder.names(), IsEmpty());
  return message;
}

TEST(SafetensorsWriter, RefusesTensorsThatCannotBeWritten) {
  EXPECT_THAT(
      writer_error({{"w", DType::kU8, {1}}, {"v", DType::kU8, {1}}, {"w", DType::kF32, {1}}}),
      EndsWith("a: two tensors are named \"w\"; rename one"));
  EXPECT_THAT(writer_error({{"__metadata__", DType::kU8, {1}}}),
              EndsWith("tensor \"__metadata__\": the name is reserved; rename the tensor"));
  EXPECT_THAT(writer_error({{"w", DType::kU8, {-2}}}),
              EndsWith("tensor \"w\": shape [-2] has the dimension -2; dimensions are 0 or more"));
  EXPECT_THAT(writer_error({{"w", DType::kF4, {3}}}), HasSubstr("shape [3] of F4 takes 12 bits"));
  constexpr std::int64_t kHuge = std::int64_t{1} << 59;
  std::vector<SafetensorsSpec> huge;
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g", "h"}) {
    huge.push_back({name, DType::kU8, {kHuge}});
    huge.push_back({std::string(name) + "2", DType::kU8, {kHuge}});
  }
  EXPECT_THAT(writer_error(huge), HasSubstr("the file would exceed 2^63 bytes; split it"));
}

TEST(SafetensorsWriter, RefusesTextThatIsNotUtf8) {
  EXPECT_THAT(writer_error({{"w\xff", DType::kU8, {1}}}),
              HasSubstr("\"w\\xff\" is not UTF-8; names and metadata have to be"));
  EXPECT_THAT(writer_error({}, {{"key", "\xff"}}), HasSubstr("\"\\xff\" is not UTF-8"));
}

TEST(SafetensorsWriter, RefusesAHeaderThatNobodyCouldRead) {
  EXPECT_THAT(writer_error({}, {{"key", std::string(100'000'000, 'x')}}),
              EndsWith("a: the header takes 100000032 bytes; at most 100000000 are allowed. Split "
                       "the file"));
}

TEST(SafetensorsWriter, RefusesBytesThatDoNotFit) {
  const ScopedFolder folder;
  SafetensorsWriter writer(folder / "a", {{"w", DType::kF32, {2}}});
  const auto error = [&](auto&& call) { return error_of(ErrorKind::kInvalidArgument, call); };
  EXPECT_THAT(error([&] { writer.append("v", bytes_of("0123")); }),
              EndsWith("a: there is no tensor \"v\"; similar names: \"w\""));
  writer.append("w", bytes_of("0123"));
  EXPECT_THAT(error([&] { writer.append("w", bytes_of("01234")); }),
              EndsWith("a: tensor \"w\" takes 4 more bytes, but 5 were given"));
  EXPECT_THAT(error([&] { writer.finish(); }),
              EndsWith("a: tensor \"w\" lacks 4 bytes; append them before finish()"));
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
  writer.append("w", bytes_of("4567"));
  writer.finish();
  EXPECT_EQ(std::memcmp(SafetensorsFile(folder / "a").tensor("w").data, "01234567", 8), 0);
}

TEST(SafetensorsWriter, AbandonedFileLeavesTheOldOne) {
  const ScopedFolder folder;
  write_file(folder / "a", std::string_view("old"));
  { SafetensorsWriter(folder / "a", {{"w", DType::kF32, {2}}}).append("w", bytes_of("0123")); }
  EXPECT_THAT(folder.names(), ElementsAre("a"));
  EXPECT_EQ(MappedFile(folder / "a").text(), "old");
}

}  // namespace
}  // namespace tilewright
