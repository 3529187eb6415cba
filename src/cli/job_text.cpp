// The text of a job: a file, or what one line spells, with `--set`, what the model's folder adds, and presets.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "commands.h"
#include "lancet/core/config_section.h"
#include "lancet/core/progress.h"
#include "lancet/core/strings.h"
#include "lancet/editors/registry.h"
#include "lancet/job/presets.h"
#include "lancet/plan/model_session.h"

namespace lancet::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDefaultMethod = "memit";

ConfigTree map_of(const char* key, const std::string& value) {
  ConfigTree map = ConfigTree::map();
  map.set(key, ConfigTree::text(value));
  return map;
}

/// The job that --model, --prompt, --subject, --target and --out spell; its paths are relative to the current folder.
ConfigTree one_line_job(const JobArguments& arguments) {
  ConfigTree job = map_of("model", arguments.model);
  if (!arguments.requests.empty()) {
    job.set("requests", map_of("path", arguments.requests));
  } else if (!arguments.prompt.empty()) {
    ConfigTree request = map_of("prompt", arguments.prompt);
    if (!arguments.subject.empty()) request.set("subject", ConfigTree::text(arguments.subject));
    if (!arguments.target.empty()) request.set("target", ConfigTree::text(arguments.target));
    job.set("requests", ConfigTree::list({std::move(request)}));
    job.set("evaluate", ConfigTree::list({ConfigTree::text("efficacy"), ConfigTree::text("generation")}));
  }
  if (!arguments.out.empty()) job.set("output", map_of("dir", arguments.out));
  return job;
}

/// What the command line itself leaves open, or says twice, before the job is looked at.
void check_one_line(const JobArguments& arguments, JobPurpose purpose) {
  std::vector<std::string> missing;
  if (arguments.model.empty()) missing.emplace_back("--model DIR");
  if (purpose == JobPurpose::kEdit && arguments.requests.empty()) {
    if (arguments.prompt.empty()) missing.emplace_back("--prompt \"The capital of {} is\"");
    if (arguments.subject.empty()) missing.emplace_back("--subject NAME");
    if (arguments.target.empty()) missing.emplace_back("--target TEXT");
  }
  if (purpose == JobPurpose::kEdit && arguments.out.empty()) missing.emplace_back("--out DIR");
  if (purpose == JobPurpose::kEvaluate && arguments.requests.empty()) missing.emplace_back("--requests FILE");
  if (!missing.empty()) throw ConfigError("without a job file, these are missing: " + join(missing));
  for (const auto& [value, name] :
       {std::pair{&arguments.prompt, "--prompt"}, std::pair{&arguments.subject, "--subject"},
        std::pair{&arguments.target, "--target"}})
    if (!arguments.requests.empty() && !value->empty())
      throw ConfigError(cat(name, ": spells one fact, and --requests ", arguments.requests,
                            " names a file of facts: expected one of the two"));
}

void check_job_file(const JobArguments& arguments) {
  for (const auto& [value, name] :
       {std::pair{&arguments.model, "--model"}, std::pair{&arguments.prompt, "--prompt"},
        std::pair{&arguments.subject, "--subject"}, std::pair{&arguments.target, "--target"},
        std::pair{&arguments.requests, "--requests"}, std::pair{&arguments.out, "--out"}})
    if (!value->empty())
      throw ConfigError(
          cat(name, ": cannot be used with a job file. Change the job with --set, e.g. --set output.dir=DIR"));
}

/// What --set says, by itself.
ConfigTree overrides_alone(const JobArguments& arguments) {
  ConfigTree given = ConfigTree::map();
  for (const std::string& assignment : arguments.overrides) apply_override(given, assignment);
  return given;
}

/// The options of one method say nothing about another: where --set names another method than `editor`, they go away,
/// but for `preset: auto`. Returns whether they do.
bool begin_other_method(ConfigTree& editor, const ConfigTree* given, const JobSource& source) {
  const ConfigTree* method = given == nullptr ? nullptr : given->find("method");
  if (method == nullptr || editor.kind != ConfigTree::Kind::kMap) return false;
  const std::string before = method_of(editor, source);
  if (before.empty() || before == method->scalar) return false;
  std::vector<std::string> dropped;
  std::erase_if(editor.entries, [&](const auto& entry) {
    if (entry.first == "method" || (entry.first == "preset" && entry.second.scalar == "auto")) return false;
    dropped.push_back(entry.first);
    return true;
  });
  if (!dropped.empty())
    log_line(cat("editor  ", method->scalar, " by --set: ", before, "'s options are left out: ", join(dropped)));
  return true;
}

