// The kinds of servers that lancet supports.
#include <stdexcept>

#include "lancet/core/strings.h"
#include "openai_server.h"
#include "server_rows.h"

namespace lancet {
namespace {

struct ServerRow {
  std::string_view name;
  bool (*answers)(const ServerClient& client);
  std::unique_ptr<InferenceServer> (*make)(ServerClient client);
};

/// The rows, in the order in which kinds are tried. The last one is what all have in common.
constexpr ServerRow kServers[] = {{"sglang", answers_as_sglang, make_sglang_server},
                                  {"llama.cpp", answers_as_llama, make_llama_server},
                                  {"vllm", answers_as_vllm, make_vllm_server},
                                  {"openai", answers_as_openai, make_openai_server}};
constexpr const char* kFindOut = "auto";

}  // namespace

bool answers_as_openai(const ServerClient& client) { return client.find("/v1/models").has_value(); }

std::unique_ptr<InferenceServer> make_openai_server(ServerClient client) {
  return std::make_unique<OpenAiServer>(std::move(client));
}

std::vector<std::string> server_kinds() {
  std::vector<std::string> names{kFindOut};
  for (const ServerRow& row : kServers) names.emplace_back(row.name);
  return names;
}

FoundServer find_server(const ServerAccess& access, const std::string& kind) {
  const ServerClient client(access);
  for (const ServerRow& row : kServers)
    if (kind == row.name || (kind == kFindOut && row.answers(client))) return {std::string(row.name), row.make(client)};
  if (kind != kFindOut) throw ConfigError(cat("--server ", kind, ": expected one of ", join(server_kinds())));
  client.get("/v1/models");  // throws with the reason, for example a missing token
  throw client.wrong_answer("/v1/models", "a server of a known kind: say which by --server");
}

std::string InferenceServer::why_not(const ServerFacts&, const AdapterReport&, const LoadedAdapter&) {
  return "it takes no adapters that lancet knows how to load: expected vLLM, SGLang or llama.cpp's server";
}

void InferenceServer::load(const LoadedAdapter&) { throw std::logic_error("load: adapters are not named here"); }
void InferenceServer::unload(const std::string&) { throw std::logic_error("unload: adapters are not named here"); }
void InferenceServer::set_scales(const std::vector<LoadedAdapter>&) {
  throw std::logic_error("set_scales: adapters are named here");
}

}  // namespace lancet
