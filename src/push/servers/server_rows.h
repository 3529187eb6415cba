// The rows of the table of servers: how each kind is recognised, and made.
#pragma once

#include <memory>

#include "server_client.h"

namespace lancet {

bool answers_as_vllm(const ServerClient& client);
std::unique_ptr<InferenceServer> make_vllm_server(ServerClient client);
bool answers_as_sglang(const ServerClient& client);
std::unique_ptr<InferenceServer> make_sglang_server(ServerClient client);
bool answers_as_llama(const ServerClient& client);
std::unique_ptr<InferenceServer> make_llama_server(ServerClient client);
bool answers_as_openai(const ServerClient& client);
std::unique_ptr<InferenceServer> make_openai_server(ServerClient client);

}  // namespace lancet
