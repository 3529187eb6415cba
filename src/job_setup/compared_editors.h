// `compare:` of a job: sections that the command line names, and what a section takes over from the job's editor.
#pragma once

#include <span>
#include <string>

#include "lancet/core/config_tree.h"
#include "lancet/job_setup/presets.h"

namespace lancet {

/// Adds a section for each of `names` that is a method's name and no label of the job; where the job has no `compare:`
/// and nothing is named, for the editor's method and a few others. Other names stay for who chooses by label to refuse.
/// What is added has the published options of a method where there are some for the model.
void add_compared(ConfigTree& job, std::span<const std::string> names, const JobSource& source);

/// A section that says nothing but its method is the job's editor, where that has the method. One without `preset`
/// takes the editor's, where that is of its method, or is `auto` and there is one for the model.
void inherit_editor(ConfigTree& job, const JobSource& source);

}  // namespace lancet
