// The parts of an edit that are compared with other edits: its texts, normalised.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lancet/edit_history/conflicts.h"

namespace lancet {

struct ComparedEdit {
  EditPlace place = {};
  const EditRequest* request = nullptr;  ///< the request in its history
  std::string subject = {}, relation = {}, target = {};
  std::string prompt = {};            ///< prompt with "{}" in place of the subject
  std::vector<TokenId> key_ids = {};  ///< token ids up to the lookup token; empty if there is none
};

/// Returns the edits of all histories, batch by batch.
std::vector<ComparedEdit> compared_edits(std::span<const EditHistory* const> histories);

bool has_same_target(const ComparedEdit& one, const ComparedEdit& other);

}  // namespace lancet
