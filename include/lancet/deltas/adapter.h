// Changes of weights as a LoRA adapter (arXiv 2106.09685) in the files of PEFT: a pair of factors for each module, and
// the configuration by which PEFT, and what reads its files, put them into a model.
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

/// The ranks that programs which serve adapters take (vLLM, lora_config.py).
inline constexpr int64_t kAdapterRanks[] = {1, 8, 16, 32, 64, 128, 256, 320, 512};

/// The rank of a change is the least for which the nearest matrix of that rank differs by at most this share of the
/// change's Frobenius norm: what f32 factors lose anyway.
inline constexpr double kRankTolerance = 1e-6;

/// What becomes of a change of a higher rank than the adapter may have.
enum class ExcessRank {
  kRefuse,   ///< a ConfigError, which says what truncating would lose
  kTruncate  ///< the nearest matrix of the highest rank takes its place
};

struct AdapterOptions {
  std::string base_model = {};  ///< `base_model_name_or_path`: a folder or a name of the hub
  DType dtype = DType::kF32;    ///< type of the factors: F32, BF16 or F16
  int64_t largest_rank = 512;   ///< one of kAdapterRanks
  ExcessRank excess = ExcessRank::kRefuse;
};

/// What became of the changes of one module: of one weight, of several that are stored in one tensor, or of one expert.
struct AdapterModule {
  std::string name = {};               ///< "model.layers.3.mlp.down_proj"
  std::vector<WeightId> weights = {};  ///< that have a change in it
  int64_t directions = 0;              ///< sum of the ranks of the changes as they were given
  int64_t numeric_rank = 0;            ///< rank of their sum, by kRankTolerance
  double norm = 0;                     ///< Frobenius norm of their sum
  double lost_norm = 0;  ///< norm of their sum less what the file holds: by truncation and by the factors' type

  /// 0 for a change of zeros.
  double relative_loss() const { return norm > 0 ? lost_norm / norm : 0; }
};

struct AdapterReport {
  int64_t rank = 0;                         ///< rank of every pair
  std::vector<AdapterModule> modules = {};  ///< modules in model order
  int64_t file_bytes = 0;                   ///< bytes of adapter_model.safetensors
};

inline constexpr const char* kAdapterWeights = "adapter_model.safetensors";
inline constexpr const char* kAdapterConfig = "adapter_config.json";
/// Key of adapter_config.json that says where the model lay.
inline constexpr const char* kAdapterBase = "base_model_name_or_path";

/// Whether a folder holds an adapter and no model.
bool is_adapter(const std::filesystem::path& folder);

/// Why write_adapter() refuses changes of the weight; empty: it takes them.
std::string why_not_in_adapter(const ModelConfig& config, WeightId id);

/// Writes adapter_model.safetensors and adapter_config.json into the existing folder. Each module has
/// `base_model.model.MODULE.lora_A.weight` [r, in] and `.lora_B.weight` [out, r] in the orientation of a linear layer,
/// whatever the checkpoint stores; their product is the sum of the changes, scaling is 1. r is the same everywhere: the
/// least of kAdapterRanks that every module's change fits in, padded with zeros. Factors that fit stay as they are.
/// Others, and dense changes, are factored again in f64 (a QR of either side, an SVD of the core between them), the
/// singular values' square roots on both sides.
///
/// Weights that are parts of one tensor share its module: lora_B has zeros in the rows of the others. Experts have a
/// module each, all of their layer, and with a gate or up projection come all three, zeros where nothing changes: PEFT
/// stacks them. Down projections of experts in one tensor, and of families whose experts PEFT does not know by the
/// files' names (Family::experts_parameter), have one pair, and stand in `target_parameters` (ParamWrapper in
/// tuners/lora/layer.py): lora_A [experts * r, in], lora_B [out, r * experts], of each direction all experts'.
/// `target_modules` are whole names, so that no other module is touched.
///
/// Throws: ConfigError for what PEFT cannot load (embeddings, positions, vectors, routers and dense layers of models
/// with experts, quantised experts in one tensor, gates and ups of experts by parameter, mixers' output projections
/// where Family::refuses_mixer_lora, GPT-NeoX's head, whose name depends on transformers' version), each named, for
/// options that are none, for changes that are all zero, and by ExcessRank::kRefuse; NumericError for numbers that are
/// not finite or leave the factors' type; std::logic_error for changes of another shape than their weight's;
/// CheckpointError when the disk refuses.
AdapterReport write_adapter(const std::filesystem::path& folder, const ModelConfig& config,
                            std::span<const WeightChanges> changes, const AdapterOptions& options);

/// What read_adapter() would give of what write_adapter() would write. Throws: as write_adapter().
std::vector<WeightChanges> changes_in_adapter(const ModelConfig& config, std::span<const WeightChanges> changes,
                                              const AdapterOptions& options);

/// The changes that an adapter of PEFT makes, in model order, on the host, at least in f32, with the scaling
/// (lora_alpha / r, or lora_alpha / sqrt(r) with use_rslora) in their left factors. Directions of zeros are left out,
/// and so are weights without any other. Of experts whose ranks add up to a full one the change is dense.
/// Throws: CheckpointError for files that are absent or damaged, or do not agree with each other or with the model's
/// shapes; ConfigError for adapters that are whole and change what lancet does not know: modules that are not in the
/// model's table, other methods than LoRA, DoRA, ranks or alphas by module, biases, modules to save and the like, each
/// named.
std::vector<WeightChanges> read_adapter(const std::filesystem::path& folder, const ModelConfig& config);

}  // namespace lancet
