// Every format of request files: an invented file of it, and the exact requests it means.
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "lancet/core/strings.h"
#include "lancet/requests/request.h"
#include "support/core_support.h"
#include "support/request_text.h"
#include "written_requests.h"

namespace lancet {
namespace {

using namespace lancet::testing;

const std::filesystem::path kFixtures = std::filesystem::path(LANCET_SOURCE_DIR) / "tests/fixtures/requests";

struct FormatCase {
  const char* file;
  const char* asked;  ///< requests.format
  const char* found;
  const char* requests;  ///< a file of what text_of says
};

const FormatCase kCases[] = {
    {"flat.json", "auto", "flat", "flat.txt"},
    {"easyedit.json", "auto", "flat", "easyedit.txt"},
    {"knowedit.json", "auto", "flat", "knowedit.txt"},
    {"easyedit-lists.json", "auto", "easyedit-lists", "easyedit-lists.txt"},
    {"counterfact.json", "auto", "counterfact", "counterfact.txt"},
    {"mquake.json", "auto", "mquake", "mquake.txt"},
    {"zsre.json", "auto", "zsre", "zsre.txt"},
    {"zsre.json", "zsre-true", "zsre-true", "zsre-true.txt"},
    {"zsre-alt.json", "auto", "zsre-alt", "zsre-alt.txt"},
    {"bmike.json", "auto", "bmike", "bmike.txt"},
    {"bmike.json", "bmike-second", "bmike-second", "bmike-second.txt"},
    {"ultraedit-zsre.json", "auto", "ultraedit-zsre", "ultraedit-zsre.txt"},
    {"fever.json", "auto", "fever", "fever.txt"},
    {"wikibio.json", "auto", "wikibio", "wikibio.txt"},
    {"qaedit.json", "auto", "qaedit", "qaedit.txt"},
    {"wikibigedit.json", "auto", "wikibigedit", "wikibigedit.txt"},
    {"ultraeditbench.json", "auto", "ultraeditbench", "ultraeditbench.txt"},
    {"known.json", "auto", "known", "known.txt"},
    {"unke.json", "auto", "unke", "unke.txt"},
    {"editeverything.json", "auto", "editeverything", "editeverything.txt"},
    {"akew.json", "akew", "akew", "akew.txt"},
    {"cknowedit.json", "auto", "cknowedit", "cknowedit.txt"},
    {"hallueditbench.csv", "auto", "hallueditbench", "hallueditbench.txt"},
    {"own.csv", "auto", "flat", "own.txt"},
};

std::string text_in(const std::filesystem::path& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

TEST(RequestFormats, MeanExactlyTheseRequests) {
  for (const FormatCase& c : kCases) {
    SCOPED_TRACE(c.file);
    const RequestFile file = load(kFixtures / c.file, c.asked);
    EXPECT_EQ(file.format, c.found);
    EXPECT_EQ(text_of(file.requests), text_in(kFixtures / c.requests));
    EXPECT_EQ(file.skipped.count, 0);
  }
}

TEST(RequestFormats, EveryOneHasACase) {
  for (const std::string& name : request_formats())
    EXPECT_TRUE(std::any_of(std::begin(kCases), std::end(kCases), [&](const FormatCase& c) { return name == c.found; }))
        << name;
}

struct BadRecords {
  const char* format;
  const char* records;
  const char* message;
};

const BadRecords kBadRecords[] = {
    {"auto",
     R"([{"prompt": "p", "target": {"id": "Q1"}},
           {"prompt": "p", "target": "t", "locality": {"a": 5, "b": [{"ground_truth": "x"}, 7], "c": {"prompt": ["x"], "ground_truth": ["y", "z"]}}},
           {"prompt": "p", "target": "t", "multihop": {}, "portability": "x", "locality": {"a": [{"prompt": "{} x", "answers": "y"}]}},
           {"prompt": "p", "target": "t", "multihop": [{"prompt": "x", "answers": "y", "ground_truth": "z"}], "relation": "a", "relation_id": "b"}])",
     R"(r.json: record 0: target: expected {"str": text}, got an object
r.json: record 1: locality.a: expected a list of {prompt, answers}, got 5
r.json: record 1: locality.b[0]: prompt is missing: expected {prompt, answers}
r.json: record 1: locality.b[1]: expected {prompt, answers}, got 7
r.json: record 1: locality.c.ground_truth: expected a list of 1, as many as prompts, got 2
r.json: record 2: portability: expected an object of sections, got "x"
r.json: record 2: multihop: expected a list of {prompt, answers}, got an object
r.json: record 3: multihop[0].ground_truth: is answers under another name: expected one of the two
r.json: record 3: relation_id: is relation under another name: expected one of the two)"},
    {"auto", R"([{"prompt": "p", "target": "t", "locality": {"a": [{"prompt": "{} x", "answers": "y"}]}}])",
     R"(r.json: record 0: locality.a: prompt "{} x" contains {}: expected a prompt that is written out)"},
    {"zsre",
     R"([{"src": "Who is Al?", "subject": "Al", "answers": ["x"], "alt": ""}, {"src": "Who?", "alt": "a", "answers": []}, {"alt": "a", "subject": "s"}])",
     R"(r.json: record 0: alt: is empty
r.json: record 1: answers: is empty
r.json: record 2: src: is missing: expected text; the record has alt, subject
r.json: record 2: answers: is missing: expected a list of true answers; the record has alt, subject)"},
    {"zsre-true", R"([{"src": "Who is Al?", "subject": "Bo", "answers": "x"}])",
     R"(r.json: record 0: prompt "Who is Al?" has neither {} nor the subject "Bo"; write {} where the subject goes)"},
    {"auto",
     R"([{"case_id": 1, "requested_rewrite": []},
           {"case_id": 2, "requested_rewrite": [{"prompt": "{} is", "subject": "a", "target_new": "b"}], "questions": [5], "new_answer": "x"},
           {"case_id": 3, "requested_rewrite": [{"prompt": "{} is", "target_new": {"str": "b"}}]},
           {"case_id": 4, "requested_rewrite": {"prompt": "{} is"}}])",
     R"(r.json: record 0 (case_id 1): requested_rewrite: expected a list of at least one {prompt, subject, target_new}
r.json: record 1 (case_id 2): requested_rewrite[0].target_new: expected {"str": text}, got "b"
r.json: record 1 (case_id 2): questions[0]: expected text, got 5
r.json: record 2 (case_id 3): requested_rewrite[0].subject: is missing: expected text; the record has case_id, requested_rewrite
r.json: record 2 (case_id 3): subject: is missing: expected text for the {} in prompt "{} is"; the record has case_id, requested_rewrite
r.json: record 2 (case_id 3): new_answer: is missing: expected text; the record has case_id, requested_rewrite
r.json: record 3 (case_id 4): requested_rewrite: expected a list of at least one {prompt, subject, target_new})"},
    {"auto", R"([{"prompt": "p", "unrel_prompt": "q", "alt": 1}])", "r.json: record 0: alt: expected text, got 1"},
    {"auto", R"([{"prompt": "p", "target": "t", "locality": ["x"]}])",
     R"(r.json: record 0: locality[0]: expected {loc, loc_ans}, got "x")"},
    {"auto", R"([{"question": "q", "answer": "a", "sub_question": ["b"], "sub_answer": []}])",
     "r.json: record 0: sub_question: expected a list as long as sub_answer, got 1 and 0"},
    {"akew", R"([{"requested_rewrite": {"prompt": "{} is", "subject": "s", "unsfact_triplets_GPT": {}}}])",
     R"(r.json: record 0: requested_rewrite.fact_new_uns: is missing: expected text (what the model shall answer); the record has requested_rewrite
r.json: record 0: requested_rewrite.unsfact_triplets_GPT: expected a list of {subject, prompt, target}, got an object)"},
    {"auto", R"([{"en": {"src": "Who is Al?", "subject": "Bo", "alt": ""}, "de": {"src": 5, "alt": "x"}}])",
     R"(r.json: record 0: prompt "Who is Al?" has neither {} nor the subject "Bo"; write {} where the subject goes
r.json: record 0: en.alt: is empty
r.json: record 0: de.src: expected text, got 5)"},
    {"bmike", R"([{"en": {"src": "a", "alt": "b"}, "case_id": 3}, {"en": 5}, {}])",
     R"(r.json: record 0 (case_id 3): case_id: expected the fact in this language, {src, alt, ...}, got 3
r.json: record 1: en: expected the fact in this language, {src, alt, ...}, got 5
r.json: record 2: the record: expected the fact in 1 language, got 0)"},
    {"bmike-second", R"([{"en": {"src": "a", "alt": "b"}}])",
     "r.json: record 0: the record: expected the fact in 2 languages, got 1"},
    {"auto",
     R"([{"prompt": "p", "target_old": "o", "target_new": "n", "locality": ["x"], "portability": {"a": []}},
           {"prompt": "p", "target_old": "o", "target_new": "", "locality": [], "locality_prompt": ["x"], "locality_answer": ["y", "z"]}])",
     R"(r.json: record 0: locality[0]: expected {prompt, answer}, got "x"
