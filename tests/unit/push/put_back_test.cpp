// What is said of a server that could not be put back, whatever the fault was.
#include "put_back.h"

#include <gtest/gtest.h>

#include <functional>
#include <new>

namespace lancet::testing {
namespace {

/// Has one adapter more than before a push, and does something else than unloading it.
class Stuck final : public InferenceServer {
 public:
  explicit Stuck(std::function<void()> unloads) : unloads_(std::move(unloads)) {}
  ServerFacts facts() override { return {}; }
  std::vector<LoadedAdapter> adapters() override { return {{"pushed", "/there"}}; }
  void unload(const std::string&) override { unloads_(); }
  std::string complete(const CompletionQuestion&) override { return {}; }
  TokenScores score(const CompletionQuestion&, size_t) override { return {}; }

 private:
  std::function<void()> unloads_;
};

PutBack put_back_where(const std::function<void()>& unloads) {
  Stuck server(unloads);
  PushRecord record;
  record.adapter = {"pushed", "/there"};
  record.first_name = "pushed";
  return try_to_put_back(server, record);
}

TEST(PutBack, OfAnyFaultSaysThatTheServerIsNotAsBefore) {
  const std::function<void()> faults[] = {
      [] { throw ServerError("it does not answer"); }, [] { throw std::bad_alloc(); },
      [] { throw std::runtime_error("another kind"); }, [] { throw ConfigError("a token that is none"); },
      [] {}};  // it says yes, and does nothing
  for (const std::function<void()>& fault : faults) {
    const PutBack back = put_back_where(fault);
    EXPECT_FALSE(back.is_as_before);
    EXPECT_NE(back.words.find("NOT known to be as before"), std::string::npos) << back.words;
    EXPECT_NE(back.words.find("take 'pushed' back by lancet push --undo"), std::string::npos) << back.words;
  }
}

}  // namespace
}  // namespace lancet::testing
