// Files as programs write them: tables, marks of byte order, line ends, and what is no text at all.
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "support/request_text.h"
#include "written_requests.h"

namespace lancet {
namespace {

using namespace lancet::testing;
using namespace std::string_literals;

/// What is said while it lives.
class CapturedLog final : public Reporter {
 public:
  std::vector<std::string> lines;

 protected:
  void on_log(LogLevel, std::string_view text) override { lines.emplace_back(text); }
  void on_progress(const StageProgress&) override {}

 private:
  ReporterScope scope_{*this};
};

TEST_F(WrittenRequests, MayBeATable) {
  const auto of = [&](const std::string& text) { return text_of(load(write("r.csv", text)).requests); };
  EXPECT_EQ(of("\xef\xbb\xbfprompt,target\r\n\"a \"\"b\"\"\",\"c,d\"\r\n\r\n e ,\"f\r\ng\""),
            "id: 0\nprompt: a \"b\"\ntarget: c,d\n\nid: 1\nprompt:  e \ntarget: f\r\ng\n\n");
  EXPECT_EQ(of("prompt,ans,loc,loc_ans\np,a,q,b\n"), "id: 0\nprompt: p\ntarget: a\nlocality loc: q -> b\n\n");
  const auto refused = [&](const std::string& text) { return refusal(text, "auto", "r.csv"); };
  EXPECT_EQ(refused("prompt,target\n\"a\nb\",c\nd\n\"e\"f,g\nh,\"i\n"),
            "r.csv: record 1 (line 4): expected 2 fields, as the header line has, got 1; a field with a comma or a "
            "line break "
            "stands in quotes\n"
            "r.csv: record 2 (line 5): text after a closing quote\n"
            "r.csv: record 3 (line 6): a quote that is never closed");
  EXPECT_EQ(refused("prompt,target\na\"b,c\n"),
            "r.csv: record 0 (line 2): a quote inside a field that is not in quotes; write \"\" in a field in quotes");
  EXPECT_EQ(refused("prompt,target,subjct\nthe a,b,a\n"),
            "r.csv: record 0 (line 2): subjct: unknown key; did you mean subject?");
  EXPECT_EQ(refused("prompt,target,target\na,b,c\n"), "r.csv: record 0 (line 2): target: expected text, got a list");
  EXPECT_EQ(refused("prompt,target\n"), "r.csv: holds no request");
  EXPECT_EQ(refused("prompt,target\na,b\nc,caf\xe9\n"),
            "r.csv: line 3: the byte 233 is no UTF-8: save the file as UTF-8");
  EXPECT_EQ(refused("prompt,target\na,b\nc,d\0e\n"s),
            "r.csv: line 3: has a byte 0, which no text has: the file is damaged, or is no text");
  EXPECT_EQ(refused("prompt,target\na, \"b\"\n"),
            "r.csv: record 0 (line 2): a blank before a field in quotes: take the blank away");
  EXPECT_EQ(refused("question,answer\na,b\n"),
            "r.csv: its header line has question, answer: expected columns with the names prompt, subject and target");
  EXPECT_EQ(refused("pro\"mpt,target\na,b\n").find("r.csv: line 1: a quote inside"), 0U);
}

TEST_F(WrittenRequests, MayBeATableAsProgramsWriteIt) {
  const std::string two = "id: 0\nprompt: a\ntarget: b\n\nid: 1\nprompt: c\ntarget: d\n\n";
  const auto of = [&](const std::string& text) { return text_of(load(write("r.csv", text)).requests); };
  EXPECT_EQ(of("prompt,target\ra,b\rc,d\r"), two) << "an old Mac's";
  EXPECT_EQ(of("prompt,target\r\r\na,b\r\r\nc,d\r\r\n"), two) << "Python's, in text mode on Windows";
  EXPECT_EQ(of("prompt,target\na,b\r\nc,d\r"), two) << "each line ends in its own way";
  EXPECT_EQ(of("\xef\xbb\xbf\xef\xbb\xbfsep=,\r\nprompt,target\r\na,b\r\nc,d\r\n"), two);
  EXPECT_EQ(of("sep=;\nprompt;target\na;b\nc;d\n"), two);
  EXPECT_EQ(of("\"SEP=|\"\nprompt|target\na|b\nc|d\n"), two);
  EXPECT_EQ(of("prompt;target\na;b\nc;d\n"), two) << "Excel's where a comma is the decimal one";
  EXPECT_EQ(of("\n\nprompt\ttarget\na\tb\nc\td"), two);
  EXPECT_EQ(of("prompt,target\na,b\n,\nc,d\n , \n"), two) << "cleared rows";
  EXPECT_EQ(of("prompt, target ,\na,b,\nc,d,\n"), two) << "a column of nothing, and blanks around a name";
  EXPECT_EQ(of("prompt,target\n\"a\rb\",c\n"), "id: 0\nprompt: a\rb\ntarget: c\n\n");
  EXPECT_EQ(of("prompt;target\na,b;c\n"), "id: 0\nprompt: a,b\ntarget: c\n\n");
}

TEST_F(WrittenRequests, MayHaveTheIndexOfPandas) {
  for (const std::string name : {"", "Unnamed: 0"}) {
    CapturedLog log;
    const RequestFile file = load(write("r.csv", name + ",prompt,target\n0,a,b\n1,c,d\n"));
    EXPECT_EQ(text_of(file.requests), "id: 0\nprompt: a\ntarget: b\n\nid: 1\nprompt: c\ntarget: d\n\n");
    ASSERT_EQ(log.lines.size(), 1U);
    EXPECT_EQ(without_folder(log.lines.front()),
              cat("r.csv: column 1 ", name.empty() ? "has no name" : "is called Unnamed: 0",
                  " and counts the rows, as pandas writes a table's index: left out; to_csv(FILE, index=False) writes "
                  "none"));
  }
  EXPECT_EQ(load(write("r.csv", "Unnamed: 0.1,Unnamed: 0,prompt,target\n0,0,a,b\n")).requests.size(), 1U);
  EXPECT_EQ(refusal(",prompt,target\n4,a,b\n9,c,d\n", "auto", "r.csv"),
            "r.csv: line 1: column 1 has no name: pandas writes a table's index so (to_csv(FILE, index=False) writes "
            "none): expected 0, 1, 2, ... there, which are left out, got \"4\" in line 2; take the column out, or give "
            "it a name (id, where it tells the facts apart)");
  RequestFileOptions options;
  options.range = {.skip = 1, .limit = 1};
  EXPECT_EQ(load_request_file(write("r.csv", ",prompt,target\n0,a,b\n1,c,d\n"), options).requests.front().target, "d");
}

TEST_F(WrittenRequests, SayWhatAFileMostLikelyIs) {
  const auto refused = [&](const std::string& text, const std::string& name = "r.json") {
    return refusal(text, "auto", name);
  };
  EXPECT_EQ(refused("\x1f\x8b\x08\0\0"s), "r.json: is compressed by gzip: unpack it first (gunzip)");
  EXPECT_EQ(refused("PK\x03\x04..", "r.csv").find("r.csv: is a zip archive or a workbook of Excel (.xlsx)"), 0U);
  EXPECT_EQ(refused("\xff\xfep\0r\0"s, "r.csv").find("r.csv: is UTF-16, as Windows PowerShell's >"), 0U);
  EXPECT_EQ(refused("p\0r\0"s, "r.csv"), "r.csv: is UTF-16: save it as UTF-8");
  EXPECT_EQ(refused("\0[\0{"s), "r.json: is UTF-16: save it as UTF-8");
  EXPECT_EQ(refused("\xff\xfe\0\0p"s), "r.json: is UTF-32: save it as UTF-8");
  EXPECT_EQ(refused("PAR1\x15").find("r.json: is a Parquet file"), 0U);
  EXPECT_EQ(refused("\n <!DOCTYPE HTML>\n").find("r.json: is a web page in the place of the file"), 0U);
  EXPECT_EQ(refused("version https://git-lfs.github.com/spec/v1\n").find("r.json: is a pointer of Git LFS"), 0U);
  EXPECT_EQ(refused("{\"prompt\": \"p\", \"target\": \"t\"}\n{\"prompt\": \"q\", \"target\": \"t\"}\n"),
            "r.json: holds a record per line: the name of such a file ends in .jsonl");
  EXPECT_EQ(refused("\n[{\"prompt\": \"p\", \"target\": \"t\"}]", "r.jsonl"),
            "r.jsonl: is one list of records: the name of such a file ends in .json");
  EXPECT_EQ(
      refused(R"({"version": 1, "data": [{"prompt": "p", "target": "t"}]})"),
      "r.json: expected a list of records, got an object, whose key 'data' has a list of objects: write that list "
      "alone into a file");
}

TEST_F(WrittenRequests, MayHaveAMarkOfByteOrderAndLinesThatEndInCr) {
  const std::string mark = "\xef\xbb\xbf", record = R"({"prompt": "p", "target": "t"})";
  EXPECT_EQ(load(write("r.json", mark + "[" + record + "]")).requests.size(), 1U);
  EXPECT_EQ(load(write("r.jsonl", mark + record + "\r" + record + "\r\n" + record)).requests.size(), 3U);
  EXPECT_EQ(refusal(record + "\r\n\r\n{broken\r", "auto", "r.jsonl").find("r.jsonl: record 1 (line 3): not valid"), 0U);
}

TEST_F(WrittenRequests, AreNoTablesOfMoreColumnsThanAnyDataSetHas) {
  std::string header = "prompt,target", row = "p,t";
  for (int i = 0; i < 1'000'000; ++i) {
    header += ",a";
    row += ",b";
  }
  EXPECT_EQ(
      refusal(header + "\n" + row + "\n", "auto", "r.csv"),
      "r.csv: line 1: expected at most 4096 columns, got 1000002: the first line of a table has the columns' names; "
      "is this a table of requests?");
  EXPECT_EQ(refusal("prompt,target\n" + row + "\n", "auto", "r.csv"),
            "r.csv: record 0 (line 2): expected 2 fields, as the header line has, got 1000002; a field with a comma "
            "stands in quotes");
}

}  // namespace
}  // namespace lancet
