// Lets a model write what an evaluation asks for.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lancet/eval/questions.h"
#include "lancet/models/causal_lm.h"
#include "lancet/runtime/communicator.h"

namespace lancet {

struct TextWriter {
  const CausalLM& model;
  const Tokenizer& tokenizer;
  const std::string& stage;  ///< what the progress shows
};

/// Collective: rows are spread over ranks, all of which get the whole. One answer for each text.
void answer_texts(std::span<const TextQuestion> texts, const TextWriter& writer, Communicator& communicator,
                  std::vector<std::optional<GeneratedText>>& answers);

}  // namespace lancet
