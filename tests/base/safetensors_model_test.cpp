#include "base/safetensors_model.h"

#include "tests/base/expect_error.h"
#include "tests/base/golden_io.h"
#include "tests/base/scoped_folder.h"

#include <algorithm>

namespace tilewright {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr const char* kIndex = "model.safetensors.index.json";
constexpr const char* kShard = "model-00001-of-00002.safetensors";

void expect_golden(const SafetensorsModel& model) {
  const auto expected = golden_safetensors("model");
  EXPECT_EQ(model.names().size(), expected.size());
  for (const auto& [name, tensor] : expected) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(model.contains(name));
    const HostTensor copy(model.tensor(name));
    EXPECT_EQ(copy.dtype(), tensor.dtype);
    EXPECT_EQ(copy.shape(), tensor.shape);
    EXPECT_TRUE(std::ranges::equal(copy.bytes(), tensor.bytes));
  }
}

TEST(SafetensorsModel, ReadsShardsByFolderAndByIndex) {
  const SafetensorsModel model(golden_io_path("model"));
  expect_golden(model);
  EXPECT_THAT(model.names(),
              ElementsAre("embed.weight", "head.weight", "layers.0.bias", "layers.1.bias"));
  EXPECT_EQ(model.files().size(), 2u);
  expect_golden(SafetensorsModel(golden_io_path("model") / kIndex));
}

TEST(SafetensorsModel, ReadsASingleFileByFolderAndByName) {
  const ScopedFolder folder;
  fs::copy_file(golden_io_path("model") / kShard, folder / "model.safetensors");
  for (const fs::path& path : {folder.path(), folder / "model.safetensors"}) {
    const SafetensorsModel model(path);
    EXPECT_THAT(model.names(), ElementsAre("embed.weight", "layers.0.bias"));
    EXPECT_EQ(model.tensor("embed.weight").shape, (std::vector<std::int64_t>{4, 2}));
  }
}

/// Another working folder for the time of one test.
struct ScopedWorkingFolder {
  explicit ScopedWorkingFolder(const fs::path& path) { fs::current_path(path); }
  ~ScopedWorkingFolder() { fs::current_path(old); }
  const fs::path old = fs::current_path();
};

TEST(SafetensorsModel, IndexInTheWorkingFolder) {
  const ScopedWorkingFolder working_folder(golden_io_path("model"));
  expect_golden(SafetensorsModel(kIndex));
}

std::string model_error(ErrorKind kind, const fs::path& path) {
  return error_of(kind, [&] { SafetensorsModel{path}; });
}

TEST(SafetensorsModel, UnknownNameErrorListsSimilarNames) {
  const SafetensorsModel model(golden_io_path("model"));
  EXPECT_THAT(
      error_of(ErrorKind::kInvalidArgument, [&] { model.tensor("layers.0.weight"); }),
      HasSubstr("there is no tensor \"layers.0.weight\"; similar names: \"layers.0.bias\""));
}

TEST(SafetensorsModel, FolderWithoutAModel) {
  const ScopedFolder folder;
  EXPECT_EQ(model_error(ErrorKind::kInvalidArgument, folder.path()),
            folder.path().string() +
                ": the folder has neither model.safetensors.index.json nor model.safetensors");
  EXPECT_THAT(model_error(ErrorKind::kInvalidArgument, folder / "none"),
              EndsWith("none: cannot open the file: No such file or directory"));
}

/// A copy of the golden model whose index is replaced.
struct BrokenModel {
  explicit BrokenModel(const std::string& weight_map) {
    fs::copy_file(golden_io_path("model") / kShard, folder / kShard);
    write_file(folder / kIndex, std::string_view("{\"weight_map\": " + weight_map + "}"));
  }
  ScopedFolder folder;
};

TEST(SafetensorsModel, ListsMissingFiles) {
  const BrokenModel model(
      R"({"embed.weight": "model-00001-of-00002.safetensors", "a": "x.safetensors",)"
      R"( "b": "x.safetensors", "c": "y.safetensors"})");
  EXPECT_EQ(model_error(ErrorKind::kInvalidArgument, model.folder.path()),
            (model.folder / kIndex).string() + ": 2 of 3 files are missing in " +
                model.folder.path().string() +
                ": \"x.safetensors\", \"y.safetensors\"; fetch them");
}

