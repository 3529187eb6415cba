// The combinations of values that a tune tries.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lancet/studies/tune_job.h"

namespace lancet {

/// Returns the axes to search if the job names none: numbers around those of the job, and shifted layers. `editor`:
/// resolved. `targets`: its weights. Around an option that is auto, the search starts from the value that auto gives.
/// `n_layers`: of the model.
std::vector<SearchAxis> default_search(const ConfigTree& editor, const std::vector<WeightId>& targets,
                                       int64_t n_layers);

/// Draws at most `count` combinations: first the job's own, then others by `seed`, without repetition.
std::vector<Trial> draw_trials(const ConfigTree& editor, const std::vector<SearchAxis>& axes, int64_t count,
                               uint64_t seed);

/// Returns the job's editor with a trial's values. Throws: ConfigError if a part of a dotted key is not a map.
ConfigTree editor_of(const Trial& trial, ConfigTree editor);

/// Returns the number of requests of each round; the last round has all. There are so many rounds that at most `halve`
/// trials are left for the last one, or as many rounds as the number of requests allows.
std::vector<int64_t> plan_rounds(int64_t trials, int64_t requests, int64_t halve);

/// Returns the harmonic mean of metrics in [0, 1].
double harmonic_mean(const std::vector<std::pair<std::string, double>>& metrics);

/// Whether `a` is better: trials that reached a later round are better, then those with the higher last score; failed
/// ones are worst. This is a strict weak order.
bool is_better(const Trial& a, const Trial& b);

}  // namespace lancet
