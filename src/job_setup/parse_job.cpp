#include "lancet/job_setup/parse_job.h"

#include <memory>

#include "lancet/editors/registry.h"
#include "lancet/eval/protocol.h"

namespace lancet {
namespace {

std::optional<MethodNeeds> read_editor(ConfigSection& section) {
  const std::unique_ptr<Editor> editor = make_editor(section);
  if (editor == nullptr) return std::nullopt;
  const EditorNeeds needs = editor->needs();
  return MethodNeeds{.statistics = needs.statistics,
                     .null_space = needs.null_space.has_value(),
                     .curvature = needs.curvature,
                     .values = editor->values() != nullptr};
}

JobTables tables_of_program() {
  JobTables tables{.read_editor = read_editor};
  for (const ProtocolRow& row : protocol_table()) tables.protocols.push_back({row.name, row.metrics, row.no_shares});
  return tables;
}

}  // namespace

const JobTables& job_tables() {
  static const JobTables kTables = tables_of_program();
  return kTables;
}

JobConfig parse_job(const ConfigTree& tree, const std::filesystem::path& base, const std::string& source,
                    JobPurpose purpose) {
  return parse_job(tree, base, source, purpose, job_tables());
}

}  // namespace lancet
