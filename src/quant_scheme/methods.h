// What each method's settings say of modules, and how they say of more that they are not quantised. A method is a file
// here and a row in scheme_settings.cpp.
#pragma once

#include "left_out.h"
#include "module_rules.h"
#include "scheme_keys.h"

namespace lancet {

ModuleRules read_bitsandbytes(SchemeKeys& keys);
ModuleRules read_gptq(SchemeKeys& keys);
ModuleRules read_awq(SchemeKeys& keys);
ModuleRules read_float8(SchemeKeys& keys);
ModuleRules read_fbgemm_float8(SchemeKeys& keys);
ModuleRules read_compressed_tensors(SchemeKeys& keys);

/// Settings that the method's read_... understands. Throw: as add_to_list().
void leave_out_bitsandbytes(OrderedJson& settings, const LeftOut& left_out);
void leave_out_gptq(OrderedJson& settings, const LeftOut& left_out);
void leave_out_awq(OrderedJson& settings, const LeftOut& left_out);
void leave_out_float8(OrderedJson& settings, const LeftOut& left_out);
void leave_out_fbgemm_float8(OrderedJson& settings, const LeftOut& left_out);
void leave_out_compressed_tensors(OrderedJson& settings, const LeftOut& left_out);

struct Method {
  std::string_view name;
  ModuleRules (*read)(SchemeKeys&);
  void (*leave_out)(OrderedJson&, const LeftOut&);
};

/// A rule for each text of a list; an expression that cannot be read is a problem of the key.
void add_rules(SchemeKeys& keys, std::string_view key, RuleText kind, std::optional<MatrixCode> code,
               ModuleRules& rules);

}  // namespace lancet
