// The main interface of the library: a model in memory that can be edited, measured, asked, restored and saved, without
// a process or a file for each step. `lancet edit` does the same from a job file, with several processes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lancet/core/reporter.h"
#include "lancet/edit_history/edit_history.h"
#include "lancet/eval/askable_model.h"
#include "lancet/export/export_job.h"
#include "lancet/io/output_folder.h"
#include "lancet/job_setup/parse_job.h"
#include "lancet/models/causal_lm.h"
#include "lancet/models/model_files.h"
#include "lancet/outcome/edit_report.h"
#include "lancet/requests/request.h"
#include "lancet/session/asked_weights.h"
#include "lancet/session/generate.h"

namespace lancet {

/// The number of requests in one edit() to plan for, if the caller does not say.
inline constexpr int64_t kUsualRequests = 100;

/// A model in memory, with its edits. One call runs at a time; a second call waits. Each call is all or nothing: after
/// an exception, Cancelled included, the weights are the same as before it. Calls report their progress to the
/// session's reporter. A session has one process; run_edit_job() runs jobs of several. CPU threads are those of the
/// process (run.threads).
class Session {
 public:
  /// Loads the model. `job`: complete_job() of `model` and, optionally, `editor`, `statistics`, `evaluate` (default:
  /// efficacy), `run`. `reporter` must outlive the session. Memory on the devices is divided before the requests are
  /// known, such that one edit() of `planned_requests` fits. Throws: ConfigError, also for sections that make sense
  /// only for a job file; CheckpointError, TokenizerError, PlacementError.
  Session(const CompletedJob& job, Reporter& reporter, int64_t planned_requests = kUsualRequests);

  /// Opens a session on a model's folder, with the options from lancet.yaml, presets or the default method.
  /// `overrides`: in the form of `lancet edit --set`, "editor.method=rome", "run.dtype=f32".
  static Session open(const std::filesystem::path& model, Reporter& reporter,
                      std::span<const std::string> overrides = {});

  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  /// Changes how the following calls edit and measure: another method, other options, other protocols. `job`: of the
  /// same model and `run`; the memory plan stays the one from opening the session. Throws: ConfigError, also if the
  /// edits in force cannot be continued with it, because they have another method or other options on which a method's
  /// state depends (as `continue_from`), and for weights that the session has packed.
  void use(const CompletedJob& job);

  /// Restores the edits of a save(), a save_edits() or a `lancet edit` of the same model, as if they had been made
  /// here, bitwise equal. Throws: ConfigError if the session already has edits, and for edits of another model, of a
  /// method or options that use() refuses, or without the state that a next edit needs; CheckpointError for damaged
  /// files.
  void restore(const std::filesystem::path& edited);

  /// Applies one batch of edits to the current weights. The first call prepares what the method needs of the unedited
  /// model: statistics (from the cache, or by a pass over text) and contexts. Ids must differ from those of earlier
  /// edits. The report says whether each edit took. Throws: ConfigError, CheckpointError, PlacementError, NumericError,
  /// Cancelled.
  EditReport edit(std::vector<EditRequest> requests);
  /// Edits facts as one batch, with ids from new_ids(). Throws: ConfigError for a fact that is not a valid request.
  EditReport edit(std::span<const Fact> facts);

  /// Returns ids for edits that have none: numbers that no edit has or had (journal/journal.h) and that are not in
  /// `taken`.
  std::vector<std::string> new_ids(std::span<const std::string> taken, size_t count) const;

  /// Measures how well requests hold on the current weights, with the job's `evaluate`.
  Evaluation evaluate(std::span<const EditRequest> requests);

  /// Measures how well the edits in force hold now, with the job's `evaluate`, as measure_standing(), and records it in
  /// their journal.
  StandingMeasure measure();

  /// Lets `use` ask the model with token ids, as one call. `use` must not call the session.
  void ask(const std::function<void(const AskableModel& model)>& use);

  /// Lets `use` work with the model itself, as one call. The model has its edits until `put` is called. `use` must not
  /// call the session. Whatever it throws, the weights are afterwards bitwise the same as before.
  void ask_in_turns(const std::function<void(const CausalLM& model, const PutWeights& put)>& use);

  /// Continues prompts with the current weights. `on_text`: as TextGenerator::answer().
  std::vector<Answer> generate(std::span<const std::string> prompts, const GenerateTextOptions& options = {},
                               const std::function<void(const std::string&)>& on_text = {});

  /// Undoes the last edit(), to exactly the same bits as before it. Returns false if there is none.
  bool undo();

  /// Undoes the edits with these ids. If they are exactly all edits of the last batches, the weights get exactly their
  /// earlier bits; otherwise it works as `lancet undo --mode downdate`. The returned entry says how the result differs
  /// from weights that never had these edits. Throws: ConfigError for ids of which none is in force, and as
  /// without_edits() (edit_history/downdate.h).
  UndoEntry undo(const std::vector<std::string>& ids);

  /// Returns the number of batches in force: calls of edit(), and restored batches.
  int64_t edits() const;

  /// Returns these batches with their changes and the systems that they were solved from. The tensors are shared; do
  /// not write to them.
  EditHistory history() const;

  /// Returns only the last batch, for callers that look at each edit; the others are not copied. Throws: ConfigError if
  /// no batch is in force.
  EditedBatch last_batch() const;

  /// Saves the edited checkpoint with edits/ and requests.jsonl, as `lancet edit` writes it, but without the report;
  /// `continue_from` can continue from it. The folder appears complete or not at all. Throws: ConfigError,
  /// CheckpointError, Cancelled.
  void save(const std::filesystem::path& folder, IfExists policy = IfExists::kError);

  /// Saves only the edits, as a folder that restore(), `lancet log` and `lancet apply` can read: edits/ and
  /// requests.jsonl. An existing folder is replaced atomically, and files that it already has are hard-linked. Throws:
  /// as save().
  void save_edits(const std::filesystem::path& folder);
  /// Cleans up before a restore() from a folder in which sessions save_edits(): removes what killed sessions left
  /// beside it, and puts the folder back if a session was killed while replacing it.
  static void recover_edits(const std::filesystem::path& folder);

  /// Exports the edits in force as an adapter for other programs; the session sets `job.edited` and `job.model`.
  /// Throws: ConfigError, also if no edit is in force; as export_adapter().
  AdapterReport export_adapter(ExportAdapterJob job);

  /// Returns report.json of an edit(), for the options in use.
  std::string report_json(const EditReport& report) const;

  const ModelFiles& files() const;
  /// Returns the model in its state between calls.
  const CausalLM& model() const;

  /// Cancels the running call, which then throws Cancelled. Any thread may call it. No effect if no call runs.
  void cancel();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lancet
