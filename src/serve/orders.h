// What pages send, read strictly.
#pragma once

#include "edit_desk.h"
#include "given_requests.h"
#include "lancet/http/http_message.h"

namespace lancet {

// Each throws ConfigError that says what was expected.
AskOrder parse_ask(const HttpRequest& request);
/// `files`: what may be named in the place of facts.
EditCommand parse_edit(const HttpRequest& request, const SentFiles& files);
/// Checks an order that says nothing more.
void parse_measure(const HttpRequest& request);
UndoOrder parse_undo(const HttpRequest& request);
ExportOrder parse_export(const HttpRequest& request);
PushJob parse_push(const HttpRequest& request);
UnpushOrder parse_unpush(const HttpRequest& request);
int64_t parse_cancel(const HttpRequest& request);  ///< the item

}  // namespace lancet
