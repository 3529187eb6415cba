// What an audit asks of a fact.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "lancet/erasure/audit.h"

namespace lancet {

/// Openings that the audit puts before a prompt, as contexts have them.
std::span<const std::string_view> audit_openings();

/// Fills in the facts' prompts, from their requests and old answers. Prompts that with their answer go beyond the
/// model's positions are left out, and a paraphrase that is the own prompt.
void add_audit_prompts(std::vector<ErasedFact>& facts, const Tokenizer& tokenizer, int64_t max_positions);

}  // namespace lancet
