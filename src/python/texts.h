// Plain Python data comes and goes as JSON: what is read is read by the library's own strict readers.
#pragma once

#include <string>
#include <vector>

#include "lancet/edit_history/edit_history.h"
#include "lancet/eval/evaluate.h"
#include "lancet/io/output_folder.h"
#include "lancet/job_setup/parse_job.h"
#include "lancet/requests/request.h"

namespace lancet::python {

/// A job as lancet.open() and lancet.run() give it: its tree, or the file that it stands in; and what changes keys.
struct JobText {
  std::string json = {};  ///< an object; empty: `file`
  std::string file = {};
  std::vector<std::string> overrides = {};  ///< "run.dtype=f32"
};

/// Texts are quoted: "1998" is never a number.
ConfigTree tree_of_json(const std::string& json);

/// Throws: ConfigError.
CompletedJob completed_job(const JobText& job, EditorChoice choice);

/// "error" or "replace". Throws: ConfigError.
IfExists if_exists(const std::string& word);

/// A list of records as docs/job-file.md describes them for an inline list. Throws: ConfigError with all problems.
std::vector<EditRequest> requests_of(const std::string& json);

std::string evaluation_json(const Evaluation& evaluation, const std::vector<EditRequest>& requests);
/// A list of the edits that stand.
std::string standing_json(const EditHistory& history);
std::string undo_json(const UndoEntry& entry);

}  // namespace lancet::python
