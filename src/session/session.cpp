#include "lancet/session/session.h"

#include <mutex>
#include <optional>
#include <utility>

#include "active_edits.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/export/output_form.h"
#include "lancet/history/downdated.h"
#include "lancet/history/edits_taken.h"
#include "lancet/history/undo_job.h"
#include "lancet/outcome/edit_report.h"
#include "lancet/pipeline/earlier_output.h"
#include "lancet/pipeline/edit_job.h"
#include "lancet/pipeline/measure_standing.h"
#include "lancet/pipeline/method_run.h"
#include "lancet/runtime/memory.h"
#include "session_job.h"

namespace lancet {
namespace fs = std::filesystem;

class Session::Impl {
 public:
  Impl(const CompletedJob& completed, Reporter& reporter, int64_t planned_requests)
      : reporter_(reporter),
        scope_(std::in_place, reporter),
        job_(parse_session(completed)),
        files_(std::make_shared<const ModelFiles>(open_model(job_.model, job_.ignore_config_keys))),
        generator_(*files_),
        model_(load_model(*files_, job_.run, planned_work(job_, *files_, planned_requests), kept_.get())),
        memory_watch_(devices_with_memory(model_.placement(), files_->config.n_layers)),
        edits_(*files_, model_) {
    tell_defaults(completed, job_);
    scope_.reset();
  }

  /// Runs `work` as one call: alone, with progress to the session's reporter, and not cancelled by earlier requests.
  template <typename Work>
  auto call(const Work& work) {
    const std::lock_guard one_at_a_time(calls_);
    const ReporterScope scope(reporter_);
    reporter_.resume();
    return work();
  }

  void use(const CompletedJob& completed) {
    ResolvedJob job = parse_session(completed);
    for (const char* key : {"model", "run"})
      if (section_text(job, key) != section_text(job_, key))
        throw ConfigError(cat(key, ": expected the session's, ", section_text(job_, key), ", got ",
                              section_text(job, key), ": open another session for it"));
    for (const WeightId id : job.editor->targets(files_->config))
      if (model_.is_quantised(id))
        throw ConfigError(cat("editor: ", weight_name(files_->config, id), ": expected a weight in full precision, ",
                              "got one that the session keeps packed: open another session by this editor"));
    if (!edits_.empty()) check_goes_on(edits_.journal(), job, "editor: edits stand: ");
    tell_defaults(completed, job);
    const auto is_other = [&](const char* key) { return section_text(job, key) != section_text(job_, key); };
    if (is_other("editor") || is_other("statistics")) prepared_.reset();
    job_ = std::move(job);
  }

  void restore(const fs::path& edited) {
    if (!edits_.empty()) throw ConfigError("expected a session without edits: take them back first");
    const std::string where = cat(edited.string(), ": ");
    EditHistory history = read_whole_history(edited, files_->config, where, "begin without these edits");
    check_base(history, files_->checkpoint.content_hash(), where);
    if (!history.batches().empty()) check_goes_on(history.journal(), job_, where);
    const size_t n_batches = history.batches().size();
    const std::vector<WeightChanges> finish = history.finish();
    change([&] {
      edits_.exchange(std::move(history), n_batches);
      if (n_batches > 0) edits_.set_finish(finish);
    });
  }

  EditReport edit(std::vector<EditRequest> requests) {
    edits_.check_ids(requests);
    warn_of_texts(requests);
    check_lengths(*files_, requests);
    EditInputs inputs(job_, files_, each_fact_once({std::move(requests), "", {}}), kept_);
    inputs.look_at_facts(edits_.empty() ? std::vector<EditRequest>() : edits_.journal().requests());
    MethodRun method(job_, inputs, alone(), {.prepared = prepared_});
    prepare(method, inputs);
    prepared_ = method.prepared();
    inputs.before = inputs.plan.run(model_, "evaluate before", alone());
    try {
      edits_.put_exact();
      EditedMethod edited = method.edit(model_, edits_.transaction(), {.after = edits_.history(), .records = true});
      edited.report.stages = method.stopwatch().stages();
      edits_.take(std::move(*edited.history));
      return std::move(edited.report);
    } catch (...) {
      put_back();
      throw;
    }
  }

  EditReport edit_facts(std::span<const Fact> facts) {
    return edit(parse_facts(facts, edits_.new_ids({}, facts.size())));
  }

  Evaluation evaluate(std::span<const EditRequest> requests) {
    EvaluationOptions options = job_.evaluation;
    options.protocols = without_comparing(std::move(options.protocols));
    const EvaluationPlan plan(*files_->tokenizer, requests, options, files_->config.max_positions);
    return plan.run(model_, "evaluate", alone());
  }

  StandingMeasure measure() {
    if (edits_.empty()) return {};
    StandingMeasure measure = measure_standing(model_, *files_, edits_.journal().requests(), job_.evaluation, alone());
    edits_.note_measured(measured_again(measure, edits_.journal()));
    return measure;
  }

