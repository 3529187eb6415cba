#include "servers/server_arguments.h"

#include <algorithm>
#include <cstdlib>

#include "lancet/core/strings.h"
#include "lancet/io/files.h"

namespace lancet::cli {
namespace {

constexpr int64_t kLongestTimeout = 86400;

std::string read_token(const ServerArguments& arguments) {
  std::string token;
  std::string from;
  if (!arguments.token_env.empty()) {
    from = cat("--token-env ", arguments.token_env);
    const char* value = std::getenv(arguments.token_env.c_str());
    if (value == nullptr)
      throw ConfigError(cat(from, ": expected a variable of the environment, found none of that name"));
    token = value;
  } else if (!arguments.token_file.empty()) {
    from = cat("--token-file ", arguments.token_file);
    token = read_text_file(arguments.token_file, "--token-file");
    while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
  } else {
    return {};
  }
  if (token.empty() || !std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < '\x7f'; }))
    throw ConfigError(cat(from, ": expected a token of letters, digits and marks on one line, got ",
                          token.empty() ? "nothing" : "something else"));
  return token;
}

}  // namespace

void add_server_options(CLI::App& command, ServerArguments& arguments) {
  const Argument variable = add_option(command, "--token-env", arguments.token_env,
                                       "Variable of the environment with the server's token, which is shown nowhere")
                                .type("NAME");
  add_option(command, "--token-file", arguments.token_file, "File with the token").type("FILE").excludes(variable);
  add_option(command, "--timeout", arguments.timeout_s, "Seconds that the server has for each answer")
      .between(1, kLongestTimeout)
      .shows_default();
}

ServerAccess read_server_access(const std::string& url, const ServerArguments& arguments) {
  return {.address = url.empty() ? HttpAddress{} : parse_http_address(url),
          .token = read_token(arguments),
          .timeout = std::chrono::seconds(arguments.timeout_s)};
}

}  // namespace lancet::cli
