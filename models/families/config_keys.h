// What becomes of each key of config.json: it is read, it says nothing, transformers ignores it, or it is refused.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/models/families.h"

namespace lancet {

/// Whether the family reads the key, or knows that no computation hangs on it.
bool is_known(const Family& family, std::string_view key);

/// Whether a value is there that means "none": null, false, nothing in quotes, a list or an object of nothing, 0 where
/// it is a size or a count, and layer_types that are all the usual.
bool says_nothing(std::string_view key, const nlohmann::json& value);

/// Whether transformers' causal class of this model_type has the configuration above the language model's: then
/// tie_word_embeddings counts there alone.
bool ties_above(const std::string& model_type);

/// An object of keys that one of transformers' configuration classes reads.
struct KeysOfClass {
  const nlohmann::json& keys;
  std::string model_type;       ///< which class; empty, or none of lancet's families: unknown
  bool has_own_code = false;    ///< config.json names code beside it, which may read any key (auto_map)
  std::string_view apart = {};  ///< a key that is looked at on its own
};

struct KeyFindings {
  std::vector<std::string> problems;  ///< keys that are refused, and why
  std::vector<std::string> unread;    ///< keys that neither transformers nor lancet reads, and that say something
};

/// Adds what is found. `ignored`: keys that the user vouches for.
void check_keys(const KeysOfClass& keys, const Family& family, std::span<const std::string> ignored,
                KeyFindings& findings);

}  // namespace lancet
