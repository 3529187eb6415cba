// The routes: which address calls which function of the desk.
#include "lancet/serve/page_server.h"

#include <algorithm>
#include <utility>

#include "desk_json.h"
#include "edit_desk.h"
#include "inside_edits.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/core/version.h"
#include "lancet/editors/registry.h"
#include "lancet/http/access_token.h"
#include "lancet/http/http_server.h"
#include "lancet/http/request_guard.h"
#include "lancet/pages/report_page.h"
#include "lancet/push/inference_server.h"
#include "lancet/requests/request.h"
#include "openai/api_problem.h"
#include "openai_routes.h"
#include "orders.h"
#include "page_assets.h"
#include "state_clock.h"

namespace lancet {
namespace {

using std::chrono::milliseconds;

constexpr int64_t kMostFileBytes = int64_t{16} << 20U;
constexpr int64_t kMostBodyBytes = int64_t{1} << 20U;
constexpr milliseconds kLongestPoll{15000};
constexpr int64_t kMostExamples = 6;

struct PageFile {
  const char* path;
  const char* asset;
  const char* type;
};
constexpr PageFile kPageFiles[] = {{"/", "serve.html", "text/html; charset=utf-8"},
                                   {"/serve.css", "serve.css", "text/css; charset=utf-8"},
                                   {"/serve.js", "serve.js", "text/javascript; charset=utf-8"},
                                   {"/ask.js", "ask.js", "text/javascript; charset=utf-8"},
                                   {"/edit.js", "edit.js", "text/javascript; charset=utf-8"},
                                   {"/push.js", "push.js", "text/javascript; charset=utf-8"},
                                   {"/charts.js", "charts.js", "text/javascript; charset=utf-8"},
                                   {"/charts.css", "charts.css", "text/css; charset=utf-8"},
                                   {"/icon.svg", "icon.svg", "image/svg+xml"}};

/// Headers: only own files and own addresses, not in frames; browsers keep nothing.
const std::vector<std::pair<std::string, std::string>> kHeaders{
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
     "form-action 'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cache-Control", "no-store"}};

/// Returns what a person sees if the page is refused.
HttpReply refusal_page(const Refusal& refusal) {
  if (refusal.status == 401)
    return {.status = 401, .type = "text/html; charset=utf-8", .body = serve_asset("no-access.html")};
  return {.status = refusal.status, .type = "text/plain; charset=utf-8", .body = refusal.message + "\n"};
}

HttpReply json_reply(const Json& json) { return {.body = dump_line(json) + "\n"}; }

std::string url_host(const std::string& host) {
  return host.find(':') == std::string::npos ? host : cat("[", host, "]");
}

/// Returns the first facts of a file, or the built-in ones.
Json example_facts(const std::filesystem::path& file) {
  if (file.empty()) return Json::parse(serve_asset("examples.json"));
  RequestFileOptions options;
  options.range.limit = kMostExamples;
  Json examples = Json::array();
  for (const EditRequest& fact : load_request_file(file, options).requests) examples.push_back(fact_json(fact));
  return examples;
}

HttpReply download(std::string body, const std::string& type, const std::string& name) {
  return {.type = type,
          .body = std::move(body),
          .headers = {{"Content-Disposition", cat("attachment; filename=\"", name, "\"")}}};
}

}  // namespace

class PageServer::Impl {
 public:
  explicit Impl(const ServeOptions& options)
      : options_(options),
        examples_(example_facts(options.examples)),
        inside_(inside_edits(options.model)),
        token_(make_access_token()),
        server_(options.host, options.port),
        guard_(guard_options()),
        desk_(options_, clock_) {
    server_.serve(
        routes(), [this](const HttpRequest& head) { return guard_.refuse(head); }, kHeaders, write_refusal);
  }

  std::string address() const {
    return cat("http://", url_host(options_.host), ":", server_.port(), "/?", kTokenParameter, "=", token_);
  }
  std::string api_address() const { return cat("http://", url_host(options_.host), ":", server_.port(), "/v1"); }
  int64_t restored_edits() const { return restored_; }
  std::filesystem::path edits_folder() const { return options_.dir / kEditsState; }

