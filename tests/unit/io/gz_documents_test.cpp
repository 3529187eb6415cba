// Compressed corpora: the same documents as the plain file gives, or an error; never a corpus with a part missing.
#include <gtest/gtest.h>
#include <zlib.h>

#include <random>

#include "lancet/core/error.h"
#include "lancet/io/files.h"
#include "support/document_support.h"
#include "support/io_support.h"
#include "support/io_zip_support.h"

namespace lancet {
namespace {

using namespace lancet::testing;

std::string gzip(std::string_view text) { return deflated(text, 16 + MAX_WBITS); }

/// Lines of many lengths, longer in all than the reader's buffers, and little compressible.
std::string long_text() {
  std::mt19937_64 random(20240521);
  std::string text;
  for (int line = 0; line < 4000; ++line) {
    for (uint64_t left = random() % 400; left > 0; --left) text += static_cast<char>('!' + random() % 90);
    text += line % 3 == 0 ? "\r\n" : "\n";
  }
  return text + std::string(700'000, 'x') + "\nno newline at the end";
}

TEST(GzipDocuments, AreThoseOfThePlainFile) {
  const TempDir dir;
  for (const std::string& text : {long_text(), std::string("\xef\xbb\xbf first\r\n\n \t\nsecond \xe2\x82\xac"),
                                  std::string("one\n"), std::string("\n\n")}) {
    write_bytes(dir / "c.txt", text);
    write_bytes(dir / "c.txt.gz", gzip(text));
    EXPECT_EQ(documents_of(dir / "c.txt.gz"), documents_of(dir / "c.txt"));
  }
  EXPECT_GT(gzip(long_text()).size(), 512u * 1024);
}

TEST(GzipDocuments, AreTextFieldsOfCompressedJsonLines) {
  const TempDir dir;
  write_bytes(dir / "c.jsonl.gz", gzip("{\"text\":\"one\\ntwo\"}\n\n{\"text\":\"three\"}"));
  EXPECT_EQ(documents_of(dir / "c.jsonl.gz"), (std::vector<std::string>{"one\ntwo", "three"}));
  write_bytes(dir / "bad.jsonl.gz", gzip("{\"text\":\"one\"}\n[]\n"));
  expect_says(corpus_refusal(dir / "bad.jsonl.gz"), {(dir / "bad.jsonl.gz").string() + ":2", "\"text\""});
  write_bytes(dir / "bad.txt.gz", gzip("fine\n\xff\n"));
  expect_says(corpus_refusal(dir / "bad.txt.gz"), {(dir / "bad.txt.gz").string() + ":2", "UTF-8"});
}

TEST(GzipDocuments, OfSeveralMembersAreOneText) {
  const TempDir dir;
  write_bytes(dir / "c.txt.gz", gzip("a\nb") + gzip("") + gzip("c\nd\n") + gzip("e") + gzip(""));
  EXPECT_EQ(documents_of(dir / "c.txt.gz"), (std::vector<std::string>{"a", "bc", "d", "e"}));

  // Members that begin and end anywhere in the reader's buffer.
  const std::string text = long_text();
  std::string members;
  for (size_t at = 0; at < text.size(); at += 9973) members += gzip(std::string_view(text).substr(at, 9973));
  write_bytes(dir / "many.txt.gz", members);
  write_bytes(dir / "many.txt", text);
  EXPECT_EQ(documents_of(dir / "many.txt.gz"), documents_of(dir / "many.txt"));
}

TEST(GzipDocuments, OfAnEmptyTextAreNone) {
  const TempDir dir;
  write_bytes(dir / "c.txt.gz", gzip(""));
  EXPECT_TRUE(documents_of(dir / "c.txt.gz").empty());
  write_bytes(dir / "c.jsonl.gz", gzip("") + gzip(""));
  EXPECT_TRUE(documents_of(dir / "c.jsonl.gz").empty());
}

TEST(GzipDocuments, AreRefusedWhereverTheFileIsCut) {
  const TempDir dir;
  const std::string packed = gzip("first line\nsecond line\n");
  for (const std::string& before : {std::string(), gzip("a member before\n")}) {
    for (size_t length = before.empty() ? 0 : 1; length < packed.size(); ++length) {
      SCOPED_TRACE(::testing::Message() << "cut at " << length);
      write_bytes(dir / "c.txt.gz", before + packed.substr(0, length));
      expect_says(corpus_refusal(dir / "c.txt.gz"), {"corpus: " + (dir / "c.txt.gz").string(), "cut", "again"});
    }
  }
}

TEST(GzipDocuments, AreRefusedWhereverTheFileIsDamaged) {
  const TempDir dir;
  const std::string text = "first line\nsecond line\n";
  const std::string packed = gzip(text);
  for (size_t at = 0; at < packed.size(); ++at) {
    // Time, extra flags and system of the header mean nothing to the text.
    if (at >= 4 && at < 10) continue;
    SCOPED_TRACE(::testing::Message() << "byte " << at);
    std::string damaged = packed;
    damaged[at] = static_cast<char>(damaged[at] ^ 0xe4);
    write_bytes(dir / "c.txt.gz", gzip("before\n") + damaged);
    expect_says(corpus_refusal(dir / "c.txt.gz"), {(dir / "c.txt.gz").string(), "expected gzip data", "again"});
  }
}

TEST(GzipDocuments, AreRefusedWhereTheFileIsNotGzip) {
  const TempDir dir;
  write_bytes(dir / "plain.txt.gz", "plain text, only named so\n");
  expect_says(corpus_refusal(dir / "plain.txt.gz"), {(dir / "plain.txt.gz").string(), "not gzip", "unpacked"});
  write_bytes(dir / "after.txt.gz", gzip("fine\n") + "and more");
  expect_says(corpus_refusal(dir / "after.txt.gz"), {"not gzip"});
  std::filesystem::create_directory(dir / "folder.txt.gz");
  expect_says(corpus_refusal(dir / "folder.txt.gz"), {"corpus: " + (dir / "folder.txt.gz").string(), "folder"});
  expect_says(corpus_refusal(dir / "absent.txt.gz"), {"No such file"});
}

/// 100 MB in 100 kB. Without a limit the whole line would be in memory, twice.
TEST(GzipDocuments, OfEndlessLinesAreRefusedBeforeTheirEnd) {
  const TempDir dir;
  const std::string member = gzip(std::string(1'000'000, 'x'));
  std::string bomb;
  for (int i = 0; i < 100; ++i) bomb += member;
  write_bytes(dir / "c.txt.gz", bomb + "and then no gzip at all, which nobody sees");
  expect_says(corpus_refusal(dir / "c.txt.gz"), {(dir / "c.txt.gz").string() + ":1", "at most 16.0 MB"});
}

}  // namespace
}  // namespace lancet
