// `continue_from:` the output of an earlier job, whose edits are continued by this job.
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

/// Returns the job's resolved editor options, for a job that continues from it.
std::string editor_yaml(const JobConfig& job);

/// Reads the edits in an output's folder, with the state that a next batch starts from. Error messages begin with
/// `where`; `otherwise` says what is possible if damaged edits have no copy. Throws: ConfigError when the folder has no
/// edits or kept no state; CheckpointError when they are damaged.
EditHistory read_whole_history(const std::filesystem::path& output, const ModelConfig& config, const std::string& where,
                               const std::string& otherwise);

/// Checks that the job can continue after the journal's batches, of which there must be some. Throws: ConfigError if
/// the job has another method, or differs in options on which the method's state depends.
void check_goes_on(const Journal& journal, const JobConfig& job, const std::string& where);

/// Checks the base model. Throws: ConfigError for edits of another base model than `base_hash`.
void check_base(const EditHistory& history, const std::string& base_hash, const std::string& where);

class EarlierOutput {
 public:
  /// `requests`: the requests of the job. Throws: ConfigError when the folder keeps no state, or a state of another
  /// method or of other options that the state depends on, or when a request has the id of an earlier edit there;
  /// CheckpointError when the state is damaged or belongs to another output.
  EarlierOutput(const JobConfig& job, std::span<const EditRequest> requests, const ModelConfig& config);

  /// Returns the edits. Throws: ConfigError when the base model is another than `base_hash`.
  const EditHistory& history(const std::string& base_hash) const;

  /// Returns the requests that were edited so far.
  const std::vector<EditRequest>& requests() const { return requests_; }

 private:
  std::string where_;  ///< start of error messages
  EditHistory history_;
  std::vector<EditRequest> requests_;
};

// Checks that all ranks run the same job. Otherwise they would compute nonsense together, or wait for each other for
// ever.

/// A fact on which all ranks must agree: its name in error messages, and its value.
using JobFact = std::pair<std::string, std::string>;

/// Returns the facts that are known before weights are read: version, resolved job, config.json, dtype, requests.
std::vector<JobFact> job_facts(const JobConfig& job, const ModelFiles& files, std::span<const EditRequest> requests);

/// Collective. Compares the facts of all ranks. Throws: ConfigError, on every rank, that names the fact and the first
/// rank whose value differs from root's.
void check_same(Communicator& communicator, std::span<const JobFact> facts);

/// Collective. Returns the checkpoint's content hash, which must be equal on all ranks. Reads every weight's bytes.
std::string same_content_hash(Communicator& communicator, const Checkpoint& checkpoint);

}  // namespace lancet
