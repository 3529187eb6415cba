// llama.cpp's server. Its adapters are named when it starts. While it runs, the adapters that answer and their strength
// can be changed, for everybody or for one request. Source: ggml-org/llama.cpp, tools/server/README.md,
// server-common.cpp (parse_lora_request, lora_should_clear_cache, oaicompat_completion_params_parse),
// server-context.cpp.
#include <algorithm>
#include <filesystem>

#include "lancet/core/strings.h"
#include "openai_server.h"
#include "server_rows.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAdapters = "/lora-adapters";

/// Returns an adapter's folder and file. The folder's name has the hash of the edits, whatever path it has on the
/// server.
std::string end_of(const std::string& path) {
  const fs::path whole(path);
  return (whole.parent_path().filename() / whole.filename()).string();
}

class LlamaServer : public OpenAiServer {
 public:
  using OpenAiServer::OpenAiServer;

  ServerFacts facts() override {
    ServerFacts facts = OpenAiServer::facts();
    const ServerJson said = client_.get("/props");
    facts.model_path = text_in(said, "model_path");
    facts.version = text_in(said, "build_info");
    return facts;
  }

  std::vector<LoadedAdapter> adapters() override {
    std::vector<LoadedAdapter> adapters;
    for (const ServerJson& each : entries())
      adapters.push_back({end_of(text_in(each, "path")), text_in(each, "path"), each["scale"].get<double>()});
    return adapters;
  }

  std::optional<AdapterFormat> format() const override { return AdapterFormat::kGguf; }
  bool is_named() const override { return false; }

  std::string why_not(const ServerFacts& /*facts*/, const AdapterReport& /*adapter*/,
                      const LoadedAdapter& wanted) override {
    const std::vector<LoadedAdapter> there = adapters();
    if (std::any_of(there.begin(), there.end(),
                    [&](const LoadedAdapter& each) { return each.name == end_of(wanted.path); }))
      return {};
    // not `--lora FILE --lora-init-without-apply`: such an adapter is applied at the first request
    return cat("llama.cpp's server takes adapters at its start alone: start it with --lora-scaled ", wanted.path,
               ":0, then push again");
  }

  void set_scales(const std::vector<LoadedAdapter>& wanted) override {
    client_.post(kAdapters, scales(wanted));
    const std::vector<LoadedAdapter> now = adapters();
    for (const LoadedAdapter& each : wanted)
      if (std::find(now.begin(), now.end(), each) == now.end())
        throw client_.wrong_answer(kAdapters, cat("the scale ", each.scale, " of ", each.path));
  }

 protected:
  void name_adapter(ServerJson& request, const CompletionQuestion& question) const override {
    ServerJson wanted = ServerJson::array();
    for (const ServerJson& each : entries()) {
      const std::string name = end_of(text_in(each, "path"));
      const ServerJson scale = name == question.adapter   ? ServerJson(1.0)
                               : name == question.without ? ServerJson(0.0)
                                                          : each["scale"];
      wanted.push_back({{"id", each["id"]}, {"scale", scale}});
    }
    request["lora"] = std::move(wanted);
  }

  /// Asks for greedy answers without the cache of earlier prompts.
  void add_own(ServerJson& request) const override {
    request["top_k"] = 1;
    request["repeat_penalty"] = 1.0;
    request["cache_prompt"] = false;
  }

 private:
  std::vector<ServerJson> entries() const {
    const ServerJson answer = client_.get(kAdapters);
    if (!answer.is_array()) throw client_.wrong_answer(kAdapters, "a list of adapters");
    std::vector<ServerJson> entries;
    for (const ServerJson& each : answer) {
      if (!each.is_object() || !each.contains("id") || !each["id"].is_number_integer() || !each.contains("scale") ||
          !each["scale"].is_number() || text_in(each, "path").empty())
        throw client_.wrong_answer(kAdapters, "adapters with id, path and scale");
      entries.push_back(each);
    }
    return entries;
  }

  ServerJson scales(const std::vector<LoadedAdapter>& wanted) const {
    ServerJson list = ServerJson::array();
    for (const ServerJson& each : entries()) {
      const auto found = std::find_if(wanted.begin(), wanted.end(),
                                      [&](const LoadedAdapter& one) { return one.path == text_in(each, "path"); });
      list.push_back({{"id", each["id"]}, {"scale", found == wanted.end() ? each["scale"] : ServerJson(found->scale)}});
    }
    return list;
  }
};

}  // namespace

bool answers_as_llama(const ServerClient& client) {
  const std::optional<ServerJson> said = client.find("/props");
  return said && said->is_object() && said->contains("default_generation_settings");
}

std::unique_ptr<InferenceServer> make_llama_server(ServerClient client) {
  return std::make_unique<LlamaServer>(std::move(client));
}

}  // namespace lancet