TEST(SafetensorsModel, ListsMissingFilesOfTheWorkingFolder) {
  const BrokenModel model(R"({"a": "x.safetensors"})");
  const ScopedWorkingFolder working_folder(model.folder.path());
  EXPECT_EQ(model_error(ErrorKind::kInvalidArgument, kIndex),
            "model.safetensors.index.json: 1 of 1 files are missing in .: \"x.safetensors\"; fetch "
            "them");
}

TEST(SafetensorsModel, ListOfMissingFilesIsCut) {
  std::string weight_map = R"({"embed.weight": "model-00001-of-00002.safetensors")";
  for (int i = 10; i < 60; ++i) {
    weight_map += R"(, "t)" + std::to_string(i) + R"(": "f)" + std::to_string(i) + "\"";
  }
  const std::string message =
      model_error(ErrorKind::kInvalidArgument, BrokenModel(weight_map + "}").folder.path());
  EXPECT_THAT(message, HasSubstr(": 50 of 51 files are missing in "));
  EXPECT_THAT(message, EndsWith("\"f18\", \"f19\", ...; fetch them"));
}

TEST(SafetensorsModel, NamesTheTensorThatAFileLacks) {
  const BrokenModel model(R"({"head.weight": "model-00001-of-00002.safetensors"})");
  EXPECT_THAT(model_error(ErrorKind::kParseError, model.folder.path()),
              EndsWith("tensor \"head.weight\" should be in \"model-00001-of-00002.safetensors\", "
                       "which lacks it; index and files do not belong together"));
}

TEST(SafetensorsModel, TensorsThatTheIndexDoesNotNameDoNotExist) {
  const BrokenModel model(R"({"embed.weight": "model-00001-of-00002.safetensors"})");
  EXPECT_FALSE(SafetensorsModel(model.folder.path()).contains("layers.0.bias"));
}

TEST(SafetensorsModel, DamagedShardIsNamed) {
  const BrokenModel model(R"({"embed.weight": "model-00001-of-00002.safetensors"})");
  fs::resize_file(model.folder / kShard, 100);
  EXPECT_THAT(model_error(ErrorKind::kParseError, model.folder.path()),
              ::testing::StartsWith((model.folder / kShard).string() + ": the header length is"));
}

TEST(SafetensorsModel, ShardNameTooLongForTheSystemIsMissing) {
  const BrokenModel model(R"({"a": ")" + std::string(5000, 'x') + "\"}");
  EXPECT_THAT(model_error(ErrorKind::kInvalidArgument, model.folder.path()),
              HasSubstr("1 of 1 files are missing"));
}

TEST(ParseSafetensorsIndex, ReadsTheWeightMap) {
  EXPECT_THAT(parse_safetensors_index(R"({"metadata": {"total_size": 8}, "weight_map": {"b": "f1",)"
                                      R"( "a": "f2"}})",
                                      "i.json"),
              ElementsAre(Pair("a", "f2"), Pair("b", "f1")));
  EXPECT_THAT(parse_safetensors_index(R"({"weight_map": {}})", "i.json"), IsEmpty());
}

std::string index_error(std::string_view text) {
  return error_of(ErrorKind::kParseError, [&] { parse_safetensors_index(text, "i.json"); });
}

TEST(ParseSafetensorsIndex, RefusesFilesOutsideTheFolder) {
  for (const char* name : {"../x", "/etc/passwd", "a/b", "..", ".", ""}) {
    EXPECT_EQ(index_error(std::string(R"({"weight_map": {"a": ")") + name + "\"}}"),
              std::string("i.json: /weight_map/a: \"") + name +
                  "\" is not the name of a file in the same folder");
  }
  EXPECT_THAT(index_error(R"({"weight_map": {"a": "x\u0000y"}})"), HasSubstr(R"("x\x00y" is not)"));
}

TEST(ParseSafetensorsIndex, RefusesWhatIsNotAnIndex) {
  EXPECT_EQ(index_error("{\"metadata\": {}}"),
            "i.json: top level: member \"weight_map\" is missing; the object has \"metadata\"");
  EXPECT_EQ(index_error("[]"),
            "i.json: top level: expected an object, found an array of 0 elements");
  EXPECT_EQ(index_error(R"({"weight_map": {"a": 1}})"),
            "i.json: /weight_map/a: expected a string, found number 1");
  EXPECT_THAT(index_error(R"({"weight_map": {"a": "f", "a": "g"}})"),
              HasSubstr("two members \"a\""));
}

}  // namespace
}  // namespace tilewright
