#include "lancet/run/session.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "edit/edit_checks.h"
#include "edit/edit_recorder.h"
#include "edit/edit_session.h"
#include "edit/method_run.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/core/visible_text.h"
#include "lancet/runtime/memory_watch.h"
#include "output/edited_model.h"
#include "output/stored_weight.h"
#include "results/report_files.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

/// Memory is planned before the requests are known.
constexpr size_t kPlannedRequests = 100;

JobConfig parse_session(const CompletedJob& completed) {
  ConfigTree tree = completed.tree;
  if (tree.kind == ConfigTree::Kind::kMap && tree.find("evaluate") == nullptr)
    tree.set("evaluate", ConfigTree::list({ConfigTree::text("efficacy")}));
  return parse_job(tree, completed.source.base, completed.source.name, JobPurpose::kSession);
}

JobWork planned_work(const JobConfig& job, const ModelConfig& config) {
  std::vector<std::string> assumptions;  // `lancet plan` shows them
  const std::vector<EditRequest> requests(kPlannedRequests);
  return edit_work(job, config, {.tokenizer = nullptr, .requests = requests, .evaluation = {}}, assumptions);
}

}  // namespace

class Session::Impl {
 public:
  Impl(const CompletedJob& completed, Reporter& reporter)
      : reporter_(reporter),
        scope_(std::in_place, reporter),
        job_(parse_session(completed)),
        files_(std::make_shared<const ModelFiles>(open_model(job_.model, job_.ignore_config_keys))),
        prompter_(*files_),
        model_(load_model(*files_, job_.run, planned_work(job_, files_->config))),
        memory_watch_(devices_with_memory(model_.placement(), files_->config.n_layers)),
        transaction_(model_, [this](WeightId id) { return stored_weight(*files_, model_, id); }) {
    tell_defaults(completed, job_);
    scope_.reset();
  }

  /// Runs `work` as one call: alone, told to the session's reporter, cancelled by nobody yet.
  template <typename Work>
  auto call(const Work& work) {
    const std::lock_guard one_at_a_time(calls_);
    const ReporterScope scope(reporter_);
    reporter_.resume();
    return work();
  }

  EditReport edit(std::vector<EditRequest> requests) {
    check_ids(requests);
    warn_of_texts(requests);
    check_lengths(*files_, requests);
    EditSession session(job_, files_, {std::move(requests), "", {}});
    MethodRun method(job_, session, alone(), prepared_);
    session.describe(model_, alone());
    method.prepare(model_);
    prepared_ = method.prepared();
    session.before = session.plan.run(model_, "evaluate before", alone());
    if (!history_) history_.emplace(journal_base(*files_, session.base_hash));
    try {
      put_exact();
      method.edit(model_, transaction_, {.behind = history_, .records = true});
    } catch (...) {
      put_back();
      throw;
    }
    history_ = method.history();
    finishes_.push_back(history_->finish());
    return std::move(method.report());
  }

  EditReport edit_facts(std::span<const Fact> facts) {
    std::vector<ConfigTree> records;
    for (const Fact& fact : facts) {
      ConfigTree record = ConfigTree::map();
      record.set("id", ConfigTree::text(std::to_string(next_id_++)));
      record.set("prompt", ConfigTree::text(fact.prompt));
      if (!fact.subject.empty()) record.set("subject", ConfigTree::text(fact.subject));
      record.set("target", ConfigTree::text(fact.target));
      records.push_back(std::move(record));
    }
    return edit(parse_requests(ConfigTree::list(std::move(records))));
  }

  Evaluation evaluate(std::span<const EditRequest> requests) {
    return EvaluationPlan(*files_->tokenizer, requests, job_.evaluation).run(model_, "evaluate", alone());
  }

  std::vector<Answer> generate(std::span<const std::string> prompts, const AskOptions& options) {
    return prompter_.answer(model_, prompts, options);
  }

  bool undo() {
    if (edits() == 0) return false;
    finishes_.pop_back();
    history_->forget_last_batch(finishes_.empty() ? std::vector<WeightChanges>() : finishes_.back());
    put_back();
    return true;
  }

