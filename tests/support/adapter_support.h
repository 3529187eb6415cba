// Adapters of small models: changes to write, and what the files hold.
#pragma once

#include <gtest/gtest.h>
#include <torch/types.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io_support.h"
#include "lancet/core/error.h"
#include "lancet/deltas/adapter.h"
#include "lancet/io/files.h"
#include "lancet/models/tensor_io.h"
#include "tiny_model.h"

namespace lancet::testing {

/// d_model 80, d_ffn 96: changes of up to 80 directions.
inline ModelConfig tiny_config() {
  static const TinyModel tiny(TinyShape{.d_model = 80, .d_ffn = 96});
  return tiny.config;
}

inline LowRankDelta random_factors(int64_t out, int64_t rank, int64_t in, at::ScalarType type = at::kFloat) {
  return {torch::randn({out, rank}, type), torch::randn({rank, in}, type)};
}

inline WeightChanges random_change(const ModelConfig& config, WeightId id, int64_t rank) {
  const WeightSpec spec = weight_spec(config, id);
  return {id, {random_factors(spec.shape[0], rank, spec.shape[1])}};
}

/// The sum in f64.
inline Tensor sum_of(const std::vector<WeightDelta>& deltas) {
  Tensor sum;
  for (const WeightDelta& delta : deltas) {
    const auto* low_rank = std::get_if<LowRankDelta>(&delta);
    const Tensor one = low_rank != nullptr ? low_rank->left_OR.to(at::kDouble).mm(low_rank->right_RI.to(at::kDouble))
                                           : std::get<DenseDelta>(delta).full_OI.to(at::kDouble);
    sum = sum.defined() ? sum + one : one;
  }
  return sum;
}

class AdapterTest : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(7); }

  AdapterReport write(const ModelConfig& config, const std::vector<WeightChanges>& changes,
                      const AdapterOptions& options = {}) {
    return write_adapter(folder.path(), config, changes, options);
  }
  std::map<std::string, Tensor> tensors() {
    std::map<std::string, Tensor> found;
    const auto file = SafetensorsReader::open(folder / "adapter_model.safetensors");
    EXPECT_EQ(file.metadata(), (Metadata{{"format", "pt"}}));
    for (const TensorInfo& info : file.tensors()) found[info.name] = to_tensor(file.view(info.name)).clone();
    return found;
  }
  /// lora_B @ lora_A in f64.
  Tensor product(const std::string& module) {
    const auto all = tensors();
    const std::string name = "base_model.model." + module;
    return all.at(name + ".lora_B.weight").to(at::kDouble).mm(all.at(name + ".lora_A.weight").to(at::kDouble));
  }
  nlohmann::json config_json() {
    return nlohmann::json::parse(read_text_file(folder / "adapter_config.json", "adapter_config.json"));
  }
  template <typename E>
  std::string refusal(const ModelConfig& config, const std::vector<WeightChanges>& changes,
                      const AdapterOptions& options = {}) {
    const std::string message = message_of<E>([&] { write(config, changes, options); });
    EXPECT_TRUE(names_in(folder.path()).empty());
    return message;
  }

  TempDir folder;
};

}  // namespace lancet::testing
