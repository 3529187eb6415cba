// Edits one fact of a model, takes the edit back, edits again and saves:
//   edit_one_fact data/demo-model out/one-fact
#include <iostream>
#include <string>
#include <vector>

#include "lancet/core/reporter.h"
#include "lancet/session/session.h"

namespace {

void run(const std::string& model, const std::string& out) {
  // Progress, log lines and warnings go to stderr. Derive from lancet::Reporter to have them elsewhere.
  lancet::Session session = lancet::Session::open(model, lancet::stderr_reporter());

  const std::vector<lancet::Fact> facts{{.prompt = "{}, created in", .subject = "Piranha Games", .target = "London"}};
  const std::vector<std::string> prompts{"Piranha Games, created in"};
  const auto ask = [&] { return session.generate(prompts, {.tokens = 3}).front().text; };

  std::cout << "before:" << ask() << "\n";
  const lancet::EditReport report = session.edit(facts);
  std::cout << "after:" << ask() << "\n" << lancet::success_text(lancet::count_successes(report)) << "\n";

  session.undo();  // the very bits from before
  std::cout << "undone:" << ask() << "\n";

  session.edit(facts);
  session.save(out);  // a folder as `lancet edit` writes it, for transformers and for `continue_from`
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: edit_one_fact MODEL OUT\n";
    return 2;
  }
  try {
    run(argv[1], argv[2]);
  } catch (const lancet::Error& error) {
    std::cerr << error.what() << "\n";
    return static_cast<int>(error.exit_code());
  }
}
