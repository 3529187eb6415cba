#include "lancet/core/config_tree.h"

#include <cmath>
#include <fstream>
#include <limits>
#include <random>

#include "support/core_support.h"
#include "support/temp_dir.h"

namespace lancet {
namespace {

using namespace lancet::testing;

std::string dump_of(std::string_view text) { return dump(parsed(text)); }

std::string tree_refusal(std::string_view text) {
  return config_error([&] { parsed(text); });
}

TEST(ConfigTree, ReadsTheJobOfTheReadme) {
  const ConfigTree tree = load_config(LANCET_SOURCE_DIR "/data/jobs/demo.yaml");
  EXPECT_EQ(tree.find("model")->scalar, "../demo-model");
  EXPECT_EQ(dump(*tree.find("requests")), "{path=<../requests/demo.json>, limit=<100>}");
  EXPECT_EQ(dump(*tree.find("editor")->find("layers")), "[<0>, <1>]");
  EXPECT_EQ(dump(*tree.find("accept")), "{efficacy_prob=<0.9>}");
  EXPECT_EQ(tree.find("editor")->find("method")->line, 4);
  EXPECT_EQ(tree.find("absent"), nullptr);
}

TEST(ConfigTree, KnowsWhatWasQuoted) {
  EXPECT_EQ(dump_of("a: 5\nb: '5'\nc: \"5\"\nd: !!str 5\ne: |\n  5\nf: >-\n  5\n"),
            "{a=<5>, b='5', c='5', d='5', e='5\n', f='5'}");
}

TEST(ConfigTree, TellsNullFromTheWordNull) {
  EXPECT_EQ(dump_of("a:\nb: ~\nc: null\nd: 'null'\ne: ''\nf: [~, x]\n"),
            "{a=null, b=null, c=null, d='null', e='', f=[null, <x>]}");
  EXPECT_EQ(dump_of(""), "null");
  EXPECT_EQ(dump_of("# only a comment"), "null");
  EXPECT_EQ(dump_of("---\n"), "null");
}

TEST(ConfigTree, KeepsTheLineOfEachKeyAndItem) {
  const ConfigTree tree = parsed("# head\na: 1\nb:\n  c:\n    - x\n    - y\n\nd: {e: 1,\n  f: 2}\n");
  EXPECT_EQ(tree.line, 2);
  EXPECT_EQ(tree.find("a")->line, 2);
  EXPECT_EQ(tree.find("b")->line, 3);
  EXPECT_EQ(tree.find("b")->find("c")->line, 4);
  EXPECT_EQ(tree.find("b")->find("c")->items[1].line, 6);
  EXPECT_EQ(tree.find("d")->find("f")->line, 9);
}

TEST(ConfigTree, ReadsOtherLineEndsMarksAndDirectives) {
  EXPECT_EQ(dump_of("a: 1\r\nb: x y\r\n"), "{a=<1>, b=<x y>}");
  EXPECT_EQ(dump_of("\xef\xbb\xbf"
                    "a: 1"),
            "{a=<1>}");
  EXPECT_EQ(dump_of("%YAML 1.2\n---\na: 1\n...\n"), "{a=<1>}");
  EXPECT_EQ(dump_of("a: \xe2\x82\xac \xf0\x9f\x98\x80 # comment\nb: x#y\n"),
            "{a=<\xe2\x82\xac \xf0\x9f\x98\x80>, b=<x#y>}");
}

TEST(ConfigTree, ReadsJson) {
  EXPECT_EQ(dump_of("{\"a\":1,\"b\":[1,-2.5e-3,true,null,\"5\",[]],\"c\":{\"d\":{}}}"),
            "{a=<1>, b=[<1>, <-2.5e-3>, <true>, null, '5', []], c={d={}}}");
  EXPECT_EQ(dump_of("[{\"a\" : \"x # no\"} , {\"b\":\"- {}: [\"}]"), "[{a='x # no'}, {b='- {}: ['}]");
}

TEST(ConfigTree, ReadsJsonIndentedWithTabs) {
  const ConfigTree tree = parsed("\t{\n\t\"a\": 1,\n\t\"b\"\t:\t[1,\t2],\n\t\"c\": {\n\t\t\"d\":\"e\"\n\t}\n}\n");
  EXPECT_EQ(dump(tree), "{a=<1>, b=[<1>, <2>], c={d='e'}}");
  EXPECT_EQ(tree.find("c")->find("d")->line, 5);
}

TEST(ConfigTree, ReadsJsonEscapes) {
  EXPECT_EQ(dump_of(R"({"a":"\u00e9 \/ \b\f\n\r\t \" \\ x"})"), "{a='\xc3\xa9 / \b\f\n\r\t \" \\ x'}");
  EXPECT_EQ(dump_of(R"({"a":"\ud83d\ude00\uD83D\uDE00!", "\ud83d\ude00": 1})"),
            "{a='\xf0\x9f\x98\x80\xf0\x9f\x98\x80!', \xf0\x9f\x98\x80=<1>}");
  EXPECT_EQ(dump_of(R"({"a":"\\ud83d\\ude00 \\", "b": "\"\ud83d\ude00"})"),
            "{a='\\ud83d\\ude00 \\', b='\"\xf0\x9f\x98\x80'}");
  EXPECT_EQ(dump_of("[\"a\\u0000b\"]"), std::string("['a\0b']", 7));
}

TEST(ConfigTree, RefusesTextThatIsNotYamlWithItsPlace) {
  EXPECT_EQ(tree_refusal("a: 1\nb: [1, 2\nc: 3\n").substr(0, 14), "job.yaml:3:2: ");
  EXPECT_EQ(tree_refusal("a: b: c\n").substr(0, 29), "job.yaml:1:5: not valid YAML:");
  EXPECT_EQ(tree_refusal("model: m\neditor:\n\tmethod: memit\n"),
            "job.yaml:3:1: a tab at the beginning of the line: YAML is indented by spaces alone; replace the tab by "
            "spaces");
  EXPECT_EQ(tree_refusal("a:\n\t- b\n").substr(0, 20), "job.yaml:2:1: a tab ");
  EXPECT_EQ(tree_refusal("a: {} is\n").substr(0, 14), "job.yaml:1:7: ");
  EXPECT_EQ(tree_refusal("{\"a\": \"\\ud83d\"}").substr(0, 9), "job.yaml:");
  EXPECT_NE(tree_refusal(std::string(5000, '[') + std::string(5000, ']')).find("nested too deeply"), std::string::npos);
}

TEST(ConfigTree, RefusesAQuoteThatIsNeverClosed) {
  EXPECT_NE(tree_refusal("a: \"x\nb: 1\n").find("a quote that is not closed"), std::string::npos);
  EXPECT_NE(tree_refusal("a: 'x").find("a quote that is not closed"), std::string::npos);
}

TEST(ConfigTree, RefusesAKeyThatStandsTwice) {
  EXPECT_EQ(tree_refusal("a: 1\nb: {c: 1}\na: 2\n"),
            "job.yaml:3:1: the key 'a' stands twice in one map, first on line 1");
  EXPECT_EQ(tree_refusal("{\"a\": {\"b\": 1,\n\"b\": 1}}"),
            "job.yaml:2:1: the key 'b' stands twice in one map, first on line 1");
  EXPECT_EQ(dump_of("a: {x: 1}\nb: {x: 1}\n"), "{a={x=<1>}, b={x=<1>}}");
}

TEST(ConfigTree, RefusesAnchorsTagsAndOddKeys) {
  EXPECT_NE(tree_refusal("a: &x 1\nb: 2\n").find("job.yaml:1:4: anchors and aliases"), std::string::npos);
  EXPECT_NE(tree_refusal("a: &x {b: 1}\n").find("anchors and aliases"), std::string::npos);
  EXPECT_NE(tree_refusal("a: *x\n").find("job.yaml:1:"), std::string::npos);
  EXPECT_NE(tree_refusal("a: !!int 5\n").find("tag"), std::string::npos);
  EXPECT_NE(tree_refusal("a: !foo [1]\n").find("the tag !foo is not supported"), std::string::npos);
  EXPECT_NE(tree_refusal("? [a]\n: b\n").find("a key that is a list or a map"), std::string::npos);
  EXPECT_NE(tree_refusal("null: b\n").find("a key is missing"), std::string::npos);
}

TEST(ConfigTree, RefusesASecondDocument) {
  EXPECT_NE(tree_refusal("a: 1\n---\nb: 2\n").find("job.yaml:2:1: expected one document"), std::string::npos);
  EXPECT_NE(tree_refusal("{\"a\":1} x\n").find("expected one document"), std::string::npos);
  EXPECT_NE(tree_refusal("- a\nb: c\n").find("expected one document"), std::string::npos);
}

TEST(ConfigTree, RefusesBytesThatAreNoText) {
  EXPECT_EQ(tree_refusal(std::string_view("a: 1\nb: x\0y\n", 12)), "job.yaml:2:5: the byte 0: expected UTF-8 text");
  EXPECT_NE(tree_refusal("a: 1\n\x04").find("job.yaml:2:1: the byte 4"), std::string::npos);
  EXPECT_EQ(tree_refusal("a: x\xc3(\n"), "job.yaml:1:4: text that is not valid UTF-8");
  EXPECT_NE(tree_refusal("\xff\xfe"
                         "a")
                .find("job.yaml:1:"),
            std::string::npos);
  EXPECT_NE(tree_refusal("a: \"\\N\"\n").find("not valid UTF-8"), std::string::npos);
}

TEST(ConfigTree, SaysWhyAFileCannotBeRead) {
  const TempDir dir;
  const std::string absent = (dir / "absent.yaml").string();
  EXPECT_EQ(config_error([&] { load_config(absent); }), absent + ": cannot be read: No such file or directory");
  EXPECT_NE(config_error([&] { load_config(dir.path()); }).find("is a folder"), std::string::npos);
  std::ofstream(dir / "empty.yaml").flush();
  EXPECT_EQ(dump(load_config(dir / "empty.yaml")), "null");
  std::ofstream(dir / "bad.yaml") << "a: [";
  EXPECT_EQ(config_error([&] { load_config(dir / "bad.yaml"); }).find((dir / "bad.yaml").string() + ":"), 0U);
}

TEST(ConfigTree, WritesNumbersThatReadBackToTheSameDouble) {
  EXPECT_EQ(ConfigTree::number(0.5).scalar, "0.5");
  EXPECT_EQ(ConfigTree::number(0.0625).scalar, "0.0625");
  EXPECT_EQ(ConfigTree::number(int64_t{-3}).scalar, "-3");
  for (const double value : {0.1, 1e-300, 1.0 / 3.0, 6.02214076e23, -0.0, std::numeric_limits<double>::max()})
    EXPECT_EQ(std::stod(ConfigTree::number(value).scalar), value);
  EXPECT_THROW(ConfigTree::number(std::nan("")), std::logic_error);
}

TEST(ConfigTree, SetsEntriesOfMapsOnly) {
  ConfigTree tree;
  tree.set("a", ConfigTree::number(int64_t{1}));
  tree.set("b", ConfigTree::map()).set("c", ConfigTree::text("x"));
  tree.set("a", ConfigTree::list({}));
  EXPECT_EQ(dump(tree), "{a=[], b={c='x'}}");
  ConfigTree scalar = ConfigTree::text("x");
  EXPECT_THROW(scalar.set("a", {}), std::logic_error);
}

TEST(ConfigOverride, ReplacesAddsAndMakesMaps) {
  ConfigTree tree = parsed("editor: {method: memit, layers: [0]}\nrun:\n");
  apply_override(tree, "editor.layers=[1, 2]");
  apply_override(tree, "editor.values.lr=1e-3");
  apply_override(tree, "run.seed=7");
  apply_override(tree, "model=a b=c");
  apply_override(tree, "note='5'");
  apply_override(tree, "output={dir: x}");
  apply_override(tree, "accept=");
  EXPECT_EQ(dump(tree),
            "{editor={method=<memit>, layers=[<1>, <2>], values={lr=<1e-3>}}, run={seed=<7>}, model=<a b=c>, "
            "note='5', output={dir=<x>}, accept=null}");
  EXPECT_EQ(tree.find("editor")->find("layers")->items[0].line, 0);
  ConfigTree empty;
  apply_override(empty, "a.b=1");
  EXPECT_EQ(dump(empty), "{a={b=<1>}}");
}

TEST(ConfigOverride, RefusesWhatHasNoPlace) {
  ConfigTree tree = parsed("a: 1\nb: [1]\nc: {d: x}\n");
  const auto error = [&](const char* assignment) { return config_error([&] { apply_override(tree, assignment); }); };
  EXPECT_EQ(error("seed"), "--set seed: expected KEY.KEY=VALUE, found no '='");
  for (const char* assignment : {"=1", ".a=1", "a.=1", "c..d=1"})
    EXPECT_NE(error(assignment).find("has an empty part"), std::string::npos) << assignment;
  EXPECT_EQ(error("a.x=1"), "--set a.x=1: a is a single value, expected a map; replace it as a whole: --set a=...");
  EXPECT_NE(error("b.0=1").find("b is a list"), std::string::npos);
  EXPECT_NE(error("c.d.e=1").find("c.d is a single value"), std::string::npos);
  EXPECT_NE(error("c.d=[1").find("--set c.d=[1:"), std::string::npos);
  EXPECT_EQ(dump(tree), "{a=<1>, b=[<1>], c={d=<x>}}");
}

TEST(ConfigWriter, WritesWhatAPersonWouldWrite) {
  const ConfigTree tree = parsed(
      "model: ../demo\nlayers: [0, 1]\ncontexts: [\"{}\", 'I know. {}']\nvalues: {lr: 0.5, empty: {}, none: []}\n"
      "requests:\n- {prompt: \"{} is\", subject: Rome}\n- [[1, 2], {a: ~}]\n");
  EXPECT_EQ(to_yaml(tree),
            "model: ../demo\nlayers: [0, 1]\ncontexts: [\"{}\", \"I know. {}\"]\nvalues:\n  lr: 0.5\n  empty: {}\n  "
            "none: []\n"
            "requests:\n  - prompt: \"{} is\"\n    subject: Rome\n  - - [1, 2]\n    - a: null\n");
  EXPECT_EQ(to_yaml(ConfigTree()), "null\n");
  EXPECT_EQ(to_yaml(ConfigTree::map()), "{}\n");
  EXPECT_EQ(to_yaml(ConfigTree::list({})), "[]\n");
}

TEST(ConfigWriter, PutsALongListOnLinesOfItsOwn) {
  std::vector<ConfigTree> items(40, ConfigTree::text("word"));
  const std::string text = to_yaml(ConfigTree::list(std::move(items)));
  EXPECT_EQ(text.substr(0, 18), "- \"word\"\n- \"word\"\n");
}

TEST(ConfigWriter, RoundTripsTextThatLooksLikeSomethingElse) {
  for (const std::string text : {"",
                                 " ",
                                 "null",
                                 "~",
                                 "true",
                                 "5",
                                 "-",
                                 "- a",
                                 "-5",
                                 "a: b",
                                 "a:",
                                 "a #b",
                                 "#a",
                                 "[a]",
                                 "{}",
                                 "a, b]",
                                 "*a",
                                 "&a",
                                 "!a",
                                 "|",
                                 ">",
                                 "%a",
                                 "@a",
                                 "`a",
                                 "'a'",
                                 "\"a\"",
                                 "a\\b",
                                 "a\nb",
                                 "\ta",
                                 "---",
                                 "...",
                                 "a\x01\x7f",
                                 "?",
                                 "? a",
                                 ":",
                                 "\xe2\x82\xac",
                                 "\xc2\x85",
                                 "\xe2\x80\xa8",
                                 "\xef\xbb\xbf",
                                 "a ",
                                 "key with spaces",
                                 "~/x",
                                 "cuda:0",
                                 "<<"}) {
    ConfigTree map;
    map.set("k" + text, ConfigTree::text(text));
    map.set(text, ConfigTree::list({ConfigTree::text(text), ConfigTree::text("x")}));
    const ConfigTree list = ConfigTree::list({map, ConfigTree::text(text), ConfigTree::list({map})});
    EXPECT_EQ(dump(parsed(to_yaml(list))), dump(list)) << to_yaml(list);
  }
}

TEST(ConfigWriter, RoundTripsTextWithEveryByte) {
  std::string text;
  for (int c = 0; c < 0x80; ++c) text += static_cast<char>(c);
  ConfigTree map;
  map.set(text, ConfigTree::text(text));
  EXPECT_EQ(dump(parsed(to_yaml(map))), dump(map));
}

/// A tree as a reader could have made it: scalars without quotes only where a document could have them.
ConfigTree random_tree(std::mt19937& random, int depth) {
  const auto below = [&](size_t n) { return static_cast<size_t>(random()) % n; };
  static const std::vector<std::string> kTexts{"a",        "x: y", "{}", "5",   "",   "\n",
                                               "I am. {}", "a, b", "\"", "\\n", "- ", "\xc3\xa9"};
  static const std::vector<std::string> kPlain{"a",   "5",    "-1e-3",  "I am. {}", "a, b]",
                                               "~/x", "true", "a'b\"c", "x#y",      "\xc3\xa9"};
  switch (depth > 0 ? below(5) : below(3)) {
    case 0:
      return {};
    case 1:
      return ConfigTree::text(kTexts[below(kTexts.size())]);
    case 2: {
      ConfigTree plain = ConfigTree::text(kPlain[below(kPlain.size())]);
      plain.quoted = false;
      return plain;
    }
    case 3: {
      ConfigTree list = ConfigTree::list({});
      for (size_t n = below(4); n > 0; --n) list.items.push_back(random_tree(random, depth - 1));
      return list;
    }
    default: {
      ConfigTree map = ConfigTree::map();
      for (size_t n = below(4); n > 0; --n) map.set(kTexts[below(kTexts.size())], random_tree(random, depth - 1));
      return map;
    }
  }
}

TEST(ConfigWriter, RoundTripsRandomTrees) {
  std::mt19937 random(20240501);
  for (int i = 0; i < 2000; ++i) {
    const ConfigTree tree = random_tree(random, 4);
    ASSERT_EQ(dump(parsed(to_yaml(tree))), dump(tree)) << "tree " << i << "\n" << to_yaml(tree);
  }
}

}  // namespace
}  // namespace lancet
