// `lancet doctor`: finds problems of a machine, and of a job's folders, before a job meets them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lancet/core/error.h"
#include "lancet/doctor/machine_facts.h"
#include "lancet/job_setup/resolved_job.h"

namespace lancet {

enum class FindingState {
  kOk,
  kNote,    ///< works, but perhaps more slowly or differently than intended
  kProblem  ///< jobs fail
};

std::string_view state_name(FindingState state);

struct Finding {
  FindingState state = FindingState::kOk;
  std::string topic;                     ///< "driver"
  std::string what;                      ///< what was found
  std::string remedy;                    ///< what to do; empty if there is nothing to do
  ExitCode code = ExitCode::kPlacement;  ///< the exit code of a job that meets this problem
};

/// Judges a machine. Pure.
std::vector<Finding> diagnose(const MachineFacts& facts);

/// Judges only `device_checks` of the machine. Pure.
std::vector<Finding> diagnose_device_checks(const MachineFacts& facts);

/// Judges the folders that a job writes to: whether they are writable, and whether each disk has room for everything
/// that goes to it. Pure.
std::vector<Finding> diagnose_folders(const std::vector<FolderFacts>& folders);

/// Judges a job on this machine: model, tokenizer, requests, devices, files to read. Reads no weights. Adds the folders
/// that the job writes to to `facts`, for diagnose(). An error that is thrown becomes a problem in the result.
std::vector<Finding> diagnose_job(const ResolvedJob& job, MachineFacts& facts);

/// Returns the worst state of all findings; kOk if there are none.
FindingState overall_state(const std::vector<Finding>& findings);

/// Returns one JSON document with the findings and the facts behind them. Schema: docs/distributed.md.
std::string to_json(const std::vector<Finding>& findings, const MachineFacts& facts);

}  // namespace lancet
