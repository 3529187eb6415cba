// `lancet doctor`: what of a machine, and of a job's folders, will be a problem before the job finds out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

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
  ExitCode code = ExitCode::kPlacement;  ///< of a problem: what a job that meets it ends with
};

/// Of a machine. Pure.
std::vector<Finding> diagnose(const MachineFacts& facts);

/// Of its `device_checks` alone. Pure.
std::vector<Finding> diagnose_device_checks(const MachineFacts& facts);

/// Folders that a job writes to: may they be written to, and is there room for all that goes to the same disk? Pure.
std::vector<Finding> diagnose_folders(const std::vector<FolderFacts>& folders);

/// Of a job on this machine: model, tokenizer, requests, devices, files to read. Reads no weights. The folders that it
/// writes to are added to `facts`, for diagnose(). Whoever throws is a problem.
std::vector<Finding> diagnose_job(const JobConfig& job, MachineFacts& facts);

/// The worst of all; ok without any.
FindingState overall_state(const std::vector<Finding>& findings);

/// One JSON document: findings and the facts behind them. Schema: docs/distributed.md.
std::string to_json(const std::vector<Finding>& findings, const MachineFacts& facts);

}  // namespace lancet
