#include "lancet/outcome/report_files.h"

#include <functional>

#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/editors/registry.h"
#include "lancet/io/files.h"

namespace lancet {
namespace {

/// Returns the job as YAML, with the contexts that were generated and the format that was found: a rerun uses the same.
std::string resolved_yaml(const EditReport& report, const JobConfig& job) {
  ConfigTree resolved = with_format(job.resolved, report.request_format);
  if (make_editor(job.editor)->contexts() != nullptr) {
    std::vector<ConfigTree> contexts;
    for (const std::string& text : report.contexts) contexts.push_back(ConfigTree::text(text));
    ConfigTree editor = *resolved.find("editor");
    editor.set("contexts", ConfigTree::list(std::move(contexts)));
    resolved.set("editor", std::move(editor));
  }
  return to_yaml(resolved);
}

/// Pages are made of the JSON and can be made again: hours of editing are not lost for one.
void try_to_draw(const char* page, const std::function<void()>& draw) {
  try {
    draw();
  } catch (const ConfigError& error) {
    log_warning(cat(page, " is not written: ", error.what(), ". report.json is whole; lancet report DIR tries again"));
  }
}

}  // namespace

RunDocument run_document(const EditReport& report, const JobConfig& job, std::string label) {
  return {
      .label = std::move(label), .json = to_json(report, job), .job_yaml = resolved_yaml(report, job), .failure = {}};
}

void write_report_files(const RunDocument& run, const std::filesystem::path& folder) {
  write_text_file(folder / "report.json", run.json);
  write_text_file(folder / "job.yaml", run.job_yaml);
  try_to_draw("report.html", [&] {
    const ReportFiles files = render_report(run);
    for (const auto& [name, text] : files.named()) write_text_file(folder / name, text);
  });
}

void write_comparison(std::span<const RunDocument> runs, const std::string& title,
                      const std::filesystem::path& folder) {
  try_to_draw("comparison.html", [&] { write_text_file(folder / "comparison.html", render_comparison(runs, title)); });
}

}  // namespace lancet
