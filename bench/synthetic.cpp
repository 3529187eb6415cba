#include "synthetic.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <unordered_map>

#include "lancet/core/error.h"
#include "lancet/core/parallel.h"
#include "lancet/core/strings.h"
#include "lancet/io/files.h"
#include "lancet/models/neighbour_places.h"
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
                               {"tie_word_embeddings", shape.tied != 0},
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

/// Published configurations.
const std::map<std::string_view, ModelShape>& named_shapes() {
  static const std::map<std::string_view, ModelShape> kShapes{
      {"llama-2-7b", {4096, 11008, 32, 32, 32, 32000, 0}},  {"llama-2-13b", {5120, 13824, 40, 40, 40, 32000, 0}},
      {"llama-3-8b", {4096, 14336, 32, 32, 8, 128256, 0}},  {"llama-3-70b", {8192, 28672, 80, 64, 8, 128256, 0}},
      {"llama-3.2-1b", {2048, 8192, 16, 32, 8, 128256, 1}}, {"llama-3.2-3b", {3072, 8192, 28, 24, 8, 128256, 1}},
      {"mistral-7b", {4096, 14336, 32, 32, 8, 32000, 0}}};
  return kShapes;
}

std::string known_names() {
  std::vector<std::string> names;
  for (const auto& [name, shape] : named_shapes()) names.emplace_back(name);
  return join(names);
}

/// Norm weights of 1; matrices scaled so that hidden states keep their size.
Tensor random_weight(const std::vector<int64_t>& sizes, const at::TensorOptions& options) {
  if (sizes.size() == 1) return torch::ones(sizes, options);
  return torch::randn(sizes, options).div_(std::sqrt(static_cast<double>(sizes[1])));
}

/// A shard's weights, piece by piece and several at a time: a generator of random numbers has one thread.
std::vector<Tensor> random_weights(const std::vector<WeightSpec>& specs, DType dtype, uint64_t seed) {
  constexpr int64_t kPiece = int64_t{1} << 22;
  struct Piece {
    Tensor place;
    double scale;
  };
  std::vector<Tensor> weights;
  std::vector<Piece> pieces;
  for (const WeightSpec& spec : specs) {
    weights.push_back(torch::ones(spec.shape, to_scalar_type(dtype)));
    if (spec.shape.size() == 1) continue;
    for (const Tensor& place : weights.back().view(-1).split(kPiece))
      pieces.push_back({place, 1 / std::sqrt(static_cast<double>(spec.shape[1]))});
  }
  for_each_in_parallel(pieces.size(), static_cast<size_t>(at::get_num_threads()), [&](size_t i) {
    const torch::NoGradGuard no_grad;
    const auto generator = at::make_generator<at::CPUGeneratorImpl>(seed + i);
    pieces[i].place.copy_(torch::randn(pieces[i].place.sizes(), generator, torch::kFloat).mul_(pieces[i].scale));
  });
  return weights;
}

std::vector<std::vector<WeightSpec>> plan_shards(const std::vector<WeightSpec>& table, DType dtype,
                                                 int64_t shard_bytes) {
  std::vector<std::vector<WeightSpec>> shards;
  int64_t filled = 0;
  for (const WeightSpec& spec : table) {
    int64_t bytes = bytes_per_element(dtype);
    for (const int64_t size : spec.shape) bytes *= size;
    if (shards.empty() || filled + bytes > shard_bytes) {
      shards.emplace_back();
      filled = 0;
    }
    shards.back().push_back(spec);
    filled += bytes;
  }
  return shards;
}

/// "model-00001-of-00004.safetensors"
std::string shard_name(size_t number, size_t count) {
  const auto padded = [](size_t value) {
    const std::string digits = std::to_string(value);
    return std::string(5 - std::min<size_t>(5, digits.size()), '0') + digits;
  };
  return cat("model-", padded(number), "-of-", padded(count), ".safetensors");
}

}  // namespace

