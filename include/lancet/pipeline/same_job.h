// Ranks that run different things would compute nonsense together, or wait for each other for ever.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lancet/job/job_config.h"
#include "lancet/plan/model_session.h"
#include "lancet/runtime/communicator.h"

namespace lancet {

/// What all ranks must agree on: its name in an error, and its value.
using JobFact = std::pair<std::string, std::string>;

/// What is known before weights are read: version, resolved job, config.json, dtype, requests.
std::vector<JobFact> job_facts(const JobConfig& job, const ModelFiles& files, std::span<const EditRequest> requests);

/// Collective. Throws: ConfigError, on every rank, with the first rank that has another value than root, and the fact's
/// name.
void check_same(Communicator& communicator, std::span<const JobFact> facts);

/// Collective: the checkpoint's content hash, of which every rank must have the same. Reads every weight's bytes.
std::string same_content_hash(Communicator& communicator, const Checkpoint& checkpoint);

}  // namespace lancet
