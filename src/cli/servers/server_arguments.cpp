#include "servers/server_arguments.h"

#include <utility>

#include "lancet/core/strings.h"
#include "lancet/http/server_token.h"
#include "lancet/io/files.h"

namespace lancet::cli {
namespace {

constexpr int64_t kLongestTimeout = 86400;

std::string read_token(const ServerArguments& arguments) {
  if (!arguments.token_env.empty())
    return token_of_environment(arguments.token_env, cat("--token-env ", arguments.token_env));
  if (arguments.token_file.empty()) return {};
  std::string token = read_text_file(arguments.token_file, "--token-file");
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
  return checked_token(std::move(token), cat("--token-file ", arguments.token_file));
}

}  // namespace

void add_server_options(CLI::App& command, ServerArguments& arguments) {
  const Argument variable =
      add_option(command, "--token-env", arguments.token_env,
                 "Name of the environment variable with the server's token; the token is never shown")
          .type("NAME");
  add_option(command, "--token-file", arguments.token_file, "File with the token").type("FILE").excludes(variable);
  add_option(command, "--timeout", arguments.timeout_s, "Time limit for each answer of the server, in seconds")
      .between(1, kLongestTimeout)
      .shows_default();
}

ServerAccess read_server_access(const std::string& url, const ServerArguments& arguments) {
  return {.address = url.empty() ? HttpAddress{} : parse_http_address(url),
          .token = read_token(arguments),
          .timeout = std::chrono::seconds(arguments.timeout_s)};
}

}  // namespace lancet::cli
