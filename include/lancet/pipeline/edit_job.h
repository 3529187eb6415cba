// `lancet edit`: the stages from a job to an edited checkpoint, with everything that was measured on the way.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lancet/editing/editor.h"
#include "lancet/job/job_config.h"
#include "lancet/outcome/edit_report.h"
#include "lancet/plan/model_session.h"
#include "lancet/requests/same_fact.h"
#include "lancet/runtime/communicator.h"
#include "lancet/statistics/covariance.h"
#include "lancet/statistics/kept_matrices.h"

namespace lancet {

/// What run_edit_job() checks first of the output folder, those beside it that it writes to, and what must not lie in
/// them. Throws: ConfigError.
void check_output(const JobConfig& job);

/// Collective: every rank with the same job. The output folder, which root writes, appears complete, or not at all;
/// when `accept:` is not met only <dir>.rejected with the report does, and the report's `unmet` is not empty.
/// Statistics stand in root's report alone. Throws: ConfigError, CheckpointError, TokenizerError, PlacementError,
/// NumericError; CollectiveError when another rank failed.
EditReport run_edit_job(const JobConfig& job, Communicator& communicator);
/// Collective: the same by `editor` in the place of the job's, which it watches.
EditReport run_edit_job(const JobConfig& job, Communicator& communicator, std::shared_ptr<const Editor> editor);

// What edits of one model's requests have in common, whatever the method: `lancet edit` has one method, `lancet
// compare` several.

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

// What an edit checks: before any weight is read, also by a rehearsal for the whole job, and of what it measured.

/// Gives the job this editor, with every default filled in; of `resolved` it becomes all. Throws: ConfigError "where:
/// editor: ...".
void set_editor(JobConfig& job, const ConfigTree& editor, const std::string& where);

/// Everything about the requests that can fail without a model pass. Throws: ConfigError.
void check_requests(const ModelFiles& files, const std::vector<EditRequest>& requests, const Editor& editor);

/// Throws: ConfigError for a request without `target_true`, where the method takes that answer out.
void check_old_answers(std::span<const EditRequest> requests, const Editor& editor);

/// refuse_long_requests() by the model's own positions. Throws: ConfigError.
void check_lengths(const ModelFiles& files, const std::vector<EditRequest>& requests);

/// The job's `accept:` thresholds that were missed, a line each.
std::vector<std::string> unmet_thresholds(const JobConfig& job, const Evaluation& after);

// What a job that is stopped has finished and leaves for the next run of the same job.

class KeptWork {
 public:
  /// Takes the job's run to begin now. Looks at nothing yet. `unfinished`: empty for the folder beside the job's
  /// output.
  explicit KeptWork(const JobConfig& job, std::filesystem::path unfinished = {});

  /// A clause that says where it lies, or that there is none yet. From any thread, while the job runs.
  std::string text() const;

 private:
  std::filesystem::path unfinished_;  ///< empty: a job without an output
  std::filesystem::path cache_;       ///< empty: no statistics
  std::filesystem::file_time_type begun_ = std::filesystem::file_time_type::clock::now();
};

}  // namespace lancet
