// Checkpoints, requests and documents of any size, made up: for times, not for quality.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "lancet/core/dtype.h"
#include "lancet/edit/corpus.h"
#include "lancet/edit/prepared_request.h"

namespace lancet::bench {

struct ModelShape {
  int64_t hidden = 0;
  int64_t ffn = 0;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t vocab = 0;
};

/// "hidden=2048,ffn=8192,layers=4,heads=32,kv_heads=8,vocab=4096": all six. Throws: ConfigError.
ModelShape parse_shape(std::string_view text);

/// config.json and model.safetensors of a Llama with random weights, stored as `dtype`, in an existing folder.
void write_random_checkpoint(const std::filesystem::path& folder, const ModelShape& shape, DType dtype);

/// Random ids in rows as long as the demo model's facts give in its six contexts.
std::vector<PreparedRequest> random_requests(int64_t n_requests, int64_t vocab);

/// Documents of 16 to 256 random ids.
CorpusTokens random_corpus(int64_t n_tokens, int64_t vocab);

}  // namespace lancet::bench
