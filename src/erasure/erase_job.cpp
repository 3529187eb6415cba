#include "lancet/erasure/erase_job.h"

#include <optional>

#include "audit_prompts.h"
#include "lancet/core/error.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/core/version.h"
#include "lancet/export/output_form.h"
#include "lancet/io/files.h"
#include "lancet/io/output_folder.h"
#include "lancet/outcome/edit_report.h"
#include "lancet/outcome/report_json.h"
#include "lancet/pages/audit_page.h"
#include "lancet/pipeline/edit_job.h"
#include "lancet/pipeline/method_run.h"
#include "measure.h"
#include "neutral_target.h"
#include "relearning.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

constexpr const char* kErasedFile = "erased.json";
constexpr const char* kAuditFile = "audit.json";
constexpr OutputKind kErasedOutput{"erase"};
constexpr OutputKind kAuditOutput{"audit"};

/// Returns each fact in each of the prompts. The texts to measure stay with the request's own prompt.
std::vector<EditRequest> in_all_prompts(std::span<const ErasedFact> facts, std::span<const std::string> templates) {
  std::vector<EditRequest> requests;
  for (const ErasedFact& fact : facts) {
    EditRequest measured = fact.request;
    for (size_t i = 0; i < templates.size(); ++i) {
      EditRequest request;
      request.id = i == 0 ? fact.request.id : cat(fact.request.id, " in prompt ", i + 1);
      request.subject = fact.request.subject;
      request.target = fact.request.target;
      request.target_true = fact.old_answer;
      request.prompt = place_in_context(templates[i], fact.request.prompt);
      if (i == 0) {
        measured.prompt = request.prompt;
        measured.target_true = request.target_true;
        request = measured;
      }
      requests.push_back(std::move(request));
    }
  }
  return requests;
}

/// Returns the note in the model's folder, which does not mention the facts.
std::string erased_note() {
  return dump_report({{"format", "lancet-erased-1"},
                      {"lancet", kVersion},
                      {"holds", "a model that facts were erased from, merged: no journal, no requests, no report"}});
}

class EraseRun {
 public:
  explicit EraseRun(const ResolvedJob& job) : job_(job), audit_dir_(audit_folder(job)) {}

  EraseReport run() {
    open();
    method_->look_into_cache();
    CausalLM model = load_model(*files_, job_.run, work(), kept_.get());
    const MemoryWatch memory_watch(devices_with_memory(model.placement(), files_->config.n_layers));
    settle_facts(model);
    EraseReport report{.audit = {.facts = facts_}, .audit_folder = audit_dir_};
    const SampledAnswers sampled = sampled_answers(job_);
    report.audit.before = ask_facts(model, *files_->tokenizer, facts_, sampled, "audit before");
    set_requests();
    inputs_->describe(model, alone());
    method_->prepare(model);
    inputs_->before = inputs_->plan.run(model, "evaluate before", alone());
    WeightTransaction transaction(model, [&](WeightId id) { return stored_weight(*files_, model, id); });
    report.edit = method_->edit(model, transaction, {}).report;
    report.edit.stages = method_->stopwatch().stages();
    report.audit.after = ask_facts(model, *files_->tokenizer, facts_, sampled, "audit after");
    if (relearning_) {
      report.audit.related = relearning_->related();
      report.audit.relearned = relearning_->run(model, facts_, report.audit.after);
    }
    write_output(report, transaction.entries());
    transaction.commit();
    return report;
  }

 private:
  /// Does everything that can fail before any weight is read.
  void open() {
    check_folders();
    files_ = std::make_shared<const ModelFiles>(open_model(job_.model, job_.ignore_config_keys));
    RequestFile file = load_requests(job_.requests);
    warn_of_skipped(file.skipped);
    warn_of_texts(file.requests);
    check_apart(job_.output->place, files_->checkpoint.folder());
    check_apart(audit_dir_, files_->checkpoint.folder());
    request_format_ = file.format;
    for (EditRequest& request : file.requests) facts_.push_back(begun(std::move(request)));
    set_requests();
    if (job_.erase->relearn) {
      RequestFile related = load_requests(job_.erase->relearn->requests);
      warn_of_skipped(related.skipped);
      relearning_.emplace(job_, *files_, std::move(related.requests), erased());
    }
    lock_.emplace(job_.output->place.folder, kErasedOutput);
    audit_lock_.emplace(audit_dir_, kAuditOutput);
    check_folders();  // again: meanwhile another run may have ended, or a killed run's output may have been repaired
  }

  void check_folders() const {
    const OutputOptions& output = *job_.output;
    for (const auto& [folder, kind] :
         {std::pair{output.place.folder, kErasedOutput}, std::pair{audit_dir_, kAuditOutput}}) {
      check_apart(folder, job_.model);
      check_output_target(folder, output.if_exists, kind);
      if (job_.statistics) check_cache_outside(job_.statistics->cache, folder);
    }
    check_output_place(output.place, output.if_exists, job_.model);
  }

