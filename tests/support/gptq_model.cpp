#include "gptq_model.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/types.h>

#include <nlohmann/json.hpp>
#include <set>

#include "lancet/io/files.h"
#include "lancet/models/tensor_io.h"

namespace lancet::testing {
namespace {

constexpr int64_t kGroup = 8, kNumbersAWord = 8;

/// Four bits each: eight numbers of any bits.
Tensor random_words(int64_t rows, int64_t columns, at::Generator& generator) {
  return torch::randint(-(int64_t{1} << 31), int64_t{1} << 31, {rows, columns}, generator, torch::kLong).to(at::kInt);
}

/// Adds the tensors of one matrix [rows, columns] under its module's name.
void add_matrix(const std::string& module, int64_t rows, int64_t columns, at::Generator& generator,
                std::vector<std::pair<std::string, Tensor>>& stored) {
  const int64_t groups = columns / kGroup;
  const double size = 0.3 / std::sqrt(static_cast<double>(columns));  // numbers reach from -15 to 15
  stored.emplace_back(module + ".qweight", random_words(columns / kNumbersAWord, rows, generator));
  stored.emplace_back(module + ".qzeros", torch::full({groups, rows / kNumbersAWord}, 0x77777777, torch::kInt));
  stored.back().second.bitwise_xor_(random_words(groups, rows / kNumbersAWord, generator).bitwise_and(0x11111111));
  stored.emplace_back(module + ".scales",
                      (size * (0.5 + torch::rand({groups, rows}, generator, torch::kFloat))).to(at::kHalf));
  stored.emplace_back(module + ".g_idx",
                      (torch::randperm(columns, generator, torch::kLong) / kGroup).floor().to(at::kInt));
}

}  // namespace

std::vector<WeightId> layer_matrices(const ModelConfig& config) {
  static const std::set<WeightKind> kPrecise{WeightKind::kRouter, WeightKind::kSharedSwitch, WeightKind::kMixerRate,
                                             WeightKind::kMixerDecay};
  std::vector<WeightId> ids;
  for (const WeightSpec& spec : weight_table(config))
    if (role_of(spec.id.kind).place == WeightPlace::kLayer && spec.shape.size() == 2 &&
        !kPrecise.contains(spec.id.kind))
      ids.push_back(spec.id);
  return ids;
}

void write_gptq_model(const std::filesystem::path& folder, const std::string& config_text, uint64_t seed) {
  write_random_model(folder, config_text, seed);
  at::Generator generator = at::detail::createCPUGenerator(seed);
  std::vector<std::pair<std::string, Tensor>> stored;
  {
    const Checkpoint plain = Checkpoint::open(folder);
    const ModelConfig config = load_model_config(plain);
    std::set<std::string> packed;
    for (const WeightId id : layer_matrices(config)) {
      const WeightSpec spec = weight_spec(config, id);
      const bool is_turned = spec.stored.layout == Layout::kColumns;
      if (has_all_experts(spec.stored.layout)) continue;  // no matrix
      for (const std::string& name : spec.stored.tensors)
        if (packed.insert(name).second)  // others are parts of the same
          add_matrix(name.substr(0, name.size() - std::string(".weight").size()), spec.stored.shape[is_turned ? 1 : 0],
                     spec.stored.shape[is_turned ? 0 : 1], generator, stored);
    }
    for (const std::string& name : plain.tensor_names())
      if (!packed.contains(name)) stored.emplace_back(name, to_tensor(plain.view(name)).clone());
  }
  std::vector<TensorSource> sources;
  for (const auto& [name, tensor] : stored) sources.push_back(to_source(name, tensor));
  write_safetensors(folder / "model.safetensors", sources, {{"format", "pt"}});
  nlohmann::json config = nlohmann::json::parse(config_text);
  config["quantization_config"] = {{"quant_method", "gptq"}, {"bits", 4},    {"group_size", kGroup},
                                   {"desc_act", true},       {"sym", false}, {"checkpoint_format", "gptq"},
                                   {"lm_head", false}};
  write_text_file(folder / "config.json", config.dump());
}

TinyModel gptq_model(const std::string& config_text, uint64_t seed) {
  return TinyModel([&](const std::filesystem::path& folder) { write_gptq_model(folder, config_text, seed); });
}

TinyModel gptq_model(const TinyShape& shape) { return gptq_model(config_text(shape), shape.seed); }

}  // namespace lancet::testing
