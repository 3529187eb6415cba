#include "edit_desk.h"

#include <utility>

#include "desk_json.h"
#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/job_setup/parse_job.h"
#include "lancet/runtime/problem.h"
#include "last_report.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostWaiting = 8;
constexpr std::chrono::seconds kLongestEnd{10};
/// The kind of the folder in which a server keeps its edits.
constexpr OutputKind kServeFolder{"serve"};

std::string problem_text(const std::exception& error) { return problem_of(error).message; }

ConfigTree measured_by_itself() {
  std::vector<ConfigTree> names;
  for (const std::string_view name : kDefaultProtocols) names.push_back(ConfigTree::text(std::string(name)));
  return ConfigTree::list(std::move(names));
}

/// Closes a pipe with the message that there will be no answer, unless it was closed before.
class PipeEnd {
 public:
  explicit PipeEnd(std::shared_ptr<AnswerPipe> pipe) : pipe_(std::move(pipe)) {}
  ~PipeEnd() { pipe_->close(dump_line({{"cancelled", true}})); }
  PipeEnd(const PipeEnd&) = delete;
  PipeEnd& operator=(const PipeEnd&) = delete;
  AnswerPipe& operator*() const { return *pipe_; }

 private:
  std::shared_ptr<AnswerPipe> pipe_;
};

}  // namespace

EditDesk::EditDesk(const ServeOptions& options, StateClock& clock)
    : options_(options),
      chat_(find_chat(options)),
      clock_(clock),
      lock_(options.dir, kServeFolder),
      board_({.changed = [this] { clock_.advance(); },
              .wants_interruption = [this] { return queue_->wants_interruption(); }}) {
  queue_ = std::make_unique<WorkQueue>(
      kMostWaiting, WorkHooks{.changed = [this] { clock_.advance(); }, .interrupt = [this] { board_.cancel(); }});
  std::exception_ptr failure;
  queue_->add("open", "load the model", [&] {
    try {
      open();
    } catch (...) {
      failure = std::current_exception();
    }
    return std::string();
  });
  while (!queue_->wait_until_idle(std::chrono::hours(24))) {
  }
  if (!failure) return;
  queue_.reset();
  std::rethrow_exception(failure);
}

EditDesk::~EditDesk() {
  // not reset(), which clears the pointer first: the queue's thread still uses it until it ends
  if (queue_) stop();
}

void EditDesk::stop() {
  queue_->stop();
  queue_->wait_until_idle(kLongestEnd);
}

CompletedJob EditDesk::job_for(const std::string& method) const {
  const bool is_other = !method.empty() && method != default_method_;
  const std::vector<std::string> overrides =
      is_other ? overrides_for_method(options_.overrides, method) : options_.overrides;
  ConfigTree job = ConfigTree::map();
  job.set("model", ConfigTree::text(options_.model.string()));
  CompletedJob completed =
      complete_job(std::move(job), {fs::current_path(), "lancet serve"}, overrides, EditorChoice::kOpen);
  if (completed.tree.find("evaluate") == nullptr) completed.tree.set("evaluate", measured_by_itself());
  return completed;
}

void EditDesk::open() {
  const ReporterScope scope(board_);
  const CompletedJob job = job_for("");
  session_.emplace(job, board_, options_.most_facts);
  const ConfigTree* editor = job.tree.find("editor");
  const ConfigTree* method = editor == nullptr ? nullptr : editor->find("method");
  default_method_ = view_.method = method == nullptr ? kDefaultMethod : method->scalar;
  restore();
  tell(has_history_ ? session_->history().journal() : Journal({}));
  board_.leave_terminal();
}

void EditDesk::restore() {
  const fs::path kept = options_.dir / kEditsState;
  Session::recover_edits(kept);
  if (!fs::exists(kept)) return;
  try {
    const Journal journal = Journal::read(kept / kEditsFolder);
    if (!journal.batches().empty()) use(journal.settings()[journal.batches().back().setting].method);
    session_->restore(kept);
    has_history_ = true;
    restore_report(journal);
  } catch (const ConfigError& error) {
    throw ConfigError(cat(error.what(), "\n  ", kept.string(),
                          " has the edits of an earlier lancet serve: name another ",
                          "folder with --dir, or remove this one"));
  } catch (const CheckpointError& error) {
    throw CheckpointError(cat(error.what(), "\n  ", kept.string(), " has the edits of an earlier lancet serve, and is ",
                              "damaged: name another folder with --dir, or remove this one"));
  }
}

