#include "tiny_model.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/types.h>

#include <nlohmann/json.hpp>

#include "lancet/io/files.h"
#include "lancet/models/stored_part.h"
#include "lancet/models/tensor_io.h"

namespace lancet::testing {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kDemoVocabulary = 4096;

nlohmann::json config_json(const TinyShape& shape) {
  return {{"architectures", {"LlamaForCausalLM"}},
          {"model_type", "llama"},
          {"vocab_size", kDemoVocabulary},
          {"hidden_size", shape.d_model},
          {"intermediate_size", shape.d_ffn},
          {"num_hidden_layers", shape.n_layers},
          {"num_attention_heads", shape.n_heads},
          {"num_key_value_heads", shape.n_kv_heads},
          {"max_position_embeddings", 256},
          {"rms_norm_eps", 1e-5},
          {"rope_theta", 10000.0},
          {"tie_word_embeddings", shape.tied_embeddings},
          {"torch_dtype", "float32"},
          {"eos_token_id", 2}};
}

}  // namespace

fs::path demo_model_folder() {
  // beside the program's folder, as in the GPU kit; else the repository's
  std::error_code error;
  const fs::path beside = fs::read_symlink("/proc/self/exe", error).parent_path().parent_path() / "data/demo-model";
  return fs::is_directory(beside, error) ? beside : fs::path(LANCET_SOURCE_DIR) / "data" / "demo-model";
}

void write_tiny_model(const fs::path& folder, const TinyShape& shape) {
  write_random_model(folder, config_json(shape).dump(), shape.seed);
}

void write_random_model(const fs::path& folder, const std::string& config_text, uint64_t seed) {
  write_text_file(folder / "config.json", config_text);
  fs::copy_file(demo_model_folder() / "tokenizer.json", folder / "tokenizer.json");
  const ModelConfig config = parse_model_config(config_text, "", {}, "tiny model");
  at::Generator generator = at::detail::createCPUGenerator(seed);
  std::vector<std::pair<std::string, Tensor>> stored;
  for (const WeightSpec& spec : weight_table(config)) {
    const Tensor noise = torch::randn(spec.shape, generator, torch::kFloat);
    // Norm weights near 1; matrices scaled so that hidden states keep their size.
    const Tensor weight =
        spec.shape.size() == 1 ? 1 + 0.1 * noise : 1.5 * noise / std::sqrt(static_cast<double>(spec.shape[1]));
    const std::vector<Tensor> parts = stored_parts(spec, weight);
    for (size_t i = 0; i < parts.size(); ++i) {
      const std::string& name = spec.stored.tensors[i];
      if (stored.empty() || stored.back().first != name) stored.emplace_back(name, torch::zeros(spec.stored.shape));
      put_stored_part(stored.back().second, spec, parts[i]);
    }
  }
  std::vector<TensorSource> sources;
  for (const auto& [name, tensor] : stored) sources.push_back(to_source(name, tensor));
  write_safetensors(folder / "model.safetensors", sources, {{"format", "pt"}});
}

std::string config_text(const TinyShape& shape) { return config_json(shape).dump(); }

TinyModel::TinyModel(const TinyShape& shape) : TinyModel(config_json(shape).dump(), shape.seed) {}

TinyModel::TinyModel(const std::string& config_text, uint64_t seed)
    : TinyModel([&](const fs::path& place) { write_random_model(place, config_text, seed); }) {}

TinyModel::TinyModel(const std::function<void(const fs::path&)>& write)
    : checkpoint((write(folder.path()), Checkpoint::open(folder.path()))),
      config(load_model_config(checkpoint)),
      tokenizer(open_tokenizer(folder.path())) {}

CausalLM TinyModel::load(at::ScalarType dtype, const std::vector<at::Device>& devices, const QuantiseRule& rule,
                         SolveOn solve_on) const {
  Placement placement = plan_placement(config.n_layers, devices, dtype);
  placement.set_solve_on(solve_on);
  return CausalLM::load(checkpoint, config, placement, rule);
}

double nmse(const Tensor& a, const Tensor& b) {
  const Tensor x = a.detach().to(Placement::host(), torch::kDouble);
  const Tensor y = b.detach().to(Placement::host(), torch::kDouble);
  return ((x - y).square().sum() / y.square().sum()).item<double>();
}

}  // namespace lancet::testing
