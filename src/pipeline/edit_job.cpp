#include "lancet/pipeline/edit_job.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "lancet/core/error.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/export/output_form.h"
#include "lancet/io/files.h"
#include "lancet/io/output_folder.h"
#include "lancet/io/unfinished_folder.h"
#include "lancet/outcome/edit_report.h"
#include "lancet/pipeline/earlier_output.h"
#include "lancet/pipeline/facts_at_odds.h"
#include "lancet/pipeline/method_run.h"
#include "lancet/pipeline/replayed_edits.h"
#include "lancet/requests/prepared_request.h"
#include "lancet/runtime/communicator.h"
#include "lancet/statistics/partial_sums.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

fs::path rejected_folder(const fs::path& target) { return sibling_of(target, ".rejected"); }

/// The stages of one run. Every rank goes through them in this order.
class EditRun {
 public:
  EditRun(const ResolvedJob& job, Communicator& communicator, std::optional<ReplayedEdits> given = std::nullopt)
      : job_(job), ranks_(communicator), given_(std::move(given)) {}

  EditReport run() {
    ranks_.run_collectively("open", [&] { open(); });
    check_same(ranks_, job_facts(job_, inputs_->files, inputs_->requests));
    method_->look_into_cache();
    CausalLM model = load_replica(inputs_->files, job_.run, method_->work(), ranks_, inputs_->kept.get());
    const MemoryWatch memory_watch(devices_with_memory(model.placement(), inputs_->files.config.n_layers));
    method_->stopwatch().lap("load");
    inputs_->describe(model, ranks_);
    ranks_.run_collectively("edits", [&] {
      if (given_ && given_->history) check_base(*given_->history);
    });
    method_->prepare(model);
    inputs_->before = inputs_->plan.run(model, "evaluate before", ranks_);
    method_->stopwatch().lap("evaluate before");

    WeightTransaction transaction(model, [&](WeightId id) { return stored_weight(inputs_->files, model, id); });
    EditedMethod edited = method_->edit(model, transaction, start());
    EditReport& report = edited.report;
    if (given_ && given_->has_all())
      ranks_.run_collectively("weights", [&] { warn_of_other_bytes(edited.weight_hashes, report.outcome.warnings); });
    method_->stopwatch().raise_to(ranks_);
    report.unmet = broadcast_texts(ranks_, unmet_thresholds(job_, report.after));
    write_output(edited, transaction.entries());
    if (report.unmet.empty()) transaction.commit();
    remove_unfinished(unfinished_folder(job_.output->place.folder));
    return std::move(report);
  }

 private:
  /// Does everything that can fail before any weight is read. Only root handles outputs; each rank has its own values.
  void open() {
    check_unfinished(unfinished_folder(job_.output->place.folder));
    if (ranks_.is_root()) check_output(job_);
    if (given_)  // the batches of the given history name their requests
      inputs_.emplace(job_, open_files(), load_requests(job_.requests));
    else
      inputs_.emplace(job_);
    if (ranks_.is_root()) {
      warn_of_skipped(inputs_->skipped);
      warn_of_texts(inputs_->requests);
    }
    if (ranks_.is_root()) check_apart(job_.output->place, inputs_->files.checkpoint.folder());
    check_lengths(inputs_->files, inputs_->requests);
    const ModelFiles& files = inputs_->files;
    method_.emplace(job_, *inputs_, ranks_,
                    MethodOptions{.output = resolve_output(*job_.output, files, job_.editor->targets(files.config)),
                                  .work = given_ && given_->has_all() ? MethodWork::kRestores : MethodWork::kEdits});
    if (!ranks_.is_root()) return;
    if (!given_) inputs_->look_at_facts(method_->earlier_edits());
    lock_.emplace(job_.output->place.folder, kEditOutput);
    // again: meanwhile another run may have ended, or the output of a killed run may have been repaired
    check_output(job_);
  }

  std::shared_ptr<const ModelFiles> open_files() const {
    return std::make_shared<const ModelFiles>(open_model(job_.model, job_.ignore_config_keys));
  }

