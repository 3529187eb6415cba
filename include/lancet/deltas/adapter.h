// Writes and reads changes of weights as a LoRA adapter (arXiv 2106.09685) in the files of PEFT: a pair of factors for
// each module, and the configuration with which PEFT and other readers of its files apply them to a model.
// Source of the format: huggingface/peft 0.21, utils/save_and_load.py, tuners/lora/config.py and layer.py,
// tuners/tuners_utils.py (check_target_module_exists), utils/transformers_weight_conversion.py (experts).
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "lancet/core/dtype.h"
#include "lancet/deltas/stream_state.h"

namespace lancet {

/// The ranks that vLLM accepts for adapters (lora_config.py).
inline constexpr int64_t kAdapterRanks[] = {1, 8, 16, 32, 64, 128, 256, 320, 512};

/// Defines the rank of a change: the least rank whose nearest matrix differs from the change by at most this share of
/// the change's Frobenius norm. f32 factors lose as much anyway.
inline constexpr double kRankTolerance = 1e-6;

/// What to do with a change whose rank is higher than the adapter's highest rank.
enum class ExcessRank {
  kRefuse,   ///< throws a ConfigError, which says what truncating would lose
  kTruncate  ///< replaces it by the nearest matrix of the highest rank
};

struct AdapterOptions {
  std::string base_model = {};  ///< `base_model_name_or_path`: a folder or a name on the Hugging Face Hub
  DType dtype = DType::kF32;    ///< type of the factors: F32, BF16 or F16
  int64_t largest_rank = 512;   ///< one of kAdapterRanks
  ExcessRank excess = ExcessRank::kRefuse;
};

/// Describes how the changes of one module were written. A module is one weight, several weights that are stored in one
/// tensor, or one expert.
struct AdapterModule {
  std::string name = {};               ///< "model.layers.3.mlp.down_proj"
  std::vector<WeightId> weights = {};  ///< the weights of the module that were changed
  int64_t directions = 0;              ///< sum of the ranks of the changes as they were given
  int64_t numeric_rank = 0;            ///< rank of their sum, by kRankTolerance
  double norm = 0;                     ///< Frobenius norm of their sum
  /// Norm of the difference between the sum and the file: from truncation and from the factors' type.
  double lost_norm = 0;

  /// Returns 0 for a change of zeros.
  double relative_loss() const { return norm > 0 ? lost_norm / norm : 0; }
};

struct AdapterReport {
  int64_t rank = 0;                         ///< rank of every pair
  std::vector<AdapterModule> modules = {};  ///< modules in model order
  int64_t file_bytes = 0;                   ///< bytes of adapter_model.safetensors
};

inline constexpr const char* kAdapterWeights = "adapter_model.safetensors";
inline constexpr const char* kAdapterConfig = "adapter_config.json";
/// The key of adapter_config.json for the place of the base model.
inline constexpr const char* kAdapterBase = "base_model_name_or_path";

/// Returns whether a folder holds an adapter and no model.
bool is_adapter(const std::filesystem::path& folder);

/// Returns why write_adapter() refuses changes of the weight; empty if it accepts them.
std::string why_not_in_adapter(const ModelConfig& config, WeightId id);

/// Writes adapter_model.safetensors and adapter_config.json into the existing folder. Each module has
/// `base_model.model.MODULE.lora_A.weight` [r, in] and `.lora_B.weight` [out, r] in the orientation of a linear layer,
/// whatever the checkpoint's layout. Their product is the sum of the changes; the scaling is 1. r is the same for all
/// modules: the least of kAdapterRanks that fits every module's change, padded with zeros. Factors that fit are kept as
/// they are. Other factors, and dense changes, are factored again in f64 (a QR of either side, an SVD of the core
/// between them), with the square roots of the singular values on both sides.
///
/// Weights that are parts of one tensor share its module: lora_B has zeros in the rows of the other parts. Experts
/// have a module each. Changing one expert writes modules for all experts of its layer, and a gate or up projection
/// brings all three projections, with zeros for unchanged weights, because PEFT stacks them. Down projections in two
/// cases have one pair for all experts and are listed in `target_parameters` (ParamWrapper in tuners/lora/layer.py): if
/// the experts are stored in one tensor, and in families whose experts PEFT does not know by the files' names
/// (Family::experts_parameter). Their shapes are lora_A [experts * r, in] and lora_B [out, r * experts]; the columns of
/// lora_B are ordered by direction, then by expert. `target_modules` holds whole names, so that no other module is
/// affected.
///
/// Throws: ConfigError for what PEFT cannot load, each named (embeddings, positions, vectors, routers and dense layers
/// of models with experts, quantised experts in one tensor, gate and up projections of experts by parameter, mixers'
/// output projections where Family::refuses_mixer_lora, GPT-NeoX's head, whose name depends on transformers' version),
/// for invalid options, for changes that are all zero, and by ExcessRank::kRefuse; NumericError for numbers that are
/// not finite or exceed the range of the factors' type; std::logic_error for changes whose shape differs from their
/// weight's; CheckpointError if writing fails.
AdapterReport write_adapter(const std::filesystem::path& folder, const ModelConfig& config,
                            std::span<const WeightChanges> changes, const AdapterOptions& options);

/// Returns what read_adapter() would return for the files of write_adapter(). Throws: as write_adapter().
std::vector<WeightChanges> changes_in_adapter(const ModelConfig& config, std::span<const WeightChanges> changes,
                                              const AdapterOptions& options);

/// Reads the changes that a PEFT adapter makes, in model order, on the host, at least in f32. The scaling (lora_alpha /
/// r, or lora_alpha / sqrt(r) with use_rslora) is multiplied into the left factors. Directions of zeros are left out,
/// and so are weights that have only such directions. If the ranks of experts add up to the full rank, their change is
/// dense. Throws: CheckpointError for files that are missing or damaged, or do not agree with each other or with the
/// model's shapes; ConfigError, each named, for intact adapters that lancet does not support: modules that are not in
/// the model's table, methods other than LoRA, DoRA, ranks or alphas by module, biases, modules to save and the like.
std::vector<WeightChanges> read_adapter(const std::filesystem::path& folder, const ModelConfig& config);

}  // namespace lancet
