// Flags that are declared options.
#include "command_line.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "lancet/spec/generate_spec.h"
#include "lancet/spec/job_spec.h"

namespace lancet::cli {
namespace {

/// Flags of `run:`: a list, a choice, a number, and one without a value.
struct RunFlags {
  RunFlags() { run.add(app, {&RunSpec::kDevices, &RunSpec::kQuantiseBase, &RunSpec::kThreads, &RunSpec::kCudaGraphs}); }

  /// What is wrong with these words; empty: nothing.
  std::string problem(const std::string& words) {
    try {
      app.parse(words);
    } catch (const CLI::ParseError& error) {
      return error.what();
    }
    return {};
  }

  CLI::App app;
  TypedOptions run;
};

TEST(OptionFlags, AreReadAsAJobReadsThem) {
  RunFlags flags;
  EXPECT_EQ(flags.problem("--devices cuda:0=20GiB,cpu --quantise-base nf4 --threads 3 --cuda-graphs"), "");
  const RunOptions run = parse_run(flags.run);
  EXPECT_EQ(run.devices, (std::vector<std::string>{"cuda:0=20GiB", "cpu"}));
  EXPECT_EQ(run.quantise_base, "nf4");
  EXPECT_EQ(run.threads, 3);
  EXPECT_EQ(run.step_launch, LaunchMode::kGraph);
  EXPECT_EQ(flags.run.overrides("run"),
            (std::vector<std::string>{"run.devices=[cuda:0=20GiB, cpu]", "run.quantise_base=nf4", "run.threads=3",
                                      "run.cuda_graphs=true"}));
}

TEST(OptionFlags, LeaveOutWhatIsNotGiven) {
  RunFlags flags;
  EXPECT_EQ(flags.problem(""), "");
  EXPECT_TRUE(flags.run.overrides("run").empty());
  EXPECT_EQ(parse_run(flags.run).devices, std::vector<std::string>{"auto"});
}

TEST(OptionFlags, TakeAListAsAJobSpellsIt) {
  RunFlags flags;
  EXPECT_EQ(flags.problem("--devices \"[cuda:1, cpu]\""), "");
  EXPECT_EQ(parse_run(flags.run).devices, (std::vector<std::string>{"cuda:1", "cpu"}));
}

TEST(OptionFlags, RefuseWhatAJobRefuses) {
  EXPECT_EQ(RunFlags().problem("--quantise-base int4"),
            "--quantise-base: expected one of none, int8, nf4, fp8, got int4; did you mean int8?");
  EXPECT_EQ(RunFlags().problem("--threads many"), "--threads: expected an integer from 0 to 4096, got many");
}

TEST(OptionFlags, AreShownWithTheirRanges) {
  const std::string help = RunFlags().app.help();
  EXPECT_NE(help.find("CPU threads; 0: all (a number of at least 0, at most 4096)"), std::string::npos) << help;
}

}  // namespace
}  // namespace lancet::cli
