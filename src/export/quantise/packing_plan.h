// Which matrices of a model are packed, and what each of them reads.
#pragma once

#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "lancet/export/quantise_job.h"
#include "lancet/models/model_files.h"
#include "lancet/models/weight_table.h"

namespace lancet {

/// The groups of a layer's matrices, by their inputs.
enum class MatrixInput : uint8_t {
  kNormed,        ///< input of queries, keys and values
  kHeads,         ///< input of attention's output projection
  kMlpNormed,     ///< input of gate and up projections
  kMlpKey,        ///< input of down projections
  kSharedNormed,  ///< input of gate and up projections of the MLP beside experts
  kSharedKey,     ///< input of its down projection
  kQueryVector,   ///< what latent attention makes queries of, where it is a vector of their own
  kKeyVector,     ///< what it makes keys and values of
  kMixerHeads     ///< input of the output projection of a mixer beside attention
};
inline constexpr MatrixInput kAllMatrixInputs[] = {
    MatrixInput::kNormed,      MatrixInput::kHeads,        MatrixInput::kMlpNormed,
    MatrixInput::kMlpKey,      MatrixInput::kSharedNormed, MatrixInput::kSharedKey,
    MatrixInput::kQueryVector, MatrixInput::kKeyVector,    MatrixInput::kMixerHeads};
inline constexpr size_t kMatrixInputs = std::size(kAllMatrixInputs);

/// Whether matrices of that layer read it.
bool has_input(const ModelConfig& config, int64_t layer, MatrixInput input);

/// A matrix's place in the model.
struct StoredRows {
  std::string tensor = {};
  int64_t begin = 0;  ///< its first row in a tensor [experts, rows, columns], all experts' counted
  int64_t rows = 0;   ///< its rows there; 0: the tensor is the matrix
};

/// One tensor of the output, which may hold several weights: they read the same.
struct PlannedMatrix {
  std::string name = {};  ///< "model.layers.3.mlp.down_proj.weight"
  StoredRows from = {};
  int64_t layer = 0;
  MatrixInput input = MatrixInput::kNormed;
  int64_t expert = 0;  ///< number in a layer with experts, whose `input` is that of the MLP
  MatrixCode code = {};
  bool is_turned = false;  ///< stored [in, out]
};

/// An expert's matrix that shared a tensor, and does not in the output.
struct PlainMatrix {
  std::string name = {};
  StoredRows from = {};
};

struct PackingPlan {
  std::string config_text = {};              ///< config.json of the output
  std::vector<PlannedMatrix> matrices = {};  ///< tensors to pack, by layer
  std::vector<PlainMatrix> apart = {};  ///< experts' tensors of full precision: all of a model have their own, or none
  /// The weights that lie in them, with `stored` as the packed matrices have it: [out, in].
  std::vector<WeightSpec> weights = {};
  std::vector<std::string> in_full_precision = {};  ///< modules that do not fit, though the format is for such
};

/// The matrix's bytes, [out, in], or [in, out] where they are stored so.
TensorView view_of(const Checkpoint& checkpoint, const StoredRows& place);

/// Embedding, head, norms, biases and routers stay. Experts in one tensor get the names that the family's files have
/// for each one's matrices, as llm-compressor and GPTQModel write them. Throws: ConfigError when no matrix fits, or the
/// format is not for the family's layers; CheckpointError.
PackingPlan plan_packing(const ModelFiles& files, QuantisedFormat format, int64_t bits);

}  // namespace lancet
