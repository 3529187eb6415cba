#include "lancet/job_setup/resolved_job.h"

#include <utility>

#include "lancet/editors/registry.h"

namespace lancet {

ResolvedJob::ResolvedJob(JobConfig config, std::shared_ptr<const Editor> made)
    : JobConfig(std::move(config)), editor(std::move(made)) {
  if (editor != nullptr) needs = editor->needs();
}

ResolvedJob with_editor(JobConfig job, const ConfigTree& editor, const std::string& where) {
  ResolvedEditor resolved = resolve_editor(editor, where);
  job.method = resolved.options.find(EditorSpec::kMethod.key)->scalar;
  job.resolved = ConfigTree::map();
  job.resolved.set(std::string(JobSpec::kEditor.key), resolved.options);
  job.editor_options = std::move(resolved.options);
  return {std::move(job), std::move(resolved.editor)};
}

ResolvedEditor resolve_editor(const ConfigTree& editor, const std::string& where) {
  ConfigProblems problems(where);
  ConfigSection section(editor, std::string(JobSpec::kEditor.key), problems);
  std::shared_ptr<const Editor> made = resolve_editor(section);
  problems.throw_if_any();
  return {std::move(made), section.resolved()};
}

std::shared_ptr<const Editor> resolve_editor(ConfigSection& editor) { return make_editor(editor); }

}  // namespace lancet
