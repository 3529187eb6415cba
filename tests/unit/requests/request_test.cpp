#include "lancet/requests/request.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <set>

#include "lancet/core/strings.h"
#include "support/core_support.h"
#include "support/temp_dir.h"

namespace lancet {
namespace {

using namespace lancet::testing;

class RequestFileTest : public ::testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const std::string& text) const {
    std::ofstream(dir_ / name, std::ios::binary) << text;
    return dir_ / name;
  }
  std::vector<EditRequest> load(const std::string& text, RequestRange range = {},
                                const std::string& name = "r.json") const {
    return load_request_file(write(name, text), {.range = range}).requests;
  }
  /// The message without the folder before the file's name.
  std::string refusal(const std::string& text, RequestRange range = {}, const std::string& name = "r.json") const {
    std::string message = config_error([&] { load(text, range, name); });
    const std::string folder = dir_.path().string() + "/";
    for (size_t at = 0; (at = message.find(folder, at)) != std::string::npos;) message.erase(at, folder.size());
    return message;
  }

  TempDir dir_;
};

std::string subject_in(const SubjectPrompt& prompt) {
  return prompt.text.substr(static_cast<size_t>(prompt.subject.begin),
                            static_cast<size_t>(prompt.subject.end - prompt.subject.begin));
}

void expect_same(const EditRequest& a, const EditRequest& b) {
  EXPECT_EQ(a.id, b.id);
  EXPECT_EQ(a.subject, b.subject);
  EXPECT_EQ(a.prompt.text, b.prompt.text);
  EXPECT_EQ(a.prompt.subject, b.prompt.subject);
  EXPECT_EQ(a.target, b.target);
  EXPECT_EQ(a.target_true, b.target_true);
  EXPECT_EQ(a.paraphrases, b.paraphrases);
  EXPECT_EQ(a.neighborhood, b.neighborhood);
}

const std::string kCounterFact = R"([
  {"case_id": 17, "pararel_idx": 3,
   "requested_rewrite": {"prompt": "The mother tongue of {} is", "relation_id": "P103", "subject": "Danielle Darrieux",
                         "target_new": {"str": "English", "id": "Q1860"}, "target_true": {"str": "French", "id": "Q150"}},
   "paraphrase_prompts": ["Shayna does this. Danielle Darrieux was born in"],
   "neighborhood_prompts": ["Michel Rocard is a native speaker of", "Leon Blum spoke"],
   "generation_prompts": ["Danielle Darrieux's mother tongue is"]}])";

TEST_F(RequestFileTest, ReadsCounterFact) {
  const std::vector<EditRequest> requests = load(kCounterFact);
  ASSERT_EQ(requests.size(), 1U);
  const EditRequest& request = requests.front();
  EXPECT_EQ(request.id, "17");
  EXPECT_EQ(request.subject, "Danielle Darrieux");
  EXPECT_EQ(request.prompt.text, "The mother tongue of Danielle Darrieux is");
  EXPECT_EQ(subject_in(request.prompt), "Danielle Darrieux");
  EXPECT_EQ(request.target, "English");
  EXPECT_EQ(request.target_true, "French");
  EXPECT_EQ(request.paraphrases, std::vector<std::string>{"Shayna does this. Danielle Darrieux was born in"});
  EXPECT_EQ(request.neighborhood.size(), 2U);
}

TEST_F(RequestFileTest, ReadsFlatRecords) {
  const std::vector<EditRequest> requests = load(R"([
    {"prompt": "Rome, the capital of {}, is", "subject": "Rome", "target": " Paris", "id": "a", "target_true": "Italy",
     "paraphrases": ["{} is the capital of", "Where is Rome? In"], "neighborhood": "Milan is in"},
    {"prompt": "Two plus two is", "target": "five"}])");
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_EQ(requests[0].id, "a");
  EXPECT_EQ(requests[0].prompt.text, "Rome, the capital of Rome, is");
  EXPECT_EQ(requests[0].prompt.subject, (ByteSpan{21, 25}));
  EXPECT_EQ(requests[0].target, " Paris");
  EXPECT_EQ(requests[0].paraphrases, (std::vector<std::string>{"Rome is the capital of", "Where is Rome? In"}));
  EXPECT_EQ(requests[0].neighborhood, std::vector<std::string>{"Milan is in"});
  EXPECT_EQ(requests[1].id, "1");
  EXPECT_EQ(requests[1].subject, "");
  EXPECT_EQ(requests[1].prompt.text, "Two plus two is");
  EXPECT_EQ(requests[1].prompt.subject, ByteSpan{});
  EXPECT_EQ(requests[1].target_true, std::nullopt);
  EXPECT_TRUE(requests[1].paraphrases.empty());
}

