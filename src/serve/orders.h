// Reads the orders of pages strictly.
#pragma once

#include "edit_desk.h"
#include "given_requests.h"
#include "lancet/http/http_message.h"

namespace lancet {

// Each function throws ConfigError that says what was expected.
AskOrder parse_ask(const HttpRequest& request);
/// `files`: the files that an order can name instead of facts.
EditCommand parse_edit(const HttpRequest& request, const SentFiles& files);
/// Checks an order that has no further content.
void parse_measure(const HttpRequest& request);
UndoOrder parse_undo(const HttpRequest& request);
ExportOrder parse_export(const HttpRequest& request);
PushJob parse_push(const HttpRequest& request);
UnpushOrder parse_unpush(const HttpRequest& request);
int64_t parse_cancel(const HttpRequest& request);  ///< number of the work

}  // namespace lancet
