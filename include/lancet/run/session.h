// The library's front door: a model in memory that is edited, measured, asked, put back and saved, without a process or
// a file for each step. `lancet edit` does the same from a job file, for several processes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lancet/core/reporter.h"
#include "lancet/io/output_folder.h"
#include "lancet/job/job_defaults.h"
#include "lancet/run/ask.h"
#include "lancet/run/edit_job.h"

namespace lancet {

/// A fact as one writes it.
struct Fact {
  std::string prompt;   ///< with {} where the subject stands, or with the subject itself in it once
  std::string subject;  ///< may be empty for methods without one (docs/methods.md)
  std::string target;   ///< what the model shall say behind the prompt
};

/// One call at a time: a second one waits. Each call is all or nothing: behind an exception, Cancelled among them, the
/// weights are what they were before it. What a call does is told to the session's reporter. One process: jobs of
/// several run by run_edit_job(). CPU threads are the process's (run.threads).
class Session {
 public:
  /// Loads the model. `job`: complete_job() of `model` and, where wanted, `editor`, `statistics`, `evaluate`
  /// (efficacy without it), `run`. `reporter` outlives the session. Memory is planned for 100 requests at a time.
  /// Throws: ConfigError, also for sections that say something about one job alone; CheckpointError, TokenizerError,
  /// PlacementError.
  Session(const CompletedJob& job, Reporter& reporter);

  /// The same for a model's folder with what lancet.yaml, presets or the default method give it. `overrides`: as
  /// `lancet edit --set` takes them, "editor.method=rome", "run.dtype=f32".
  static Session open(const std::filesystem::path& model, Reporter& reporter,
                      std::span<const std::string> overrides = {});

  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  /// One batch of edits, on the weights as they are. The first one makes what the method needs of the unedited model:
  /// statistics (from the cache, or a pass over text) and contexts. Ids must differ from those of earlier edits.
  /// Whether each edit took is measured, and stands in the report. Throws: ConfigError, CheckpointError,
  /// PlacementError, NumericError, Cancelled.
  EditReport edit(std::vector<EditRequest> requests);
  /// The same; ids are numbers. Throws: ConfigError for a fact that is no request.
  EditReport edit(std::span<const Fact> facts);

  /// How well requests hold on the weights as they are, by the job's `evaluate`.
  Evaluation evaluate(std::span<const EditRequest> requests);

  std::vector<Answer> generate(std::span<const std::string> prompts, const AskOptions& options = {});

  /// Takes the last edit() back, to the very bits from before it. False: there is none.
  bool undo();

  /// Calls of edit() that stand.
  int64_t edits() const;

  /// The edited checkpoint with edits/ and requests.jsonl, as `lancet edit` writes it, but for the report;
  /// `continue_from` goes on from it. The folder appears complete or not at all. Throws: ConfigError, CheckpointError,
  /// Cancelled.
  void save(const std::filesystem::path& folder, IfExists policy = IfExists::kError);

  /// From any thread: ends the call that runs, which throws Cancelled. Nothing where none runs.
  void cancel();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lancet