TEST_F(RequestFileTest, ReadsEasyEditsRecords) {
  const std::vector<EditRequest> requests = load(R"([
    {"case_id": 0, "prompt": "The mother tongue of Danielle Darrieux is", "target_new": "English", "subject": "Danielle Darrieux",
     "ground_truth": "French", "rephrase_prompt": "Danielle Darrieux speaks", "locality_prompt": "Michel Rocard speaks",
     "locality_ground_truth": "French"},
    {"subject": "ZIC3", "target_new": "male", "prompt": "What species is ZIC3 specific to?", "ground_truth": ["human", "mouse"],
     "rephrase_prompt": "In which being is ZIC3?", "cond": "a >> b", "locality": {"Relation_Specificity": []}}])");
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_EQ(subject_in(requests[0].prompt), "Danielle Darrieux");
  EXPECT_EQ(requests[0].target, "English");
  EXPECT_EQ(requests[0].target_true, "French");
  EXPECT_EQ(requests[0].paraphrases, std::vector<std::string>{"Danielle Darrieux speaks"});
  EXPECT_EQ(requests[0].neighborhood, std::vector<std::string>{"Michel Rocard speaks"});
  EXPECT_EQ(requests[1].id, "1");
  EXPECT_EQ(requests[1].target_true, "human");
  EXPECT_TRUE(requests[1].neighborhood.empty());
}

TEST_F(RequestFileTest, MakesASectionOfALocalityPromptWithAnotherAnswer) {
  const std::vector<EditRequest> requests = load(
      R"([{"prompt": "{} is", "subject": "x", "target": "a", "ground_truth": "b", "locality_prompt": "nq question: who",
                "locality_ground_truth": "Walter"},
               {"prompt": "{} is", "subject": "y", "target": "a", "ground_truth": "b", "locality_prompt": "z is"}])");
  EXPECT_TRUE(requests.at(0).neighborhood.empty());
  ASSERT_EQ(requests.at(0).locality.size(), 1U);
  EXPECT_EQ(requests.at(0).locality.front().name, "nq");
  EXPECT_EQ(requests.at(0).locality.front().probes.front().prompt, "nq question: who");
  EXPECT_EQ(requests.at(0).locality.front().probes.front().answers, std::vector<std::string>{"Walter"});
  EXPECT_EQ(requests.at(1).neighborhood, std::vector<std::string>{"z is"});
}

TEST_F(RequestFileTest, ReadsJsonLines) {
  const std::vector<EditRequest> requests = load(
      "\xef\xbb\xbf{\"prompt\": \"{} is\", \"subject\": \"a\", \"target\": \"b\"}\r\n\n  \n"
      "{\"prompt\": \"{} is\", \"subject\": \"\\ud83d\\ude00\", \"target\": \"d\"}",
      {}, "r.jsonl");
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_EQ(requests[1].subject, "\xf0\x9f\x98\x80");
  EXPECT_EQ(requests[1].id, "1");
}

TEST_F(RequestFileTest, ReadsTheDemoRequests) {
  const std::vector<EditRequest> requests =
      load_request_file(LANCET_SOURCE_DIR "/data/requests/demo.json", {.range = {.skip = 0, .limit = 100}}).requests;
  ASSERT_EQ(requests.size(), 100U);
  std::set<std::string> ids;
  for (const EditRequest& request : requests) {
    EXPECT_EQ(subject_in(request.prompt), request.subject);
    EXPECT_TRUE(request.target_true.has_value());
    EXPECT_FALSE(request.paraphrases.empty());
    ids.insert(request.id);
  }
  EXPECT_EQ(ids.size(), 100U);
}

