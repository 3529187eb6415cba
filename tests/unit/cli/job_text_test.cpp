// Jobs that one line spells, and what is said of lines that spell none.
#include <gtest/gtest.h>

#include "commands.h"
#include "support/temp_dir.h"

namespace lancet::cli {
namespace {

std::string refusal_of(const JobArguments& arguments, JobPurpose purpose = JobPurpose::kEdit) {
  try {
    read_job_text(arguments, purpose);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return {};
}

TEST(OneLineJobs, SayAllThatIsMissing) {
  EXPECT_EQ(refusal_of({}),
            "without a job file, these are missing: --model DIR, --prompt \"The capital of {} is\", --subject NAME, "
            "--target TEXT, --out DIR");
  EXPECT_EQ(refusal_of({.model = "m", .requests = "facts.json"}), "without a job file, these are missing: --out DIR");
  EXPECT_EQ(refusal_of({.model = "m"}, JobPurpose::kEvaluate),
            "without a job file, these are missing: --requests FILE");
}

TEST(OneLineJobs, SpellOneFactOrNameAFile) {
  EXPECT_EQ(refusal_of({.model = "m", .subject = "Rome", .requests = "facts.json", .out = "out"}),
            "--subject: spells one fact, and --requests facts.json names a file of facts: expected one of the two");
}

TEST(OneLineJobs, StandAloneOrAreAFile) {
  EXPECT_EQ(refusal_of({.file = "job.yaml", .model = "m"}),
            "--model: cannot be used with a job file. Change the job with --set, e.g. --set output.dir=DIR");
}

}  // namespace
}  // namespace lancet::cli
