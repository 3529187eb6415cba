// A job is read without any method: what one needs is told by tables, here by made-up ones.
#include "lancet/job/job_config.h"

#include <gtest/gtest.h>

#include "lancet/core/strings.h"
#include "lancet/spec/read_option.h"
#include "support/core_support.h"

namespace lancet {
namespace {

constexpr std::string_view kMetrics[] = {"efficacy_prob", "efficacy_bits", "portability_*"},
                           kNoShares[] = {"efficacy_bits"};

/// Methods "solver", "projector", which takes null spaces, and "tuner", which takes no statistics and finds no values.
std::optional<ReadEditor> read_editor(ConfigSection& editor) {
  const std::vector<std::string> methods{"solver", "projector", "tuner"};
  const std::string method = editor.choice("method", methods);
  if (method.empty()) {
    editor.abandon("method");
    return std::nullopt;
  }
  editor.integer("layer", {.min = 0, .max = 9}, 4);
  if (method == "projector" && !editor.is_auto("null_space_below")) editor.number("null_space_below", {.min = 0.0});
  editor.finish();
  return ReadEditor{
      .needs = {.statistics = method != "tuner", .null_space = method == "projector", .values = method != "tuner"}};
}

JobTables tables() {
  JobTables tables{.read_editor = read_editor};
  tables.protocols.push_back({.name = "efficacy", .metrics = kMetrics, .no_shares = kNoShares});
  return tables;
}

JobConfig parse(const std::string& yaml, JobPurpose purpose = JobPurpose::kEdit) {
  return parse_job(parse_config(yaml, "job"), "/jobs", "job", purpose, tables()).config;
}

std::string refused(const std::string& yaml, JobPurpose purpose = JobPurpose::kEdit) {
  return testing::config_error([&] { parse(yaml, purpose); });
}

/// A job of an editor and what else it is given.
std::string job_of(const std::string& editor, const std::string& more = "") {
  return cat("model: m\nrequests: [{prompt: '{} is in', subject: Rome, target: Peru}]\nevaluate: [efficacy]\n",
             "output: {dir: out}\neditor: ", editor, "\n", more);
}

TEST(JobConfig, IsToldAllItsProblemsThoseOfItsEditorAmongThem) {
  EXPECT_EQ(refused("requests: []\n"
                    "editor: {method: solver, layer: 12, layr: 3}\n"
                    "evaluate: [eficacy]\n"
                    "accept: {efficacy_bits: 0.5, portability_x: 2}\n"
                    "run: {dtype: f17}\n"
                    "output: {dir: out, dirs: out}\n"),
            "job:1: model: is missing: expected a path\n"
            "job:2: editor.layer: expected an integer from 0 to 9, got 12\n"
            "job:2: editor.layr: unknown key; did you mean layer? Known here: method, layer\n"
            "job:1: requests: the list is empty, expected at least one {prompt, subject, target}\n"
            "job:3: evaluate: 'eficacy': expected efficacy, mirage. Did you mean efficacy?\n"
            "job:4: accept: 'efficacy_bits': is no share from 0 to 1: expected a metric that is one\n"
            "job:4: accept: 'efficacy_bits': is not measured: add efficacy to evaluate\n"
            "job:4: accept: 'portability_x': is not measured: add efficacy to evaluate\n"
            "job:4: accept: 'portability_x': 2: expected a share from 0 to 1\n"
            "job:6: output.dirs: unknown key; did you mean dir? Known here: dir, replace, state, format, gguf_type, "
            "rounding, "
            "covariance_weight\n"
            "job:5: run.dtype: expected one of auto, f32, bf16, f16, f64, got f17; did you mean f16?");
}

TEST(JobConfig, HasItsEditorAsDataThatIsReadAgain) {
  const JobConfig job = parse(job_of("{method: solver}"));
  EXPECT_EQ(job.method, "solver");
  EXPECT_TRUE(job.has_editor());
  EXPECT_EQ(to_line(job.editor_options), "{method: solver, layer: 4}");
  EXPECT_EQ(to_yaml(job.editor_options), to_yaml(*job.resolved.find("editor")));
  const JobConfig copy = job;  // plain data
  const JobConfig again = parse_job(copy.resolved, "/elsewhere", "job", JobPurpose::kEdit, tables()).config;
  EXPECT_EQ(to_yaml(again.resolved), to_yaml(job.resolved));
  EXPECT_EQ(to_yaml(again.editor_options), to_yaml(job.editor_options));
}

TEST(JobConfig, HasStatisticsWhereItsMethodNeedsThem) {
  EXPECT_TRUE(parse(job_of("{method: solver}")).statistics.has_value());
  EXPECT_FALSE(parse(job_of("{method: tuner}")).statistics.has_value());
  EXPECT_TRUE(parse(job_of("{method: tuner}", "statistics: {corpus: self}")).statistics.has_value());
  EXPECT_FALSE(
      parse("model: m\nrequests: {path: facts.json}\nevaluate: [efficacy]\n", JobPurpose::kEvaluate).has_editor());
}

TEST(JobConfig, TakesStoredProjectionsForMethodsOfNullSpacesAlone) {
  const std::string stored = "statistics: {import_null_space: P.pt}";
  EXPECT_EQ(parse(job_of("{method: projector}", stored)).statistics->from, StatisticsFrom::kImportedNullSpace);
  EXPECT_EQ(refused(job_of("{method: solver}", stored)),
            "job:6: statistics: import_null_space: solver needs moments: expected corpus or import");
  EXPECT_EQ(refused(job_of("{method: projector, null_space_below: 0.02}", stored)),
            "job:5: editor.null_space_below: has no meaning beside statistics.import_null_space, whose projections are "
            "the null space: remove one of them");
}

TEST(JobConfig, RefusesGraphsWhereNoValuesAreFound) {
  EXPECT_EQ(parse(job_of("{method: solver}", "run: {cuda_graphs: true}")).run.step_launch, LaunchMode::kGraph);
  EXPECT_EQ(refused(job_of("{method: tuner}", "run: {cuda_graphs: true}")),
            "job:6: run: cuda_graphs: has no meaning for methods that optimise no values: remove it");
}

TEST(JobConfig, ReadsEveryEditorThatIsCompared) {
  const std::string compare = "compare: {a: {method: tuner}, b: {method: solver}}\n";
  const std::string rest =
      "model: m\nrequests: [{prompt: '{} is in', subject: Rome, target: Peru}]\noutput: {dir: out}\nevaluate: "
      "[efficacy]\n";
  EXPECT_TRUE(parse(rest + compare, JobPurpose::kCompare).statistics.has_value());
  EXPECT_EQ(refused(rest + "compare: {a: {method: tuner, layer: -1}, b: {method: solvr}}\n", JobPurpose::kCompare),
            "job:5: compare.a.layer: expected an integer from 0 to 9, got -1\n"
            "job:5: compare.b.method: expected one of solver, projector, tuner, got solvr; did you mean solver?");
}

TEST(JobConfig, NamesTypesAndQuantisersAsOptionsDo) {
  const auto run = [](const std::string& options) { return parse(job_of("{method: solver}", "run: " + options)).run; };
  EXPECT_EQ(run("{dtype: bf16}").dtype, DType::kBF16);
  EXPECT_EQ(run("{}").dtype, std::nullopt);
  EXPECT_EQ(run("{quantise_base: nf4}").quantise_base, "nf4");
  EXPECT_EQ(run("{quantise_base: none}").quantise_base, "");
  EXPECT_EQ(run("{solve_on: host}").solve_on, SolveOn::kHost);
}

TEST(JobTables, FindTheProtocolOfAMetric) {
  const JobTables known = tables();
  ASSERT_NE(known.find_protocol_of("efficacy_prob"), nullptr);
  EXPECT_EQ(known.find_protocol_of("portability_hops")->name, "efficacy") << "a * stands for each section's";
  EXPECT_EQ(known.find_protocol_of("efficacy"), nullptr);
}

}  // namespace
}  // namespace lancet