TEST_F(RequestFileTest, TakesARangeInFileOrder) {
  std::string text;
  for (int i = 0; i < 5; ++i)
    text += R"({"prompt": "{} is", "subject": "s", "target": "t)" + std::to_string(i) + "\"}\n";
  const auto targets = [&](RequestRange range) {
    std::string out;
    for (const EditRequest& request : load(text, range, "r.jsonl")) out += request.target + "/" + request.id + " ";
    return out;
  };
  EXPECT_EQ(targets({.skip = 1, .limit = 2}), "t1/1 t2/2 ");
  EXPECT_EQ(targets({.skip = 3, .limit = 1000}), "t3/3 t4/4 ");
  EXPECT_EQ(targets({.skip = 4, .limit = std::numeric_limits<int64_t>::max()}), "t4/4 ");
  EXPECT_EQ(refusal(text, {.skip = 5, .limit = {}}, "r.jsonl"), "r.jsonl: skip 5 leaves none of 5 records");
  EXPECT_NE(refusal(text, {.skip = -1, .limit = {}}, "r.jsonl").find("expected a skip of at least 0"),
            std::string::npos);
  EXPECT_NE(refusal(text, {.skip = 0, .limit = 0}, "r.jsonl").find("a limit of at least 1"), std::string::npos);
}

TEST_F(RequestFileTest, LooksOnlyAtTheRecordsThatAreTaken) {
  const std::string text = R"([{"prompt": 1}, {"prompt": "{} is", "subject": "s", "target": "t"}, "bad"])";
  EXPECT_EQ(load(text, {.skip = 1, .limit = 1}).size(), 1U);
  EXPECT_EQ(load("{not json\n{\"prompt\": \"p\", \"target\": \"t\"}\n", {.skip = 1, .limit = {}}, "r.jsonl").size(),
            1U);
}

TEST_F(RequestFileTest, RefusesFilesWithoutRequests) {
  EXPECT_EQ(refusal(""), "r.json: is empty, expected requests");
  EXPECT_EQ(refusal(" \n\n", {}, "r.jsonl"), "r.jsonl: is empty, expected requests");
  EXPECT_EQ(refusal("[]"), "r.json: holds no request");
  EXPECT_EQ(refusal(R"({"prompt": "p", "target": "t"})"),
            "r.json: expected a list of records, got an object; one record per line goes into a .jsonl file");
  EXPECT_NE(refusal("5").find("expected a list of records, got a single value"), std::string::npos);
  EXPECT_NE(refusal("[]", {}, "r.txt").find("ends in .json (a list), .jsonl"), std::string::npos);
  EXPECT_NE(config_error([&] { load_request_file(dir_ / "absent.json", {}); }).find((dir_ / "absent.json").string()),
            std::string::npos);
}

TEST_F(RequestFileTest, RefusesTextsThatNoModelCanReadBeforeTheyAreTokenised) {
  const std::string most(1'000'000, 'x');
  const auto record = [](const std::string& subject, const std::string& target) {
    return R"([{"prompt": "{} is", "subject": ")" + subject + R"(", "target": ")" + target + "\"}]";
  };
  EXPECT_EQ(load(record("a", most)).front().target, most);
  EXPECT_EQ(refusal(record("a", most + "x")),
            "r.json: record 0: target: expected at most 1000000 bytes, got 1000001: no model can read as much");
  EXPECT_NE(refusal(record(most + "x", "b")).find("subject: expected at most"), std::string::npos);
}

TEST_F(RequestFileTest, RefusesAPipeAtOnce) {
  ASSERT_EQ(::mkfifo((dir_ / "r.json").c_str(), 0600), 0);
  const std::string message = config_error([&] { load_request_file(dir_ / "r.json", {}); });
  EXPECT_NE(message.find("is a pipe or a device, expected a regular file"), std::string::npos) << message;
}

TEST_F(RequestFileTest, SaysWhereJsonBreaksOff) {
  const std::string message =
      refusal("[{\"prompt\": \"p\",\n  \"target\": \"t\"},\n  {\"prompt\": \"" + std::string(5000, 'x'));
  EXPECT_EQ(message.find("r.json: not valid JSON: parse error at line 3, column 50"), 0U) << message;
  EXPECT_LT(message.size(), 400U);
  EXPECT_EQ(refusal("[1, 2,]").find("r.json: not valid JSON: parse error at line 1, column 7"), 0U);
}