/// Restores the last report. The edits work without it, too.
void EditDesk::restore_report(const Journal& edits) {
  try {
    const std::string report = find_last_report(options_.dir, edits);
    if (!report.empty()) show_report(report);
  } catch (const std::exception& error) {
    log_warning(cat("before and after of the last edit do not come back: ", (options_.dir / kLastReportFile).string(),
                    " is damaged: ", printable(error.what())));
  }
}

void EditDesk::show_report(const std::string& report) {
  const std::string result = dump_line(result_json(report));
  const std::lock_guard lock(mutex_);
  report_ = report;
  result_ = result;
  is_result_past_ = false;
  view_.has_report = true;
}

/// Does nothing if the method is already in use.
void EditDesk::use(const std::string& method) {
  const std::string wanted = method.empty() ? default_method_ : method;
  if (wanted == view().method) return;
  session_->use(job_for(wanted));
  const std::lock_guard lock(mutex_);
  view_.method = wanted;
}

std::optional<int64_t> EditDesk::add(const std::string& kind, const std::string& what, Work work) {
  return queue_->add(kind, what, [this, work = std::move(work)] {
    board_.clear();
    const ReporterScope scope(board_);
    try {
      return work();
    } catch (const Cancelled&) {
      throw;
    } catch (const std::exception& error) {
      throw std::runtime_error(problem_text(error));
    }
  });
}

std::optional<int64_t> EditDesk::ask(const AskOrder& order, const std::shared_ptr<AnswerPipe>& pipe) {
  if (order.is_chat && !chat_.chat) throw ConfigError(cat("chat: ", chat_.why_none));
  const auto end = std::make_shared<PipeEnd>(pipe);
  const std::string what = cat("ask '", excerpt(order.prompt, 40), "'");
  return add("ask", what, [this, order, end] {
    AnswerPipe& to = **end;
    try {
      to.put(dump_line({{"begun", true}, {"model_version", view().model_version}}));
      const TextGenerator generator(files(), order.is_chat ? chat_.chat : std::nullopt);
      session_->ask_in_turns([&](const CausalLM& model, const PutWeights& put) {
        generator.answer_in_turns(model, {order.weights, put}, order.prompt, order.options,
                                  [&](AskedWeights weights, const std::string& text) {
                                    to.put(dump_line({{"weights", weights_name(weights)}, {"text", text}}));
                                  });
      });
      to.close(dump_line({{"done", true}}));
    } catch (const Cancelled&) {
      throw;
    } catch (const std::exception& error) {
      to.close(dump_line({{"error", problem_text(error)}}));
      throw;
    }
    return std::string();
  });
}

std::optional<int64_t> EditDesk::ask_session(const std::string& what, std::function<void(Session&)> answer) {
  return add("ask", what, [this, answer = std::move(answer)] {
    answer(*session_);
    return std::string();
  });
}

std::optional<int64_t> EditDesk::edit(EditCommand order) {
  if (static_cast<int64_t>(order.given.requests.size()) > options_.most_facts)
    throw ConfigError(cat(order.given.requests.size(), " facts: expected at most ", options_.most_facts,
                          " in one edit: start lancet serve with --requests ", order.given.requests.size(),
                          ", or send fewer at a time"));
  const std::string what = cat("edit ", counted(order.given.requests.size(), "fact"));
  return add("edit", what, [this, order = std::move(order)] { return do_edit(order); });
}

std::string EditDesk::do_edit(const EditCommand& order) {
  use(order.method);
  std::vector<EditRequest> requests = order.given.requests;
  if (order.given.are_numbered) {  // the requests have ids only from their order
    const std::vector<std::string> ids = session_->new_ids({}, requests.size());
    for (size_t i = 0; i < ids.size(); ++i) requests[i].id = ids[i];
  }
  const EditReport report = session_->edit(std::move(requests));
  note_new_model();
  has_history_ = true;
  const std::string json = session_->report_json(report);
  show_report(json);
  keep(json);
  return success_text(count_successes(report));
}

void EditDesk::note_new_model() {
  queue_->begin_last_part();
  const std::lock_guard lock(mutex_);
  ++view_.model_version;
}

std::optional<int64_t> EditDesk::undo(const UndoOrder& order) {
  const std::string what = order.ids.empty() ? "undo the last edit" : cat("undo ", counted(order.ids.size(), "fact"));
  return add("undo", what, [this, order] { return do_undo(order); });
}

std::string EditDesk::do_undo(const UndoOrder& order) {
  if (order.edits_version != view().edits_version)
    throw ConfigError("the edits changed meanwhile, in another tab perhaps: look at the list again");
  std::vector<std::string> ids = order.ids;
  if (session_->edits() == 0) throw ConfigError("no edit stands: there is nothing to take back");
  if (ids.empty()) {
    const EditHistory history = session_->history();
    for (const EditRecord& edit : history.journal().batches().back().edits) ids.push_back(edit.request.id);
  }
  const UndoEntry entry = session_->undo(ids);
  note_new_model();
  {
    const std::lock_guard lock(mutex_);
    is_result_past_ = true;
  }
  keep();
  return cat("took back ", counted(entry.edits.size(), "fact"),
             entry.approximation.empty() ? "" : cat("; what this gives up: ", entry.approximation));
}

