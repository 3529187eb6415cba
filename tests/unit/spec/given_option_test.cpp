// Values that are given elsewhere than in a job.
#include "lancet/spec/given_option.h"

#include "lancet/spec/adapter_spec.h"
#include "lancet/spec/generate_spec.h"
#include "lancet/spec/job_spec.h"
#include "lancet/spec/option.h"
#include "lancet/spec/undo_spec.h"
#include "support/core_support.h"

namespace lancet {
namespace {

using namespace lancet::testing;

/// What is wrong with a value that is spelt as in a job.
std::string problem_of_value(const AnyOption& option, const std::string& yaml) {
  return given_problem(option, *parsed("value: " + yaml).find("value"));
}

TEST(GivenOption, IsReadAsInAJob) {
  EXPECT_EQ(problem_of_value(&RunSpec::kDType, "bf16"), "");
  EXPECT_EQ(problem_of_value(&RunSpec::kDType, "f8"), "expected one of auto, f32, bf16, f16, f64, got f8");
  EXPECT_EQ(problem_of_value(&RunSpec::kThreads, "5000"), "expected an integer from 0 to 4096, got 5000");
  EXPECT_EQ(problem_of_value(&RunSpec::kCudaGraphs, "yes"), "expected true or false, got yes");
  EXPECT_EQ(problem_of_value(&StatisticsSpec::kTokens, "auto"), "");
  EXPECT_EQ(problem_of_value(&StatisticsSpec::kTokens, "0"), "expected auto or an integer of at least 1, got 0");
  EXPECT_EQ(problem_of_value(&GenerateSpec::kTopP, "0"), "expected a number from 1e-09 to 1, got 0");
}

TEST(GivenOption, MayBeASingleTextInTheListsPlaceWhereTheJobsMay) {
  EXPECT_EQ(problem_of_value(&RunSpec::kDevices, "cpu"), "");
  EXPECT_EQ(problem_of_value(&RunSpec::kDevices, "[cpu]"), "");
  EXPECT_EQ(problem_of_value(&RunSpec::kDevices, "{}"), "expected a list of texts, got a map");
  EXPECT_EQ(problem_of_value(&TuneSpec::kObjective, "efficacy_prob"),
            "expected a list of texts, got efficacy_prob; write [efficacy_prob]");
}

TEST(GivenOption, DefaultsAreTaken) {
  for (const std::span<const AnyOption> section :
       {std::span<const AnyOption>(RunSpec::kAll), std::span<const AnyOption>(GenerateSpec::kAll),
        std::span<const AnyOption>(AdapterSpec::kAll), std::span<const AnyOption>(UndoSpec::kAll)})
    for (const AnyOption& option : section)
      EXPECT_EQ(problem_of_value(option, default_text(option)), "") << base_of(option).key;
}

}  // namespace
}  // namespace lancet
