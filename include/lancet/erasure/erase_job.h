// `lancet erase`: edits facts that a model should no longer say towards a neutral answer, and audits the model with
// questions about them before and after. The output is a merged model without any record of the facts. The audit quotes
// the facts, so it has a folder of its own.
#pragma once

#include <filesystem>
#include <string>

#include "lancet/erasure/audit.h"
#include "lancet/job_setup/resolved_job.h"
#include "lancet/outcome/edit_report.h"

namespace lancet {

struct EraseReport {
  EditReport edit = {};
  Audit audit = {};
  std::filesystem::path audit_folder = {};
};

/// States the limits of an audit, wherever it is shown.
inline constexpr const char* kAuditCaution =
    "measured by the prompts named here alone: no proof that the model holds the facts nowhere, or that nobody can "
    "bring them back";

/// Returns the folder of the audit of a job's output: "<dir>-audit".
std::filesystem::path audit_folder(const JobConfig& job);

/// Runs the job in one process. Each of the two folders appears complete or not at all, the audit's first. Throws: as
/// run_edit_job(); ConfigError also for a fact without a neutral answer.
EraseReport run_erase_job(const ResolvedJob& job);

/// Returns the text of audit.json. Schema: docs/erase.md.
std::string to_json(const EraseReport& report, const JobConfig& job);

}  // namespace lancet