std::optional<int64_t> EditDesk::measure() {
  return add("measure", "measure the edits that stand", [this] { return do_measure(); });
}

std::string EditDesk::do_measure() {
  const StandingMeasure measure = session_->measure();
  if (measure.requests.empty()) throw ConfigError("no edit stands: there is nothing to measure");
  queue_->begin_last_part();
  keep();
  return standing_text(measure);
}

std::optional<int64_t> EditDesk::export_as(const ExportOrder& order) {
  return add("export", cat("export ", order.name), [this, order] { return do_export(order); });
}

std::string EditDesk::do_export(const ExportOrder& order) {
  const fs::path folder = options_.dir / order.name;
  if (fs::exists(folder)) throw ConfigError(cat(folder.string(), " is there already: choose another name"));
  if (order.kind == ExportKind::kCheckpoint) {
    session_->save(folder);
  } else {
    const AdapterFormat format = order.kind == ExportKind::kPeft ? AdapterFormat::kPeft : AdapterFormat::kGguf;
    session_->export_adapter({.edited = {}, .out = folder, .format = format, .dtype = factor_type_of(format)});
  }
  return cat("written: ", folder.string());
}

std::optional<int64_t> EditDesk::push(PushJob job) {
  std::string what = cat("push to ", job.access.address.text());
  return add("push", what, [this, job = std::move(job)] { return do_push(job); });
}

std::string EditDesk::do_push(PushJob job) {
  if (session_->edits() == 0) throw ConfigError("no edit stands: there is nothing to push");
  job.output = options_.dir / kEditsState;
  job.model = options_.model;
  session_->save_edits(job.output);
  const PushReport report = run_push_job(job);
  show_push(report.record.state == PushState::kTakenBack ? "null" : to_json(report, job));
  const std::string unnoted = report.unnoted.empty() ? std::string() : "; " + report.unnoted;
  if (!report.unmet.empty()) throw NumericError(cat(push_summary(report), ": ", join(report.unmet, "; "), unnoted));
  if (!unnoted.empty()) throw CheckpointError(cat(push_summary(report), unnoted));
  return push_summary(report);
}

std::optional<int64_t> EditDesk::unpush(const UnpushOrder& order) {
  return add("unpush", "take the last push back", [this, order] { return do_unpush(order); });
}

std::string EditDesk::do_unpush(const UnpushOrder& order) {
  const PushRecord record = undo_push(options_.dir / kEditsState, {.token = order.token});
  show_push("null");
  return cat("taken back: ", record.adapter.name, " at ", record.server);
}

void EditDesk::show_push(std::string report) {
  const std::lock_guard lock(mutex_);
  push_ = std::move(report);
  ++view_.push_version;
}

void EditDesk::keep(const std::string& report) {
  const EditHistory history = session_->history();
  std::string unsaved;
  try {
    session_->save_edits(options_.dir / kEditsState);
    if (!report.empty()) keep_last_report(options_.dir, history.journal(), report);
  } catch (const std::exception& error) {
    unsaved = cat("the edits stand, but are not kept for the next start: ", problem_text(error));
    log_error(unsaved);
  }
  {
    const std::lock_guard lock(mutex_);
    view_.unsaved = unsaved;
  }
  tell(history.journal());
}

void EditDesk::tell(const Journal& journal) {
  std::string edits = dump_line(edits_json(journal));
  int64_t n_edits = 0;
  for (const BatchEntry& batch : journal.batches()) n_edits += static_cast<int64_t>(batch.edits.size());
  const std::lock_guard lock(mutex_);
  edits_ = std::move(edits);
  ++view_.edits_version;
  view_.n_edits = n_edits;
}

DeskView EditDesk::view() const {
  const std::lock_guard lock(mutex_);
  return view_;
}

std::string EditDesk::edits_text() const {
  const std::lock_guard lock(mutex_);
  return cat(R"({"edits_version":)", view_.edits_version, R"(,"list":)", edits_, R"(,"result":)", result_,
             R"(,"result_is_past":)", is_result_past_ ? "true" : "false", "}\n");
}

std::string EditDesk::push_text() const {
  const std::lock_guard lock(mutex_);
  return push_;
}

std::string EditDesk::report_text() const {
  const std::lock_guard lock(mutex_);
  return report_;
}

}  // namespace lancet