  void ask(const std::function<void(const AskableModel&)>& use) { use({model_, *files_->tokenizer, alone()}); }

  void ask_in_turns(const std::function<void(const CausalLM&, const PutWeights&)>& use) {
    edits_.while_changing([&](const PutWeights& put) { use(model_, put); });
  }

  std::vector<Answer> generate(std::span<const std::string> prompts, const GenerateTextOptions& options,
                               const std::function<void(const std::string&)>& on_text) {
    return generator_.answer(model_, prompts, options, on_text);
  }

  bool undo() {
    if (edits_.empty()) return false;
    change([&] { edits_.undo_last(); });
    return true;
  }

  UndoEntry undo(const std::vector<std::string>& ids) {
    EditHistory left = edits_.history();
    if (ids.empty()) throw ConfigError("no edit is chosen: nothing is to be taken back");
    const EditsTaken taken(left.journal(), chosen_edits(left.journal(), {.ids = ids}), std::nullopt);
    UndoEntry entry = taken.entry();
    if (taken.mode() == UndoMode::kLast) {
      left.undo(entry);
    } else {
      std::optional<Solves> solves;
      left = without(left, entry, files_->config, [&](const SolveAgain& problem) {
        if (!solves) solves.emplace(*this, left);
        return solves->solve(problem);
      });
    }
    change([&] { edits_.exchange(std::move(left), entry.keeps); });
    return entry;
  }

  EditHistory history() const { return edits_.history(); }
  EditedBatch last_batch() const {
    if (edits_.empty()) throw ConfigError("no edit stands: there is no last one");
    return edits_.last_batch();
  }

  void save(const fs::path& target, IfExists policy) {
    const OutputOptions asked{.place = output_place(target)};
    write_output(asked.place, policy, [&](const fs::path& folder) {
      const OutputOptions output = resolve_output(asked, *files_, job_.editor->targets(files_->config));
      make_output_form({output, *files_, *job_.editor, {}})->write(edits_.transaction().entries(), folder);
      write_edits(*files_, edits_.history(), folder, {});
    });
  }

  void save_edits(const fs::path& target) {
    const HistoryWriting options{.earlier = target / kEditsFolder};
    write_output({target, std::nullopt}, IfExists::kReplace,
                 [&](const fs::path& folder) { write_edits(*files_, edits_.history(), folder, options); });
  }

  AdapterReport export_adapter(ExportAdapterJob job) {
    if (edits_.empty()) throw ConfigError("no edit stands: there is nothing to export");
    job.edited = job.model = files_->checkpoint.folder();
    return lancet::export_adapter(job, files_->config, edits_.all_changes());
  }

  const ResolvedJob& job() const { return job_; }
  const ActiveEdits& standing() const { return edits_; }
  const ModelFiles& files() const { return *files_; }
  const CausalLM& model() const { return model_; }
  Reporter& reporter() { return reporter_; }

 private:
  static std::string section_text(const JobConfig& job, const char* key) {
    const ConfigTree* section = job.resolved.find(key);
    return section == nullptr ? "none" : to_yaml(*section);
  }

  /// Describes the model, and prepares what the method needs of the unedited model.
  void prepare(MethodRun& method, EditInputs& inputs) {
    inputs.describe(model_, alone());
    if (prepared_) return method.prepare(model_);
    edits_.while_changing([&](const PutWeights& put) {
      put(AskedWeights::kUnedited);
      method.prepare(model_);
    });
  }

  /// The method and the current edits, for work that finds no values.
  struct MethodAtWork {
    MethodAtWork(Impl& impl, MethodWork kind)
        : inputs(impl.job_, impl.files_, {impl.edits_.journal().requests(), "", {}}, impl.kept_),
          method(impl.job_, inputs, alone(), {.prepared = impl.prepared_, .work = kind}) {
      impl.prepare(method, inputs);
      context.emplace(method.context(impl.model_));
    }

    EditInputs inputs;
    MethodRun method;
    std::optional<EditContext> context;
  };

  /// What is needed to solve again the batches that lose edits, and those after them.
  struct Solves {
    Solves(Impl& impl, const EditHistory& history)
        : work(impl, MethodWork::kSolves), editor(*impl.job_.editor), state(history.state(editor.make_state())) {}

    Tensor solve(const SolveAgain& problem) { return solve_without(problem, editor, *work.context, state); }

    MethodAtWork work;
    const Editor& editor;
    EditorState state;
  };

  /// Sets the weights to the unedited ones with the current edits. This also runs after a cancelled call.
  void put_back() {
    reporter_.resume();
    edits_.put_back();
  }

  /// Changes the list of current edits: completely, or not at all.
  void change(const std::function<void()>& change_edits) {
    const ActiveEdits::Kept before = edits_.kept();
    try {
      change_edits();
      put_back();
      if (!edits_.has_finish()) finish_again();
    } catch (...) {
      edits_.put(before);
      put_back();
      throw;
    }
  }

