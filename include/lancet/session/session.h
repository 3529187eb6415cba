// The library's front door: a model in memory that is edited, measured, asked, put back and saved, without a process or
// a file for each step. `lancet edit` does the same from a job file, for several processes.
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
#include "lancet/session/asked_weights.h"
#include "lancet/session/generate.h"

namespace lancet {

/// A fact as one writes it.
struct Fact {
  std::string prompt;   ///< text with {} where the subject stands, or with the subject itself in it once
  std::string subject;  ///< may be empty for methods without one (docs/methods.md)
  std::string target;   ///< what the model shall say after the prompt
};

/// Requests of one edit(), where nobody says how many they will be.
inline constexpr int64_t kUsualRequests = 100;

/// One call at a time: a second one waits. Each call is all or nothing: after an exception, Cancelled among them, the
/// weights are what they were before it. What a call does is told to the session's reporter. One process: jobs of
/// several run by run_edit_job(). CPU threads are the process's (run.threads).
class Session {
 public:
  /// Loads the model. `job`: complete_job() of `model` and, where wanted, `editor`, `statistics`, `evaluate`
  /// (efficacy without it), `run`. `reporter` outlives the session. Devices are shared out before the requests are
  /// known, so that one edit() of `planned_requests` fits. Throws: ConfigError, also for sections that say something
  /// about one job alone; CheckpointError, TokenizerError, PlacementError.
  Session(const CompletedJob& job, Reporter& reporter, int64_t planned_requests = kUsualRequests);

  /// Opens a session on a model's folder with what lancet.yaml, presets or the default method give it. `overrides`: as
  /// `lancet edit --set` takes them, "editor.method=rome", "run.dtype=f32".
  static Session open(const std::filesystem::path& model, Reporter& reporter,
                      std::span<const std::string> overrides = {});

  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  /// What edits and measures from here on: another method, other options of it, other protocols. `job`: of the same
  /// model and `run`; the memory's plan stays the one that the session was opened by. Throws: ConfigError, also while
  /// edits stand that it cannot go on from: those of another method, or of options that a method's state depends on
  /// (as `continue_from`), and for weights that the session has packed.
  void use(const CompletedJob& job);

  /// The edits of a save(), a save_edits() or a `lancet edit` of the same model, as if they had been made here: the
  /// same bits. Throws: ConfigError while edits stand, for edits of another model, of a method or options as use()
  /// refuses, or without what a next one goes on from; CheckpointError for what is damaged.
  void restore(const std::filesystem::path& edited);

  /// One batch of edits, on the weights as they are. The first one makes what the method needs of the unedited model:
  /// statistics (from the cache, or a pass over text) and contexts. Ids must differ from those of earlier edits.
  /// Whether each edit took is measured, and stands in the report. Throws: ConfigError, CheckpointError,
  /// PlacementError, NumericError, Cancelled.
  EditReport edit(std::vector<EditRequest> requests);
  /// Edits facts as one batch; ids are new_ids(). Throws: ConfigError for a fact that is no request.
  EditReport edit(std::span<const Fact> facts);

  /// Returns ids for edits without one: numbers that none has or had (journal/journal.h), nor those in `taken`.
  std::vector<std::string> new_ids(std::span<const std::string> taken, size_t count) const;

  /// How well requests hold on the weights as they are, by the job's `evaluate`.
  Evaluation evaluate(std::span<const EditRequest> requests);

  /// How the edits that stand hold now; their journal has it from here on. By the job's `evaluate`, as
  /// measure_standing().
  StandingMeasure measure();

  /// The model as token ids are asked of it, as one call; `use` calls nothing of the session.
  void ask(const std::function<void(const AskableModel& model)>& use);

  /// The model itself, with its edits until `put` is called, as one call; `use` calls nothing of the session. Whatever
  /// it throws, the weights are afterwards what they were, to the bit.
  void ask_in_turns(const std::function<void(const CausalLM& model, const PutWeights& put)>& use);

  /// `on_text`: as TextGenerator::answer().
  std::vector<Answer> generate(std::span<const std::string> prompts, const GenerateTextOptions& options = {},
                               const std::function<void(const std::string&)>& on_text = {});

  /// Takes the last edit() back, to the very bits from before it. False: there is none.
  bool undo();

  /// Takes the edits of these ids back: to the very bits where they are all of the last batches, else as `lancet undo
  /// --mode downdate` does. What it gives up stands in the entry. Throws: ConfigError for ids of which none stands, and
  /// as without_edits() (edit_history/downdate.h).
  UndoEntry undo(const std::vector<std::string>& ids);

  /// Batches that stand: calls of edit(), and those of what was restored.
  int64_t edits() const;

  /// Those batches with their changes and what they were solved from. Tensors are shared, and not to be written to.
  EditHistory history() const;

  /// The last of them alone, for whoever looks at each edit: nothing of the others is copied. Throws: ConfigError where
  /// none stands.
  EditedBatch last_batch() const;

  /// The edited checkpoint with edits/ and requests.jsonl, as `lancet edit` writes it, but for the report;
  /// `continue_from` goes on from it. The folder appears complete or not at all. Throws: ConfigError, CheckpointError,
  /// Cancelled.
  void save(const std::filesystem::path& folder, IfExists policy = IfExists::kError);

  /// The edits alone, as a folder that restore(), `lancet log` and `lancet apply` read: edits/ and requests.jsonl. One
  /// that is there is replaced at once, and files that it has already are linked to. Throws: as save().
  void save_edits(const std::filesystem::path& folder);
  /// Cleans up before a restore() of a folder that sessions save_edits() in: removes what killed ones left beside it,
  /// and puts it itself back where one was killed while it replaced it.
  static void recover_edits(const std::filesystem::path& folder);

  /// The edits that stand for other programs; `job.edited` and `job.model` are the session's. Throws: ConfigError, also
  /// where none stands; as export_adapter().
  AdapterReport export_adapter(ExportAdapterJob job);

  /// report.json of an edit(), by the options in use.
  std::string report_json(const EditReport& report) const;

  const ModelFiles& files() const;
  /// Returns the model as it is between calls.
  const CausalLM& model() const;

  /// Ends, from any thread, the call that runs, which throws Cancelled. Does nothing where none runs.
  void cancel();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lancet
