// What is said of a command line that cannot be parsed.
#include "parse_problem.h"

#include <gtest/gtest.h>

#include <memory>

#include "commands.h"

namespace lancet::cli {
namespace {

/// A program of three of lancet's commands.
struct Program {
  Program() {
    app.name("lancet");
    app.require_subcommand(1);
    add_edit(app, action);
    add_generate(app, action);
    add_import(app, action);
  }

  /// What is said of these words; empty: they are right.
  std::string problem(const std::string& words) {
    try {
      app.parse(words);
    } catch (const CLI::ParseError& error) {
      return parse_problem(app, error);
    }
    return {};
  }

  CLI::App app;
  Action action;
};

std::string problem_of_words(const std::string& words) { return Program().problem(words); }

TEST(ParseProblems, NameTheNearestCommand) {
  EXPECT_EQ(problem_of_words("edti job.yaml"),
            "lancet: 'edti': unknown command; did you mean edit?\nWhat there is: lancet --help");
  EXPECT_EQ(problem_of_words("zzzzzz"), "lancet: 'zzzzzz': unknown command\nWhat there is: lancet --help");
}

TEST(ParseProblems, NameTheNearestOptionOfTheChosenCommand) {
  const std::string problem = problem_of_words("generate --promt x");
  EXPECT_TRUE(problem.starts_with("lancet generate: --promt: unknown option; did you mean --prompt?")) << problem;
  EXPECT_TRUE(problem.ends_with("lancet generate --help")) << problem;
}

TEST(ParseProblems, ListTheCommandsWhereOneIsMissing) {
  EXPECT_TRUE(problem_of_words("").starts_with("lancet: expected a command: edit, generate, import"))
      << problem_of_words("");
}

TEST(ParseProblems, SeeAnUnknownCommandBesideHelp) {
  Program program;
  EXPECT_THROW(program.app.parse("nosuch --help"), CLI::ParseError);
  EXPECT_TRUE(has_unknown_command(program.app));
  Program other;
  EXPECT_THROW(other.app.parse("edit --help"), CLI::ParseError);
  EXPECT_FALSE(has_unknown_command(other.app));
}

}  // namespace
}  // namespace lancet::cli
