// The arguments with which commands reach a server of another program.
#pragma once

#include <string>

#include "command_line.h"
#include "lancet/push/inference_server.h"

namespace lancet::cli {

struct ServerArguments {
  std::string token_env, token_file;
  int64_t timeout_s = 60;
};

/// Adds --token-env, --token-file and --timeout.
void add_server_options(CLI::App& command, ServerArguments& arguments);

/// `url`: empty if the address is not known yet. Throws: ConfigError if the address or the token is not valid; messages
/// do not have the token.
ServerAccess read_server_access(const std::string& url, const ServerArguments& arguments);

}  // namespace lancet::cli
