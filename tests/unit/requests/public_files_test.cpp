// The first records of public data sets, as their authors wrote them (tests/fixtures/requests/public).
#include "lancet/requests/request.h"
#include "support/core_support.h"
#include "support/request_text.h"

namespace lancet {
namespace {

using namespace lancet::testing;

RequestFile load_public(const std::filesystem::path& path, const std::string& format) {
  RequestFileOptions options;
  options.format = format;
  options.on_bad_record = OnBadRecord::kSkip;
  return load_request_file(path, options);
}

struct PublicFile {
  const char* name;
  const char* format;
  size_t requests;
  const char* first;
};

TEST(PublicRequestFiles, AreReadAsTheyArePublished) {
  const std::filesystem::path folder = LANCET_SOURCE_DIR "/tests/fixtures/requests/public";
  const PublicFile files[] = {
      {"counterfact-edit.json", "flat", 20, R"(id: 0
subject: Danielle Darrieux
prompt: The mother tongue of <Danielle Darrieux> is
target: English
true: French
paraphrase: Where Danielle Darrieux is from, people speak the language of
neighbor: Michel Rocard is a native speaker of
)"},
      {"counterfact-train.json", "flat", 20, R"(id: 2
subject: Toko Yasuda
prompt: <Toko Yasuda>, the
target: piano
true: guitar
paraphrase: Toko Yasuda is incredible at
neighbor: John Lennon performs on the
)"},
      {"knowedit-zsre-test.json", "flat", 12, R"(id: 0
subject: Epaspidoceras
prompt: Which family does <Epaspidoceras> belong to?
target: Noctuidae
true: Aspidoceratidae
paraphrase: What family are Epaspidoceras?
locality Relation_Specificity: The taxon rank of Epaspidoceras is -> genus
locality Relation_Specificity: Epaspidoceras taxon rank -> genus
portability Reasoning: What is the common name for the family Epaspidoceras belongs to? -> Owlet moths
)"},
      {"known_1000.json", "known", 20, R"(id: 0
subject: Vinson Massif
prompt: <Vinson Massif> is located in the continent of
target: Antarctica
relation: P30
)"},
  };
  for (const PublicFile& file : files) {
    SCOPED_TRACE(file.name);
    const RequestFile read = load_public(folder / file.name, "auto");
    EXPECT_EQ(read.format, file.format);
    EXPECT_EQ(read.requests.size(), file.requests);
    EXPECT_EQ(read.skipped.count, 0);
    EXPECT_EQ(text_of(read.requests.front()), file.first);
  }
}

}  // namespace
}  // namespace lancet
