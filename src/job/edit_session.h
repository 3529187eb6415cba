// What edits of one model's requests have in common, whatever the method: `lancet edit` has one method, `lancet
// compare` several.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lancet/edit/corpus.h"
#include "lancet/job/job_config.h"
#include "lancet/job/model_session.h"
#include "lancet/runtime/communicator.h"

namespace lancet {

struct EditSession {
  /// What can fail before any weight is read.
  explicit EditSession(const JobConfig& job)
      : files(open_model(job.model, job.ignore_config_keys)),
        requests(load_requests(job.requests)),
        plan(*files.tokenizer, requests, job.evaluation) {}

  /// Collective: what is known of the model once it is loaded, but for `before`.
  void describe(const CausalLM& model, Communicator& ranks);

  ModelFiles files;
  std::vector<EditRequest> requests;
  EvaluationPlan plan;
  std::shared_ptr<const CorpusTokens> corpus;  ///< of the job's statistics, once a method has needed it
  std::string base_hash;
  std::string model_dtype;
  std::string devices;
  Evaluation before;
};

}  // namespace lancet
