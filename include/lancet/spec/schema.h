// What is made of the declarations for people and for their editors.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lancet/spec/option.h"

namespace lancet {

/// A row of a table elsewhere in the program.
struct NamedRow {
  std::string name;
  std::string summary;
  std::vector<std::string> metrics = {};  ///< a protocol's metrics that are shares
};

/// What the declarations leave to other tables.
struct SpecTables {
  std::vector<NamedRow> methods, protocols;
  std::vector<std::string> formats;
};

/// JSON Schema (draft 2020-12) of the job file. What hangs on the model, on files, or on the order of numbers is not in
/// it.
std::string job_schema(const SpecTables& tables);

/// JSON Schema of a section alone, none of whose options names what another table lists.
std::string section_schema(std::span<const AnyOption> options);

/// The page docs/options.md.
std::string options_reference(const SpecTables& tables);

/// What `--set` takes: "run.dtype", each once.
std::vector<std::string> dotted_job_keys();

}  // namespace lancet
