#include "lancet/deltas/gguf_adapter.h"

#include <torch/types.h>

#include <algorithm>
#include <iterator>

#include "adapter_pairs.h"
#include "gguf_names.h"
#include "lancet/checkpoint/gguf.h"
#include "lancet/models/tensor_io.h"

namespace lancet {
namespace {

constexpr AdapterReader kLlamaCpp{"llama.cpp", why_no_gguf};

/// Returns the rows of a module's outputs in the order of llama.cpp's model.
Tensor reordered_rows(const ModelConfig& config, const GgufFamily& family, const LinearModule& module,
                      const Tensor& left_OR) {
  // llama.cpp, too, has queries and gates head by head
  if (module.parts.size() > 1 && config.gated_attention) return left_OR;
  if (module.parts.size() > 1) {  // one weight after another, even if the file has them head by head
    std::vector<Tensor> parts;
    for (const ModulePart& part : module.parts) parts.push_back(left_of_part(module, part, left_OR));
    return torch::cat(parts, 0);
  }
  const WeightKind kind = module.parts.front().spec.id.kind;
  if (!family.interleaves_heads || (kind != WeightKind::kQuery && kind != WeightKind::kKey)) return left_OR;
  const int64_t heads = kind == WeightKind::kQuery ? config.n_heads : config.n_kv_heads;
  return left_OR.unflatten(0, {heads, 2, -1}).transpose(1, 2).flatten(0, 2).contiguous();
}

/// The factors of one tensor of the model.
struct GgufPair {
  std::string name = {};
  Tensor a = {};  ///< [r, in]; with experts [experts, r, in]
  Tensor b = {};  ///< [out, r]; with experts [experts, out, r]
  bool changes = false;
};

/// Returns the pairs of a module for which llama.cpp's files have a tensor for each part.
std::vector<GgufPair> pairs_of_parts(const ModelConfig& config, const AdapterPair& pair, const StoredPair& stored) {
  std::vector<GgufPair> pairs;
  for (const ModulePart& part : pair.module->parts)
    pairs.push_back({.name = gguf_name(config, *pair.module, &part),
                     .a = stored.a_RI,
                     .b = left_of_part(*pair.module, part, stored.b_OR).contiguous(),
                     .changes = std::ranges::count(pair.weights, part.spec.id) > 0});
  return pairs;
}

std::vector<GgufPair> gguf_pairs(const ModelConfig& config, const GgufFamily& family, const MadeAdapter& made) {
  std::vector<GgufPair> pairs;
  for (size_t i = 0; i < made.pairs.size(); ++i) {
    const LinearModule& module = *made.pairs[i].module;
    const ModulePart& part = module.parts.front();
    if (family.splits_gates_and_ups && module.parts.size() > 1) {
      std::ranges::move(pairs_of_parts(config, made.pairs[i], made.stored[i]), std::back_inserter(pairs));
      continue;
    }
    const std::string name = gguf_name(config, module);
    const Tensor a = made.stored[i].a_RI;
    const Tensor b =
        reordered_rows(config, family, module, made.stored[i].b_OR) * gguf_factor(config, part.spec.id.kind);
    const auto experts = static_cast<int64_t>(part.spec.stored.tensors.size());
    auto pair = std::ranges::find(pairs, name, &GgufPair::name);
    if (pair == pairs.end()) {
      pairs.push_back({name});
      pair = pairs.end() - 1;
      pair->a = experts > 1 ? torch::zeros({experts, a.size(0), a.size(1)}, a.options()) : a;
      pair->b = experts > 1 ? torch::zeros({experts, b.size(0), b.size(1)}, b.options()) : b;
    }
    if (experts > 1) {
      pair->a[part.expert].copy_(a);
      pair->b[part.expert].copy_(b);
    }
    pair->changes = pair->changes || !made.pairs[i].weights.empty();
  }
  std::erase_if(pairs, [](const GgufPair& pair) { return !pair.changes; });
  return pairs;
}

}  // namespace

AdapterReport write_gguf_adapter(const std::filesystem::path& path, const ModelConfig& config,
                                 std::span<const WeightChanges> changes, const AdapterOptions& options) {
  const GgufFamily& family = gguf_family(config);
  const MadeAdapter made = make_adapter(config, changes, options, kLlamaCpp);
  const std::vector<GgufPair> pairs = gguf_pairs(config, family, made);
  std::vector<TensorSource> sources;
  for (const GgufPair& pair : pairs) {
    sources.push_back(to_source(pair.name + ".lora_a", pair.a));
    sources.push_back(to_source(pair.name + ".lora_b", pair.b));
  }
  const std::vector<GgufEntry> metadata{{"general.architecture", std::string(gguf_architecture(config))},
                                        {"general.type", "adapter"},
                                        {"adapter.type", "lora"},
                                        {"adapter.lora.alpha", static_cast<float>(made.rank)}};
  write_gguf(path, metadata, sources);
  AdapterReport report = made.report();
  report.file_bytes = static_cast<int64_t>(std::filesystem::file_size(path));
  return report;
}

}  // namespace lancet