TEST_F(RequestFileTest, SaysWhichLineIsNoUtf8) {
  EXPECT_EQ(refusal("[{\"prompt\": \"p\",\n  \"target\": \"caf\xe9\"}]"),
            "r.json: line 2: the byte 233 is no UTF-8: save the file as UTF-8");
  const std::string good = "{\"prompt\": \"p\", \"target\": \"caf\xc3\xa9\"}\n";
  const std::string lines = good + "\n{\"prompt\": \"p\", \"target\": \"caf\xe9\"}\n" + good;
  EXPECT_EQ(refusal(lines, {}, "r.jsonl"),
            "r.jsonl: record 1 (line 3): the byte 233 is no UTF-8: save the file as UTF-8");
  RequestFileOptions options;
  options.on_bad_record = OnBadRecord::kSkip;
  EXPECT_EQ(load_request_file(dir_ / "r.jsonl", options).requests.size(), 2U);
}

TEST_F(RequestFileTest, ReportsEveryBadRecordAtOnce) {
  const std::string message = refusal(R"([
    {"prompt": "{} is", "subject": "a", "target": "b"},
    {"prompt": 5, "subject": "a", "target": ["b"], "case_id": 17},
    {"prompt": "{} is", "target": "b", "id": "x"},
    {"prompt": "{} is", "subject": " ", "target": ""},
    "text",
    {"prompt": "The sky is", "subject": "sea", "target": "b"},
    {"prompt": "Rome is Rome", "subject": "Rome", "target": "b"},
    {"prompt": "{} and {}", "subject": "Rome", "target": "b"},
    {"subject": "Rome", "paraphrases": [1, ""], "neighborhood": {}, "target_true": false},
    {"prompt": "{} is", "subject": "a{}b", "target": "b"}])");
  for (const std::string expected : {
           "r.json: record 1 (case_id 17): prompt: expected text, got 5\n",
           "r.json: record 1 (case_id 17): target: expected text, got a list\n",
           "r.json: record 2 (id x): subject: is missing: expected text for the {} in prompt \"{} is\"; the record has "
           "prompt, target, id\n",
           "r.json: record 3: subject: is empty\n",
           "r.json: record 3: target: is empty\n",
           "r.json: record 4: expected an object, got \"text\"\n",
           "r.json: record 5: prompt \"The sky is\" has neither {} nor the subject \"sea\"",
           "r.json: record 6: the subject \"Rome\" stands 2 times in prompt \"Rome is Rome\"; write {}",
           "r.json: record 7: prompt \"{} and {}\": {} stands 2 times, expected once\n",
           "r.json: record 8: prompt: is missing: expected text; the record has subject, paraphrases, neighborhood, "
           "target_true\n",
           "r.json: record 8: target: is missing",
           "r.json: record 8: paraphrases[0]: expected text, got 1\n",
           "r.json: record 8: paraphrases[1]: is empty\n",
           "r.json: record 8: neighborhood: expected text, got an object\n",
           "r.json: record 8: target_true: expected text, got false\n",
           "r.json: record 9: subject: contains {}",
       })
    EXPECT_NE((message + "\n").find(expected), std::string::npos) << expected << "is not in\n" << message;
  EXPECT_EQ(message.find("record 0"), std::string::npos) << message;
}

