// How well edits hold that stood before others were made, or at any later time.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "lancet/eval/evaluate.h"
#include "lancet/journal/journal.h"

namespace lancet {

struct StandingMeasure {
  std::vector<EditRequest> requests = {};
  Evaluation now = {};  ///< evaluation of them, on the weights with all edits
};

/// Returns for the journal, by id, what was measured `before` an edit, and how it holds now.
std::map<std::string, MeasuredEdit> measured_again(const StandingMeasure& measure, const Journal& journal);

/// "2 of 3 earlier edits still hold (the model says the target)"; empty: none was measured.
std::string standing_text(const StandingMeasure& measure);

}  // namespace lancet
