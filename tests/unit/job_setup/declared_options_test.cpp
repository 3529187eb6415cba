// What is declared is read, and what is read is declared.
#include <gtest/gtest.h>

#include <set>

#include "lancet/core/strings.h"
#include "lancet/editors/registry.h"
#include "lancet/eval/protocol.h"
#include "lancet/job_setup/parse_job.h"
#include "lancet/spec/job_spec.h"

namespace lancet {
namespace {

using Keys = std::set<std::string>;

ConfigTree sample_map(std::span<const AnyOption> options, std::string_view method);

ConfigTree word(std::string_view text) { return ConfigTree::text(std::string(text)); }

/// A value that the program takes.
struct Sample {
  std::string_view method;
  ConfigTree operator()(const IntegerOption* option) const {
    return ConfigTree::number(option->fallback.value_or(std::max<int64_t>(option->range.min, 2)));
  }
  ConfigTree operator()(const NumberOption* option) const {
    return option->automatic.empty() ? ConfigTree::number(option->fallback.value_or(0.5)) : word("auto");
  }
  ConfigTree operator()(const FlagOption* option) const {
    ConfigTree flag = word(option->fallback ? "true" : "false");
    flag.quoted = false;
    return flag;
  }
  ConfigTree operator()(const ChoiceOption* option) const { return word(option->names.front()); }
  ConfigTree operator()(const TextOption* option) const {
    return word(option->of == Vocabulary::kMethods ? method : option->fallback.value_or("text {}"));
  }
  ConfigTree operator()(const PathOption*) const { return word("file{}"); }
  ConfigTree operator()(const IntegersOption*) const {
    return ConfigTree::list({ConfigTree::number(int64_t{1}), ConfigTree::number(int64_t{2})});
  }
  ConfigTree operator()(const TextsOption* option) const {
    ConfigTree list = ConfigTree::list({});
    if (option->of == Vocabulary::kProtocols)
      for (const ProtocolRow& row : protocol_table()) list.items.push_back(word(row.name));
    else
      for (const std::string_view text : option->fallback) list.items.push_back(word(text));
    return option->alone.empty() ? list : word(option->alone);
  }
  ConfigTree operator()(const SectionOption* option) const {
    if (option->shape == Shape::kShares) return parse_config("{efficacy_prob: 0.5}", "sample");
    if (option->shape == Shape::kLabelledShares) return parse_config("{one: {efficacy_prob: 0.5}}", "sample");
    if (option->shape == Shape::kLists) return parse_config("{values.lr: [0.1]}", "sample");
    if (option->shape == Shape::kEditors) return parse_config("{one: {method: memit}}", "sample");
    return sample_map(option->keys, method);
  }
};

ConfigTree sample_map(std::span<const AnyOption> options, std::string_view method) {
  ConfigTree map = ConfigTree::map();
  for (const AnyOption& option : options)
    if (&base_of(option) != &EditorSpec::kPreset && has_option(base_of(option), method))  // presets are put in before
      map.set(std::string(base_of(option).key), std::visit(Sample{method}, option));
  return map;
}

/// Dotted keys of what was read, but for those of maps whose keys are the user's.
void add_keys(const ConfigTree& resolved, const std::string& place, Keys& keys) {
  for (const auto& [key, value] : resolved.entries) {
    keys.insert(place + key);
    if (place + key != "accept" && place + key != "tune.search" && place + key != "compare" && place + key != "expect")
      add_keys(value, cat(place, key, "."), keys);
  }
}

Keys declared(std::span<const AnyOption> options, std::string_view method) {
  Keys keys;
  for (const PlacedOption& placed : placed_options(options, method))
    if (&base_of(placed.option) != &EditorSpec::kPreset) keys.insert(placed.key);
  return keys;
}

TEST(DeclaredOptions, OfEachMethodAreThoseThatItReads) {
  for (const EditorRow& row : editor_table()) {
    const ConfigTree tree = sample_map(kEditorOptions, row.name);
    ConfigProblems problems("job");
    ConfigSection section(tree, "", problems);
    make_editor(section);
    EXPECT_NO_THROW(problems.throw_if_any()) << row.name;
    Keys read;
    add_keys(section.resolved(), "", read);
    EXPECT_EQ(read, declared(kEditorOptions, row.name)) << row.name;
  }
}

TEST(DeclaredOptions, NameMethodsThatThereAre) {
  Keys known;
  for (const EditorRow& row : editor_table()) known.emplace(row.name);
  for (const PlacedOption& placed : placed_options(kEditorOptions, ""))
    for (const std::string& method : split(base_of(placed.option).methods, ' '))
      EXPECT_TRUE(method.empty() || known.contains(method)) << placed.key << ": " << method;
}

/// Takes the options of a server as judge, or those of a program: they exclude one another.
void set_judge(ConfigTree& job, bool is_program) {
  ConfigTree evaluate = *job.find("evaluate"), judge = *evaluate.find("judge");
  for (const std::string& key : split(is_program ? JudgeSpec::kCommand.replaces : JudgeSpec::kCommand.key, ' '))
    judge.erase(key);
  if (is_program) judge.set("command", ConfigTree::list({word("program")}));
  evaluate.set("judge", judge);
  job.set("evaluate", evaluate);
}

/// A job of every option. `statistics`: what is taken from its section, since ways to have them exclude one another.
ConfigTree whole_job(std::initializer_list<std::string_view> statistics) {
  ConfigTree job = sample_map(JobSpec::kAll, "alphaedit");
  ConfigTree taken = ConfigTree::map();
  for (const std::string_view key : statistics) taken.set(std::string(key), *job.find("statistics")->find(key));
  job.set("statistics", taken);
  set_judge(job, false);
  return job;
}

TEST(DeclaredOptions, OfAJobAreThoseThatItReads) {
  Keys read;
  ConfigTree judged = whole_job({"import_null_space"});
  set_judge(judged, true);
  for (const ConfigTree& job : {whole_job({"corpus", "tokens", "document_tokens", "ridge", "save_every_s", "cache"}),
                                whole_job({"import", "import_gradients"}), judged})
    EXPECT_NO_THROW(add_keys(parse_job(job, "/jobs", "job", JobPurpose::kEdit).resolved, "", read)) << to_yaml(job);
  EXPECT_EQ(read, declared(JobSpec::kAll, "alphaedit"));
}

TEST(DeclaredOptions, GraphsOfStepsThatNoMethodHasAreRefused) {
  const auto problem = [](std::string_view method, JobPurpose purpose) -> std::string {
    ConfigTree job = whole_job({"corpus"});
    job.set("editor", sample_map(kEditorOptions, method));
    ConfigTree run = ConfigTree::map();
    run.set("cuda_graphs", parse_config("true", "test"));
    job.set("run", run);
    if (purpose == JobPurpose::kCompare)
      std::erase_if(job.entries, [](const auto& entry) { return entry.first == "continue_from"; });
    ConfigTree compare = ConfigTree::map();
    compare.set("one", sample_map(kEditorOptions, method));
    job.set("compare", compare);
    try {
      EXPECT_EQ(parse_job(job, "/jobs", "job", purpose).run.step_launch, LaunchMode::kGraph);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  for (const JobPurpose purpose : {JobPurpose::kEdit, JobPurpose::kCompare}) {
    EXPECT_EQ(problem("memit", purpose), "");
    const std::string words = problem("ft", purpose);
    EXPECT_NE(words.find("run: cuda_graphs: has no meaning for methods that optimise no values: remove it"),
              std::string::npos)
        << words;
  }
  EXPECT_EQ(problem("ft", JobPurpose::kEvaluate), "");
}

TEST(DeclaredOptions, AThresholdBesideStoredProjectionsIsRefused) {
  const auto problem = [](const std::string& threshold) -> std::string {
    ConfigTree job = whole_job({"import_null_space"});
    ConfigTree editor = *job.find("editor");
    editor.set("null_space_below", parse_config(threshold, "test"));
    job.set("editor", editor);
    try {
      parse_job(job, "/jobs", "job", JobPurpose::kEdit);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(problem("auto"), "");
  for (const char* threshold : {"0.02", "{share: 0.8}"})
    EXPECT_EQ(
        problem(threshold),
        "job:1: editor.null_space_below: has no meaning beside statistics.import_null_space, whose projections are "
        "the null space: remove one of them");
}

}  // namespace
}  // namespace lancet
