// `lancet doctor`: what of a machine, and of a job's folders, will be a problem before the job finds out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lancet/core/error.h"
#include "lancet/doctor/machine_facts.h"
#include "lancet/job/job_config.h"

namespace lancet {

enum class FindingState {
  kOk,
  kNote,    ///< works, but perhaps not as fast or not as meant
  kProblem  ///< jobs fail
};

std::string_view state_name(FindingState state);

struct Finding {
  FindingState state = FindingState::kOk;
  std::string topic;                     ///< "driver"
  std::string what;                      ///< what was found
  std::string remedy;                    ///< what to do; empty where there is nothing to do
  ExitCode code = ExitCode::kPlacement;  ///< what a job ends with that meets this problem
};

/// Judges a machine. Pure.
std::vector<Finding> diagnose(const MachineFacts& facts);

/// Judges the machine's `device_checks` alone. Pure.
std::vector<Finding> diagnose_device_checks(const MachineFacts& facts);

/// Folders that a job writes to: may they be written to, and is there room for all that goes to the same disk? Pure.
std::vector<Finding> diagnose_folders(const std::vector<FolderFacts>& folders);

/// Judges a job on this machine: model, tokenizer, requests, devices, files to read. Reads no weights. Adds the folders
/// that the job writes to to `facts`, for diagnose(). Whoever throws is a problem.
std::vector<Finding> diagnose_job(const JobConfig& job, MachineFacts& facts);

/// The worst of all; ok without any.
FindingState overall_state(const std::vector<Finding>& findings);

/// One JSON document: findings and the facts behind them. Schema: docs/distributed.md.
std::string to_json(const std::vector<Finding>& findings, const MachineFacts& facts);

}  // namespace lancet
