// What tests expect of the verdicts of a stage check.
#pragma once

#include "model/float64/stage_check.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace tilewright::model {

// "" if all are within their bounds.
inline std::string first_beyond(const std::vector<StageVerdict>& verdicts) {
  const auto found = std::ranges::find_if(verdicts, [](const auto& v) { return !v.is_met(); });
  return found == verdicts.end() ? "" : found->name;
}

// `most_open`: the share of codes of the window that bounds may leave open.
inline void expect_all_met(const std::vector<StageVerdict>& verdicts, double most_open = 0.05) {
  for (const StageVerdict& v : verdicts) {
    EXPECT_TRUE(v.is_met()) << v.name << ": " << v.beyond_rows << " of " << v.rows << " rows; "
                            << v.first;
    EXPECT_GT(v.rows, 0) << v.name;
    if (std::getenv("TILEWRIGHT_SHOW_STAGES") != nullptr)
      std::printf(
          "%-28s worst %.3g of its bound, max %.3g, rms %.3g, %ld open, %ld different of %ld\n",
          v.name.c_str(), v.worst, v.max_difference, v.relative_rms(), v.undecided, v.different,
          v.elems);
    if (!v.is_code) continue;
    // All that differ are among those that the bound leaves open. Rows of the window are one
    // rounding to bf16 from their codes and leave few, unless they are long sums of which it takes
    // the worst; entries are three, and a transform of 128 adds up the worst of all of them.
    EXPECT_LE(v.different, v.undecided) << v.name;
    if (v.name.ends_with("kv_fp8")) {
      EXPECT_LE(static_cast<double>(v.undecided), most_open * static_cast<double>(v.elems))
          << v.name;
    }
    EXPECT_LE(static_cast<double>(v.different), 0.01 * static_cast<double>(v.elems)) << v.name;
  }
}

}  // namespace tilewright::model
