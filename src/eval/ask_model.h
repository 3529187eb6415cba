// Asks a model questions. Defined in questions.cpp.
#pragma once

#include <string>
#include <vector>

#include "lancet/eval/evaluate.h"

namespace lancet {

/// A selection of the questions, as ascending indices.
struct QuestionPart {
  std::vector<size_t> continuations;
  std::vector<size_t> texts;

  static QuestionPart all(const ModelQuestions& questions);
};

struct QuestionedModel {
  const CausalLM& model;
  const Tokenizer& tokenizer;
  const std::string& stage;  ///< the stage that progress shows
};

/// Collective. Spreads the rows over the ranks; all ranks get all answers.
ModelAnswers ask_model(const ModelQuestions& questions, const QuestionPart& part, const QuestionedModel& questioned,
                       Communicator& communicator);

/// Returns the size of the work that ask_model() does for this part.
EvaluationSize size_of(const ModelQuestions& questions, const QuestionPart& part);

}  // namespace lancet
