// `lancet diff --edits`: compares the edits of two outputs by their journals. Schema: docs/diff.md.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "lancet/journal/journal.h"

namespace lancet {

/// Two edits of one fact with different targets; the first journal's edit comes first.
using Contradiction = std::pair<EditRequest, EditRequest>;

struct EditsDiff {
  JournalBase base_before = {}, base_after = {};
  size_t common = 0;                                           ///< edits of the same fact with equal targets
  std::vector<EditRequest> only_before = {}, only_after = {};  ///< edits, in the order in which they were made
  std::vector<Contradiction> contradictions = {};              ///< pairs, in the order of the first journal
  /// Edits that a later edit of the same journal replaced. They count nowhere else.
  size_t superseded_before = 0, superseded_after = 0;

  bool has_one_base() const { return base_before.weights == base_after.weights; }
};

/// Two edits are of one fact if subject and relation are equal, where both edits have them, or if the filled prompts
/// are equal. Targets are compared without the spaces around them.
EditsDiff compare_journals(const Journal& before, const Journal& after);

/// Compares the edits of two outputs. Throws: ConfigError for a folder without edits/; CheckpointError for a damaged
/// journal.
EditsDiff compare_edits(const std::filesystem::path& before, const std::filesystem::path& after);

std::string to_json(const EditsDiff& diff, const std::filesystem::path& before, const std::filesystem::path& after);

}  // namespace lancet
