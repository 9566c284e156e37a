#include "sim/model/options.h"

#include "sim/model/device_model.h"
#include "tests/base/expect_error.h"
#include "tests/base/scoped_env.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string parsed(const std::string& list) {
  return to_string(parse_checks(list));
}

TEST(Checks, Lists) {
  EXPECT_EQ(parsed("mem"), "mem");
  EXPECT_EQ(parsed("race, mem"), "mem,race");
  EXPECT_EQ(parsed("default"), "mem,init,sync");
  EXPECT_EQ(parsed(""), "mem,init,sync");
  EXPECT_EQ(parsed("none"), "none");
  EXPECT_EQ(parsed("all"), "mem,init,sync,race,proxy,mma,tmem");
  EXPECT_EQ(parsed("all,strict"), "mem,init,sync,race,proxy,mma,tmem,strict");
  EXPECT_EQ(parsed("all,-race,-mma"), "mem,init,sync,proxy,tmem");
  EXPECT_EQ(parsed("-init"), "mem,sync");
  EXPECT_EQ(parsed("race,-race"), "none");
  EXPECT_EQ(parse_checks("default"), Checks{});
}

TEST(Checks, UnknownWords) {
  EXPECT_THAT(error_of(ErrorKind::kInvalidArgument, [] { parse_checks("mem,rase"); }),
              AllOf(HasSubstr("rase"), HasSubstr("race"), HasSubstr("strict")));
  error_of(ErrorKind::kInvalidArgument, [] { parse_checks("mem,-"); });
}

TEST(Options, FromTheEnvironment) {
  const ScopedEnv checks("TILEWRIGHT_SIM_CHECK", "all");
  const ScopedEnv report("TILEWRIGHT_SIM_REPORT", "out.json");
  const ScopedEnv only("TILEWRIGHT_SIM_REPORT_ONLY", "1");
  const ScopedEnv seed("TILEWRIGHT_SIM_SEED", "42");
  const ScopedEnv timing("TILEWRIGHT_SIM_ASYNC", "late");
  const ScopedEnv exact("TILEWRIGHT_SIM_EXACT_MMA", "1");
  const ScopedEnv contract("TILEWRIGHT_SIM_CONTRACT", "0");
  const ScopedEnv threads("TILEWRIGHT_SIM_THREADS", "3");
  const ScopedEnv base("TILEWRIGHT_SIM_TMEM_BASE", "96");
  const ScopedEnv sms("TILEWRIGHT_SIM_SMS", "4");
  const ScopedEnv times("TILEWRIGHT_SIM_TIMES", "1");
  const ScopedEnv time("TILEWRIGHT_SIM_TIME", "1");
  const ScopedEnv sample("TILEWRIGHT_SIM_TIME_SAMPLE", "7");
  const ScopedEnv ideal("TILEWRIGHT_SIM_TIME_IDEAL", "mufu,l2");
  const ScopedEnv line("TILEWRIGHT_SIM_TIME_LINE", "line.svg");
  const ScopedEnv progress("TILEWRIGHT_SIM_PROGRESS", "1");
  const ScopedEnv replace("TILEWRIGHT_SIM_REPLACE", "first=/tmp/a=b.ptx, second=c.ptx");
  const Options options = Options::from_environment();
  EXPECT_TRUE(options.checks.race);
  EXPECT_EQ(options.report_path, "out.json");
  EXPECT_TRUE(options.report_only);
  EXPECT_EQ(options.seed, 42u);
  EXPECT_EQ(options.async_timing, AsyncTiming::kLate);
  EXPECT_TRUE(options.is_exact_mma);
  EXPECT_FALSE(options.fuse_mul_add);
  EXPECT_EQ(options.num_threads, 3u);
  EXPECT_EQ(options.tensor_memory_base, 96u);
  EXPECT_EQ(options.num_sms, 4u);
  EXPECT_TRUE(options.has_times);
  EXPECT_TRUE(options.has_time);
  EXPECT_EQ(options.time_sample, 7u);
  EXPECT_EQ(options.ideal_units, "mufu,l2");
  EXPECT_EQ(options.timeline_path, "line.svg");
  EXPECT_TRUE(options.has_progress);
  EXPECT_EQ(options.replacements,
            (std::vector<Replacement>{{"first", "/tmp/a=b.ptx"}, {"second", "c.ptx"}}));
}

TEST(Options, WrongValuesNameTheirVariable) {
  for (const auto& [name, value] : {std::pair{"TILEWRIGHT_SIM_CHECK", "everything"},
                                    {"TILEWRIGHT_SIM_REPORT_ONLY", "yes"},
                                    {"TILEWRIGHT_SIM_SEED", "-1"},
                                    {"TILEWRIGHT_SIM_ASYNC", "soon"},
                                    {"TILEWRIGHT_SIM_SMS", "1025"},
                                    {"TILEWRIGHT_SIM_TIMES", "2"},
                                    {"TILEWRIGHT_SIM_TIME", "yes"},
                                    {"TILEWRIGHT_SIM_TIME_SAMPLE", "all"},
                                    {"TILEWRIGHT_SIM_PROGRESS", "no"},
                                    {"TILEWRIGHT_SIM_REPLACE", "file.ptx"},
                                    {"TILEWRIGHT_SIM_REPLACE", "entry="},
                                    {"TILEWRIGHT_SIM_REPLACE", "a=b.ptx,=c.ptx"},
                                    {"TILEWRIGHT_SIM_THREADS", "4 "}}) {
    const ScopedEnv variable(name, value);
    EXPECT_THAT(error_of(ErrorKind::kInvalidArgument, [] { Options::from_environment(); }),
                AllOf(HasSubstr(name), HasSubstr(value)));
  }
}

TEST(DeviceModels, Facts) {
  ASSERT_EQ(device_models().size(), 3u);
  const DeviceModel* const h200 = find_device_model("h200");
  const DeviceModel* const b200 = find_device_model("b200");
  EXPECT_EQ(h200, &device_models()[0]);
  EXPECT_EQ(b200, &device_models()[1]);
  EXPECT_EQ(find_device_model("h100"), nullptr);
  EXPECT_EQ(h200->compute_capability, 90);
  EXPECT_EQ(h200->num_sms, 132u);
  EXPECT_EQ(h200->shared_bytes_per_cta_optin, 227u << 10);
  EXPECT_EQ(b200->compute_capability, 100);
  EXPECT_EQ(b200->num_sms, 148u);
  const DeviceModel* const b300 = find_device_model("b300");
  EXPECT_EQ(b300, &device_models()[2]);
  EXPECT_EQ(b300->compute_capability, 103);
  EXPECT_EQ(b300->rates.tensor.f4, b200->rates.tensor.f4 * 3 / 2);
}

}  // namespace
}  // namespace tilewright::sim
