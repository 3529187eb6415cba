// What the keys of other tools' hyper-parameter files are in a job. Source: the files of EasyEdit @14cea82, memit
// @80426fd, AlphaEdit @f5248d3, unified-model-editing @23d72b5 and UltraEdit @0beb222 (names and meanings of keys).
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "lancet/core/config_section.h"
#include "lancet/job_setup/imported_hparams.h"

namespace lancet {

/// One file under way.
struct HparamsImport {
  std::filesystem::path folder;  ///< the file's folder
  std::string method;
  const ModelConfig* model = nullptr;
  ConfigSection& file;
  ConfigTree job = ConfigTree::map();

  /// Puts a value under a dotted key of the job.
  void put(std::string_view dotted_key, ConfigTree value);
};

struct KeyFate {
  ImportedKey::Fate fate;
  std::string what;
};

struct HparamsRule {
  std::string_view key;
  std::string_view methods;   ///< its methods, with blanks around each; empty: all that no rule above names
  std::string_view to;        ///< a number goes to this key of editor; empty: `why` or `map` say what is done
  std::string_view why = {};  ///< the key is not used
  KeyFate (*map)(HparamsImport& import, const std::string& key) = nullptr;
};

/// The rule for a key; null when no file that is known has it.
const HparamsRule* find_rule(std::string_view key, std::string_view method);

}  // namespace lancet
