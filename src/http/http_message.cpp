#include "lancet/http/http_message.h"

#include <nlohmann/json.hpp>

namespace lancet {

HttpReply error_reply(int status, std::string_view message) {
  const nlohmann::ordered_json json{{"error", message}};
  return {.status = status, .body = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"};
}

}  // namespace lancet
