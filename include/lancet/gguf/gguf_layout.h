// How a model of a Hugging Face folder is laid out as a GGUF file: its metadata, and the place of each weight. The
// table of architectures, from which GGUF files are read, is used in the other direction.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/gguf/gguf_model.h"
#include "lancet/gguf/gguf_writing.h"

namespace lancet {

struct GgufArchitecture;
struct GgufTensorRow;

/// Numbers of config.json by their keys; flags are 0 and 1.
using ConfigNumbers = std::map<std::string, double, std::less<>>;

/// The rotary embedding, as metadata says it.
struct GgufRope {
  int64_t dim = 0;
  double theta = 1e4;
  std::string scaling = "none";  ///< "none", "linear", "yarn"; or "llama3" and
                                 ///< "longrope", whose factors are tensors
  double factor = 1;
  int64_t original_positions = 0;           ///< of "yarn", "llama3" and "longrope"
  double fast_turns = 32, slow_turns = 1;   ///< of "yarn"
  std::optional<double> window_theta = {};  ///< of layers with a window, if it is another one
  std::vector<float> short_factors = {};    ///< of "longrope", as the two below
  std::vector<float> long_factors = {};
  double amplitude = 1;
  double log_share = 0;                             ///< of "yarn": mscale_all_dim
  std::vector<int32_t> sections = {11, 11, 10, 0};  ///< pairs that turn by time, height, width; texts have one position
};

// Names of numbers that metadata has and that are no keys of config.json: of latent attention the sizes of a head's key
// and value, and of what llama.cpp has in their place where it absorbs projections; how routers score.
inline constexpr std::string_view kLatentKeySize = "latent_key_size", kLatentValueSize = "latent_value_size",
                                  kAbsorbedKeySize = "absorbed_key_size", kAbsorbedValueSize = "absorbed_value_size",
                                  kGatingFunction = "gating_function";
/// Values of kGatingFunction, which are metadata's.
inline constexpr int64_t kSoftmaxGating = 1, kSigmoidGating = 2;

/// What a tensor has of a weight.
enum class GgufPart {
  kWhole,
  kLatentKeys,   ///< of latent attention the matrices of each head's keys, turned: [heads, rank, plain part]
  kLatentValues  ///< those of values: [heads, value, rank]
};

/// The place of a weight in the file.
struct GgufPlaceOf {
  std::string tensor;  ///< "blk.3.ffn_down.weight"
  GgufChange change = GgufChange::kNone;
  GgufHeads heads = {};  ///< of changes of the rows' order
  int64_t expert = -1;   ///< its place in the tensor's first dimension; -1: the whole tensor
  GgufPart part = GgufPart::kWhole;
  int64_t plain_dim = 0;  ///< of latent attention: numbers of a head's key without the turned part
  bool is_flat = false;   ///< without the dimension of size 1 that the model's class has
  bool is_kept = false;   ///< llama.cpp wants it in F32, whatever the type of the others
};

class GgufLayout {
 public:
  /// `numbers`: all sizes are among them. `where`: of config.json, for messages. Throws: CheckpointError for a model
  /// type that no architecture of the table has.
  GgufLayout(std::string_view model_type, ConfigNumbers numbers, std::string where);

  std::string_view architecture() const;
  /// Returns general.architecture and all metadata that begins with the architecture's name.
  std::vector<GgufEntry> metadata(const GgufRope& rope) const;
  /// Returns one place, or those of the two parts of latent attention's heads. Throws: CheckpointError for a weight
  /// that the architecture does not have.
  std::vector<GgufPlaceOf> places_of(std::string_view weight) const;

 private:
  GgufPlaceOf place_of(std::string_view weight) const;
  GgufPlaceOf place_in(const GgufTensorRow& row, const std::array<int64_t, 2>& numbers, std::string_view end) const;

  const GgufArchitecture* architecture_;
  ConfigNumbers numbers_;
  std::string where_;
};

/// A tensor of F32 that belongs to the rotary embedding.
struct GgufRopeTensor {
  std::string name;
  std::vector<float> numbers;
};

/// Returns what frequencies are divided by, [dim / 2] each, where `rope` has such factors.
std::vector<GgufRopeTensor> gguf_rope_tensors(const GgufRope& rope);

/// "llama, qwen2, ...": model types that can be written.
std::string gguf_model_types();

}  // namespace lancet
