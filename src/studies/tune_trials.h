// The choices of values that a tune tries.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lancet/studies/tune_job.h"

namespace lancet {

/// The axes to search where the job names none: numbers of the method around the job's own, its layers shifted.
/// `editor`: resolved; `targets`: its weights. What is auto is searched around what it stands for. `n_layers`: of the
/// model.
std::vector<SearchAxis> default_search(const ConfigTree& editor, const std::vector<WeightId>& targets,
                                       int64_t n_layers);

/// Draws at most `count` choices: the job's own first, then others of the axes' product, by `seed` without repetition.
std::vector<Trial> draw_trials(const ConfigTree& editor, const std::vector<SearchAxis>& axes, int64_t count,
                               uint64_t seed);

/// The job's editor with a trial's values in it. Throws: ConfigError when a key runs through what is no map.
ConfigTree editor_of(const Trial& trial, ConfigTree editor);

/// Requests of each round, the last one's all: so many rounds that at most `halve` trials are left for the last, or as
/// many as the requests allow.
std::vector<int64_t> plan_rounds(int64_t trials, int64_t requests, int64_t halve);

/// Returns the harmonic mean of metrics in [0, 1].
double harmonic_mean(const std::vector<std::pair<std::string, double>>& metrics);

/// Those that came further are better, then those with the higher last score; failed ones are worst. A strict weak
/// order.
bool is_better(const Trial& a, const Trial& b);

}  // namespace lancet