  int64_t edits() const { return history_ ? static_cast<int64_t>(history_->batches().size()) : 0; }

  void save(const fs::path& target, IfExists policy) {
    check_apart(target, files_->checkpoint.folder());
    const OutputLock lock(target, kEditOutput);
    OutputFolder folder(target, policy, kEditOutput);
    const OutputOptions output = resolve_output({}, *files_, job_.editor->targets(files_->config));
    const EditHistory none(journal_base(*files_, files_->checkpoint.content_hash()));
    write_edited_model(*files_, *make_output_form({output, *files_, *job_.editor, {}}), transaction_.entries(),
                       history_ ? *history_ : none, folder.staging(), HistoryParts::kAll);
    count_progress();  // the last place where it can be cancelled
    folder.commit();
  }

  Reporter& reporter() { return reporter_; }

 private:
  void check_ids(std::span<const EditRequest> requests) const {
    if (requests.empty()) throw ConfigError("requests: expected at least one, got none");
    std::set<std::string> known;
    if (history_)
      for (const EditRequest& request : history_->requests()) known.insert(request.id);
    for (const EditRequest& request : requests)
      if (!known.insert(request.id).second)
        throw ConfigError(
            cat("requests: expected ids that differ from each other and from those of earlier edits, got '",
                visible_text(request.id), "' twice"));
  }

  bool has_finish() const { return history_ && !history_->finish().empty(); }

  /// What the next edit is made on.
  void put_exact() {
    if (!has_finish()) return transaction_.put_exact();
    transaction_.rollback();
    restore_changes(history_->changes(), model_, transaction_);
  }

  /// The weights as the edits that stand leave them, from the unedited ones on: the same additions in the same order
  /// give the same bits.
  void put_back() {
    reporter_.resume();
    transaction_.filter_with({});
    transaction_.write_as({});
    transaction_.rollback();
    if (history_) restore_changes(history_->changes(), model_, transaction_);
    if (has_finish()) restore_changes(history_->finish(), model_, transaction_);
    transaction_.round_as_written();
  }

  Reporter& reporter_;
  std::optional<ReporterScope> scope_;  ///< while this is made
  std::mutex calls_;
  JobConfig job_;
  std::shared_ptr<const ModelFiles> files_;
  Prompter prompter_;
  CausalLM model_;
  MemoryWatch memory_watch_;
  WeightTransaction transaction_;
  std::shared_ptr<PreparedMethod> prepared_;          ///< of the unedited model; null before the first edit
  std::optional<EditHistory> history_;                ///< a batch for each call of edit() that stands
  std::vector<std::vector<WeightChanges>> finishes_;  ///< what the method did behind each of them, while it was last
  int64_t next_id_ = 0;
};

Session::Session(const CompletedJob& job, Reporter& reporter) : impl_(std::make_unique<Impl>(job, reporter)) {}

Session Session::open(const fs::path& model, Reporter& reporter, std::span<const std::string> overrides) {
  const ReporterScope scope(reporter);
  ConfigTree job = ConfigTree::map();
  job.set("model", ConfigTree::text(model.string()));
  return {complete_job(std::move(job), {fs::current_path(), "session"}, overrides, EditorChoice::kOpen), reporter};
}

Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

EditReport Session::edit(std::vector<EditRequest> requests) {
  return impl_->call([&] { return impl_->edit(std::move(requests)); });
}

EditReport Session::edit(std::span<const Fact> facts) {
  return impl_->call([&] { return impl_->edit_facts(facts); });
}

Evaluation Session::evaluate(std::span<const EditRequest> requests) {
  return impl_->call([&] { return impl_->evaluate(requests); });
}

std::vector<Answer> Session::generate(std::span<const std::string> prompts, const AskOptions& options) {
  return impl_->call([&] { return impl_->generate(prompts, options); });
}

bool Session::undo() {
  return impl_->call([&] { return impl_->undo(); });
}

int64_t Session::edits() const {
  return impl_->call([&] { return impl_->edits(); });
}

void Session::save(const fs::path& folder, IfExists policy) {
  impl_->call([&] { impl_->save(folder, policy); });
}

void Session::cancel() { impl_->reporter().cancel(); }

}  // namespace lancet
