// Jobs that go on from an earlier one: the same edits as of one job.
#include "lancet/core/error.h"
#include "lancet/io/files.h"
#include "stream_jobs.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;
using testing::flip_a_bit;
using testing::Json;
using testing::kMemit;
using testing::StreamJobs;
using testing::TinyModel;

class ContinuedJobs : public StreamJobs {
 protected:
  /// What a job that goes on from "first" says that this is damaged by; "taken" when it says nothing.
  std::string continued_from_first() const {
    try {
      edit("second", "requests.skip=4 continue_from=first output.replace=true");
    } catch (const Error& error) {
      return error.what();
    }
    return "taken";
  }
};

TEST_F(StreamJobs, GoOnFromAnEarlierJobAsIfThereWereOne) {
  edit("whole");
  edit("first", "requests.limit=4");
  const EditReport second = edit("second", "requests.skip=4 continue_from=first");
  EXPECT_EQ(second.earlier_edits, 4);
  expect_close("second", "whole", 1e-9);
  EXPECT_EQ(bytes("second/model.safetensors"), bytes("whole/model.safetensors"));
  EXPECT_EQ(edit_files("second"), edit_files("whole"));
  EXPECT_EQ(bytes("second/requests.jsonl"), bytes("whole/requests.jsonl"));
  EXPECT_EQ(report("second")["schedule"]["earlier_edits"], 4);
  // a third, and one that was killed on its way
  edit("two",
       "requests.skip=2 requests.limit=2 continue_from=" + (edit("one", "requests.limit=2"), std::string("one")));
  edit_until("rest", 3, "requests.skip=4 continue_from=two");
  EXPECT_EQ(edit("rest", "requests.skip=4 continue_from=two").resumed_batches, 1);
  EXPECT_EQ(bytes("rest/model.safetensors"), bytes("whole/model.safetensors"));
  EXPECT_EQ(edit_files("rest"), edit_files("whole"));
  // a job's batches are told apart from those of others by nothing but what was measured after them
  const auto batches = [&](const std::string& output) {
    Json entries = journal(output);
    std::erase_if(entries.get_ref<Json::array_t&>(), [](const Json& entry) {
      return entry["kind"] == "measure" || entry["kind"] == "finish" || entry["kind"] == "end";
    });
    for (Json& entry : entries) entry.erase("report");
    return entries;
  };
  EXPECT_EQ(batches("whole").size(), 2u + 4u);
  for (const char* output : {"second", "rest"}) EXPECT_EQ(batches(output), batches("whole")) << output;
}

TEST_F(StreamJobs, KeepWhatTheFirstBatchChose) {
  constexpr const char* kAutomatic =
      "{method: memit, layers: [0, 1], history: true, values: {steps: 3, lr: 0.1, batch: 2}, contexts: ['{}']}";
  const auto chosen_by = [&](const std::string& output, const std::string& overrides) {
    edit(output, overrides, kAutomatic);
    return report(output)["chosen"];
  };
  const Json chosen = chosen_by("whole", "");
  ASSERT_EQ(chosen.size(), 2u);
  EXPECT_EQ(chosen[0]["option"], "covariance_weight");
  EXPECT_EQ(chosen[0]["layer"], 0);
  EXPECT_EQ(chosen[1]["layer"], 1);
  EXPECT_NE(chosen_by("alone", "requests.skip=4"), chosen);
  // another job, and a run that was killed, have the same numbers, and the same bytes
  EXPECT_EQ(chosen_by("first", "requests.limit=4"), chosen);
  EXPECT_EQ(chosen_by("second", "requests.skip=4 continue_from=first"), chosen);
  EXPECT_EQ(bytes("second/model.safetensors"), bytes("whole/model.safetensors"));
  edit_until("out", 5, "", kAutomatic);
  EXPECT_EQ(edit("out", "", kAutomatic).resumed_batches, 2);
  EXPECT_EQ(report("out")["chosen"], chosen);
  EXPECT_EQ(edit_files("out"), edit_files("whole"));
  // what they go by is part of the state, a number of one's own is not
  const std::string third = "requests.skip=4 continue_from=first editor.covariance_weight";
  EXPECT_THROW(chosen_by("third", third + ".realised_share=0.5"), ConfigError);
  EXPECT_EQ(chosen_by("third", third + "=20").size(), 0u);
}

