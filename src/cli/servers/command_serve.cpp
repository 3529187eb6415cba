// `lancet serve`: a page for the browser, with a model in memory.
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/http/request_guard.h"
#include "lancet/serve/page_server.h"
#include "terminal.h"

namespace lancet::cli {
namespace {

struct ServeArguments {
  ServeOptions options;
  TypedOptions run;
};

ExitCode run_serve(ServeArguments arguments, const Output& output) {
  begin(output);
  ServeOptions& options = arguments.options;
  for (std::string& change : arguments.run.overrides(JobSpec::kRun.key)) options.overrides.push_back(std::move(change));
  if (!is_local_address(options.host))
    log_warning(cat("--host ", options.host,
                    ": whoever reaches this machine and knows the token can use the page, and ",
                    "what is sent is not encrypted: rather forward a port by ssh (docs/serve.md)"));
  PageServer server(options);
  const StopWordsWhile stop_words([&server] {
    server.stop();
    const std::filesystem::path edits = server.edits_folder();
    return std::filesystem::exists(edits) ? cat("the edits are kept in ", edits.string()) : "nothing was edited";
  });
  if (server.restored_edits() > 0)
    log_line(cat("restored  ", counted(static_cast<size_t>(server.restored_edits()), "edit"), " of ",
                 server.edits_folder().string()));
  if (output.json)
    std::cout << nlohmann::ordered_json{{"address", server.address()},
                                        {"api", server.api_address()},
                                        {"edits", server.restored_edits()}}
                     .dump()
              << "\n";
  else
    std::cout << server.address() << "\n";
  std::cout << std::flush;
  log_line(cat("open this address in a browser; OpenAI's API, for trying: ", server.api_address(),
               ", with the token as key; Ctrl-C ends both"));
  server.run();
  for (;;) ::pause();  // a signal is the only end of the server: its thread ends the process
}

}  // namespace

void add_serve(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<ServeArguments>();
  auto output = std::make_shared<Output>();
  CLI::App& command = add_command(
      app, "serve",
      "Serve a page for the browser: ask a model, edit facts, see before and after, take edits back, export.\n"
      "  lancet serve --model DIR");
  add_option(command, "--model", arguments->options.model,
             "Model folder; options come from the same sources as in lancet edit --model")
      .required()
      .type("DIR");
  add_option(command, "--dir", arguments->options.dir,
             "Folder for exports, and for edits that the next start loads again")
      .type("DIR")
      .shows_default();
  add_option(command, "--host", arguments->options.host, "Address to listen on; lancet warns if others can reach it")
      .shows_default();
  add_option(command, "--port", arguments->options.port, "Port to listen on; 0: a free one")
      .between(0, 65535)
      .shows_default();
  add_option(command, "--requests", arguments->options.most_facts,
             "Largest number of facts in one edit; memory is planned for them")
      .between(1, 1000000)
      .shows_default();
  add_option(command, "--examples", arguments->options.examples,
             "File with example facts to click, of which the first 6 are shown; default: built-in ones")
      .type("FILE");
  add_option(command, "--set", arguments->options.overrides,
             "Change a key of the job: --set editor.method=rome --set run.dtype=f32")
      .repeats()
      .type("KEY=VALUE");
  add_option(command, "--chat-template", arguments->options.chat_template,
             "Chat template to use instead of the checkpoint's, with {} in the place of the user's words")
      .type("TEXT");
  arguments->run.add(command, {&RunSpec::kDevices});
  add_output_options(command, *output, "Print the address as one JSON document on stdout");
  on_choice(command, action, [=] { return run_serve(*arguments, *output); });
}

}  // namespace lancet::cli
