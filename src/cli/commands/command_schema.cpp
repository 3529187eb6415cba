// `lancet schema`: the keys of a job, for text editors and for people.
#include <algorithm>
#include <iostream>
#include <memory>

#include "commands.h"
#include "lancet/editors/registry.h"
#include "lancet/eval/protocol.h"
#include "lancet/requests/request.h"
#include "lancet/spec/schema.h"

namespace lancet::cli {
namespace {

NamedRow row_of(const ProtocolRow& protocol) {
  NamedRow row{std::string(protocol.name), std::string(protocol.summary)};
  for (const std::string_view metric : protocol.metrics)
    if (std::find(protocol.no_shares.begin(), protocol.no_shares.end(), metric) == protocol.no_shares.end())
      row.metrics.emplace_back(metric);
  return row;
}

SpecTables tables() {
  SpecTables tables;
  for (const EditorRow& row : editor_table())
    tables.methods.push_back({std::string(row.name), std::string(row.summary)});
  for (const ProtocolRow& row : protocol_table()) tables.protocols.push_back(row_of(row));
  tables.formats = request_formats();
  return tables;
}

}  // namespace

void add_schema(CLI::App& app, Action& action) {
  auto is_reference = std::make_shared<bool>(false);
  CLI::App& command = add_command(
      app, "schema",
      "Print the JSON Schema of the job file, with which an editor completes and checks it.\n"
      "  lancet schema > lancet.schema.json    and in the job: # yaml-language-server: $schema=lancet.schema.json");
  add_flag(command, "--reference", *is_reference, "Print the page docs/options.md instead: every option, in Markdown");
  on_choice(command, action, [is_reference] {
    std::cout << (*is_reference ? options_reference(tables()) : job_schema(tables()));
    return ExitCode::kOk;
  });
}

}  // namespace lancet::cli
