// Configurations of small random models of every family, which have what the family's public models have.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace lancet::testing {

struct FamilyModel {
  std::string name;
  std::string
      config;  ///< config.json: 5 layers, most of hidden size 32 and MLP size 48, the demo tokenizer's vocabulary
  bool is_row = false;  ///< a dense family of tests/fixtures/families, which is little but a row of the table
};

/// Windows are of 5 tokens.
const std::vector<FamilyModel>& family_models();

inline void PrintTo(const FamilyModel& model, std::ostream* out) { *out << model.name; }

}  // namespace lancet::testing