  void run() { server_.run(); }
  void stop() {
    clock_.end();
    server_.stop();
    desk_.stop();
  }

 private:
  static HttpReply write_refusal(const HttpRequest& request, const Refusal& refusal) {
    if (request.path == kPageFiles[0].path && request.method == "GET") return refusal_page(refusal);
    if (!request.path.starts_with(kApiPaths)) return error_reply(refusal.status, refusal.message);
    return api_error_reply({.status = refusal.status, .message = refusal.message});
  }

  GuardOptions guard_options() const {
    GuardOptions guard{.host = options_.host,
                       .port = server_.port(),
                       .token = token_,
                       .page_secret = make_access_token(),
                       .bearer_paths = kApiPaths};
    for (const PageFile& file : kPageFiles) guard.pages.insert(file.path);
    return guard;
  }

  std::vector<HttpRoute> routes() {
    std::vector<HttpRoute> routes;
    for (const PageFile& file : kPageFiles)
      routes.push_back(
          {.path = file.path, .answer = [this, type = file.type, asset = file.asset](const HttpRequest&) {
             return HttpReply{.type = type, .body = serve_asset(asset), .headers = {{"Set-Cookie", guard_.cookie()}}};
           }});
    const auto get = [&](const char* path, HttpReply (Impl::*answer)(const HttpRequest&)) {
      routes.push_back({.path = path, .answer = [this, answer](const HttpRequest& r) { return (this->*answer)(r); }});
    };
    const auto post = [&](const char* path, HttpReply (Impl::*answer)(const HttpRequest&)) {
      routes.push_back({.method = "POST",
                        .path = path,
                        .body_type = "application/json",
                        .most_body_bytes = kMostBodyBytes,
                        .answer = [this, answer](const HttpRequest& r) { return (this->*answer)(r); }});
    };
    get("/api/about", &Impl::about);
    get("/api/state", &Impl::state);
    get("/api/edits", &Impl::edits);
    get("/api/pushed", &Impl::pushed);
    get("/api/report.json", &Impl::report_json);
    get("/api/report.html", &Impl::report_html);
    post("/api/ask", &Impl::ask);
    post("/api/edit", &Impl::edit);
    post("/api/undo", &Impl::undo);
    post("/api/measure", &Impl::measure);
    post("/api/export", &Impl::export_as);
    post("/api/push", &Impl::push);
    post("/api/unpush", &Impl::unpush);
    post("/api/cancel", &Impl::cancel);
    post("/api/file", &Impl::file);
    routes.back().body_type = "application/octet-stream";
    routes.back().most_body_bytes = kMostFileBytes;
    std::ranges::move(openai_.routes(), std::back_inserter(routes));
    return routes;
  }

  HttpReply about(const HttpRequest&) {
    Json methods = Json::array();
    for (const EditorRow& row : editor_table()) methods.push_back({{"name", row.name}, {"summary", row.summary}});
    const ServedChat& chat = desk_.chat();
    return json_reply({{"model", options_.model.string()},
                       {"dir", options_.dir.string()},
                       {"default_method", desk_.default_method()},
                       {"methods", methods},
                       {"examples", examples_},
                       {"inside", inside_},
                       {"chat", chat.chat ? Json(chat.chat->name()) : Json()},
                       {"why_no_chat", chat.why_none},
                       {"servers", server_kinds()},
                       {"most_facts", options_.most_facts},
                       {"most_file_bytes", kMostFileBytes},
                       {"version", kVersion}});
  }

  /// Waits until the state changes from `since`.
  HttpReply state(const HttpRequest& request) {
    const int64_t seen = parse_whole_number(request.parameter("since")).value_or(0);
    const int64_t now = clock_.wait_beyond(seen, kLongestPoll, request.is_awaited);
    const DeskView view = desk_.view();
    Json json{{"state", now},
              {"method", view.method},
              {"edits_version", view.edits_version},
              {"model_version", view.model_version},
              {"push_version", view.push_version},
              {"n_edits", view.n_edits},
              {"has_report", view.has_report},
              {"unsaved", view.unsaved}};
    json.update(work_json(desk_.work(), desk_.progress()));
    return json_reply(json);
  }