r.json: record 0: portability: expected a list of {prompt, answer}, got an object
r.json: record 1: target_new: is empty
r.json: record 1: locality_prompt: is locality in another form: expected one of the two
r.json: record 1: locality_answer: expected a list of 1, as many as locality_prompt, got 2)"},
    {"hallueditbench", R"([{"subject": "Al", "question": "Who is Bo?", "object": "x", "label": "y"}])",
     R"(r.json: record 0: prompt "Who is Bo?" has neither {} nor the subject "Al"; write {} where the subject goes
r.json: record 0: label: is object under another name: expected one of the two)"},
    {"wikibio", R"([{"text": "t"}])",
     R"(r.json: record 0: concept: is missing: expected text; the record has text
r.json: record 0: labels: is missing: expected text; the record has text)"},
    {"auto",
     R"({"prompts": ["a", "b"], "target_new": ["c"], "subject": "d", "locality_inputs": {"n": {"prompt": ["x"]}}})",
     R"(r.json: target_new: expected a list of 2, as many as prompts, got 1
r.json: subject: expected a list of 2, as many as prompts, got "d"
r.json: locality_inputs.n.prompt: expected a list of 2, as many as prompts, got 1)"},
};

TEST_F(WrittenRequests, ReadBackToTheSameOnesInEveryFormat) {
  for (const FormatCase& c : kCases) {
    SCOPED_TRACE(c.file);
    const std::vector<EditRequest> requests = load(kFixtures / c.file, c.asked).requests;
    std::string lines;
    for (const EditRequest& request : requests) lines += to_json_line(request) + "\n";
    const RequestFile again = load(write("again.jsonl", lines));
    EXPECT_EQ(again.format, "flat");
    EXPECT_EQ(text_of(again.requests), text_of(requests));
  }
}

