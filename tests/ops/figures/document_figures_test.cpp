// The figures of the documents that this library grew out of: cosines of results against data that
// were never quantised, on both simulated chips. Formats lose what they lose, so each figure stands
// beside that of float64 arithmetic over the same codes, and may be 1e-5 below it: roundings to
// bf16 on the way (2^-9 of a number) cost 1e-6. docs/02-formats.md has the table; to write it anew:
// TILEWRIGHT_REBASE=1 build/release/bin/ops_tests --gtest_filter='DocumentFigures.*'
#include "base/file.h"
#include "device/kernel_registry.h"
#include "tests/ops/figures/cache_figures.h"
#include "tests/ops/figures/weight_figures.h"

#include <cstdlib>
#include <fstream>
#include <iterator>

namespace tilewright::ops {
namespace {

constexpr double kMostBelowFloat64 = 1e-5;

// The rows of a table that are those of this test, between two marks.
class GeneratedTable {
 public:
  explicit GeneratedTable(std::string path) : path_(std::move(path)), page_(read_page(path_)) {
    begin_ = page_.find(kBegin);
    end_ = page_.find(kEnd);
    if (begin_ == std::string::npos || end_ == std::string::npos)
      throw std::logic_error(path_ + " lacks the marks of the table");
    begin_ += std::string_view(kBegin).size();
  }
  std::string text() const { return page_.substr(begin_, end_ - begin_); }
  void replace(const std::string& text) const {
    write_file(path_, page_.substr(0, begin_) + text + page_.substr(end_));
  }

 private:
  static std::string read_page(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  static constexpr const char* kBegin = "<!-- document figures: a test writes this -->\n";
  static constexpr const char* kEnd = "<!-- end of document figures -->";

  std::string path_, page_;
  std::size_t begin_ = 0, end_ = 0;
};

std::string table_row(const DocumentFigure& figure, const std::string& chip) {
  return fmt::format("| {} | {:.4f} | {} | {} | {:.5f} | {:.5f} |\n", figure.what, figure.document,
                     chip, figure.kernel, figure.float64, figure.reached);
}

TEST(DocumentFigures, AreReachedOnBothChips) {
  if (device::kernel_images().empty()) GTEST_SKIP() << "built without kernels";
  ::setenv("TILEWRIGHT_SIM_CHECK", "all", 0);
  std::string text =
      "\n| what | document | chip | kernel | float64, same codes | reached |\n"
      "|---|---|---|---|---|---|\n";
  for (const char* const chip : {"h200", "b200"}) {
    const Device device = Device::open(std::string("sim:") + chip);
    std::vector<DocumentFigure> figures;
    add_cache_figures(device, figures);
    add_weight_figures(device, figures);
    for (const DocumentFigure& figure : figures) {
      SCOPED_TRACE(fmt::format("{}, {}", chip, figure.what));
      EXPECT_GE(figure.reached, figure.float64 - kMostBelowFloat64);
      EXPECT_LE(figure.reached, figure.float64 + kMostBelowFloat64);
      EXPECT_GE(figure.reached, figure.is_within_format ? figure.document : 0);
      text += table_row(figure, chip);
    }
  }
  text += "\n";
  const GeneratedTable table(std::string(TILEWRIGHT_SOURCE_DIR) + "/docs/02-formats.md");
  if (std::getenv("TILEWRIGHT_REBASE") != nullptr) return table.replace(text);
  EXPECT_EQ(table.text(), text) << "TILEWRIGHT_REBASE=1 writes the new table";
}

}  // namespace
}  // namespace tilewright::ops
