// The session and its one thread: what pages ask for is queued, and what they show is kept as text.
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

/// How orders and answers call the weights.
inline const char* weights_name(AskedWeights weights) {
  return weights == AskedWeights::kEdited ? "edited" : "unedited";
}

struct AskOrder {
  std::string prompt = {};
  GenerateTextOptions options = {};
  std::vector<AskedWeights> weights{AskedWeights::kEdited};  ///< one answer by each, at once
  bool is_chat = false;                                      ///< whether the prompt is wrapped as a user's message
};

struct EditCommand {
  GivenRequests given = {};
  std::string method = {};  ///< empty: the one that the command line, lancet.yaml or presets choose
};

struct UndoOrder {
  std::vector<std::string> ids = {};  ///< empty: the last batch
  int64_t edits_version = 0;          ///< what the page saw
};

enum class ExportKind { kCheckpoint, kPeft, kGguf };

struct ExportOrder {
  ExportKind kind = ExportKind::kCheckpoint;
  std::string name = {};  ///< name of the folder; valid
};

/// Takes the last push of the edits back.
struct UnpushOrder {
  std::string token = {};  ///< the other server's; empty: none
};

/// What pages show besides work.
struct DeskView {
  std::string method = {};  ///< method in use
  int64_t edits_version = 0;
  int64_t model_version = 0;  ///< counts changes of the weights: an answer of another number is of another model
  int64_t push_version = 0;   ///< counts changes of push_text()
  int64_t n_edits = 0;
  bool has_report = false;
  std::string unsaved = {};  ///< why what stands is not kept; empty: it is
};

/// Orders give the number of the work; nullopt: too much waits.
class EditDesk {
 public:
  /// `options` outlive this. Opens the session and restores edits. Throws: as PageServer.
  EditDesk(const ServeOptions& options, StateClock& clock);
  ~EditDesk();
  EditDesk(const EditDesk&) = delete;
  EditDesk& operator=(const EditDesk&) = delete;

  std::optional<int64_t> ask(const AskOrder& order, const std::shared_ptr<AnswerPipe>& pipe);
  /// A question that is put to the session itself. `answer` has an end of its own where it never runs.
  std::optional<int64_t> ask_session(const std::string& what, std::function<void(Session&)> answer);
  std::optional<int64_t> edit(EditCommand order);
  std::optional<int64_t> undo(const UndoOrder& order);
  /// How all edits that stand hold now.
  std::optional<int64_t> measure();
  std::optional<int64_t> export_as(const ExportOrder& order);
  /// Loads the edits that stand into another program's server, by what is kept of them.
  std::optional<int64_t> push(PushJob job);
  std::optional<int64_t> unpush(const UnpushOrder& order);
  bool cancel(int64_t item) { return queue_->cancel(item); }

  WorkView work() const { return queue_->view(); }
  StageProgress progress() const { return board_.now(); }
  const std::string& default_method() const { return default_method_; }
  DeskView view() const;
  std::string edits_text() const;   ///< edits_json() with the last result and the version
  std::string report_text() const;  ///< report.json of the last edit; empty: none
  /// Returns lancet-push-1 of the last push since the start that was not taken back; "null": there is none.
  std::string push_text() const;
  const ModelFiles& files() const { return session_->files(); }
  const ServedChat& chat() const { return chat_; }

  /// Ends what runs; waits some seconds for it.
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
  /// The weights are others now, which nothing takes back any more.
  void note_new_model();
  std::string do_edit(const EditCommand& order);
  std::string do_undo(const UndoOrder& order);
  std::string do_measure();
  std::string do_export(const ExportOrder& order);
  std::string do_push(PushJob job);
  std::string do_unpush(const UnpushOrder& order);
  void show_push(std::string report);
  /// The edits changed: kept on disk, with the report of the edit that did it (empty: an undo did), and told to pages.
  void keep(const std::string& report = {});
  void tell(const Journal& journal);

  const ServeOptions& options_;
  const ServedChat chat_;
  StateClock& clock_;
  OutputLock lock_;
  ProgressBoard board_;
  std::optional<Session> session_;  ///< used on the queue's thread alone, but for cancel() and files()
  std::string default_method_;
  bool has_history_ = false;  ///< whether there is a history of edits; making one of none reads the whole checkpoint
  mutable std::mutex mutex_;  ///< guards what follows
  DeskView view_;
  std::string edits_, result_ = "null", report_, push_ = "null";
  bool is_result_past_ = false;  ///< whether edits that it was measured with were taken back
  std::unique_ptr<WorkQueue> queue_;
};

}  // namespace lancet