TEST_F(WrittenRequests, SayExactlyWhatIsWrongWithEachRecord) {
  for (const BadRecords& b : kBadRecords) EXPECT_EQ(refusal(b.records, b.format), b.message);
}

TEST_F(WrittenRequests, AreOfOneFormatThatIsFoundByContent) {
  EXPECT_EQ(load(write("zsre.json", R"([{"prompt": "p"}, 5, {"prompt": "q", "ans": "a"}])"), "auto", OnBadRecord::kSkip)
                .format,
            "ultraeditbench");
  EXPECT_EQ(refusal(R"([{"src": "s", "ans": "a", "answers": ["b"], "alt": "c"}])"),
            "r.json: record 0: may be of several formats: zsre, ultraedit-zsre; requests.format names the one that is "
            "meant");
  EXPECT_EQ(load(write("r.json", R"([{"src": "s", "ans": "a", "answers": ["b"], "alt": "c"}])"), "ultraedit-zsre")
                .requests.front()
                .target,
            "a");
  const std::string unknown = refusal(R"([{"question": "q", "reply": "r"}])");
  EXPECT_EQ(unknown.find("r.json: record 0: is of no known format: it has question, reply. A record of your own has "
                         "prompt, subject and target; docs/job-file.md has the data sets that are read as they are: "
                         "flat, easyedit-lists, "),
            0U)
      << unknown;
  const std::string slip = refusal(R"([{"case_id": 1, "requested_rewrit": {}}])");
  EXPECT_EQ(
      slip.find("r.json: record 0: is of no known format: it has case_id, requested_rewrit; requested_rewrit: did "
                "you mean requested_rewrite? A record of your own has "),
      0U)
      << slip;
  EXPECT_EQ(refusal("[]", "zsree").find("r.json: holds no request"), 0U);
  EXPECT_EQ(refusal("[{}]", "zsree").find("r.json: requests.format: 'zsree': expected auto or one of flat, "), 0U);
  EXPECT_EQ(refusal(R"([{"prompt": "p"}])", "easyedit-lists"),
            "r.json: requests.format: easyedit-lists: the file is a list of records, not easyedit-lists");
  EXPECT_EQ(refusal(R"({"prompts": "p", "target_new": "t"})", "flat"),
            "r.json: requests.format: flat: the file is one object of lists: expected easyedit-lists");
}