  /// Runs what the method does after the last batch again, because another batch is the last one now.
  void finish_again() {
    if (!job_.needs.finish) return edits_.set_finish({});
    const MethodAtWork work(*this, MethodWork::kRestores);
    edits_.put_exact();
    const ChangeCounts before = count_changes(edits_.transaction());
    job_.editor->finish(*work.context, edits_.transaction());
    edits_.set_finish(changes_since(before, edits_.transaction()));
    put_back();
  }

  /// Writes an output completely or not at all, as for all outputs.
  void write_output(const OutputPlace& place, IfExists policy, const std::function<void(const fs::path&)>& write) {
    check_output_place(place, policy, files_->checkpoint.folder());
    const OutputLock lock(place.folder, kEditOutput);
    OutputFolder folder(place.folder, policy, kEditOutput);
    write(folder.staging());
    count_progress();  // the last point at which the call can be cancelled
    commit_output(folder, place);
    edits_.note_written();
  }

  Reporter& reporter_;
  std::optional<ReporterScope> scope_;  ///< reporter scope while the session is opened
  std::mutex calls_;
  ResolvedJob job_;
  std::shared_ptr<const ModelFiles> files_;
  TextGenerator generator_;
  std::shared_ptr<KeptMatrices> kept_ = std::make_shared<KeptMatrices>();  ///< shared by the solves of all calls
  CausalLM model_;
  MemoryWatch memory_watch_;
  ActiveEdits edits_;
  std::shared_ptr<PreparedMethod> prepared_;  ///< made from the unedited model; null before the first edit
};

Session::Session(const CompletedJob& job, Reporter& reporter, int64_t planned_requests)
    : impl_(std::make_unique<Impl>(job, reporter, planned_requests)) {}

Session Session::open(const fs::path& model, Reporter& reporter, std::span<const std::string> overrides) {
  const ReporterScope scope(reporter);
  ConfigTree job = ConfigTree::map();
  job.set("model", ConfigTree::text(model.string()));
  return {complete_job(std::move(job), {fs::current_path(), "session"}, overrides, EditorChoice::kOpen), reporter};
}

Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

void Session::use(const CompletedJob& job) {
  impl_->call([&] { impl_->use(job); });
}

void Session::restore(const fs::path& edited) {
  impl_->call([&] { impl_->restore(edited); });
}

EditReport Session::edit(std::vector<EditRequest> requests) {
  return impl_->call([&] { return impl_->edit(std::move(requests)); });
}

EditReport Session::edit(std::span<const Fact> facts) {
  return impl_->call([&] { return impl_->edit_facts(facts); });
}

std::vector<std::string> Session::new_ids(std::span<const std::string> taken, size_t count) const {
  return impl_->call([&] { return impl_->standing().new_ids(taken, count); });
}

Evaluation Session::evaluate(std::span<const EditRequest> requests) {
  return impl_->call([&] { return impl_->evaluate(requests); });
}

StandingMeasure Session::measure() {
  return impl_->call([&] { return impl_->measure(); });
}

void Session::ask(const std::function<void(const AskableModel& model)>& use) {
  impl_->call([&] { impl_->ask(use); });
}

void Session::ask_in_turns(const std::function<void(const CausalLM& model, const PutWeights& put)>& use) {
  impl_->call([&] { impl_->ask_in_turns(use); });
}

std::vector<Answer> Session::generate(std::span<const std::string> prompts, const GenerateTextOptions& options,
                                      const std::function<void(const std::string&)>& on_text) {
  return impl_->call([&] { return impl_->generate(prompts, options, on_text); });
}

bool Session::undo() {
  return impl_->call([&] { return impl_->undo(); });
}

UndoEntry Session::undo(const std::vector<std::string>& ids) {
  return impl_->call([&] { return impl_->undo(ids); });
}

int64_t Session::edits() const {
  return impl_->call([&] { return static_cast<int64_t>(impl_->standing().batches()); });
}

EditHistory Session::history() const {
  return impl_->call([&] { return impl_->history(); });
}

EditedBatch Session::last_batch() const {
  return impl_->call([&] { return impl_->last_batch(); });
}

void Session::save(const fs::path& folder, IfExists policy) {
  impl_->call([&] { impl_->save(folder, policy); });
}

void Session::recover_edits(const fs::path& folder) { recover_output(folder, kEditOutput); }

void Session::save_edits(const fs::path& folder) {
  impl_->call([&] { impl_->save_edits(folder); });
}

AdapterReport Session::export_adapter(ExportAdapterJob job) {
  return impl_->call([&] { return impl_->export_adapter(std::move(job)); });
}

std::string Session::report_json(const EditReport& report) const {
  return impl_->call([&] { return to_json(report, impl_->job()); });
}

const ModelFiles& Session::files() const { return impl_->files(); }

const CausalLM& Session::model() const { return impl_->model(); }

void Session::cancel() { impl_->reporter().cancel(); }

}  // namespace lancet
