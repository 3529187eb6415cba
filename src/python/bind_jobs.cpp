// Runs whole jobs as the program does, in an engine without a session.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <nlohmann/json.hpp>

#include "bindings.h"
#include "call.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/erasure/erase_job.h"
#include "lancet/history/apply_job.h"
#include "lancet/history/merge_job.h"
#include "lancet/history/undo_job.h"
#include "lancet/job_setup/parse_job.h"
#include "lancet/pipeline/edit_job.h"
#include "lancet/requests/request.h"
#include "tasks.h"
#include "texts.h"

namespace lancet::python {
namespace {

namespace nb = nanobind;
using Json = nlohmann::json;

/// A complete job must name its editor, as in a job file.
ResolvedJob parsed_job(const JobText& text, JobPurpose purpose) {
  const CompletedJob completed = completed_job(text, text.file.empty() ? EditorChoice::kOpen : EditorChoice::kNamed);
  ResolvedJob job = parse_job(completed.tree, completed.source.base, completed.source.name, purpose);
  job.evaluation.side_effects.task_runner = make_task_runner();
  tell_defaults(completed, job);
  return job;
}

/// Returns report.json.
std::string run_edit(Engine& engine, const JobText& text) {
  std::string json;
  run_on_worker(engine, [&] {
    const ResolvedJob job = parsed_job(text, JobPurpose::kEdit);
    const EditReport report = run_edit_job(job, alone());
    for (const std::string& warning : report.outcome.warnings) log_warning(warning);
    json = to_json(report, job);
  });
  return json;
}

/// Returns audit.json.
std::string run_erase(Engine& engine, const JobText& text) {
  std::string json;
  run_on_worker(engine, [&] {
    const ResolvedJob job = parsed_job(text, JobPurpose::kErase);
    const EraseReport report = run_erase_job(job);
    for (const std::string& warning : report.edit.outcome.warnings) log_warning(warning);
    json = to_json(report, job);
  });
  return json;
}

/// Returns report.json of an output that `run` makes from others.
std::string run_made(Engine& engine, const std::function<MadeOutput()>& run) {
  std::string json;
  run_on_worker(engine, [&] {
    const MadeOutput made = run();
    for (const std::string& warning : made.report.outcome.warnings) log_warning(warning);
    json = made.report_json;
  });
  return json;
}

template <typename Value>
Value one_of(const char* key, const std::string& word, const std::map<std::string, Value>& values) {
  const auto found = values.find(word);
  if (found != values.end()) return found->second;
  std::vector<std::string> words;
  for (const auto& [name, unused] : values) words.push_back(name);
  throw ConfigError(cat(key, ": expected one of ", join(words), ", got ", word));
}

std::string run_apply(Engine& engine, const std::string& text) {
  const Json job = Json::parse(text);
  const auto other_base =
      one_of<OtherBase>("other_base", job.at("other_base"),
                        {{"refuse", OtherBase::kRefuse}, {"add", OtherBase::kAdd}, {"rebase", OtherBase::kRebase}});
  const ApplyJob apply{.edits = job.at("edits").get<std::string>(),
                       .model = job.at("model").get<std::string>(),
                       .out = job.at("out").get<std::string>(),
                       .if_exists = if_exists(job.at("exists").get<std::string>()),
                       .overrides = job.at("set"),
                       .other_base = other_base};
  return run_made(engine, [&] { return run_apply_job(apply, alone()); });
}

std::string run_undo(Engine& engine, const std::string& text) {
  const Json job = Json::parse(text);
  const ConfigTree how = tree_of_json(job.at("how").dump());
  ConfigProblems problems("undo");
  UndoJob undo = parse_undo_options(ConfigSection(how, "", problems));
  problems.throw_if_any();
  undo.output = job.at("output").get<std::string>();
  undo.model = job.at("model").get<std::string>();
  undo.out = job.at("out").get<std::string>();
  undo.if_exists = if_exists(job.at("exists").get<std::string>());
  undo.selection.ids = job.at("ids");
  undo.selection.where = job.at("where");
  undo.overrides = job.at("set");
  return run_made(engine, [&] { return run_undo_job(undo, alone()); });
}

std::string run_merge(Engine& engine, const std::string& text) {
  const Json job = Json::parse(text);
  MergeJob merge{.model = job.at("model").get<std::string>(),
                 .out = job.at("out").get<std::string>(),
                 .if_exists = if_exists(job.at("exists").get<std::string>()),
                 .prefer = {},
                 .drop = job.at("drop"),
                 .solves = job.at("solve"),
                 .overrides = job.at("set")};
  for (const Json& folder : job.at("edits")) merge.edits.emplace_back(folder.get<std::string>());
  if (!job.at("prefer").is_null()) merge.prefer = job.at("prefer").get<size_t>();
  return run_made(engine, [&] { return run_merge_job(merge, alone()).made; });
}

/// Returns the records of a request file, each as JSON in the flat format.
std::vector<std::string> request_lines(const std::string& path, const std::string& format, int64_t skip,
                                       std::optional<int64_t> limit) {
  const RequestFile file = load_request_file(path, {.range = {.skip = skip, .limit = limit}, .format = format});
  std::vector<std::string> lines;
  for (const EditRequest& request : file.requests) lines.push_back(to_json_line(request));
  return lines;
}

}  // namespace

void bind_jobs(nb::module_& module) {
  module.def("run_edit", run_edit, nb::arg("engine"), nb::arg("job"));
  module.def("run_erase", run_erase, nb::arg("engine"), nb::arg("job"));
  module.def("run_apply", run_apply, nb::arg("engine"), nb::arg("job"));
  module.def("run_undo", run_undo, nb::arg("engine"), nb::arg("job"));
  module.def("run_merge", run_merge, nb::arg("engine"), nb::arg("job"));
  module.def("request_lines", request_lines, nb::arg("path"), nb::arg("format"), nb::arg("skip"),
             nb::arg("limit").none());
}

}  // namespace lancet::python