TEST_F(ContinuedJobs, NeverGoOnFromAnEarlierJobThatIsDamagedOrMixedWithAnother) {
  edit("first", "requests.limit=2");
  edit("other", "requests.skip=2 requests.limit=2");
  const fs::path edits = folder_ / "first" / "edits", others = folder_ / "other" / "edits";
  const auto only_file = [](const fs::path& folder) { return fs::directory_iterator(folder)->path(); };
  const auto place = [](const fs::path& file, const fs::path& at) {
    fs::copy_file(file, at, fs::copy_options::overwrite_existing);
  };
  const fs::path changes = only_file(edits / "changes"), solved = only_file(edits / "solved"),
                 journal_file = edits / "journal.jsonl";
  for (const fs::path& file : {changes, solved, journal_file}) {
    const std::string intact = read_text_file(file, "test");
    flip_a_bit(file);
    const std::string message = continued_from_first();
    EXPECT_NE(message.find(file.string() + ": "), std::string::npos) << message;
    EXPECT_NE(message.find(file == journal_file ? "has not the hash that it was written with"
                                                : ": its content has not the hash"),
              std::string::npos)
        << message;
    EXPECT_NE(message.find("without continue_from"), std::string::npos) << message;
    place(file == journal_file ? others / "journal.jsonl" : only_file(others / file.parent_path().filename()), file);
    EXPECT_NE(continued_from_first(), "taken") << file << " of another output";
    fs::remove(file);
    EXPECT_NE(continued_from_first(), "taken") << file << " is gone";
    write_text_file(file, intact);
  }
  EXPECT_EQ(continued_from_first(), "taken");
}

struct ContinuedMethod {
  const char* name;
  const char* editor;
};

void PrintTo(const ContinuedMethod& method, std::ostream* out) { *out << method.name; }

class StreamMethods : public StreamJobs, public ::testing::WithParamInterface<ContinuedMethod> {};

/// Holds too where the method does something after the last batch, or normalises by what went before.
TEST_P(StreamMethods, GoOnFromAnEarlierJobAsIfThereWereOne) {
  edit("whole", "", GetParam().editor);
  edit("first", "requests.limit=4", GetParam().editor);
  edit("second", "requests.skip=4 continue_from=first", GetParam().editor);
  expect_close("second", "whole", 1e-9);
  EXPECT_EQ(bytes("second/model.safetensors"), bytes("whole/model.safetensors"));
  EXPECT_EQ(edit_files("second"), edit_files("whole"));
  for (const char* output : {"second", "whole"})
    for (const EditHistory history = this->history(output); const EditedBatch& batch : history.batches()) {
      const size_t i = static_cast<size_t>(&batch - history.batches().data());
      EXPECT_EQ(history.journal().batches()[i].columns.empty(), !has_columns(batch.changes)) << output;
    }
}

#define CONTINUED_VALUES "values: {steps: 3, lr: 0.1, batch: 2}, contexts: ['{}', 'I know. {}']}"
#define LOCATE "layers: [0, 1], " CONTINUED_VALUES
#define MODULES "modules: {gate: [1], down: [1, 2]}}"
INSTANTIATE_TEST_SUITE_P(
    Methods, StreamMethods,
    ::testing::Values(ContinuedMethod{"alphaedit", "{method: alphaedit, null_space_below: 1.0, " LOCATE},
                      ContinuedMethod{"alphaedit_automatic", "{method: alphaedit, " CONTINUED_VALUES},
                      ContinuedMethod{"nse_automatic", "{method: nse, neurons: 0.7, " LOCATE},
                      ContinuedMethod{
                          "anchored",
                          "{method: memit, norm_anchor: {mode: rescale, limit: 3}, prune: {log_base: 1.1}, " LOCATE},
                      ContinuedMethod{"stableedit", "{method: stableedit, lr: 1e-3, modules: {down: [1, 2]}}"},
                      ContinuedMethod{"rome", "{method: rome, rect: {keep: 0.5}, " LOCATE},
                      ContinuedMethod{"ultraedit", "{method: ultraedit, lr: 1e-3, " MODULES},
                      ContinuedMethod{"ft", "{method: ft-m, steps: 3, " MODULES}),
    [](const auto& method) { return std::string(method.param.name); });

std::string refusal(const std::function<void()>& work) {
  try {
    work();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return {};
}

TEST_F(StreamJobs, RefuseAnEarlierJobThatDoesNotFit) {
  edit("first", "requests.limit=2");
  const auto continued = [&](const std::string& overrides, const std::string& editor = kMemit) {
    return refusal([&] { edit("second", "requests.skip=2 continue_from=first " + overrides, editor); });
  };
  EXPECT_NE(continued("", "{method: alphaedit, null_space_below: 1.0, " LOCATE).find("editor.method: expected memit"),
            std::string::npos);
  EXPECT_NE(continued("editor.layers=[1,2]").find("editor.layers"), std::string::npos);
  EXPECT_NE(continued("editor.history=false").find("editor.history: expected 'history: true'"), std::string::npos);
  EXPECT_NE(continued("requests.skip=1").find("request 1"), std::string::npos);
  EXPECT_NE(continued("continue_from=nowhere").find("edits/"), std::string::npos);
  edit("stateless", "requests.limit=2 output.state=false");
  EXPECT_FALSE(fs::exists(folder_ / "stateless" / "edits" / "solved"));
  EXPECT_NE(continued("continue_from=stateless").find("has no folder solved/"), std::string::npos);
  const TinyModel other(testing::TinyShape{.seed = 2});
  EXPECT_NE(continued("model=" + other.folder.path().string()).find("another model"), std::string::npos);
  EXPECT_FALSE(fs::exists(folder_ / "second"));
}

}  // namespace
}  // namespace lancet