TEST_F(WrittenRequests, AreRefusedWithASlipInAKeyAndMayHaveOtherKeys) {
  const auto with = [&](const std::string& key) {
    return cat(R"([{"prompt": "p", "target": "t", ")", key, R"(": "x"}])");
  };
  for (const auto& [slip, meant] :
       {std::pair{"target_tru", "target_true"}, std::pair{"paraphrase", "paraphrases"}, std::pair{"Subject", "subject"},
        std::pair{"neighbourhood", "neighborhood"}, std::pair{"ground truth", "ground_truth"}})
    EXPECT_EQ(refusal(with(slip)), cat("r.json: record 0: ", slip, ": unknown key; did you mean ", meant, "?"));
  for (const char* other : {"target_old", "object", "pid", "source", "answer", "cond", "portability_prompt", "date"})
    EXPECT_EQ(load(write("r.json", with(other))).requests.size(), 1U) << other;
}

/// Each place of a key in a document, by what leads there; names of sections are the data set's own.
void find_keys(const nlohmann::ordered_json& document, const nlohmann::ordered_json::json_pointer& at,
               std::vector<nlohmann::ordered_json::json_pointer>& found) {
  if (document.is_array())
    for (size_t i = 0; i < document.size(); ++i) find_keys(document[i], at / i, found);
  if (!document.is_object()) return;
  const bool has_sections = !at.empty() &&
                            (at.back().starts_with("locality") || at.back().starts_with("portability")) &&
                            !document.contains("New Question");
  for (const auto& [key, value] : document.items()) {
    if (key.size() > 5 && !has_sections) found.push_back(at / key);
    find_keys(value, at / key, found);
  }
}

TEST_F(WrittenRequests, ChangeByNoSlipInAKeyWithoutAWord) {
  using Document = nlohmann::ordered_json;
  size_t n_refused = 0, n_named = 0, n_without_meaning = 0;
  for (const FormatCase& c : kCases) {
    if (!std::string_view(c.file).ends_with(".json")) continue;
    std::string text = text_in(kFixtures / c.file);
    for (size_t at = 0; (at = text.find(": NaN", at)) != std::string::npos;) text.replace(at, 5, ": null");
    const Document whole = Document::parse(text);
    std::vector<Document::json_pointer> keys;
    find_keys(whole, Document::json_pointer(), keys);
    for (const Document::json_pointer& key : keys) {
      SCOPED_TRACE(cat(c.file, key.to_string()));
      Document slipped = whole;
      const std::string& name = key.back();
      const std::string slip = name.substr(0, name.size() - 1);
      Document& object = slipped.at(key.parent_pointer());
      if (object.contains(slip)) continue;
      object[slip] = object.at(name);
      object.erase(name);
      const std::filesystem::path path = write("r.json", slipped.dump());
      try {
        EXPECT_EQ(text_of(load(path, c.asked).requests), text_in(kFixtures / c.requests));
        ++n_without_meaning;
      } catch (const ConfigError& error) {
        const std::string told = cat("did you mean ", name, "?");
        n_named += std::string(error.what()).find(told) != std::string::npos ? 1 : 0;
        ++n_refused;
      }
    }
  }
  EXPECT_GT(n_refused, 100U);
  EXPECT_GE(n_named + 2, n_refused) << "but for an object of lists without prompts, and a question among sections";
  EXPECT_GT(n_without_meaning, 10U);
}

