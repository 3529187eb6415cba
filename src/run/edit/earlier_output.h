// `continue_from:` the output of an earlier job, whose edits this job's go on with.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "lancet/edits/edit_history.h"
#include "lancet/job/job_config.h"

namespace lancet {

/// The job's editor as it was resolved, for whoever goes on.
std::string editor_options(const JobConfig& job);

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
  std::filesystem::path folder_;
  EditHistory history_;
  std::vector<EditRequest> requests_;
};

}  // namespace lancet
