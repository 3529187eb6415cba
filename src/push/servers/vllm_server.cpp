// vLLM's server. It tells neither its largest rank nor the modules of its adapters, so lancet explains this when the
// server refuses an adapter. Source: vllm-project/vllm, entrypoints/openai/models/serving.py,
// entrypoints/serve/lora/api_router.py, entrypoints/serve/cache/api_router.py,
// entrypoints/openai/completion/serving.py, lora/worker_manager.py.
#include <algorithm>

#include "lancet/core/strings.h"
#include "openai_server.h"
#include "server_rows.h"

namespace lancet {
namespace {

constexpr const char* kVllmLoad = "/v1/load_lora_adapter";
constexpr const char* kVllmUnload = "/v1/unload_lora_adapter";
constexpr int kNotFound = 404;

/// Returns the smallest size of --max-lora-rank that is enough.
int64_t size_for(int64_t rank) {
  const auto* size = std::find_if(std::begin(kAdapterRanks), std::end(kAdapterRanks),
                                  [&](int64_t each) { return each >= std::max<int64_t>(rank, 8); });
  return size == std::end(kAdapterRanks) ? rank : *size;
}

class VllmServer : public OpenAiServer {
 public:
  using OpenAiServer::OpenAiServer;

  ServerFacts facts() override {
    ServerFacts facts = OpenAiServer::facts();
    if (const std::optional<ServerJson> version = client_.find("/version"))
      facts.version = text_in(*version, "version");
    return facts;
  }

  std::vector<LoadedAdapter> adapters() override { return adapters_among_models(); }
  std::optional<AdapterFormat> format() const override { return AdapterFormat::kPeft; }
  bool takes_base_name() const override { return true; }

  std::string why_not(const ServerFacts& /*facts*/, const AdapterReport& adapter, const LoadedAdapter&) override {
    rank_ = adapter.rank;
    if (client_.status_of(kVllmLoad) != kNotFound) return {};
    return cat("vLLM takes no adapters while it runs: start it with ", start_words());
  }

  void load(const LoadedAdapter& adapter) override {
    try {
      client_.order(kVllmLoad, {{"lora_name", adapter.name}, {"lora_path", adapter.path}});
    } catch (const ServerRefusal& refusal) {
      const std::string words = refusal.what();
      const auto says = [&](const char* part) { return words.find(part) != std::string::npos; };
      if (says("max_lora_rank") || says("LoRA is not enabled"))
        throw ServerRefusal(cat(words, "; start it with ", start_words()), refusal.status);
      if (refusal.status == kNotFound)
        throw ServerRefusal(cat(words, "; it has to see the folder ", adapter.path,
                                ": --adapter-dir writes elsewhere, "
                                "--server-path says how the server names that place"),
                            refusal.status);
      throw;
    }
  }

  void unload(const std::string& name) override { client_.order(kVllmUnload, {{"lora_name", name}}); }

  std::string flush_caches() override {
    try {
      client_.order("/reset_prefix_cache", ServerJson::object());
      return {};
    } catch (const ServerRefusal&) {
      return "vLLM keeps its prefix caches (it forgets them by VLLM_SERVER_DEV_MODE=1 alone). They are kept by an "
             "adapter's name: a new name meets none of them";
    }
  }

 protected:
  /// vLLM does not echo the text of ids before the completion, unless it returns ids.
  void add_own(ServerJson& request) const override {
    if (!request.contains("echo")) return;
    request["return_token_ids"] = true;
    request["return_tokens_as_token_ids"] = true;  // because the texts of two tokens may be equal
  }

 private:
  std::string start_words() const {
    return cat("VLLM_ALLOW_RUNTIME_LORA_UPDATING=True and --enable-lora --max-lora-rank ", size_for(rank_));
  }

  int64_t rank_ = 8;  ///< rank of the adapter that is asked
};

}  // namespace

bool answers_as_vllm(const ServerClient& client) {
  const std::optional<ServerJson> version = client.find("/version");
  if (version && !text_in(*version, "version").empty()) return true;
  const std::optional<ServerJson> models = client.find("/v1/models");
  return models && models->is_object() && models->contains("data") && (*models)["data"].is_array() &&
         !(*models)["data"].empty() && text_in((*models)["data"][0], "owned_by") == "vllm";
}

std::unique_ptr<InferenceServer> make_vllm_server(ServerClient client) {
  return std::make_unique<VllmServer>(std::move(client));
}

}  // namespace lancet