  HttpReply edits(const HttpRequest&) { return {.body = desk_.edits_text()}; }

  std::string report() const {
    std::string text = desk_.report_text();
    if (text.empty()) throw ConfigError("no edit was made since lancet serve started: there is no report yet");
    return text;
  }
  HttpReply report_json(const HttpRequest&) { return download(report(), "application/json", "report.json"); }
  HttpReply report_html(const HttpRequest&) {
    return download(render_report({.json = report()}).html, "text/html; charset=utf-8", "report.html");
  }

  /// Returns the number of the queued work; if too much work waits, what runs.
  HttpReply queued(const std::optional<int64_t>& item) const {
    if (item) {
      HttpReply reply = json_reply({{"item", *item}});
      reply.status = 202;
      return reply;
    }
    const WorkView work = desk_.work();
    return error_reply(409, cat(work.waiting.size(), " pieces of work wait already",
                                work.running ? cat(", while this runs: ", work.running->what) : std::string(),
                                ": wait for one, or cancel one"));
  }

  HttpReply edit(const HttpRequest& request) { return queued(desk_.edit(parse_edit(request, files_))); }
  HttpReply undo(const HttpRequest& request) { return queued(desk_.undo(parse_undo(request))); }
  HttpReply measure(const HttpRequest& request) {
    parse_measure(request);
    return queued(desk_.measure());
  }
  HttpReply export_as(const HttpRequest& request) { return queued(desk_.export_as(parse_export(request))); }

  HttpReply push(const HttpRequest& request) { return queued(desk_.push(parse_push(request))); }
  HttpReply unpush(const HttpRequest& request) { return queued(desk_.unpush(parse_unpush(request))); }
  HttpReply pushed(const HttpRequest&) { return {.body = desk_.push_text() + "\n"}; }

  HttpReply cancel(const HttpRequest& request) {
    if (desk_.cancel(parse_cancel(request))) return json_reply({{"cancelled", true}});
    return error_reply(409, "this work neither waits nor runs, or is at its end already");
  }

  HttpReply ask(const HttpRequest& request) {
    const AskOrder order = parse_ask(request);
    const auto pipe = std::make_shared<AnswerPipe>();
    const std::optional<int64_t> item = desk_.ask(order, pipe);
    if (!item) return queued(item);
    return {.type = "application/x-ndjson", .stream = [this, pipe, number = *item](const ReplySink& sink) {
              const bool is_read = sink.write(dump_line({{"item", number}}) + "\n");
              if (!is_read || !pass_on(*pipe, sink)) desk_.cancel(number);
            }};
  }

  HttpReply file(const HttpRequest& request) {
    const SentFiles::Sent sent = files_.read(options_.dir, request.parameter("name"), request.body);
    Json facts = Json::array();
    for (const EditRequest& one : sent.given.requests) {
      if (facts.size() == 5) break;
      facts.push_back({{"prompt", one.prompt.text}, {"subject", one.subject}, {"target", one.target}});
    }
    return json_reply({{"file", sent.number},
                       {"name", sent.name},
                       {"format", sent.format},
                       {"count", sent.given.requests.size()},
                       {"facts", facts}});
  }

  const ServeOptions options_;
  const Json examples_;
  const Json inside_;
  const std::string token_;
  HttpServer server_;
  RequestGuard guard_;
  StateClock clock_;
  SentFiles files_;
  EditDesk desk_;
  OpenAiRoutes openai_{desk_, options_};
  int64_t restored_ = desk_.view().n_edits;
};

PageServer::PageServer(const ServeOptions& options) : impl_(std::make_unique<Impl>(options)) {}
PageServer::~PageServer() = default;
std::string PageServer::address() const { return impl_->address(); }
std::string PageServer::api_address() const { return impl_->api_address(); }
int64_t PageServer::restored_edits() const { return impl_->restored_edits(); }
std::filesystem::path PageServer::edits_folder() const { return impl_->edits_folder(); }
void PageServer::run() { impl_->run(); }
void PageServer::stop() { impl_->stop(); }

}  // namespace lancet
