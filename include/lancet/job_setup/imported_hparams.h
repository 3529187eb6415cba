// Hyper-parameter files of EasyEdit (YAML), memit, AlphaEdit, unified-model-editing and UltraEdit (JSON or YAML), as
// sections of a job.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/core/config_tree.h"
#include "lancet/models/model_config.h"

namespace lancet {

/// What became of one key of the file.
struct ImportedKey {
  enum class Fate {
    kMapped,   ///< `what` says to which key of the job
    kSame,     ///< it asks for what lancet does anyway
    kNotUsed,  ///< `what` says why
    kUnknown   ///< no key of any file that lancet knows; not used
  };
  std::string key;
  std::string value;  ///< YAML on one line
  Fate fate = Fate::kUnknown;
  std::string what;
};

/// "mapped", "same", "not used" or "unknown".
std::string_view fate_name(ImportedKey::Fate fate);

struct ImportedHparams {
  std::string method;
  ConfigTree job;                 ///< `editor`, and where the file says so `statistics` and `run`
  std::vector<ImportedKey> keys;  ///< every key of the file, in its order
};

/// `method`: empty: found by alg_name or by the keys. `model`: may be null; layers are then not checked against it.
/// Throws: ConfigError when the file cannot be read, its method is not known or not clear, a value is of another type
/// than expected, or asks for what lancet does not do and the method hangs on (a module other than the MLP's
/// projections, a token other than the subject's last).
ImportedHparams import_hparams(const std::filesystem::path& file, const std::string& method, const ModelConfig* model);

}  // namespace lancet
