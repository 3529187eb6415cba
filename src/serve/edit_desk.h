// The session and its only thread. Orders of pages are queued, and what pages show is kept as text.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "answer_pipe.h"
#include "given_requests.h"
#include "lancet/edit_history/edit_history.h"
#include "lancet/http/work_queue.h"
#include "lancet/io/output_folder.h"
#include "lancet/push/push_job.h"
#include "lancet/serve/page_server.h"
#include "lancet/session/session.h"
#include "progress_board.h"
#include "served_chat.h"
#include "state_clock.h"

namespace lancet {

/// Folder below ServeOptions::dir.
inline constexpr const char* kEditsState = "edits-state";

/// Returns the name of the weights in orders and answers.
inline const char* weights_name(AskedWeights weights) {
  return weights == AskedWeights::kEdited ? "edited" : "unedited";
}

struct AskOrder {
  std::string prompt = {};
  GenerateTextOptions options = {};
  std::vector<AskedWeights> weights{AskedWeights::kEdited};  ///< weights that answer: one answer for each
  bool is_chat = false;                                      ///< whether the prompt is put as a user's message
};

struct EditCommand {
  GivenRequests given = {};
  std::string method = {};  ///< empty: the method that the command line, lancet.yaml or presets choose
};

struct UndoOrder {
  std::vector<std::string> ids = {};  ///< empty: the last batch
  int64_t edits_version = 0;          ///< the version that the page showed
};

enum class ExportKind { kCheckpoint, kPeft, kGguf };

struct ExportOrder {
  ExportKind kind = ExportKind::kCheckpoint;
  std::string name = {};  ///< name of the folder, already checked
};

/// Takes back the last push of the edits.
struct UnpushOrder {
  std::string token = {};  ///< token of the other server; empty: none
};

/// What pages show besides the work.
struct DeskView {
  std::string method = {};  ///< the method in use
  int64_t edits_version = 0;
  int64_t model_version = 0;  ///< counts changes of the weights: an answer with another number comes from another model
  int64_t push_version = 0;   ///< counts changes of push_text()
  int64_t n_edits = 0;
  bool has_report = false;
  std::string unsaved = {};  ///< why the current edits are not saved; empty: they are
};

/// Orders return the number of their work; nullopt if too much work waits.
class EditDesk {
 public:
  /// `options` must outlive this object. Opens the session and restores its edits. Throws: as PageServer.
  EditDesk(const ServeOptions& options, StateClock& clock);
  ~EditDesk();
  EditDesk(const EditDesk&) = delete;
  EditDesk& operator=(const EditDesk&) = delete;

  std::optional<int64_t> ask(const AskOrder& order, const std::shared_ptr<AnswerPipe>& pipe);
  /// Queues a question to the session itself. `answer` must handle the case that it is destroyed without a call.
  std::optional<int64_t> ask_session(const std::string& what, std::function<void(Session&)> answer);
  std::optional<int64_t> edit(EditCommand order);
  std::optional<int64_t> undo(const UndoOrder& order);
  /// Measures how well all current edits hold.
  std::optional<int64_t> measure();
  std::optional<int64_t> export_as(const ExportOrder& order);
  /// Loads the saved current edits into another program's server.
  std::optional<int64_t> push(PushJob job);
  std::optional<int64_t> unpush(const UnpushOrder& order);
  bool cancel(int64_t item) { return queue_->cancel(item); }

  WorkView work() const { return queue_->view(); }
  StageProgress progress() const { return board_.now(); }
  const std::string& default_method() const { return default_method_; }
  DeskView view() const;
  std::string edits_text() const;   ///< edits_json(), with the last result and the version
  std::string report_text() const;  ///< report.json of the last edit; empty: none
  /// Returns lancet-push-1 of the last push since the start that was not taken back; "null" if there is none.
  std::string push_text() const;
  const ModelFiles& files() const { return session_->files(); }
  const ServedChat& chat() const { return chat_; }

  /// Stops the running work, and waits for it for some seconds.
  void stop();

 private:
  using Work = WorkQueue::Work;

  std::optional<int64_t> add(const std::string& kind, const std::string& what, Work work);
  CompletedJob job_for(const std::string& method) const;
  void open();
  void restore();
  void restore_report(const Journal& edits);
  void show_report(const std::string& report);
  void use(const std::string& method);
  /// Notes that the weights changed for good.
  void note_new_model();
  std::string do_edit(const EditCommand& order);
  std::string do_undo(const UndoOrder& order);
  std::string do_measure();
  std::string do_export(const ExportOrder& order);
  std::string do_push(PushJob job);
  std::string do_unpush(const UnpushOrder& order);
  void show_push(std::string report);
  /// Saves the changed edits on disk with the report of the last edit (empty after an undo), and informs pages.
  void keep(const std::string& report = {});
  void tell(const Journal& journal);

  const ServeOptions& options_;
  const ServedChat chat_;
  StateClock& clock_;
  OutputLock lock_;
  ProgressBoard board_;
  std::optional<Session> session_;  ///< only used by the queue's thread, except cancel() and files()
  std::string default_method_;
  bool has_history_ = false;  ///< whether there is a history of edits; making an empty one reads the whole checkpoint
  mutable std::mutex mutex_;  ///< guards the following members
  DeskView view_;
  std::string edits_, result_ = "null", report_, push_ = "null";
  bool is_result_past_ = false;  ///< whether some of the edits that it measured were taken back
  std::unique_ptr<WorkQueue> queue_;
};

}  // namespace lancet
