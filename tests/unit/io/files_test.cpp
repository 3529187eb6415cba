#include "lancet/io/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "support/document_support.h"
#include "support/io_support.h"

namespace lancet {
namespace {

using namespace lancet::testing;

TEST(TextFiles, RoundTripEveryByte) {
  const TempDir dir;
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += static_cast<char>(i * 7 + i / 256);
  write_text_file(dir / "f", text);
  EXPECT_EQ(read_text_file(dir / "f", "request file"), text);
  write_text_file(dir / "f", "");
  EXPECT_EQ(read_text_file(dir / "f", "request file"), "");
  EXPECT_EQ(names_in(dir.path()), std::set<std::string>{"f"});
}

TEST(TextFiles, SayWhatCouldNotBeReadOrWritten) {
  const TempDir dir;
  expect_says(message_of<ConfigError>([&] { read_text_file(dir / "no", "request file"); }),
              {"request file: " + (dir / "no").string(), "No such file"});
  expect_says(message_of<ConfigError>([&] { read_text_file(dir.path(), "request file"); }),
              {"request file: " + dir.path().string(), "folder"});
  expect_says(message_of<CheckpointError>([&] { write_text_file(dir / "no" / "f", "x"); }),
              {(dir / "no" / "f").string(), "No such file"});
}

TEST(TextFiles, RemoveWhatKilledProcessesLeftBesideThem) {
  const TempDir dir;
  const pid_t dead = ::fork();
  if (dead == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(dead, nullptr, 0), dead);
  const std::string gone = cat(".lancet-", dead, "-0.tmp"), living = cat(".lancet-", ::getppid(), "-0.tmp"),
                    own = cat(".lancet-", ::getpid(), "-123456.tmp"), locked = cat(".lancet-", dead, "-1.tmp");
  for (const std::string& name : {gone, living, own, locked, std::string(".lancet-notes.tmp")})
    write_bytes(dir / name, "half");
  const int lock = ::open((dir / locked).c_str(), O_RDONLY);  // a process of another machine
  ASSERT_EQ(::flock(lock, LOCK_EX), 0);
  write_text_file(dir / "f", "x");
  EXPECT_EQ(names_in(dir.path()), (std::set<std::string>{"f", living, locked, ".lancet-notes.tmp"}));
  ::close(lock);
}

TEST(Folders, AreLookedAtBeforeTheWork) {
  const TempDir dir;
  check_writable(dir / "a" / "cache", "statistics.cache");
  EXPECT_TRUE(names_in(dir / "a" / "cache").empty());
  write_bytes(dir / "file", "x");
  expect_says(message_of<CheckpointError>([&] { check_writable(dir / "file", "statistics.cache"); }),
              {"statistics.cache: ", (dir / "file").string()});
  for (const char* folder : {"/proc/cache", "/sys/cache", "/proc"})
    expect_says(message_of<CheckpointError>([&] { check_writable(folder, "statistics.cache"); }),
                {"statistics.cache: ", folder});
  expect_says(message_of<CheckpointError>([&] { make_folders(dir / "file" / "delta"); }), {"file/delta", "folder"});
}

TEST(TextFiles, AreWrittenInTheCurrentFolder) {
  const TempDir dir;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(dir.path());
  write_text_file("f", "x");
  std::filesystem::current_path(before);
  EXPECT_EQ(read_bytes(dir / "f"), "x");
}

TEST(DocumentReader, GivesTheLinesThatAreNotBlank) {
  const TempDir dir;
  write_bytes(dir / "c.txt",
              "\xef\xbb\xbf"
              "first\r\n\n  \t\r\n  second \nthird \xe2\x82\xac\xf0\x9f\x98\x80");
  EXPECT_EQ(documents_of(dir / "c.txt"),
            (std::vector<std::string>{"first", "  second ", "third \xe2\x82\xac\xf0\x9f\x98\x80"}));
  write_bytes(dir / "empty.txt", "");
  EXPECT_TRUE(documents_of(dir / "empty.txt").empty());
}

TEST(DocumentReader, GivesTheTextFieldsOfJsonLines) {
  const TempDir dir;
  write_bytes(
      dir / "c.jsonl",
      "{\"text\": \"one\\ntwo\", \"meta\": {\"id\": [1]}}\r\n\n{\"text\":\"\"}\n{\"id\":2,\"text\":\"\\u20ac\"}");
  EXPECT_EQ(documents_of(dir / "c.jsonl"), (std::vector<std::string>{"one\ntwo", "\xe2\x82\xac"}));
}

TEST(DocumentReader, NamesFileAndLineOfALineThatIsNotValid) {
  const TempDir dir;
  for (const std::string line : {"{\"text\": 3}", "{\"other\": \"x\"}", "[\"text\"]", "{\"text\": \"x\"", "plain",
                                 "{\"text\":\"a\",\"text\":\"b\"}"}) {
    write_bytes(dir / "c.jsonl", "{\"text\":\"fine\"}\n\n" + line + "\n");
    expect_says(corpus_refusal(dir / "c.jsonl"), {(dir / "c.jsonl").string() + ":3", "\"text\""});
  }
}

TEST(DocumentReader, RefusesTextThatIsNotUtf8) {
  const TempDir dir;
  // A lone Latin-1 byte, an overlong form, a surrogate, a code point beyond the last, a character cut short.
  for (const std::string bad : {"\xe4", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82"}) {
    write_bytes(dir / "c.txt", "fine\nab" + bad + "\n");
    expect_says(corpus_refusal(dir / "c.txt"), {(dir / "c.txt").string() + ":2", "UTF-8", "position 2"});
  }
}

TEST(DocumentReader, RefusesAbsentFilesAndFolders) {
  const TempDir dir;
  expect_says(corpus_refusal(dir / "no.txt"), {(dir / "no.txt").string(), "No such file"});
  expect_says(corpus_refusal(dir.path()), {dir.path().string(), "folder"});
}

TEST(DocumentReader, RefusesPipesAtOnce) {
  const TempDir dir;
  ASSERT_EQ(::mkfifo((dir / "c.txt").c_str(), 0600), 0);
  expect_says(corpus_refusal(dir / "c.txt"), {"corpus: " + (dir / "c.txt").string(), "a pipe"});
}

TEST(DocumentReader, GivesLinesOfAnyLengthUpToALimit) {
  const TempDir dir;
  // around the size of the reader's buffer
  std::vector<std::string> lines;
  for (const size_t length : {65'534, 65'535, 65'536, 65'537, 131'070, 131'071, 131'072, 500'000})
    lines.emplace_back(length, static_cast<char>('a' + lines.size()));
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  write_bytes(dir / "c.txt", text);
  EXPECT_EQ(documents_of(dir / "c.txt"), lines);
  write_bytes(dir / "c.txt", text.substr(0, text.size() - 1));
  EXPECT_EQ(documents_of(dir / "c.txt"), lines);
  for (const size_t length : {65'535, 131'070}) {
    write_bytes(dir / "c.txt", std::string(length, 'x'));
    EXPECT_EQ(documents_of(dir / "c.txt"), std::vector{std::string(length, 'x')});
  }
  write_bytes(dir / "long.txt", "fine\n" + std::string(16'000'001, 'x'));
  expect_says(corpus_refusal(dir / "long.txt"), {(dir / "long.txt").string() + ":2", "at most 16.0 MB", "lines"});
}

}  // namespace
}  // namespace lancet
