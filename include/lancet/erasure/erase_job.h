// `lancet erase`: facts that a model shall no longer say are edited towards a neutral answer; an audit asks for them
// before and after. The output is a merged model that has no record of the facts; the audit, which quotes them, lies
// in a folder of its own.
#pragma once

#include <filesystem>
#include <string>

#include "lancet/erasure/audit.h"
#include "lancet/job/job_config.h"
#include "lancet/outcome/edit_report.h"

namespace lancet {

struct EraseReport {
  EditReport edit = {};
  Audit audit = {};
  std::filesystem::path audit_folder = {};
};

/// Says what an audit is worth, wherever it is shown.
inline constexpr const char* kAuditCaution =
    "measured by the prompts named here alone: no proof that the model holds the facts nowhere, or that nobody can "
    "bring them back";

/// Returns where the audit of a job's output lies: "<dir>-audit".
std::filesystem::path audit_folder(const JobConfig& job);

/// Both folders appear complete or not at all, the audit's first. One process. Throws: as run_edit_job(); ConfigError
/// also for a fact that no neutral answer is found for.
EraseReport run_erase_job(const JobConfig& job);

/// audit.json. Schema: docs/erase.md.
std::string to_json(const EraseReport& report, const JobConfig& job);

}  // namespace lancet
