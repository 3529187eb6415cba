// Parses addresses of servers as users write them.
#include <algorithm>
#include <optional>

#include "lancet/core/strings.h"
#include "lancet/http/http_client.h"

namespace lancet {
namespace {

constexpr std::string_view kPlain = "http://";
constexpr int64_t kLargestPort = 65535;

[[noreturn]] void refuse(std::string_view url, std::string_view why) {
  throw ConfigError(cat("'", url, "': expected http://HOST:PORT, ", why));
}

int64_t read_port(std::string_view url, std::string_view text) {
  const std::optional<int64_t> port = parse_whole_number(text);
  if (!port || *port < 1 || *port > kLargestPort) refuse(url, cat("got the port '", text, "'"));
  return *port;
}

/// Whether the text can be in the first lines of a request.
bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

}  // namespace

std::string HttpAddress::text() const {
  const bool is_six = host.find(':') != std::string::npos;
  return cat(kPlain, is_six ? "[" : "", host, is_six ? "]" : "", ":", port, prefix);
}

HttpAddress parse_http_address(std::string_view url) {
  if (url.starts_with("https://"))
    throw ConfigError(
        cat("'", url.substr(0, url.find('@') == std::string_view::npos ? url.size() : 8),
            "': expected http://, got https://, which lancet does not speak: put a tunnel between (ssh -L "
            "8000:localhost:8000 HOST, or stunnel) and give its address here"));
  if (url.find('@') != std::string_view::npos)
    throw ConfigError(
        "the server's address: expected http://HOST:PORT, got a name or a password in it: give a token by --token-env "
        "or --token-file, which stand in no list of processes");
  if (!url.starts_with(kPlain) || !is_plain(url)) refuse(url, "got something else");
  std::string_view rest = url.substr(kPlain.size());
  HttpAddress address;
  const size_t slash = std::min(rest.find('/'), rest.size());
  std::string_view prefix = rest.substr(slash);
  while (prefix.ends_with('/')) prefix.remove_suffix(1);
  if (prefix.find_first_of("?#") != std::string_view::npos) refuse(url, "got a '?' or '#' in it");
  address.prefix = prefix;
  // OpenAI's clients write addresses with it
  if (address.prefix.ends_with("/v1")) address.prefix.resize(address.prefix.size() - 3);
  rest = rest.substr(0, slash);
  if (rest.starts_with('[')) {
    const size_t end = rest.find(']');
    if (end == std::string_view::npos) refuse(url, "got a '[' without ']'");
    address.host = rest.substr(1, end - 1);
    rest.remove_prefix(end + 1);
  } else {
    const size_t colon = std::min(rest.find(':'), rest.size());
    address.host = rest.substr(0, colon);
    rest.remove_prefix(colon);
  }
  if (address.host.empty()) refuse(url, "got no host");
  if (rest.empty()) return address;
  if (!rest.starts_with(':')) refuse(url, cat("got '", rest, "' after the host"));
  address.port = read_port(url, rest.substr(1));
  return address;
}

}  // namespace lancet