bool begin_other_methods(ConfigTree& job, const ConfigTree& given, const JobSource& source) {
  const auto changed = [&](ConfigTree& place, const ConfigTree& given_there, const std::string& key) {
    const ConfigTree* editor = place.find(key);
    if (editor == nullptr) return false;
    ConfigTree begun = *editor;
    const bool is_other = begin_other_method(begun, given_there.find(key), source);
    place.set(key, std::move(begun));
    return is_other;
  };
  const ConfigTree *compared = job.find("compare"), *given_compared = given.find("compare");
  if (compared != nullptr && given_compared != nullptr) {
    ConfigTree sections = *compared;
    for (const auto& [label, unread] : compared->entries) changed(sections, *given_compared, label);
    job.set("compare", std::move(sections));
  }
  return changed(job, given, "editor");
}

/// Options that nobody names: the published ones, where there are any for the model, else the method's automatic ones.
/// Returns whether it is these.
bool choose_options(ConfigTree& job, const JobSource& source) {
  const ConfigTree* given = job.find("editor");
  ConfigTree editor = given == nullptr ? ConfigTree::map() : *given;
  if (editor.kind != ConfigTree::Kind::kMap || editor.find("preset") != nullptr) return false;
  if (editor.find("method") == nullptr) editor.set("method", ConfigTree::text(kDefaultMethod));
  const bool are_published = find_automatic_preset(editor.find("method")->scalar, facts_of_job(job, source)) != nullptr;
  if (are_published) editor.set("preset", ConfigTree::text("auto"));
  job.set("editor", std::move(editor));
  return !are_published;
}

/// Those that the editor, or an editor that is compared, names.
void apply_presets(ConfigTree& job, const JobSource& source) {
  const auto apply = [&](ConfigTree& one) {
    if (const std::optional<Preset> preset = apply_preset(one, source))
      log_line(cat("preset  ", preset->name, ": ", preset->source));
  };
  apply(job);
  const ConfigTree* compared = job.find("compare");
  if (compared == nullptr || compared->kind != ConfigTree::Kind::kMap) return;
  ConfigTree sections = *compared;
  for (auto& [label, section] : sections.entries) {
    ConfigTree one = job;
    one.set("editor", section);
    apply(one);
    section = *one.find("editor");
  }
  job.set("compare", std::move(sections));
}

}  // namespace

JobText read_job_text(const JobArguments& arguments, JobPurpose purpose) {
  const bool from_file = !arguments.file.empty();
  if (from_file)
    check_job_file(arguments);
  else
    check_one_line(arguments, purpose);
  const fs::path file(arguments.file);
  ConfigTree tree = from_file ? load_config(file) : one_line_job(arguments);
  const JobSource source = from_file ? JobSource{fs::absolute(file).parent_path(), file.string()}
                                     : JobSource{fs::current_path(), "command line"};
  // The model decides which defaults apply, so an override of it counts first; the others change the defaults too.
  const ConfigTree given = overrides_alone(arguments);
  if (const ConfigTree* model = given.find("model"); model != nullptr && tree.kind == ConfigTree::Kind::kMap)
    tree.set("model", *model);
  apply_model_defaults(tree, source.base);
  bool has_options = tree.find("editor") != nullptr;
  if (begin_other_methods(tree, given, source)) has_options = false;
  for (const std::string& assignment : arguments.overrides) apply_override(tree, assignment);
  const bool needs_editor = purpose == JobPurpose::kEdit || purpose == JobPurpose::kStatistics;
  const bool is_automatic = !from_file && needs_editor && !has_options && choose_options(tree, source);
  apply_presets(tree, source);
  return {std::move(tree), source, is_automatic};
}

void tell_defaults(const JobText& text, const JobConfig& job) {
  if (text.is_automatic) {
    std::vector<int64_t> layers = target_layers(*job.editor, describe_model(job.model, job.ignore_config_keys).config);
    layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
    log_line(cat("editor  ", job.method, " with automatic options, layers ", shape_text(layers),
                 ": no published ones are known for this model"));
  }
  const ConfigTree* statistics = text.tree.find("statistics");
  const bool names_text = statistics != nullptr && statistics->find("corpus") != nullptr;
  if (job.editor->needs().statistics && job.statistics->from == StatisticsFrom::kSelf && !names_text)
    log_line("statistics  no text is given: the model writes its own (statistics.corpus: self)");
}

}  // namespace lancet::cli
