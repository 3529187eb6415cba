#include "edit_setup.h"

#include <torch/types.h>

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

ResolvedJob job_with_editor(const std::string& yaml) { return with_editor({}, parse_config(yaml, "test"), "test"); }

std::filesystem::path write_corpus(const std::filesystem::path& folder, int64_t lines) {
  std::string text;
  for (int64_t i = 0; i < lines; ++i)
    text += cat("Sentence ", i, " says that the river", i % 3 == 0 ? " near the town of Mikkeli" : "", " is ",
                (i * 37) % 101, " miles long.\n");
  const std::filesystem::path path = folder / "corpus.txt";
  write_text_file(path, text);
  return path;
}

Tensor plain_moment(const CausalLM& model, const CorpusTokens& corpus, int64_t layer) {
  Tensor sum = torch::zeros({model.config().d_ffn, model.config().d_ffn}, torch::kDouble);
  for (const auto& document : corpus.documents) {
    HookSet hooks;
    hooks.observe({HookPoint::kMlpKey, layer}, [&](const Tensor& keys) {
      for (int64_t t = corpus.only_ends ? keys.size(1) - 1 : 0; t < keys.size(1); ++t)
        sum += torch::outer(keys[0][t], keys[0][t]);
    });
    const TokenBatch batch = make_batch(std::vector<std::vector<TokenId>>{document});
    model.run_layers(model.embed(batch.ids_BT, batch.sequence), batch.sequence, model.all_layers(), hooks);
  }
  return sum / static_cast<double>(corpus.only_ends ? std::ssize(corpus.documents) : corpus.tokens);
}

}  // namespace lancet::testing
