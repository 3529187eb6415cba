// Checkpoints, requests and documents of any size, made up: for times, not for quality.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "lancet/core/dtype.h"
#include "lancet/models/causal_lm.h"
#include "lancet/requests/prepared_request.h"
#include "lancet/statistics/covariance.h"

namespace lancet::bench {

struct ModelShape {
  int64_t hidden = 0;
  int64_t ffn = 0;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t vocab = 0;
  int64_t tied = 0;  ///< 1: the head is the embedding
};

/// "hidden=2048,ffn=8192,layers=4,heads=32,kv_heads=8,vocab=4096", or a published model's name, "llama-3-8b", alone or
/// with changes after it: "llama-3-8b,layers=4". Throws: ConfigError.
ModelShape parse_shape(std::string_view text);

/// A Llama of this shape, as config.json would say it.
ModelConfig random_model_config(const ModelShape& shape, DType dtype);

/// Random weights made where `placement` has them, without a file.
CausalLM make_random_model(const ModelShape& shape, const Placement& placement);

/// config.json and safetensors of such a model in an existing folder: shards of at most `shard_bytes` (one tensor at
/// least) with an index, or one file when that is enough.
void write_random_checkpoint(const std::filesystem::path& folder, const ModelShape& shape, DType dtype,
                             int64_t shard_bytes);

/// Random ids in rows as long as the demo model's facts give in its six contexts.
std::vector<PreparedRequest> random_requests(int64_t n_requests, int64_t vocab);

/// Documents of 16 to 256 random ids.
CorpusTokens random_corpus(int64_t n_tokens, int64_t vocab);

}  // namespace lancet::bench
