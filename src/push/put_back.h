// A server as it was before a push.
#pragma once

#include "lancet/push/push_job.h"

namespace lancet {

/// Whether one of the name is there; null: none.
const LoadedAdapter* find_adapter(const std::vector<LoadedAdapter>& adapters, const std::string& name);

/// Takes away what the push brought, and brings what went for it. Other adapters stay as they are by now.
/// Throws: ServerError, also where the server then does not have what it had.
void put_back(InferenceServer& server, const PushRecord& record);

/// What came of trying to put a server back.
struct PutBack {
  bool is_as_before = false;
  std::string words = {};  ///< "the server is as before", or why it is not
};
PutBack try_to_put_back(InferenceServer& server, const PushRecord& record);

}  // namespace lancet
