// `continue_from:` the output of an earlier job, whose edits this job's go on with.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lancet/edit_history/edit_history.h"
#include "lancet/job/job_config.h"
#include "lancet/plan/model_session.h"
#include "lancet/runtime/communicator.h"

namespace lancet {

/// The job's editor as it was resolved, for whoever goes on.
std::string editor_options(const JobConfig& job);

/// The edits in an output's folder, with what another batch goes on from. `where` stands before what is wrong;
/// `otherwise`: what can be done without a copy of damaged ones. Throws: ConfigError when it has none, or kept no
/// state; CheckpointError when they are damaged.
EditHistory read_whole_history(const std::filesystem::path& output, const ModelConfig& config, const std::string& where,
                               const std::string& otherwise);

/// Checks that the job can go on after the journal's batches, of which there are some. Throws: ConfigError for another
/// method than theirs, or other options that its state depends on.
void check_goes_on(const Journal& journal, const JobConfig& job, const std::string& where);

/// Throws: ConfigError for edits of another base model than `base_hash`.
void check_base(const EditHistory& history, const std::string& base_hash, const std::string& where);

class EarlierOutput {
 public:
  /// `requests`: the job's. Throws: ConfigError when the folder keeps no state, or one of another method or of options
  /// that the state depends on, or when a request has the id of one that was edited there; CheckpointError when it is
  /// damaged, or another output's.
  EarlierOutput(const JobConfig& job, std::span<const EditRequest> requests, const ModelConfig& config);

  /// Throws: ConfigError when the base model is another than `base_hash`.
  const EditHistory& history(const std::string& base_hash) const;

  /// The requests edited so far.
  const std::vector<EditRequest>& requests() const { return requests_; }

 private:
  std::string where_;  ///< what errors begin with
  EditHistory history_;
  std::vector<EditRequest> requests_;
};

// Ranks that run different things would compute nonsense together, or wait for each other for ever.

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
