// The rules that turn keys of other tools' hyper-parameter files into keys of a job. Source: the files of EasyEdit
// @14cea82, memit @80426fd, AlphaEdit @f5248d3, unified-model-editing @23d72b5 and UltraEdit @0beb222 (names and
// meanings of keys).
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "lancet/core/config_section.h"
#include "lancet/job_setup/imported_hparams.h"

namespace lancet {

/// The import of one file.
struct HparamsImport {
  std::filesystem::path folder;  ///< the file's folder
  std::string method;
  const ModelConfig* model = nullptr;
  ConfigSection& file;
  ConfigTree job = ConfigTree::map();

  /// Sets a dotted key of the job.
  void put(std::string_view dotted_key, ConfigTree value);
};

struct KeyFate {
  ImportedKey::Fate fate;
  std::string what;
};

struct HparamsRule {
  std::string_view key;
  std::string_view methods;   ///< the rule's methods, with a blank before and after each; empty: all methods that no
                              ///< earlier rule names
  std::string_view to;        ///< the key of editor that a number goes to; empty: `why` or `map` says what is done
  std::string_view why = {};  ///< why the key is not used
  KeyFate (*map)(HparamsImport& import, const std::string& key) = nullptr;
};

/// Returns the rule for a key; null if no known file has this key.
const HparamsRule* find_rule(std::string_view key, std::string_view method);

}  // namespace lancet