TEST_F(RequestFileTest, ReportsWhatCounterFactLacks) {
  const std::string message = refusal(R"([
    {"case_id": 1, "requested_rewrite": {"prompt": "{} is", "subject": "a"}},
    {"case_id": 2, "requested_rewrite": {"prompt": "{} is", "subject": "a", "target_new": "b", "target_true": {"id": "Q1"}}},
    {"case_id": 3, "prompt": "{} is", "subject": "a", "target": "b"},
    {"case_id": 4, "requested_rewrite": 5},
    {"case_id": true, "requested_rewrite": {"prompt": "{} is", "subject": "a", "target_new": {"str": "b"}}}])");
  for (const std::string expected : {
           "record 0 (case_id 1): requested_rewrite.target_new: is missing",
           "record 1 (case_id 2): requested_rewrite.target_new: expected {\"str\": text}, got \"b\"",
           "record 1 (case_id 2): requested_rewrite.target_true: expected {\"str\": text}, got an object",
           "record 2 (case_id 3): requested_rewrite: is missing: expected an object of prompt, subject, "
           "target_new",
           "record 3 (case_id 4): requested_rewrite: expected an object, got 5",
           "record 4: case_id: expected an integer or text, got true",
       })
    EXPECT_NE(message.find(expected), std::string::npos) << expected << " is not in\n" << message;
}

TEST_F(RequestFileTest, ShowsTwentyProblemsAndCountsTheOthers) {
  std::string text = "{broken\n";
  for (int i = 0; i < 50; ++i) text += "{\"prompt\": \"p\"}\n";
  const std::string message = refusal(text, {}, "r.jsonl");
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 20);
  EXPECT_EQ(message.substr(message.rfind('\n') + 1), "... and 31 more");
  EXPECT_NE(message.find("r.jsonl: record 0 (line 1): not valid JSON: parse error"), std::string::npos) << message;
  EXPECT_NE(message.find("r.jsonl: record 1 (line 2): target: is missing"), std::string::npos) << message;
}

TEST_F(RequestFileTest, RefusesAnIdThatStandsTwice) {
  const auto record = [](const std::string& id) { return "{\"prompt\": \"p\", \"target\": \"t\"" + id + "}"; };
  EXPECT_EQ(refusal("[" + record(", \"id\": \"7\"") + "," + record("") + "," + record(", \"case_id\": 7") + "]"),
            "r.json: record 2: id: '7' stands twice, first in record 0");
  EXPECT_EQ(refusal("[" + record(", \"id\": 1") + "," + record("") + "]"),
            "r.json: record 1: id: '1' stands twice, first in record 0");
}

TEST_F(RequestFileTest, RefusesTwoNamesForOneField) {
  EXPECT_EQ(refusal(R"([{"prompt": "p", "target": "a", "target_new": "b"}])"),
            "r.json: record 0: target_new: is target under another name: expected one of the two");
}

TEST_F(RequestFileTest, RefusesAPlaceInANeighborsPrompt) {
  const std::string message =
      refusal(R"([{"prompt": "{} is", "subject": "a", "target": "b", "neighborhood": ["{} was"]},
                                          {"prompt": "p", "target": "b", "paraphrases": "{} was"}])");
  EXPECT_NE(message.find("record 0: neighborhood: prompt \"{} was\" contains {}"), std::string::npos) << message;
  EXPECT_NE(message.find("record 1: paraphrases: the subject is empty"), std::string::npos) << message;
}

TEST_F(RequestFileTest, WritesLinesThatReadBackToTheSameRequest) {
  std::vector<EditRequest> requests = load(kCounterFact);
  for (EditRequest& request : load(R"([
         {"prompt": "Rome, the capital of {}, is", "subject": "Rome", "target": " Paris", "id": "a\nb", "paraphrases": ["{} \"x\""],
          "neighborhood": ["\u00e9 \ud83d\ude00"]},
         {"prompt": "Two plus two is", "target": "five", "target_true": "four"}])"))
    requests.push_back(std::move(request));
  std::string text;
  for (const EditRequest& request : requests) {
    const std::string line = to_json_line(request);
    EXPECT_EQ(line.find('\n'), std::string::npos);
    text += line + "\n";
  }
  const std::vector<EditRequest> again = load(text, {}, "again.jsonl");
  ASSERT_EQ(again.size(), requests.size());
  for (size_t i = 0; i < requests.size(); ++i) expect_same(again[i], requests[i]);
}

