// The text of a job: a file, or what one line spells.
#include <filesystem>

#include "commands.h"
#include "lancet/core/strings.h"

namespace lancet::cli {
namespace {

namespace fs = std::filesystem;

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

}  // namespace

CompletedJob read_job_text(const JobArguments& arguments, JobPurpose purpose) {
  const bool from_file = !arguments.file.empty();
  if (from_file)
    check_job_file(arguments);
  else
    check_one_line(arguments, purpose);
  const fs::path file(arguments.file);
  const bool needs_editor = purpose == JobPurpose::kEdit || purpose == JobPurpose::kStatistics;
  const bool may_choose = purpose == JobPurpose::kErase || (!from_file && needs_editor);
  const EditorChoice choice = purpose == JobPurpose::kCompare ? EditorChoice::kCompared
                              : may_choose                    ? EditorChoice::kOpen
                                                              : EditorChoice::kNamed;
  std::vector<std::string> changes = arguments.overrides;
  for (std::string& change : arguments.run.overrides(JobSpec::kRun.key)) changes.push_back(std::move(change));
  return complete_job(from_file ? load_config(file) : one_line_job(arguments),
                      from_file ? JobSource{fs::absolute(file).parent_path(), file.string()}
                                : JobSource{fs::current_path(), "command line"},
                      changes, choice, arguments.compared);
}

}  // namespace lancet::cli
