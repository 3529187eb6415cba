// SGLang's server, which tells what it supports. Source: sgl-project/sglang, srt/entrypoints/http_server.py,
// srt/managers/tokenizer_communicator_mixin.py, srt/lora/lora_manager.py (validate_new_adapter),
// srt/entrypoints/openai/protocol.py (lora_path).
#include <algorithm>
#include <set>

#include "lancet/core/strings.h"
#include "openai_server.h"
#include "server_rows.h"

namespace lancet {
namespace {

constexpr const char* kSglangLoad = "/load_lora_adapter";
constexpr const char* kSglangUnload = "/unload_lora_adapter";

/// Tries the names of an endpoint, the present one first.
std::optional<ServerJson> first_of(const ServerClient& client, std::initializer_list<const char*> paths) {
  for (const char* path : paths)
    if (std::optional<ServerJson> found = client.find(path); found && found->is_object()) return found;
  return std::nullopt;
}

std::optional<ServerJson> model_info(const ServerClient& client) {
  return first_of(client, {"/model_info", "/get_model_info"});
}

/// Returns the names, like "down_proj", of the modules that the adapter changes.
std::set<std::string> changed_modules(const AdapterReport& adapter) {
  std::set<std::string> names;
  for (const AdapterModule& module : adapter.modules) names.insert(module.name.substr(module.name.rfind('.') + 1));
  return names;
}

class SglangServer : public OpenAiServer {
 public:
  using OpenAiServer::OpenAiServer;

  ServerFacts facts() override {
    ServerFacts facts = OpenAiServer::facts();
    if (const std::optional<ServerJson> model = model_info(client_)) facts.model_path = text_in(*model, "model_path");
    const std::optional<ServerJson> said = first_of(client_, {"/server_info", "/get_server_info"});
    if (!said) return facts;
    facts.version = text_in(*said, "version");
    facts.quantisation = text_in(*said, "quantization");
    const auto enabled = said->find("enable_lora");
    takes_adapters_ = enabled == said->end() || !enabled->is_boolean() || enabled->get<bool>();
    if (const auto rank = said->find("max_lora_rank"); rank != said->end() && rank->is_number_integer())
      facts.largest_rank = rank->get<int64_t>();
    if (const auto modules = said->find("lora_target_modules"); modules != said->end() && modules->is_array()) {
      facts.modules.emplace();
      for (const ServerJson& module : *modules)
        if (module.is_string()) facts.modules->push_back(module.get<std::string>());
    }
    return facts;
  }

  std::vector<LoadedAdapter> adapters() override { return adapters_among_models(); }
  std::optional<AdapterFormat> format() const override { return AdapterFormat::kPeft; }

  std::string why_not(const ServerFacts& facts, const AdapterReport& adapter, const LoadedAdapter&) override {
    const std::set<std::string> changed = changed_modules(adapter);
    const std::vector<std::string> names(changed.begin(), changed.end());
    const std::string start =
        cat("start it with --enable-lora --max-lora-rank ", adapter.rank, " --lora-target-modules ", join(names, " "));
    if (!takes_adapters_) return "SGLang takes no adapters as it was started: " + start;
    if (facts.largest_rank && *facts.largest_rank < adapter.rank)
      return cat("the adapter has rank ", adapter.rank, ", SGLang takes at most ", *facts.largest_rank, ": ", start,
                 ", or cut it by --rank ", *facts.largest_rank);
    if (!facts.modules || std::find(facts.modules->begin(), facts.modules->end(), "all") != facts.modules->end())
      return {};
    for (const std::string& name : names)
      if (std::find(facts.modules->begin(), facts.modules->end(), name) == facts.modules->end())
        return cat("the adapter changes ", name, ", SGLang takes changes of ", join(*facts.modules), ": ", start);
    return {};
  }

  void load(const LoadedAdapter& adapter) override {
    check(kSglangLoad, client_.post(kSglangLoad, {{"lora_name", adapter.name}, {"lora_path", adapter.path}}));
  }

  void unload(const std::string& name) override {
    check(kSglangUnload, client_.post(kSglangUnload, {{"lora_name", name}}));
  }

  std::string flush_caches() override {
    try {
      client_.order("/flush_cache", ServerJson::object());
      return {};
    } catch (const ServerRefusal&) {
      return "SGLang keeps its prefix caches while requests run. They are kept by an adapter: a new one meets none";
    }
  }

 protected:
  void name_adapter(ServerJson& request, const CompletionQuestion& question) const override {
    request["lora_path"] = question.adapter;
  }

 private:
  /// An answer with success: false is a refusal, too.
  void check(const char* path, const ServerJson& answer) const {
    if (!answer.is_object() || !answer.contains("success") || !answer["success"].is_boolean())
      throw client_.wrong_answer(path, "whether it succeeded");
    if (!answer["success"].get<bool>())
      throw ServerRefusal(
          cat(client_.access().address.text(), ": ", path, ": refused: ", text_in(answer, "error_message")), 200);
  }

  bool takes_adapters_ = true;
};

}  // namespace

bool answers_as_sglang(const ServerClient& client) {
  const std::optional<ServerJson> said = model_info(client);
  return said && !text_in(*said, "model_path").empty() && said->contains("is_generation");
}

std::unique_ptr<InferenceServer> make_sglang_server(ServerClient client) {
  return std::make_unique<SglangServer>(std::move(client));
}

}  // namespace lancet
