#include "synthetic.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/types.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/io/files.h"
#include "lancet/models/tensor_io.h"
#include "lancet/models/weight_table.h"

namespace lancet::bench {
namespace {

constexpr uint64_t kSeed = 1;
constexpr int64_t kMaxPositions = 2048;

std::string config_json(const ModelShape& shape, DType dtype) {
  const nlohmann::json json = {{"architectures", {"LlamaForCausalLM"}},
                               {"model_type", "llama"},
                               {"vocab_size", shape.vocab},
                               {"hidden_size", shape.hidden},
                               {"intermediate_size", shape.ffn},
                               {"num_hidden_layers", shape.layers},
                               {"num_attention_heads", shape.heads},
                               {"num_key_value_heads", shape.kv_heads},
                               {"max_position_embeddings", kMaxPositions},
                               {"rms_norm_eps", 1e-5},
                               {"rope_theta", 10000.0},
                               {"tie_word_embeddings", false},
                               {"torch_dtype", dtype == DType::kBF16 ? "bfloat16" : "float32"},
                               {"eos_token_id", 2}};
  return json.dump();
}

std::vector<TokenId> random_ids(std::mt19937_64& random, int64_t length, int64_t vocab) {
  std::uniform_int_distribution<TokenId> id(0, vocab - 1);
  std::vector<TokenId> ids(static_cast<size_t>(length));
  std::generate(ids.begin(), ids.end(), [&] { return id(random); });
  return ids;
}

int64_t read_number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : 0;
}

}  // namespace

ModelShape parse_shape(std::string_view text) {
  ModelShape shape;
  const std::map<std::string_view, int64_t*> fields{{"hidden", &shape.hidden},     {"ffn", &shape.ffn},
                                                    {"layers", &shape.layers},     {"heads", &shape.heads},
                                                    {"kv_heads", &shape.kv_heads}, {"vocab", &shape.vocab}};
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const size_t equals = part.find('=');
    const auto field = fields.find(part.substr(0, equals));
    if (equals == std::string_view::npos || field == fields.end())
      throw ConfigError(
          cat("--shape: '", part, "': expected NAME=NUMBER with hidden, ffn, layers, heads, kv_heads, vocab"));
    *field->second = read_number(part.substr(equals + 1));
  }
  for (const auto& [name, value] : fields)
    if (*value < 1) throw ConfigError(cat("--shape: ", name, ": expected a positive whole number"));
  return shape;
}

void write_random_checkpoint(const std::filesystem::path& folder, const ModelShape& shape, DType dtype) {
  const std::string config_text = config_json(shape, dtype);
  write_text_file(folder / "config.json", config_text);
  const ModelConfig config = parse_model_config(config_text, "", {}, "--shape");
  at::Generator generator = at::detail::createCPUGenerator(kSeed);
  std::vector<Tensor> weights;
  std::vector<TensorSource> sources;
  for (const WeightSpec& spec : weight_table(config)) {
    // Norm weights of 1; matrices scaled so that hidden states keep their size.
    const Tensor weight =
        spec.shape.size() == 1
            ? torch::ones(spec.shape)
            : torch::randn(spec.shape, generator, torch::kFloat).div_(std::sqrt(static_cast<double>(spec.shape[1])));
    weights.push_back(weight.to(to_scalar_type(dtype)));
    sources.push_back(to_source(spec.name, weights.back()));
  }
  write_safetensors(folder / "model.safetensors", sources, {{"format", "pt"}});
}

std::vector<PreparedRequest> random_requests(int64_t n_requests, int64_t vocab) {
  // Tokens of the openings of the demo model's contexts; subjects and prompts as CounterFact has them.
  constexpr int64_t kOpenings[] = {0, 6, 6, 8, 5, 5};
  std::mt19937_64 random(kSeed);
  std::uniform_int_distribution<int64_t> subject(2, 8), behind(1, 6), target(1, 2);
  std::vector<PreparedRequest> requests;
  for (int64_t n = 0; n < n_requests; ++n) {
    PreparedRequest request;
    request.id = std::to_string(n);
    const int64_t lookup = subject(random), tail = behind(random);
    for (const int64_t opening : kOpenings)
      request.prompts.push_back({random_ids(random, opening + lookup + 1 + tail, vocab), opening + lookup});
    request.target = random_ids(random, target(random), vocab);
    request.drift = {random_ids(random, lookup + 3, vocab), lookup};
    requests.push_back(std::move(request));
  }
  return requests;
}

CorpusTokens random_corpus(int64_t n_tokens, int64_t vocab) {
  std::mt19937_64 random(kSeed);
  std::uniform_int_distribution<int64_t> length(16, 256);
  CorpusTokens corpus;
  while (corpus.tokens < n_tokens) {
    corpus.documents.push_back(random_ids(random, std::min(length(random), n_tokens - corpus.tokens), vocab));
    corpus.tokens += static_cast<int64_t>(corpus.documents.back().size());
  }
  return corpus;
}

}  // namespace lancet::bench