ModelShape parse_shape(std::string_view text) {
  ModelShape shape;
  const std::map<std::string_view, int64_t*> fields{
      {"hidden", &shape.hidden},     {"ffn", &shape.ffn},     {"layers", &shape.layers}, {"heads", &shape.heads},
      {"kv_heads", &shape.kv_heads}, {"vocab", &shape.vocab}, {"tied", &shape.tied}};
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    if (const auto named = named_shapes().find(part); named != named_shapes().end()) {
      shape = named->second;
      continue;
    }
    const size_t equals = part.find('=');
    const auto field = fields.find(part.substr(0, equals));
    if (equals == std::string_view::npos || field == fields.end())
      throw ConfigError(cat("--shape: '", part, "': expected one of ", known_names(),
                            ", or NAME=NUMBER with hidden, ffn, layers, heads, kv_heads, vocab, tied"));
    *field->second = parse_whole_number(part.substr(equals + 1)).value_or(0);
  }
  for (const auto& [name, value] : fields)
    if (*value < (name == "tied" ? 0 : 1))
      throw ConfigError(cat("--shape: ", name, ": expected a positive whole number"));
  return shape;
}

ModelConfig random_model_config(const ModelShape& shape, DType dtype) {
  return parse_model_config(config_json(shape, dtype), "", {}, "--shape");
}

CausalLM make_random_model(const ModelShape& shape, const Placement& placement) {
  const torch::NoGradGuard no_grad;
  const ModelConfig config = random_model_config(shape, to_dtype(placement.weight_dtype()));
  torch::manual_seed(kSeed);
  const std::vector<WeightSpec> table = weight_table(config);
  std::unordered_map<at::Device, std::vector<const WeightSpec*>> by_device;
  for (const WeightSpec& spec : table) by_device[weight_device(placement, spec.id)].push_back(&spec);
  std::map<WeightId, Tensor> weights;
  for (const auto& [device, specs] : by_device) {
    const auto places = neighbour_places(specs, {}, placement.weight_dtype(), device);  // as a loaded model's lie
    for (const WeightSpec* spec : specs) {
      const Tensor weight = random_weight(spec->shape, torch::TensorOptions(placement.weight_dtype()).device(device));
      const auto place = places.find(spec->id);
      weights.emplace(spec->id, place == places.end() ? weight : place->second.copy_(weight));
    }
  }
  return CausalLM::from_weights(config, placement, std::move(weights));
}

void write_random_checkpoint(const std::filesystem::path& folder, const ModelShape& shape, DType dtype,
                             int64_t shard_bytes) {
  const torch::NoGradGuard no_grad;
  write_text_file(folder / "config.json", config_json(shape, dtype));
  const auto shards = plan_shards(weight_table(random_model_config(shape, dtype)), dtype, shard_bytes);
  nlohmann::json index = {{"metadata", nlohmann::json::object()}, {"weight_map", nlohmann::json::object()}};
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string name = shards.size() == 1 ? "model.safetensors" : shard_name(i + 1, shards.size());
    const std::vector<Tensor> weights = random_weights(shards[i], dtype, kSeed + (i << 20));
    std::vector<TensorSource> sources;
    for (const WeightSpec& spec : shards[i]) {
      sources.push_back(to_source(spec.name, weights[sources.size()]));
      index["weight_map"][spec.name] = name;
    }
    write_safetensors(folder / name, sources, {{"format", "pt"}});
  }
  if (shards.size() > 1) write_text_file(folder / "model.safetensors.index.json", index.dump());
}

std::vector<PreparedRequest> random_requests(int64_t n_requests, int64_t vocab) {
  // Tokens of the openings of the demo model's contexts; subjects and prompts as CounterFact has them.
  constexpr int64_t kOpenings[] = {0, 6, 6, 8, 5, 5};
  std::mt19937_64 random(kSeed);
  std::uniform_int_distribution<int64_t> subject(2, 8), after(1, 6), target(1, 2);
  std::vector<PreparedRequest> requests;
  for (int64_t n = 0; n < n_requests; ++n) {
    PreparedRequest request;
    request.id = std::to_string(n);
    const int64_t lookup = subject(random), tail = after(random);
    for (const int64_t opening : kOpenings)
      request.prompts.push_back({random_ids(random, opening + lookup + 1 + tail, vocab), opening + lookup});
    request.target = random_ids(random, target(random), vocab);
    for (const LocatedPrompt& prompt : request.prompts) {
      TargetRow& row = request.rows.emplace_back(TargetRow{prompt, request.target});
      row.ids.insert(row.ids.end(), request.target.begin(), request.target.end() - 1);  // the last is only predicted
    }
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
