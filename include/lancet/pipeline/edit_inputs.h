// What edits of one model's requests have in common, whatever the method: `lancet edit` has one method, `lancet
// compare` several.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lancet/job/job_config.h"
#include "lancet/plan/model_session.h"
#include "lancet/requests/same_fact.h"
#include "lancet/runtime/communicator.h"
#include "lancet/statistics/corpus.h"
#include "lancet/statistics/kept_matrices.h"

namespace lancet {

struct EditInputs {
  /// What can fail before any weight is read.
  explicit EditInputs(const JobConfig& job)
      : EditInputs(job, std::make_shared<const ModelFiles>(open_model(job.model, job.ignore_config_keys)),
                   each_fact_once(load_requests(job.requests))) {}

  EditInputs(const JobConfig& job, std::shared_ptr<const ModelFiles> opened, RequestFile file,
             std::shared_ptr<KeptMatrices> kept_for_model = std::make_shared<KeptMatrices>())
      : shared_files(std::move(opened)),
        files(*shared_files),
        requests(std::move(file.requests)),
        request_format(std::move(file.format)),
        skipped(std::move(file.skipped)),
        joined(std::move(file.joined)),
        plan(*files.tokenizer, requests, job.evaluation, files.config.max_positions),
        kept(std::move(kept_for_model)) {}

  /// Warns of facts that contradict each other or those of `standing`, edited before; the report has it too.
  void look_at_facts(std::span<const EditRequest> standing);

  /// Collective: what is known of the model once it is loaded, but for `before`.
  void describe(const CausalLM& model, Communicator& ranks);

  std::shared_ptr<const ModelFiles> shared_files;
  const ModelFiles& files;
  std::vector<EditRequest> requests;
  std::string request_format;  ///< format of their file; empty: they stand in the job
  SkippedRecords skipped;
  std::vector<std::string> joined;   ///< requests that are not edited, since an earlier one says the same
  std::vector<std::string> at_odds;  ///< lines of look_at_facts()
  EvaluationPlan plan;
  std::shared_ptr<KeptMatrices> kept;          ///< what solves take, of the one model
  std::shared_ptr<const CorpusTokens> corpus;  ///< corpus of the job's statistics, once a method has needed it
  std::string base_hash;
  std::string model_dtype;
  std::string devices;
  Evaluation before;
};

}  // namespace lancet
