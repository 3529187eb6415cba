// A small random Llama on disk with the demo model's tokenizer, for tests that need a model but no knowledge.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lancet/checkpoint/checkpoint.h"
#include "lancet/models/causal_lm.h"
#include "lancet/text/tokenizer.h"
#include "temp_dir.h"

namespace lancet::testing {

struct TinyShape {
  int64_t n_layers = 4;
  int64_t d_model = 32;
  int64_t d_ffn = 48;
  int64_t n_heads = 4;
  int64_t n_kv_heads = 2;
  uint64_t seed = 1;
  bool tied_embeddings = false;
};

/// Token ids of rows of different lengths, for forward passes.
inline const std::vector<std::vector<TokenId>> kRows{{1, 17, 400, 8, 99}, {1, 5}, {1, 2000, 3, 77, 3, 1000, 12}};

/// config.json of a shape.
std::string config_text(const TinyShape& shape);

/// Writes config.json, model.safetensors (f32) and tokenizer.json into `folder`.
void write_tiny_model(const std::filesystem::path& folder, const TinyShape& shape = {});

/// Writes the same for the family and the sizes that config.json says; its vocabulary is the demo tokenizer's 4096 or
/// more.
void write_random_model(const std::filesystem::path& folder, const std::string& config_text, uint64_t seed);

/// A tiny model in its own temporary folder.
struct TinyModel {
  explicit TinyModel(const TinyShape& shape = {});
  TinyModel(const std::string& config_text, uint64_t seed);
  /// Makes a model of what `write` puts into the folder.
  explicit TinyModel(const std::function<void(const std::filesystem::path&)>& write);
  CausalLM load(at::ScalarType dtype, const std::vector<at::Device>& devices, const QuantiseRule& rule = {},
                SolveOn solve_on = SolveOn::kDevice) const;
  CausalLM load(at::ScalarType dtype = at::kDouble) const { return load(dtype, {Placement::host()}); }

  TempDir folder;
  Checkpoint checkpoint;
  ModelConfig config;
  std::unique_ptr<Tokenizer> tokenizer;
};

/// The demo model in data/.
std::filesystem::path demo_model_folder();

/// sum((a - b)^2) / sum(b^2), in f64 on the host.
double nmse(const Tensor& a, const Tensor& b);
/// nmse() of what f64 computes in two ways: a forward pass, and a solve, which loses more.
inline constexpr double kExactF64 = 1e-26, kExactSolve = 1e-22;

}  // namespace lancet::testing
