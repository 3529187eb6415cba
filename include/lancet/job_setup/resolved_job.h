// A job with its editor. Only this file's functions make editors from an `editor:`, so each is read once.
#pragma once

#include <memory>
#include <string>

#include "lancet/core/config_section.h"
#include "lancet/core/config_tree.h"
#include "lancet/editing/editor.h"
#include "lancet/job/job_config.h"

namespace lancet {

/// What a job is once it is read: its options as data, and the editor that they describe. Copies share the editor.
struct ResolvedJob : JobConfig {
  std::shared_ptr<const Editor> editor = {};  ///< null: the job needs none
  EditorNeeds needs = {.subject = false, .statistics = false};

  ResolvedJob() = default;
  ResolvedJob(JobConfig config, std::shared_ptr<const Editor> made);
};

/// Returns the job with this editor, all of whose options become the job's `editor_options`, and all of `resolved`.
/// Throws: ConfigError "where: editor: ..." with every problem.
ResolvedJob with_editor(JobConfig job, const ConfigTree& editor, const std::string& where);

/// An `editor:` outside a job.
struct ResolvedEditor {
  std::shared_ptr<const Editor> editor;
  ConfigTree options;  ///< with every default filled in
};

/// Reads it. Throws: ConfigError "where: editor: ..." with every problem.
ResolvedEditor resolve_editor(const ConfigTree& editor, const std::string& where);

/// Reads the section of a larger document, and finishes it. Problems go to the section. Null: it names no method.
std::shared_ptr<const Editor> resolve_editor(ConfigSection& editor);

}  // namespace lancet
