// Converts hyper-parameter files of EasyEdit (YAML), memit, AlphaEdit, unified-model-editing and UltraEdit (JSON or
// YAML) to sections of a job.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/core/config_tree.h"
#include "lancet/models/model_config.h"

namespace lancet {

/// The result for one key of the file.
struct ImportedKey {
  enum class Fate {
    kMapped,   ///< `what` names the key of the job
    kSame,     ///< it asks for lancet's only behaviour
    kNotUsed,  ///< `what` says why
    kUnknown   ///< not a key of any file that lancet knows; not used
  };
  std::string key;
  std::string value;  ///< YAML on one line
  Fate fate = Fate::kUnknown;
  std::string what;
};

/// Returns "mapped", "same", "not used" or "unknown".
std::string_view fate_name(ImportedKey::Fate fate);

struct ImportedHparams {
  std::string method;
  ConfigTree job;                 ///< `editor`, and `statistics` and `run` if the file sets them
  std::vector<ImportedKey> keys;  ///< every key of the file, in its order
};

/// Converts a file. `method`: if it is empty, it is found by alg_name or by the keys. `model`: may be null; layers are
/// then not checked against it. Throws: ConfigError if the file cannot be read, if its method is unknown or ambiguous,
/// if a value has another type than expected, or if a value that matters to the method asks for what lancet does not
/// support (a module other than the MLP's projections, a token other than the subject's last).
ImportedHparams import_hparams(const std::filesystem::path& file, const std::string& method, const ModelConfig* model);

}  // namespace lancet
