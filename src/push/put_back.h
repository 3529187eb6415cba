// A server as it was before a push.
#pragma once

#include "lancet/core/reporter.h"
#include "lancet/push/push_job.h"

namespace lancet {

/// Whether one of the name is there; null: none.
const LoadedAdapter* find_adapter(const std::vector<LoadedAdapter>& adapters, const std::string& name);

/// What is done on this thread while this lives goes to its end: putting a server back is no part of what was
/// cancelled.
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

/// Takes away what the push brought, and brings what went for it. Other adapters stay as they are by now.
/// Throws: ServerError, also where the server then does not have what it had.
void put_back(InferenceServer& server, const PushRecord& record);

/// What came of trying to put a server back.
struct PutBack {
  bool is_as_before = false;
  std::string words = {};  ///< "the server is as before", or why it is not
};
/// Throws nothing that a server, its words or the memory for them could cause. Nothing cancels it.
PutBack try_to_put_back(InferenceServer& server, const PushRecord& record);

}  // namespace lancet
