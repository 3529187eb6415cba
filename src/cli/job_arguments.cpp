#include <filesystem>
#include <memory>
#include <optional>

#include "commands.h"
#include "lancet/core/config_section.h"
#include "lancet/core/progress.h"
#include "lancet/core/strings.h"
#include "lancet/editors/registry.h"
#include "lancet/job/presets.h"

namespace lancet::cli {
namespace {

namespace fs = std::filesystem;

std::string absolute(const std::string& path) { return fs::absolute(path).lexically_normal().string(); }

/// The job that --model, --prompt, --subject, --target and --out spell.
ConfigTree one_line_job(const JobArguments& arguments) {
  ConfigTree job = ConfigTree::map();
  job.set("model", ConfigTree::text(absolute(arguments.model)));
  if (!arguments.requests.empty()) {
    ConfigTree requests = ConfigTree::map();
    requests.set("path", ConfigTree::text(absolute(arguments.requests)));
    job.set("requests", std::move(requests));
  } else if (!arguments.prompt.empty()) {
    ConfigTree request = ConfigTree::map();
    request.set("prompt", ConfigTree::text(arguments.prompt));
    if (!arguments.subject.empty()) request.set("subject", ConfigTree::text(arguments.subject));
    if (!arguments.target.empty()) request.set("target", ConfigTree::text(arguments.target));
    job.set("requests", ConfigTree::list({std::move(request)}));
    job.set("evaluate", ConfigTree::list({ConfigTree::text("efficacy"), ConfigTree::text("generation")}));
  }
  if (!arguments.out.empty()) {
    ConfigTree output = ConfigTree::map();
    output.set("dir", ConfigTree::text(absolute(arguments.out)));
    job.set("output", std::move(output));
  }
  return job;
}

/// What the command line itself leaves open, before the job is looked at.
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
}

/// A one-line edit of a model without a lancet.yaml: the published options of memit.
void choose_editor(ConfigTree& job) {
  if (job.find("editor") != nullptr) return;
  ConfigTree editor = ConfigTree::map();
  editor.set("method", ConfigTree::text("memit"));
  editor.set("preset", ConfigTree::text("auto"));
  job.set("editor", std::move(editor));
}

/// ... and text that the model writes itself, where the method needs any.
void choose_statistics(ConfigTree& job) {
  ConfigTree statistics = ConfigTree::map();
  if (const ConfigTree* given = job.find("statistics"); given != nullptr && given->kind == ConfigTree::Kind::kMap)
    statistics = *given;
  for (const char* source : {"corpus", "import", "import_null_space"})
    if (statistics.find(source) != nullptr) return;
  ConfigProblems reported_later("");
  ConfigSection section(*job.find("editor"), "editor", reported_later);
  const std::unique_ptr<Editor> editor = make_editor(section);
  if (!editor || !editor->needs().statistics) return;
  statistics.set("corpus", ConfigTree::text(std::string(kSelfCorpus)));
  job.set("statistics", std::move(statistics));
  log_line("statistics  no text is given: the model writes its own (corpus: self)");
}

/// Those that the editor, or an editor that is compared, names.
void apply_presets(ConfigTree& job, const fs::path& base) {
  const auto apply = [&](ConfigTree& one) {
    if (const std::optional<Preset> preset = apply_preset(one, base))
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
  if (!from_file) check_one_line(arguments, purpose);
  for (const auto& [value, name] : {std::pair{&arguments.model, "--model"}, std::pair{&arguments.prompt, "--prompt"},
                                    std::pair{&arguments.requests, "--requests"}, std::pair{&arguments.out, "--out"}})
    if (from_file && !value->empty())
      throw ConfigError(
          cat(name, ": cannot be used with a job file. Change the job with --set, e.g. --set output.dir=DIR"));
  const fs::path file(arguments.file);
  ConfigTree tree = from_file ? load_config(file) : one_line_job(arguments);
  const fs::path base = from_file ? fs::absolute(file).parent_path() : fs::current_path();
  // The model decides which defaults apply, so an override of it counts first; the others change the defaults too.
  ConfigTree overridden = tree;
  for (const std::string& assignment : arguments.overrides) apply_override(overridden, assignment);
  if (const ConfigTree* model = overridden.find("model"); model != nullptr && tree.kind == ConfigTree::Kind::kMap)
    tree.set("model", *model);
  apply_model_defaults(tree, base);
  if (!from_file && purpose == JobPurpose::kEdit) choose_editor(tree);
  for (const std::string& assignment : arguments.overrides) apply_override(tree, assignment);
  apply_presets(tree, base);
  if (!from_file && purpose == JobPurpose::kEdit) choose_statistics(tree);
  return {std::move(tree), base, from_file ? file.string() : std::string("command line")};
}

void add_output_options(CLI::App& command, Output& output, const std::string& json) {
  command.add_flag("-q,--quiet", output.quiet, "No progress, and no summary of an edit: only warnings and errors");
  command.add_flag("--json", output.json, json);
}

void begin(const Output& output) {
  set_verbosity(output.quiet || output.json ? Verbosity::kQuiet : Verbosity::kNormal);
}

void add_job_file(CLI::App& command, JobArguments& arguments) {
  command.add_option("job", arguments.file, "Job file (YAML or JSON); relative paths in it are taken from its folder")
      ->type_name("FILE");
  command
      .add_option("--set", arguments.overrides, "Change a key of the job: --set run.dtype=f32 --set requests.limit=10")
      ->take_all()
      ->allow_extra_args(false)  // `--set a=b job.yaml`: one value each
      ->type_name("KEY=VALUE");
}

RunOptions parse_run(const std::string& devices, const std::string& dtype) {
  ConfigTree tree = ConfigTree::map();
  if (!devices.empty()) {
    std::vector<ConfigTree> names;
    for (const std::string& device : split(devices, ',')) names.push_back(ConfigTree::text(device));
    tree.set("devices", ConfigTree::list(std::move(names)));
  }
  tree.set("dtype", ConfigTree::text(dtype));
  ConfigProblems problems("command line");
  RunOptions run = parse_run_options(ConfigSection(tree, "run", problems));
  problems.throw_if_any();
  return run;
}

JobConfig read_job(const JobArguments& arguments, JobPurpose purpose) {
  const JobText text = read_job_text(arguments, purpose);
  return parse_job(text.tree, text.base, text.source, purpose);
}

JobConfig load_job(const JobArguments& arguments, JobPurpose purpose, RankSession& session) {
  JobConfig job;
  session.communicator().together("parse", [&] { job = read_job(arguments, purpose); });
  session.set_timeout(std::chrono::seconds(job.run.timeout_s));
  job.run.on_host = session.on_host();
  return job;
}

}  // namespace lancet::cli
