#include "inside_edits.h"

#include "lancet/core/error.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/journal/journal.h"

namespace lancet {

Json inside_edits(const std::filesystem::path& model) {
  const std::optional<std::filesystem::path> found = find_journal(model);
  if (!found) return nullptr;
  try {
    const Journal journal = Journal::read(*found);
    return {{"edits", edits_json(journal).at("edits")}, {"base", journal.base().folder}, {"problem", ""}};
  } catch (const Error& error) {
    const std::string problem = cat("the edits inside the model are not listed: ", error.what());
    log_warning(problem);
    return {{"edits", Json::array()}, {"base", ""}, {"problem", problem}};
  }
}

}  // namespace lancet
