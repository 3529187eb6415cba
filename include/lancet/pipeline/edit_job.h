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
#include "lancet/job_setup/resolved_job.h"
#include "lancet/outcome/edit_report.h"
#include "lancet/plan/model_session.h"
#include "lancet/requests/same_fact.h"
#include "lancet/runtime/communicator.h"
#include "lancet/statistics/covariance.h"
#include "lancet/statistics/kept_matrices.h"

namespace lancet {

/// Does the first checks of run_edit_job(): the output folder, the neighbouring folders that it writes to, and what
/// must not be in them. Throws: ConfigError.
void check_output(const JobConfig& job);

/// Collective. Runs an edit job; every rank passes the same job. Root writes the output folder, which appears complete
/// or not at all. If `accept:` is not met, only <dir>.rejected with the report appears, and the report's `unmet` is not
/// empty. Only root's report has the statistics. Throws: ConfigError, CheckpointError, TokenizerError, PlacementError,
/// NumericError; CollectiveError when another rank failed.
EditReport run_edit_job(const ResolvedJob& job, Communicator& communicator);

// The inputs that edits of the same requests and model share, whatever their method: `lancet edit` has one method,
// `lancet compare` has several.

struct EditInputs {
  /// Opens the files and reads the requests: whatever can fail before any weight is read.
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

  /// Warns of facts that contradict each other or those of `standing`, which were edited before. The warnings are in
  /// the report too.
  void look_at_facts(std::span<const EditRequest> standing);

  /// Collective. Fills in what is known of the model once it is loaded, except `before`.
  void describe(const CausalLM& model, Communicator& ranks);

  std::shared_ptr<const ModelFiles> shared_files;
  const ModelFiles& files;
  std::vector<EditRequest> requests;
  std::string request_format;  ///< format of the request file; empty: the requests are in the job file
  SkippedRecords skipped;
  std::vector<std::string> joined;   ///< requests that are not edited, because an earlier one says the same
  std::vector<std::string> at_odds;  ///< lines of look_at_facts()
  EvaluationPlan plan;
  std::shared_ptr<KeptMatrices> kept;          ///< matrices of this model that solves read
  std::shared_ptr<const CorpusTokens> corpus;  ///< corpus of the job's statistics, set when a method first needs it
  std::string base_hash;
  std::string model_dtype;
  std::string devices;
  Evaluation before;
};

// The checks of an edit: those before any weight is read, which a rehearsal also does for the whole job, and those of
// the measured results.

/// Checks everything about the requests that can fail without a model pass. Throws: ConfigError.
void check_requests(const ModelFiles& files, const std::vector<EditRequest>& requests, const Editor& editor);

/// Checks that every request has `target_true` if the method removes the old answer. Throws: ConfigError for a request
/// without it.
void check_old_answers(std::span<const EditRequest> requests, const Editor& editor);

/// Calls refuse_long_requests() with the model's number of positions. Throws: ConfigError.
void check_lengths(const ModelFiles& files, const std::vector<EditRequest>& requests);

/// Returns the job's `accept:` thresholds that were missed, one line each.
std::vector<std::string> unmet_thresholds(const JobConfig& job, const Evaluation& after);

// Describes what a stopped job has finished and leaves for the next run of the same job.

class KeptWork {
 public:
  /// Records the start of the job's run; it reads nothing yet. `unfinished`: empty for the folder beside the job's
  /// output.
  explicit KeptWork(const JobConfig& job, std::filesystem::path unfinished = {});

  /// Returns a clause that says where the finished work is, or that there is none yet. Thread-safe, also while the job
  /// runs.
  std::string text() const;

 private:
  std::filesystem::path unfinished_;  ///< empty: the job has no output
  std::filesystem::path cache_;       ///< empty: the job has no statistics
  std::filesystem::file_time_type begun_ = std::filesystem::file_time_type::clock::now();
};

}  // namespace lancet
