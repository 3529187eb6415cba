// Puts a server back into its state before a push.
#pragma once

#include "lancet/core/reporter.h"
#include "lancet/push/push_job.h"

namespace lancet {

/// Returns the adapter with that name; null if there is none.
const LoadedAdapter* find_adapter(const std::vector<LoadedAdapter>& adapters, const std::string& name);

/// While this exists, work on this thread cannot be cancelled: putting a server back does not belong to the cancelled
/// work.
class Uncancelled final : public Reporter {
 public:
  Uncancelled() : to_(reporter()), scope_(*this) {}

 protected:
  void on_log(LogLevel level, std::string_view text) override { to_.log(level, text); }
  void on_progress(const StageProgress& progress) override { to_.show(progress); }

 private:
  Reporter& to_;
  ReporterScope scope_;
};

/// Removes what the push loaded, and loads what it replaced. Other adapters stay as they are now. Throws: ServerError,
/// also if the server then lacks something that it had.
void put_back(InferenceServer& server, const PushRecord& record);

/// The result of trying to put a server back.
struct PutBack {
  bool is_as_before = false;
  std::string words = {};  ///< "the server is as before", or why it is not
};
/// Does not throw because of the server, its messages or exhausted memory. Cannot be cancelled.
PutBack try_to_put_back(InferenceServer& server, const PushRecord& record);

}  // namespace lancet
