#include "lancet/core/config_section.h"

#include <cstdlib>

#include "support/core_support.h"

namespace lancet {
namespace {

using namespace lancet::testing;

/// Reads a document with `read(section)` and gives the messages of all its problems.
template <typename Read>
std::string problems_of(std::string_view text, const Read& read) {
  const ConfigTree tree = parsed(text);
  return config_error([&] {
    ConfigProblems problems("job.yaml");
    ConfigSection section(tree, "", problems);
    read(section);
    problems.throw_if_any();
  });
}

/// What a reader that finds no problem gives.
template <typename Read>
auto value_of(std::string_view text, const Read& read) {
  const ConfigTree tree = parsed(text);
  ConfigProblems problems("job.yaml");
  ConfigSection section(tree, "", problems);
  auto value = read(section);
  EXPECT_NO_THROW(problems.throw_if_any()) << text;
  return value;
}

TEST(ConfigProblems, AreSilentWhenThereAreNone) {
  ConfigProblems problems("job.yaml");
  EXPECT_TRUE(problems.empty());
  EXPECT_NO_THROW(problems.throw_if_any());
  problems.add(3, "a.b", "is wrong");
  problems.add(0, "c", "is wrong too");
  problems.add(0, "", "is odd");
  EXPECT_FALSE(problems.empty());
  EXPECT_EQ(config_error([&] { problems.throw_if_any(); }),
            "job.yaml:3: a.b: is wrong\njob.yaml: c: is wrong too\njob.yaml: is odd");
}

TEST(ConfigSection, ReadsWhatMayBeAuto) {
  const auto number = [](ConfigSection& job) { return job.number_or_auto("x", {.min = 0}); };
  const auto integers = [](ConfigSection& job) { return job.integers_or_auto("x", {.min = 0}); };
  EXPECT_EQ(value_of("x: 0.5", number), 0.5);
  for (const char* text : {"x: auto", "x: \"auto\"", "y: 1", "x: null"})
    EXPECT_EQ(value_of(text, number), std::nullopt);
  EXPECT_EQ(value_of("x: [3, 1]", integers), (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(value_of("x: auto", integers), std::nullopt);
  EXPECT_EQ(problems_of("x: Auto", number), "job.yaml:1: x: expected auto or a number of at least 0, got Auto");
  EXPECT_EQ(problems_of("x: -1", number), "job.yaml:1: x: expected auto or a number of at least 0, got -1");
  EXPECT_EQ(problems_of("x: [auto]", integers),
            "job.yaml:1: x: expected auto or a list of integers of at least 0, got auto as item 1 of 1");
  const auto resolved = [&](ConfigSection& job) {
    return job.number_or_auto("x", {}), job.resolved().find("x")->scalar;
  };
  EXPECT_EQ(value_of("x: 2.5", resolved), "2.5");
  EXPECT_EQ(value_of("y: 1", resolved), "auto");
  EXPECT_TRUE(value_of("x: {y: 1}", [](ConfigSection& job) { return job.is_map("x"); }));
  EXPECT_FALSE(value_of("x: 1", [](ConfigSection& job) { return job.is_map("x"); }));
}

TEST(ConfigSection, ReadsNumbers) {
  const auto integer = [](ConfigSection& job) { return job.integer("x", {}); };
  const auto number = [](ConfigSection& job) { return job.number("x", {}); };
  EXPECT_EQ(value_of("x: 200000", integer), 200000);
  EXPECT_EQ(value_of("x: -7", integer), -7);
  EXPECT_EQ(value_of("x: 0", integer), 0);
  EXPECT_EQ(value_of("x: 9223372036854775807", integer), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(value_of("x: 1e-3", number), 1e-3);
  EXPECT_EQ(value_of("x: 0.5", number), 0.5);
  EXPECT_EQ(value_of("x: .5", number), 0.5);
  EXPECT_EQ(value_of("x: -2.5E+3", number), -2500.0);
  EXPECT_EQ(value_of("x: 3", number), 3.0);
  EXPECT_EQ(value_of("{\"x\": 0.0625}", number), 0.0625);
}

TEST(ConfigSection, RefusesWhatIsNotANumber) {
  const auto integer = [](ConfigSection& job) { job.integer("x", {}); };
  const auto number = [](ConfigSection& job) { job.number("x", {}); };
  for (const std::string text : {"1_000", "1,000", "1.0", "1e3", "0x10", "010", "+3", "5 apples", "--5", "-x", "true",
                                 "'5'", "[5]", "{a: 5}", "9223372036854775808", ".inf"})
    EXPECT_EQ(problems_of("x: " + text, integer).find("job.yaml:1: x: expected an integer, got "), 0U) << text;
  for (const std::string text : {".nan",  ".inf",   "-.inf", "nan",  "inf", "infinity", "NaN", "1_000", "1e", "0x1p3",
                                 "1e999", "1e-999", "00.5",  "0.5f", "1 2", "\"0.5\"",  ".",   "-.",    "e5", "[0.5]"})
    EXPECT_EQ(problems_of("x: " + text, number).find("job.yaml:1: x: expected a number, got "), 0U) << text;
  EXPECT_EQ(problems_of("x: '5'", integer), "job.yaml:1: x: expected an integer, got the text \"5\"");
}

TEST(ConfigSection, NamesTheRangeOfANumber) {
  EXPECT_EQ(problems_of("x: 12", [](ConfigSection& job) { job.integer("x", {.min = 0, .max = 10}); }),
            "job.yaml:1: x: expected an integer from 0 to 10, got 12");
  EXPECT_EQ(problems_of("x: 0", [](ConfigSection& job) { job.integer("x", {.min = 1}); }),
            "job.yaml:1: x: expected an integer of at least 1, got 0");
  EXPECT_EQ(problems_of("x: 1.5", [](ConfigSection& job) { job.number("x", {.max = 1}); }),
            "job.yaml:1: x: expected a number of at most 1, got 1.5");
  EXPECT_EQ(value_of("x: 10", [](ConfigSection& job) { return job.integer("x", {.min = 10, .max = 10}); }), 10);
}

TEST(ConfigSection, ReadsBooleans) {
  const auto boolean = [](ConfigSection& job) { return job.boolean("x"); };
  EXPECT_TRUE(value_of("x: true", boolean));
  EXPECT_TRUE(value_of("x: True", boolean));
  EXPECT_FALSE(value_of("x: false", boolean));
  for (const std::string text : {"yes", "no", "on", "1", "0", "'true'", "[true]", "tRue"})
    EXPECT_EQ(problems_of("x: " + text, boolean).find("job.yaml:1: x: expected true or false, got "), 0U) << text;
}

TEST(ConfigSection, ReadsTextWithAndWithoutQuotes) {
  const auto text = [](ConfigSection& job) { return job.text("x"); };
  EXPECT_EQ(value_of("x: 1998", text), "1998");
  EXPECT_EQ(value_of("x: true", text), "true");
  EXPECT_EQ(value_of("x: ''", text), "");
  EXPECT_EQ(value_of("x: 'null'", text), "null");
  EXPECT_EQ(problems_of("x: [a]", text), "job.yaml:1: x: expected text, got a list");
  EXPECT_EQ(problems_of("x: {a: b}", text), "job.yaml:1: x: expected text, got a map");
  EXPECT_EQ(problems_of("x: null", text), "job.yaml:1: x: is missing: expected text");
}

TEST(ConfigSection, NamesTheNearestChoice) {
  const std::vector<std::string> choices{"auto", "f32", "bf16"};
  const auto choice = [&](ConfigSection& job) { return job.choice("x", choices); };
  EXPECT_EQ(value_of("x: bf16", choice), "bf16");
  EXPECT_EQ(problems_of("x: bf61", choice),
            "job.yaml:1: x: expected one of auto, f32, bf16, got bf61; did you mean bf16?");
  EXPECT_EQ(problems_of("x: something", choice), "job.yaml:1: x: expected one of auto, f32, bf16, got something");
  EXPECT_EQ(problems_of("{}", choice), "job.yaml:1: x: is missing: expected one of auto, f32, bf16");
  EXPECT_EQ(value_of("{}", [&](ConfigSection& job) { return job.choice("x", choices, "auto"); }), "auto");
}

TEST(ConfigSection, MakesPathsAbsolute) {
  const char* home = std::getenv("HOME");
  const std::string saved = home == nullptr ? "" : home;
  ::setenv("HOME", "/home/ann", 1);
  const auto path = [](ConfigSection& job) { return job.path("x", "/jobs/one"); };
  EXPECT_EQ(value_of("x: ../model", path), "/jobs/model");
  EXPECT_EQ(value_of("x: ./a/./b/", path), "/jobs/one/a/b");
  EXPECT_EQ(value_of("x: /abs/m", path), "/abs/m");
  EXPECT_EQ(value_of("x: /", path), "/");
  EXPECT_EQ(value_of("x: ~/.cache/lancet", path), "/home/ann/.cache/lancet");
  EXPECT_EQ(value_of("x: '~'", path), "/home/ann");
  EXPECT_EQ(value_of("x: a~b", path), "/jobs/one/a~b");
  EXPECT_EQ(value_of("{}", [](ConfigSection& job) { return job.path("x", "/jobs", "~/.cache"); }), "/home/ann/.cache");
  EXPECT_EQ(value_of("x: m", [](ConfigSection& job) { return job.path("x", "rel"); }),
            std::filesystem::current_path() / "rel" / "m");
  EXPECT_NE(problems_of("x: ~bob/m", path).find("got ~bob/m (only ~/, your own home folder, is understood)"),
            std::string::npos);
  EXPECT_EQ(problems_of("x: ''", path), "job.yaml:1: x: expected a path, got the text \"\"");
  ::unsetenv("HOME");
  EXPECT_NE(problems_of("x: ~/m", path).find("HOME is not set"), std::string::npos);
  if (home != nullptr) ::setenv("HOME", saved.c_str(), 1);
}

TEST(ConfigSection, ReadsLists) {
  const auto integers = [](ConfigSection& job) { return job.integers("x", {.min = 0, .max = 7}); };
  const auto texts = [](ConfigSection& job) { return job.texts("x"); };
  EXPECT_EQ(value_of("x: [0, 7]", integers), (std::vector<int64_t>{0, 7}));
  EXPECT_EQ(value_of("x: []", integers), std::vector<int64_t>{});
  EXPECT_EQ(value_of("x: [a, 'b c', 5]", texts), (std::vector<std::string>{"a", "b c", "5"}));
  EXPECT_EQ(value_of("x: []", [](ConfigSection& job) { return job.texts("x", std::vector<std::string>{"a"}); }),
            std::vector<std::string>{});
  EXPECT_EQ(problems_of("x: [0, 8, 9]", integers),
            "job.yaml:1: x: expected a list of integers from 0 to 7, got 8 as item 2 of 3");
  EXPECT_EQ(problems_of("x: 3", integers), "job.yaml:1: x: expected a list of integers from 0 to 7, got 3; write [3]");
  EXPECT_EQ(problems_of("x: [a, [b]]", texts), "job.yaml:1: x: expected a list of texts, got a list as item 2 of 2");
  EXPECT_EQ(problems_of("x: {a: b}", texts), "job.yaml:1: x: expected a list of texts, got a map");
}

TEST(ConfigSection, ReadsMapsOfNumbers) {
  const auto accept = [](ConfigSection& job) { return job.number_map("accept"); };
  using Entries = std::vector<std::pair<std::string, double>>;
  EXPECT_EQ(value_of("accept: {b: 0.9, a: 1}", accept), (Entries{{"b", 0.9}, {"a", 1.0}}));
  EXPECT_EQ(value_of("{}", accept), Entries{});
  EXPECT_EQ(problems_of("accept: {b: high, a: 1}", accept), "job.yaml:1: accept.b: expected a number, got high");
  EXPECT_EQ(problems_of("accept: 0.9", accept), "job.yaml:1: accept: expected a map (key: value), got 0.9");
}

TEST(ConfigSection, TakesNullForAbsent) {
  const auto read = [](ConfigSection& job) {
    EXPECT_FALSE(job.has("a"));
    EXPECT_FALSE(job.has("b"));
    EXPECT_TRUE(job.has("c"));
    EXPECT_EQ(job.raw("a"), nullptr);
    EXPECT_EQ(job.section("b").integer("n", {}, 4), 4);
    return job.integer("a", {}, 3);
  };
  EXPECT_EQ(value_of("a: null\nb:\nc: 1\n", read), 3);
}

TEST(ConfigSection, ReportsEveryProblemAtOnceWithItsLine) {
  const std::string text = "model: [x]\neditor:\n  layers: 3\n  values:\n    lr: fast\n    stpes: 5\n  unknown: 1\n";
  const std::string message = problems_of(text, [](ConfigSection& job) {
    job.text("model");
    ConfigSection editor = job.section("editor");
    editor.choice("method", std::vector<std::string>{"memit"});
    editor.integers("layers", {});
    ConfigSection values = editor.section("values");
    values.number("lr", {.min = 0});
    values.integer("steps", {}, 40);
    job.problem("editor", "is not liked");
    job.finish();
  });
  EXPECT_EQ(message,
            "job.yaml:1: model: expected text, got a list\n"
            "job.yaml:2: editor.method: is missing: expected one of memit\n"
            "job.yaml:3: editor.layers: expected a list of integers, got 3; write [3]\n"
            "job.yaml:5: editor.values.lr: expected a number of at least 0, got fast\n"
            "job.yaml:2: editor: is not liked\n"
            "job.yaml:7: editor.unknown: unknown key. Known here: method, layers, values\n"
            "job.yaml:6: editor.values.stpes: unknown key; did you mean steps? Known here: lr, steps");
}

TEST(ConfigSection, FinishesSubsectionsOnlyOnce) {
  const std::string message = problems_of("a: {x: 1}\nother: 2\n", [](ConfigSection& job) {
    ConfigSection a = job.section("a");
    a.finish();
    job.finish();
    job.finish();
  });
  EXPECT_EQ(message,
            "job.yaml:1: a.x: unknown key. This section takes none\njob.yaml:2: other: unknown key. Known here: a");
}

TEST(ConfigSection, MissesNothingInWhatIsNoMap) {
  EXPECT_EQ(problems_of("editor: memit\n",
                        [](ConfigSection& job) {
                          ConfigSection editor = job.section("editor");
                          editor.text("method");
                          editor.section("values").number("lr", {});
                          job.finish();
                        }),
            "job.yaml:1: editor: expected a map (key: value), got memit");
  EXPECT_EQ(problems_of("- a\n", [](ConfigSection& job) { job.text("model"); }),
            "job.yaml:1: expected a map (key: value), got a list");
  EXPECT_EQ(problems_of("", [](ConfigSection& job) { job.text("model"); }),
            "job.yaml:1: model: is missing: expected text");
}

TEST(ConfigSection, CutsLongValuesInMessages) {
  const std::string message =
      problems_of("x: " + std::string(500, 'y'), [](ConfigSection& job) { job.integer("x", {}); });
  EXPECT_EQ(message, "job.yaml:1: x: expected an integer, got " + std::string(60, 'y') + "...");
}

TEST(ConfigSection, TakesAPathFromTheFolderOfItsValue) {
  ConfigTree tree = parsed("model: m\nrequests: {path: r.json}\nstatistics: {cache: ~/c}\n");
  apply_override(tree, "requests.path=other/r.json");
  apply_override(tree, "output={dir: out, list: [1]}");
  ConfigTree own = parsed("{corpus: text.txt, import: \"/abs/c{}.npz\"}");
  keep_folder(own, "/models/a");
  tree.set("own", own);
  ConfigProblems problems("job.yaml");
  ConfigSection job(tree, "", problems);
  const std::filesystem::path here = std::filesystem::current_path();
  EXPECT_EQ(job.path("model", "/jobs"), "/jobs/m");
  EXPECT_EQ(job.section("requests").path("path", "/jobs"), here / "other" / "r.json");
  EXPECT_EQ(job.section("output").path("dir", "/jobs"), here / "out");
  EXPECT_EQ(job.section("output").path("other", "/jobs", "cache"), "/jobs/cache");
  EXPECT_EQ(job.section("own").path("corpus", "/jobs"), "/models/a/text.txt");
  EXPECT_EQ(job.section("own").path("import", "/jobs"), "/abs/c{}.npz");
  EXPECT_EQ(to_yaml(tree), to_yaml(parsed(to_yaml(tree)))) << "folders are not written";
}

TEST(ConfigSection, SaysNothingOfKeysThatHangOnAWrongOne) {
  const auto read = [](ConfigSection& job) {
    ConfigSection editor = job.section("editor");
    editor.choice("method", std::vector<std::string>{"memit"});
    editor.abandon("method");
    job.finish();
  };
  EXPECT_EQ(problems_of("editor: {method: memmit, layers: [1], clamp: 3}\n", read),
            "job.yaml:1: editor.method: expected one of memit, got memmit; did you mean memit?");
  EXPECT_EQ(problems_of("editor:\n  methd: memit\n  layers: [1]\nother: 1\n", read),
            "job.yaml:1: editor.method: is missing: expected one of memit\n"
            "job.yaml:2: editor.methd: unknown key; did you mean method?\n"
            "job.yaml:4: other: unknown key. Known here: editor");
}

TEST(ConfigSection, RecordsEveryValueThatItRead) {
  const auto read = [](ConfigSection& job) {
    job.path("model", "/jobs");
    ConfigSection editor = job.section("editor");
    editor.integers("layers", {});
    editor.boolean("flag", false);
    ConfigSection values = editor.section("values");
    values.number("lr", {}, 0.5);
    values.integer("steps", {});
    editor.text("note", "5");
    editor.raw("contexts");
    job.number_map("accept");
    job.texts("evaluate", std::vector<std::string>{"a", "b"});
    editor.record("contexts", ConfigTree::list({ConfigTree::text("{}")}));
    job.finish();
    return job.resolved();
  };
  const ConfigTree resolved = value_of(
      "editor: {contexts: {generate: 5}, layers: [1], values: {steps: 40}}\nmodel: m\naccept: {p: 0.9}\n", read);
  EXPECT_EQ(dump(resolved),
            "{model='/jobs/m', editor={layers=[<1>], flag=<false>, values={lr=<0.5>, steps=<40>}, note='5', "
            "contexts=['{}']}, accept={p=<0.9>}, evaluate=['a', 'b']}");
}

TEST(ConfigSection, ReadsItsOwnResolvedDocument) {
  const auto read = [](ConfigSection& job) {
    job.section("run").integer("seed", {}, 0);
    job.section("run").text("dtype", "auto");
    job.number_map("accept");
    job.section("editor").number("lr", {}, 1e-3);
    job.raw("requests");
    job.finish();
    return job.resolved();
  };
  const ConfigTree first = value_of("run: {dtype: bf16}\nrequests: [{prompt: \"{} is\", target: 5}]\n", read);
  const ConfigTree second = value_of(to_yaml(first), read);
  EXPECT_EQ(dump(first), dump(second));
  EXPECT_EQ(to_yaml(first), to_yaml(second));
}

TEST(ConfigSection, LetsASectionFollowARawRead) {
  const auto read = [](ConfigSection& job) {
    EXPECT_EQ(job.raw("requests")->kind, ConfigTree::Kind::kMap);
    ConfigSection requests = job.section("requests");
    requests.text("path");
    requests.integer("skip", {}, 0);
    job.finish();
    return dump(job.resolved());
  };
  EXPECT_EQ(value_of("requests: {path: a.json}\n", read), "{requests={path='a.json', skip=<0>}}");
}

}  // namespace
}  // namespace lancet