TEST_F(WrittenRequests, MaySkipBadRecords) {
  const std::string text =
      R"([{"prompt": "p", "target": "a"}, {"prompt": 5, "target": ""}, {"prompt": "p", "target": "b", "id": "0"},
    {"prompt": "p", "prompt": "q", "target": "c"}, {"prompt": "p", "target": "d"}])";
  const RequestFile file = load(write("r.json", text), "auto", OnBadRecord::kSkip);
  ASSERT_EQ(file.requests.size(), 2U);
  EXPECT_EQ(file.requests[1].target, "d");
  EXPECT_EQ(file.requests[1].id, "4");
  EXPECT_EQ(file.skipped.count, 3);
  std::string messages;
  for (const std::string& message : file.skipped.messages) messages += without_folder(message) + "\n";
  EXPECT_EQ(messages,
            "r.json: record 1: prompt: expected text, got 5\n"
            "r.json: record 1: target: is empty\n"
            "r.json: record 2: id: '0' stands twice, first in record 0\n"
            "r.json: record 3: the key 'prompt' stands twice in one object\n");
  EXPECT_EQ(refusal(text) + "\n", messages);
  EXPECT_EQ(without_folder(config_error([&] {
              load(write("r.jsonl", "{broken\n"), "auto", OnBadRecord::kSkip);
            })).find("r.jsonl: record 0 (line 1): not valid JSON: "),
            0U);
}

TEST_F(WrittenRequests, HaveNoKeyTwice) {
  EXPECT_EQ(refusal(R"([{"prompt": "p", "target": "t", "locality": {"a": [], "b": [], "a": []}}])"),
            "r.json: record 0: the key 'a' stands twice in one object");
  EXPECT_EQ(refusal("{\"prompt\": \"p\", \"target\": \"t\"}\n{\"id\": 1, \"id\": 2}\n", "auto", "r.jsonl"),
            "r.jsonl: record 1 (line 2): the key 'id' stands twice in one object");
  EXPECT_EQ(refusal(R"({"prompts": ["p"], "prompts": ["q"], "target_new": ["t"]})"),
            "r.json: the key 'prompts' stands twice in one object");
  RequestFileOptions options;
  options.range = {.skip = 1, .limit = {}};
  EXPECT_EQ(load_request_file(write("r.json", R"([{"a": 1, "a": 2}, {"prompt": "p", "target": "t"}])"), options)
                .requests.size(),
            1U);
}

/// Whatever the file holds, it is read or refused with a ConfigError.
TEST_F(WrittenRequests, NeverCrashWhenTheyAreCutOrShuffled) {
  uint64_t state = 7;
  const auto random = [&](size_t below) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return static_cast<size_t>((state >> 33U) % below);
  };
  size_t refused = 0, read = 0;
  for (const FormatCase& c : kCases) {
    const std::string whole = text_in(kFixtures / c.file);
    for (int round = 0; round < 60; ++round) {
      std::string text = whole;
      for (size_t change = 0; change <= random(3); ++change) {
        const size_t at = random(text.size()), length = 1 + random(std::min<size_t>(40, text.size() - at));
        const std::string piece = text.substr(at, length);
        if (random(3) > 0) text.erase(at, length);
        if (random(2) > 0) text.insert(random(text.size() + 1), piece);
        if (text.empty()) text = " ";
      }
      const std::string format = round % 3 == 0 ? "auto" : request_formats()[random(request_formats().size())];
      const std::string name = "r" + std::filesystem::path(c.file).extension().string();
      try {
        load(write(name, text), format, round % 2 == 0 ? OnBadRecord::kSkip : OnBadRecord::kError);
        ++read;
      } catch (const ConfigError&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 100U);
  EXPECT_GT(read, 20U);
}

TEST_F(WrittenRequests, AreNotNestedWithoutLimit) {
  EXPECT_EQ(refusal(std::string(100000, '[')), "r.json: nested deeper than 32 levels");
}

}  // namespace
}  // namespace lancet
