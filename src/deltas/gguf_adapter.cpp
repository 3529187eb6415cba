#include "lancet/deltas/gguf_adapter.h"

#include <torch/types.h>

#include <algorithm>

#include "adapter_pairs.h"
#include "gguf_names.h"
#include "lancet/checkpoint/gguf.h"
#include "lancet/models/tensor_io.h"

namespace lancet {
namespace {

constexpr AdapterReader kLlamaCpp{"llama.cpp", why_no_gguf};

/// The rows of a module's outputs in the order that llama.cpp's model has them in.
Tensor reordered_rows(const ModelConfig& config, const GgufFamily& family, const LinearModule& module,
                      const Tensor& left_OR) {
  if (module.parts.size() > 1) {  // one weight after the other, also where the file has them head by head
    std::vector<Tensor> parts;
    for (const ModulePart& part : module.parts) parts.push_back(left_of_part(module, part, left_OR));
    return torch::cat(parts, 0);
  }
  const WeightKind kind = module.parts.front().spec.id.kind;
  if (!family.interleaves_heads || (kind != WeightKind::kQuery && kind != WeightKind::kKey)) return left_OR;
  const int64_t heads = kind == WeightKind::kQuery ? config.n_heads : config.n_kv_heads;
  return left_OR.unflatten(0, {heads, 2, -1}).transpose(1, 2).flatten(0, 2).contiguous();
}

/// Factors of one tensor of the model.
struct GgufPair {
  std::string name = {};
  Tensor a = {};  ///< [r, in]; of experts [experts, r, in]
  Tensor b = {};  ///< [out, r]; of experts [experts, out, r]
  bool changes = false;
};

std::vector<GgufPair> gguf_pairs(const ModelConfig& config, const GgufFamily& family, const MadeAdapter& made) {
  std::vector<GgufPair> pairs;
  for (size_t i = 0; i < made.pairs.size(); ++i) {
    const LinearModule& module = *made.pairs[i].module;
    const std::string name = gguf_name(module);
    const Tensor a = made.stored[i].a_RI, b = reordered_rows(config, family, module, made.stored[i].b_OR);
    const ModulePart& part = module.parts.front();
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
  const std::vector<GgufEntry> metadata{{"general.architecture", std::string(family.name)},
                                        {"general.type", "adapter"},
                                        {"adapter.type", "lora"},
                                        {"adapter.lora.alpha", static_cast<float>(made.rank)}};
  write_gguf(path, metadata, sources);
  AdapterReport report = made.report();
  report.file_bytes = static_cast<int64_t>(std::filesystem::file_size(path));
  return report;
}

}  // namespace lancet
