// `lancet diff --edits`: which edits two outputs have, by their journals. Schema: docs/diff.md.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "lancet/journal/journal.h"

namespace lancet {

/// Two edits of one fact with other targets, the first journal's first.
using Contradiction = std::pair<EditRequest, EditRequest>;

struct EditsDiff {
  JournalBase base_before = {}, base_after = {};
  size_t common = 0;                                           ///< edits of one fact, with equal targets
  std::vector<EditRequest> only_before = {}, only_after = {};  ///< edits, in the order in which they were edited
  std::vector<Contradiction> contradictions = {};              ///< pairs, in the first journal's order
  /// Edits that a later one of the same journal replaced: they count in nothing else.
  size_t superseded_before = 0, superseded_after = 0;

  bool has_one_base() const { return base_before.weights == base_after.weights; }
};

/// Edits are of one fact when subject and relation are equal, where both have them, or the filled prompts are. Targets
/// are compared without spaces around them.
EditsDiff compare_journals(const Journal& before, const Journal& after);

/// Compares the edits of two outputs. Throws: ConfigError for a folder without edits/, CheckpointError for a damaged
/// journal.
EditsDiff compare_edits(const std::filesystem::path& before, const std::filesystem::path& after);

std::string to_json(const EditsDiff& diff, const std::filesystem::path& before, const std::filesystem::path& after);

}  // namespace lancet
