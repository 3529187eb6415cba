// What two models compute otherwise, by their configurations.
#pragma once

#include <string>
#include <vector>

#include "lancet/models/model_config.h"

namespace lancet {

/// Returns the keys of config.json that the differences come from; empty: both compute the same. Numbers that differ by
/// less than f32 shows are equal. A model `one` without ends of answers may get some. Names of families, types and
/// quantisation do not count.
std::vector<std::string> differing_keys(const ModelConfig& one, const ModelConfig& other);

}  // namespace lancet
