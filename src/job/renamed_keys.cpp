#include "lancet/job/renamed_keys.h"

#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

struct Renamed {
  const char* section;
  const char* old_name;
  const char* present_name;
};

/// A row goes when the next version is out.
constexpr Renamed kRenamed[] = {{"run", "frozen", "quantise_base"}, {"evaluate", "costs", "side_effects"}};

/// What an option of an editor may stand for, wherever a job has such options.
constexpr Renamed kShare{"", "attained_share", "realised_share"};

/// What happens to names, and where.
struct Renaming {
  const std::string& source;
  std::vector<std::string>& renamed;  ///< PresentNames::renamed

  /// Gives the present name to a key that stands in `tree` by its old one. `where`: ends in a dot unless it is empty.
  void rename(ConfigTree& tree, const std::string& where, const Renamed& key) const {
    if (tree.kind != ConfigTree::Kind::kMap || tree.find(key.old_name) == nullptr) return;
    const std::string line = cat(where, key.old_name, " is called ", where, key.present_name, " now");
    if (tree.find(key.present_name) != nullptr)
      throw ConfigError(cat(source, ": ", line, ": expected one of the two names"));
    for (auto& [name, value] : tree.entries)
      if (name == key.old_name) name = key.present_name;
    renamed.push_back(line);
  }

  void rename_shares(ConfigTree& tree, const std::string& where) const {
    for (ConfigTree& item : tree.items) rename_shares(item, where);
    for (auto& [key, value] : tree.entries) rename_shares(value, cat(where, key, "."));
    rename(tree, where, kShare);
  }
};

}  // namespace

PresentNames with_present_names(ConfigTree job, const std::string& source) {
  PresentNames names{std::move(job), {}};
  const Renaming renaming{source, names.renamed};
  for (const Renamed& key : kRenamed)
    for (auto& [name, section] : names.tree.entries)
      if (name == key.section) renaming.rename(section, cat(key.section, "."), key);
  renaming.rename_shares(names.tree, "");
  return names;
}

ConfigTree options_with_present_names(ConfigTree options, const std::string& source) {
  std::vector<std::string> renamed;
  Renaming{source, renamed}.rename_shares(options, "");
  return options;
}

}  // namespace lancet
