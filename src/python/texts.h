// Exchanges plain Python data as JSON. The library's own strict readers read it.
#pragma once

#include <string>
#include <vector>

#include "lancet/edit_history/edit_history.h"
#include "lancet/eval/evaluate.h"
#include "lancet/io/output_folder.h"
#include "lancet/job_setup/parse_job.h"
#include "lancet/requests/request.h"

namespace lancet::python {

/// A job of lancet.open() or lancet.run(): its tree, or the file that has it; and the changes of keys.
struct JobText {
  std::string json = {};  ///< an object; empty: `file` is used
  std::string file = {};
  std::vector<std::string> overrides = {};  ///< "run.dtype=f32"
};

/// Texts count as quoted: "1998" is never a number.
ConfigTree tree_of_json(const std::string& json);

/// Throws: ConfigError.
CompletedJob completed_job(const JobText& job, EditorChoice choice);

/// Parses "error" or "replace". Throws: ConfigError.
IfExists if_exists(const std::string& word);

/// Parses a list of records as docs/job-file.md describes it for a job. Throws: ConfigError with all problems.
std::vector<EditRequest> requests_of(const std::string& json);

std::string evaluation_json(const Evaluation& evaluation, const std::vector<EditRequest>& requests);
/// Returns a list of the current edits.
std::string standing_json(const EditHistory& history);
std::string undo_json(const UndoEntry& entry);

}  // namespace lancet::python
