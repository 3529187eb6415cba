// Jobs that one line spells, and what is said of lines that spell none.
#include <gtest/gtest.h>

#include "commands.h"

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

JobArguments of_model() {
  JobArguments arguments;
  arguments.model = "m";
  return arguments;
}

TEST(OneLineJobs, SayAllThatIsMissing) {
  EXPECT_EQ(refusal_of({}),
            "without a job file, these are missing: --model DIR, --prompt \"The capital of {} is\", --subject NAME, "
            "--target TEXT, --out DIR");
  EXPECT_EQ(refusal_of(of_model(), JobPurpose::kEvaluate), "without a job file, these are missing: --requests FILE");
  JobArguments facts = of_model();
  facts.requests = "facts.json";
  EXPECT_EQ(refusal_of(facts), "without a job file, these are missing: --out DIR");
}

TEST(OneLineJobs, SpellOneFactOrNameAFile) {
  JobArguments both = of_model();
  both.subject = "Rome";
  both.requests = "facts.json";
  both.out = "out";
  EXPECT_EQ(refusal_of(both),
            "--subject: spells one fact, and --requests facts.json names a file of facts: expected one of the two");
}

TEST(OneLineJobs, StandAloneOrAreAFile) {
  JobArguments both = of_model();
  both.file = "job.yaml";
  EXPECT_EQ(refusal_of(both),
            "--model: cannot be used with a job file. Change the job with --set, e.g. --set output.dir=DIR");
}

}  // namespace
}  // namespace lancet::cli