TEST(RequestTexts, ToldWhereWhiteSpaceIsProbablyNotMeant) {
  const auto told = [](const std::string& list) { return stray_white_space(parse_requests(parsed(list))); };
  EXPECT_EQ(told("- {prompt: \"{} is in\", subject: Rome, target: \" Italy\", target_true: Spain}\n"), "")
      << "the space that would be put there";
  EXPECT_EQ(
      told("- {prompt: \"{} is in \", subject: Rome, target: Italy}\n- {prompt: p, target: q}\n"),
      "1 of 2 have white space at the end of a prompt or around a target, which makes other tokens (a space between "
      "the two is put there by itself): request 0: prompt \"Rome is in \"");
  for (const char* target : {"\"Italy \"", "\"  Italy\"", "\"\\nItaly\"", "\"Italy\\n\""})
    EXPECT_NE(told(cat("- {prompt: \"{} is in\", subject: Rome, target: ", target, "}\n")).find("request 0: target \""),
              std::string::npos)
        << target;
  EXPECT_NE(told("- {prompt: \"in {}\", subject: \"Rome \", target: q}\n").find("prompt \"in Rome \""),
            std::string::npos);
  EXPECT_NE(told("- {prompt: p, target: q, target_true: \"r \"}\n").find("target_true \"r \""), std::string::npos);
  std::string many;
  for (int i = 0; i < 5; ++i) many += "- {prompt: \"p \", target: q}\n";
  const std::string text = told(many);
  EXPECT_EQ(text.find("5 of 5"), 0U);
  EXPECT_NE(text.find("request 2: "), std::string::npos);
  EXPECT_EQ(text.find("request 3: "), std::string::npos);
  EXPECT_TRUE(text.ends_with("; ...")) << text;
}

TEST(InlineRequests, TakeScalarsAsText) {
  const std::vector<EditRequest> requests = parse_requests(
      parsed("- {prompt: \"{} was born in\", subject: Ann, target: 1998}\n- {prompt: p, target: true, id: 7}\n"));
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_EQ(requests[0].prompt.text, "Ann was born in");
  EXPECT_EQ(requests[0].target, "1998");
  EXPECT_EQ(requests[0].id, "0");
  EXPECT_EQ(requests[1].target, "true");
  EXPECT_EQ(requests[1].id, "7");
}

TEST(Facts, AreReadAsRecords) {
  const std::vector<Fact> facts{{"{} was born in", "Ann", "1998"}, {"The capital is", "", "Rome"}};
  const std::vector<std::string> ids{"7", "8"};
  const std::vector<EditRequest> read = parse_facts(facts, ids);
  const std::vector<EditRequest> records =
      parse_requests(parsed("- {id: 7, prompt: \"{} was born in\", subject: Ann, target: 1998}\n"
                            "- {id: 8, prompt: The capital is, target: Rome}\n"));
  ASSERT_EQ(read.size(), 2U);
  for (size_t i = 0; i < 2; ++i) expect_same(read[i], records[i]);
  const auto refusal = [&](const std::vector<Fact>& given) { return config_error([&] { parse_facts(given, ids); }); };
  EXPECT_EQ(refusal({}), "the list is empty, expected at least one {prompt, subject, target}");
  EXPECT_EQ(refusal({{"{} is", "Ann", "a"}, {"{} is {}", "Ann", "a"}}).find("record 1"), 0U);
  EXPECT_EQ(refusal({{"{} is", "", "a"}}).find("record 0"), 0U);
}

TEST(InlineRequests, NameRecordLineAndField) {
  const auto refusal = [](const char* text) { return config_error([&] { parse_requests(parsed(text)); }); };
  EXPECT_EQ(refusal("[]"), "the list is empty, expected at least one {prompt, subject, target}");
  EXPECT_EQ(refusal("a: b"), "expected a list of {prompt, subject, target}");
  EXPECT_EQ(refusal("- x\n"), "record 0 (line 1): expected an object, got \"x\"");
  EXPECT_EQ(refusal("- {prompt: p, target: t}\n- {prompt: p, targt: t, target: t}\n"),
            "record 1 (line 2): targt: unknown key; did you mean target?");
  EXPECT_EQ(refusal("- {prompt: \"{} is\", target: t}\n").find("record 0 (line 1): subject: is missing"), 0U);
  EXPECT_NE(refusal("- {prompt: p, target: t, colour: red}\n").find("colour: unknown key. Known here: id, "),
            std::string::npos);
}

}  // namespace
}  // namespace lancet
