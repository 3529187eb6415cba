#include "edit_setup.h"

#include "lancet/core/strings.h"
#include "lancet/io/files.h"

namespace lancet::testing {

std::vector<EditRequest> some_requests(int64_t count) {
  static const std::vector<std::string> kNames{"Danielle Darrieux", "Piranha Games", "Tina Arena",
                                               "Watts Humphrey",    "Mikkeli",       "Leon Blum"};
  static const std::vector<std::string> kTargets{"London", "French", "the city of Rome", "Australia", "a piano"};
  ConfigTree list = ConfigTree::list({});
  for (int64_t i = 0; i < count; ++i) {
    const size_t n = static_cast<size_t>(i);
    ConfigTree record = ConfigTree::map();
    record.set("prompt", ConfigTree::text(i % 2 == 0 ? "{} was born in" : "The mother tongue of {} is"));
    record.set("subject", ConfigTree::text(cat(kNames[n % kNames.size()], i < 6 ? "" : cat(" ", i))));
    record.set("target", ConfigTree::text(kTargets[n % kTargets.size()]));
    record.set("target_true", ConfigTree::text(kTargets[(n + 2) % kTargets.size()]));
    list.items.push_back(std::move(record));
  }
  return parse_requests(list);
}

std::unique_ptr<Editor> editor_from(const std::string& yaml) {
  const ConfigTree tree = parse_config(yaml, "test");
  ConfigProblems problems("test");
  ConfigSection section(tree, "editor", problems);
  std::unique_ptr<Editor> editor = make_editor(section);
  problems.throw_if_any();
  return editor;
}

std::filesystem::path write_corpus(const std::filesystem::path& folder, int64_t lines) {
  std::string text;
  for (int64_t i = 0; i < lines; ++i)
    text += cat("Sentence ", i, " says that the river", i % 3 == 0 ? " near the town of Mikkeli" : "", " is ",
                (i * 37) % 101, " miles long.\n");
  const std::filesystem::path path = folder / "corpus.txt";
  write_text_file(path, text);
  return path;
}

}  // namespace lancet::testing
