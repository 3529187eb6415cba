#include "lancet/jinja/jinja_template.h"

#include "interpreter.h"
#include "parser.h"
#include "scopes.h"

namespace lancet {

struct JinjaTemplate::Program {
  JinjaTree tree;
};

JinjaTemplate::JinjaTemplate(std::string_view source)
    : program_(std::make_unique<Program>(Program{resolve_names(parse_jinja(source))})) {}

JinjaTemplate::JinjaTemplate(JinjaTemplate&&) noexcept = default;
JinjaTemplate& JinjaTemplate::operator=(JinjaTemplate&&) noexcept = default;
JinjaTemplate::~JinjaTemplate() = default;

std::string JinjaTemplate::render(const JinjaDataMap& variables, const std::tm& now, const JinjaLimits& limits) const {
  JinjaRun run(limits, now);
  return JinjaInterpreter(program_->tree, run, variables).render();
}

}  // namespace lancet