  /// Returns the fact as far as it is known without the model. A placeholder stands for what the model will say.
  ErasedFact begun(EditRequest request) const {
    ErasedFact fact{.request = std::move(request)};
    const EraseOptions& options = *job_.erase;
    fact.old_answer = fact.request.target_true.value_or("");
    fact.answer_by = fact.request.target_true ? SaidBy::kRequest : SaidBy::kModel;
    if (options.own_targets && !fact.request.target.empty()) return fact;
    fact.target_by = options.target ? SaidBy::kJob : SaidBy::kModel;
    fact.request.target_id.clear();
    fact.request.target_aliases.clear();
    fact.request.target = options.target.value_or(fact.old_answer.empty() ? "unknown" : fact.old_answer);
    return fact;
  }

  std::vector<EditRequest> erased() const {
    std::vector<EditRequest> requests;
    for (const ErasedFact& fact : facts_) requests.push_back(fact.request);
    return requests;
  }

  /// Makes the requests to edit from the facts.
  void set_requests() {
    const std::shared_ptr<PreparedMethod> prepared = method_ ? method_->prepared() : nullptr;
    method_.reset();
    RequestFile file{in_all_prompts(facts_, job_.erase->prompts), request_format_, {}};
    inputs_.emplace(job_, files_, each_fact_once(std::move(file)), kept_);
    check_lengths(*files_, inputs_->requests);
    OutputOptions output = resolve_output(*job_.output, *files_, job_.editor->targets(files_->config));
    // this is what auto gives for a quantised model
    if (output.format == OutputFormat::kAdapter) output.format = OutputFormat::kMixed;
    method_.emplace(job_, *inputs_, alone(), MethodOptions{.prepared = prepared, .output = output});
  }

  Workload work() const {
    const EvaluationSize size = audit_size(erased(), *files_->tokenizer, sampled_answers(job_));
    Workload all = method_->work();
    if (relearning_) all = united(all, relearning_->work());
    all.evaluation = all.evaluation + size;
    return all;
  }

  /// Asks the model for missing old answers and neutral targets.
  void settle_facts(const CausalLM& model) {
    std::vector<std::string> prompts;
    for (const ErasedFact& fact : facts_) prompts.push_back(fact.request.prompt.text);
    const std::vector<std::string> said = first_words(model, *files_->tokenizer, prompts);
    std::vector<EditRequest> open;
    std::vector<std::string> answers;
    for (size_t i = 0; i < facts_.size(); ++i) {
      ErasedFact& fact = facts_[i];
      if (fact.answer_by == SaidBy::kModel) {
        fact.old_answer = said[i];
        if (said[i].empty())
          throw ConfigError(
              cat("request ", fact.request.id, ", prompt '", prompts[i],
                  "': has no target_true, and the model says no word after it: there is nothing to erase"));
      }
      if (fact.target_by != SaidBy::kModel) continue;
      open.push_back(fact.request);
      answers.push_back(fact.old_answer);
    }
    const std::vector<std::string> targets = neutral_targets(model, *files_->tokenizer, open, answers, job_.run.seed);
    size_t at = 0;
    for (ErasedFact& fact : facts_)
      if (fact.target_by == SaidBy::kModel) fact.request.target = targets[at++];
    for (const ErasedFact& fact : facts_)
      if (fact.request.target == fact.old_answer)
        throw ConfigError(cat("request ", fact.request.id, ": its target is its old answer, ", fact.old_answer,
                              ": expected another one, or none"));
    add_audit_prompts(facts_, *files_->tokenizer, files_->config.max_positions);
  }

  /// Writes the audit's folder first, so that there is no model without its audit.
  void write_output(const EraseReport& report, OutputForm::Entries entries) {
    const OutputOptions& output = *job_.output;
    OutputFolder model(output.place.folder, output.if_exists, kErasedOutput);
    OutputFolder audit(audit_dir_, output.if_exists, kAuditOutput);
    method_->form().write(entries, model.staging());
    write_text_file(model.staging() / kErasedFile, erased_note());
    write_report_files(run_document(report.edit, job_, output.place.named().string()), audit.staging());
    const std::string json = to_json(report, job_);
    write_text_file(audit.staging() / kAuditFile, json);
    write_text_file(audit.staging() / "audit.html", render_audit(json));
    audit.commit();
    commit_output(model, output.place);
  }

  const ResolvedJob& job_;
  fs::path audit_dir_;
  std::optional<OutputLock> lock_, audit_lock_;
  std::shared_ptr<const ModelFiles> files_;
  std::shared_ptr<KeptMatrices> kept_ = std::make_shared<KeptMatrices>();
  std::string request_format_;
  std::vector<ErasedFact> facts_;
  std::optional<EditInputs> inputs_;
  std::optional<MethodRun> method_;
  std::optional<Relearning> relearning_;
};

}  // namespace

fs::path audit_folder(const JobConfig& job) { return sibling_of(job.output->place.folder, "-audit"); }

EraseReport run_erase_job(const ResolvedJob& job) {
  if (job.run.ranks_per_model > 1)
    throw ConfigError(cat("run.ranks_per_model: ", job.run.ranks_per_model,
                          ": expected 1: lancet erase is one process, which takes all devices of run.devices"));
  return EraseRun(job).run();
}

}  // namespace lancet
