// The prompts with which an audit asks for a fact.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "lancet/erasure/audit.h"

namespace lancet {

/// Returns the openings that the audit puts before a prompt, in the form of contexts.
std::span<const std::string_view> audit_openings();

/// Fills in the prompts of the facts, from their requests and old answers. Leaves out prompts that are too long for the
/// model together with their answer, and paraphrases that equal the own prompt.
void add_audit_prompts(std::vector<ErasedFact>& facts, const Tokenizer& tokenizer, int64_t max_positions);

}  // namespace lancet