  /// Collective. Returns where the run starts.
  MethodRun::Start start() {
    MethodRun::Start start{.unfinished = unfinished_folder(job_.output->place.folder), .records = true};
    if (!given_) return start;
    start.batches = given_->batches;
    if (given_->has_all()) start.unfinished.reset();
    if (given_->history) measured_ = given_->history->journal().measured_weights();
    start.done = std::move(given_->history);
    return start;
  }

  void check_base(const EditHistory& history) const {
    const JournalBase& base = history.journal().base();
    if (base.weights == inputs_->base_hash || given_->fits_any_base) return;
    throw ConfigError(cat("these are edits of another model: expected one of the weights ", base.weights,
                          " (it lay in ", base.folder, "), got ", inputs_->files.checkpoint.folder().string(), ", ",
                          inputs_->base_hash, ": --rebase makes the same edits again on this one"));
  }

  /// Warns if the bytes of the weights differ. The same changes in the same order give the same bytes on the same kind
  /// of machine.
  void warn_of_other_bytes(const std::vector<WeightHash>& now, std::vector<std::string>& warnings) const {
    if (given_->fits_any_base) return;
    for (size_t i = 0; i < measured_.size(); ++i)
      if (i >= now.size() || now[i].weight != measured_[i].weight || now[i].hash != measured_[i].hash)
        return warnings.push_back(cat(
            measured_[i].weight, ": its bytes are not those that the edit wrote: products of this machine, or of this ",
            "number of threads, differ from that one's in their last bits"));
  }

  /// Writes the output, and adds the costs of the stages to the report. The folder appears only after it is complete
  /// and all ranks are still running. After that each rank removes what its unfinished run kept.
  void write_output(EditedMethod& edited, std::span<const WeightTransaction::Entry> entries) {
    EditReport& report = edited.report;
    std::optional<OutputFolder> folder;
    ranks_.run_collectively("export", [&] {
      if (ranks_.is_root()) {
        if (report.unmet.empty()) {
          folder.emplace(job_.output->place.folder, job_.output->if_exists, kEditOutput);
          method_->form().write(entries, folder->staging());
          write_edits(inputs_->files, *edited.history, folder->staging(),
                      {.parts = job_.output->keeps_state ? HistoryParts::kAll : HistoryParts::kChanges});
          method_->stopwatch().lap("export");
        } else {
          folder.emplace(rejected_folder(job_.output->place.folder), IfExists::kReplace, kEditOutput);
        }
      }
      report.stages = method_->stopwatch().stages();
      if (folder)
        write_report_files(run_document(report, job_, job_.output->place.named().string()), folder->staging());
    });
    ranks_.run_collectively("export", [&] {
      if (!folder) return;
      if (report.unmet.empty())
        commit_output(*folder, job_.output->place);
      else
        folder->commit();
    });
  }

  const ResolvedJob& job_;
  Communicator& ranks_;
  std::optional<OutputLock> lock_;  // on root
  std::optional<EditInputs> inputs_;
  std::optional<MethodRun> method_;
  std::optional<ReplayedEdits> given_;
  std::vector<WeightHash> measured_;  ///< hashes of the weights on which the given history was last measured; on root
};

}  // namespace

void check_output(const JobConfig& job) {
  const fs::path& output = job.output->place.folder;
  check_output_place(job.output->place, job.output->if_exists, job.model);
  check_output_target(output, job.output->if_exists, kEditOutput);
  check_output_target(rejected_folder(output), IfExists::kReplace, kEditOutput);
  check_unfinished(unfinished_folder(output));
  if (!job.statistics) return;
  for (const fs::path& folder : {output, rejected_folder(output), unfinished_folder(output)})
    check_cache_outside(job.statistics->cache, folder);
}

EditReport run_edit_job(const ResolvedJob& job, Communicator& communicator) {
  EditReport report;
  communicator.run_collectively("edit", [&] { report = EditRun(job, communicator).run(); });
  return report;
}

EditReport run_edit_job(const ResolvedJob& job, Communicator& communicator, ReplayedEdits given) {
  EditReport report;
  communicator.run_collectively("edit", [&] { report = EditRun(job, communicator, std::move(given)).run(); });
  return report;
}

