// Decides about each key of config.json: it is read, it has no effect, transformers ignores it, or it is refused.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/models/families.h"

namespace lancet {

/// Whether the family reads the key, or knows that no computation depends on it.
bool is_known(const Family& family, std::string_view key);

/// Whether the value means "none": null, false, an empty text, list or object, 0 for a size or a count, and layer_types
/// that are all the usual type.
bool says_nothing(std::string_view key, const nlohmann::json& value);

/// Whether transformers' causal class of this model_type has a configuration around the language model's. Then only the
/// tie_word_embeddings of the outer one counts.
bool ties_above(const std::string& model_type);

/// An object of keys that one of transformers' configuration classes reads.
struct KeysOfClass {
  const nlohmann::json& keys;
  std::string model_type;       ///< the class; empty, or not among lancet's families: unknown
  bool has_own_code = false;    ///< config.json names code beside it, which may read any key (auto_map)
  std::string_view apart = {};  ///< a key that is checked separately
};

struct KeyFindings {
  std::vector<std::string> problems;  ///< keys that are refused, and why
  std::vector<std::string> unread;    ///< keys with a value that neither transformers nor lancet reads
};

/// Adds what it finds. `ignored`: keys that the job says to ignore.
void check_keys(const KeysOfClass& keys, const Family& family, std::span<const std::string> ignored,
                KeyFindings& findings);

}  // namespace lancet