void with_statistics(const ResolvedJob& job, Communicator& communicator,
                     const std::function<void(const EditContext& context)>& use) {
  communicator.run_collectively("statistics", [&] {
    EditInputs inputs(job);
    MethodRun method(job, inputs, communicator, {.work = MethodWork::kSolves});
    method.look_into_cache();
    const CausalLM model = load_replica(inputs.files, job.run, method.work(), communicator, inputs.kept.get());
    inputs.describe(model, communicator);
    method.prepare(model);
    use(method.context(model));
  });
}

void EditInputs::look_at_facts(std::span<const EditRequest> standing) {
  at_odds = facts_at_odds({requests, standing, joined});
  for (const std::string& line : at_odds) log_warning(line);
}

void EditInputs::describe(const CausalLM& model, Communicator& ranks) {
  model_dtype = precision_text(model);
  const std::vector<std::string> all = ranks.gather(model.placement().description());
  devices = all.front();
  if (std::count(all.begin(), all.end(), all.front()) != ranks.size()) {
    devices.clear();
    for (size_t rank = 0; rank < all.size(); ++rank)
      devices += cat(rank == 0 ? "" : "; ", "rank ", rank, ": ", all[rank]);
  }
  base_hash = same_content_hash(ranks, files.checkpoint);
}

void check_requests(const ModelFiles& files, const std::vector<EditRequest>& requests, const Editor& editor) {
  const TargetForm form = target_form(editor.target_rule(), files.config, *files.tokenizer);
  check_old_answers(requests, editor);
  if (editor.values() != nullptr) {
    std::vector<std::string> known{"{}"};
    if (const ContextOptions* contexts = editor.contexts())
      if (std::optional<std::string> chat = chat_context(*contexts, files.checkpoint.folder(), *files.tokenizer))
        known.push_back(std::move(*chat));
    prepare_requests(*files.tokenizer, requests, known, form);
  } else {
    tokenize_requests(*files.tokenizer, requests, form.end);
  }
}

void check_old_answers(std::span<const EditRequest> requests, const Editor& editor) {
  if (!editor.needs().old_answer) return;
  for (const EditRequest& request : requests)
    if (!request.target_true)
      throw ConfigError(cat("request ", request.id, ": expected target_true, the answer that the method takes out; ",
                            "lancet erase asks the model for it"));
}

void check_lengths(const ModelFiles& files, const std::vector<EditRequest>& requests) {
  refuse_long_requests(*files.tokenizer, requests, files.config.max_positions);
}

namespace {

/// Returns the share that a threshold compares. An answer that a judge left unclear, or did not judge, counts as wrong.
std::optional<double> share_for_threshold(const Evaluation& after, const std::string& metric) {
  const auto total = after.totals.find(metric), unclear = after.totals.find(cat(metric, "_unclear"));
  const std::optional<double> share = total == after.totals.end() ? std::nullopt : total->second.mean();
  if (!share || unclear == after.totals.end()) return share;
  return *share * (1 - unclear->second.mean().value_or(0));
}

}  // namespace

std::vector<std::string> unmet_thresholds(const JobConfig& job, const Evaluation& after) {
  std::vector<std::string> unmet;
  for (const auto& [name, threshold] : job.accept) {
    const std::optional<double> share = share_for_threshold(after, name);
    if (!share)
      unmet.push_back(cat(name, ": n/a for these requests, expected at least ", 100 * threshold, " %"));
    else if (*share < threshold)
      unmet.push_back(cat(name, ": ", shortfall_text(*share, threshold)));
  }
  return unmet;
}

KeptWork::KeptWork(const JobConfig& job, std::filesystem::path unfinished)
    : unfinished_(unfinished.empty() && job.output ? unfinished_folder(job.output->place.folder)
                                                   : std::move(unfinished)),
      cache_(job.statistics ? job.statistics->cache : std::filesystem::path()) {}

std::string KeptWork::text() const {
  std::vector<std::string> places;
  std::error_code ignored;
  if (!unfinished_.empty() && std::filesystem::exists(unfinished_, ignored)) places.push_back(unfinished_.string());
  if (!cache_.empty() && PartialSums::are_saved_since(cache_, begun_))
    places.push_back(cat("the sums of statistics in ", cache_.string()));
  if (places.empty()) return "nothing was finished that could be kept: the same command begins anew";
  return cat("what was finished is kept (", join(places), "), and the same command goes on from there");
}

}  // namespace lancet
