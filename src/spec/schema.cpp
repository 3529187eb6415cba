#include "lancet/spec/schema.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lancet/core/strings.h"
#include "lancet/spec/job_spec.h"
#include "lancet/spec/option.h"

namespace lancet {
namespace {

using Json = nlohmann::ordered_json;

/// The JSON types of values that are read as text, with or without quotes.
const Json kScalars{"string", "number", "boolean"};
/// A text with exactly one {}.
constexpr const char* kOnePlace = R"(^([^{]|\{(?!\}))*\{\}([^{]|\{(?!\}))*$)";
constexpr const char* kLabel = "^[A-Za-z0-9+_-][A-Za-z0-9+_.-]*$";

Json const_auto() { return {{"const", "auto"}}; }

template <typename T>
void limit(Json& schema, const ConfigRange<T>& range) {
  if (range.min != ConfigRange<T>().min) schema["minimum"] = range.min;
  if (range.max != ConfigRange<T>().max) schema["maximum"] = range.max;
}

Json reference_to(std::string_view name) { return {{"$ref", cat("#/$defs/", name)}}; }

Json by_label(const Json& each) {
  return {{"type", "object"},
          {"minProperties", 1},
          {"propertyNames", {{"pattern", kLabel}}},
          {"additionalProperties", each}};
}

/// Also accepts null, which counts as absent.
Json or_null(Json schema) {
  if (schema.contains("enum")) {
    schema["enum"].push_back(nullptr);
  } else if (schema.contains("anyOf")) {
    schema["anyOf"].push_back({{"type", "null"}});
  } else if (schema.contains("$ref")) {
    return {{"anyOf", {schema, {{"type", "null"}}}}};
  } else if (schema["type"].is_array()) {
    schema["type"].push_back("null");
  } else {
    schema["type"] = {schema["type"], "null"};
  }
  return schema;
}

/// Requires `key` with a value other than null.
Json given(std::string_view key) {
  return {{"required", {key}}, {"properties", {{std::string(key), {{"not", {{"type", "null"}}}}}}}};
}

class SchemaWriter {
 public:
  explicit SchemaWriter(SpecTables tables) : tables_(std::move(tables)) {}

  Json job() const {
    Json schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                {"title", "A job for lancet"},
                {"description", "Every key: docs/options.md"}};
    schema.update(object_of(JobSpec::kAll, ""));
    schema["$defs"] = definitions();
    return schema;
  }

  Json section(std::span<const AnyOption> options) const { return object_of(options, ""); }

 private:
  Json definitions() const {
    Json all{{"editor", editor()}, {"record", record()}};
    for (const NamedRow& method : tables_.methods) all[cat("editor-", method.name)] = editor_of(method.name);
    for (const AnyOption& option : kEditorOptions) all[definition_of(base_of(option))] = schema_of(option);
    return all;
  }

  /// Returns the name of an option's definition. If several options have the same key, the name also has a method.
  static std::string definition_of(const Option& option) {
    int64_t of_key = 0;
    for (const AnyOption& other : kEditorOptions) of_key += base_of(other).key == option.key ? 1 : 0;
    return of_key > 1 ? cat("editor.", option.key, ".", split(option.methods, ' ').front())
                      : cat("editor.", option.key);
  }

  /// A preset can bring the method. So if only a preset is named, the keys of any method are accepted.
  Json editor() const {
    Json any = Json::object(), rules = Json::array();
    for (const AnyOption& option : kEditorOptions) any[std::string(base_of(option).key)] = true;
    const Json no_method{{"not", {{"required", {EditorSpec::kMethod.key}}}}};
    rules.push_back({{"if", no_method}, {"then", {{"properties", any}, {"additionalProperties", false}}}});
    for (const NamedRow& method : tables_.methods) {
      const Json is_it{{"properties", {{"method", {{"const", method.name}}}}}, {"required", {EditorSpec::kMethod.key}}};
      rules.push_back({{"if", is_it}, {"then", reference_to(cat("editor-", method.name))}});
    }
    const Json one_of{{{"required", {EditorSpec::kMethod.key}}}, given(EditorSpec::kPreset.key)};
    Json known{{"method", reference_to("editor.method")}, {"preset", reference_to("editor.preset")}};
    return {{"type", "object"}, {"properties", known}, {"anyOf", one_of}, {"allOf", rules}};
  }

  Json editor_of(const std::string& method) const {
    Json keys = Json::object();
    for (const AnyOption& option : kEditorOptions)
      if (has_option(base_of(option), method)) keys[std::string(base_of(option).key)] = place_of(option, method);
    return {{"properties", keys}, {"additionalProperties", false}};
  }

  /// A section that has keys of only some methods is written out for each method; other sections share one definition.
  Json place_of(const AnyOption& option, const std::string& method) const {
    const auto* section = std::get_if<const SectionOption*>(&option);
    if (section == nullptr) return reference_to(definition_of(base_of(option)));
    for (const AnyOption& key : (*section)->keys)
      if (!has_option(base_of(key), method)) return schema_of(option, method);
    return reference_to(definition_of(base_of(option)));
  }

  static Json record() {
    Json keys = Json::object();
    const Json texts{{"type", {"string", "number", "boolean", "array", "null"}}};
    for (const RecordField& field : kRecordFields) {
      Json schema = Json::object();
      if (field.type == FieldType::kText) schema = or_null({{"type", kScalars}});
      if (field.type == FieldType::kTexts) schema = texts;
      if (field.type == FieldType::kTarget) schema["type"] = {"string", "number", "boolean", "object", "null"};
      if (field.key == "target_true" || field.key == "ground_truth") schema["type"].push_back("object");
      schema["description"] = field.meaning;
      keys[std::string(field.key)] = schema;
    }
    return {{"type", "object"},
            {"properties", keys},
            {"required", {"prompt"}},
            {"anyOf", {{{"required", {"target"}}}, {{"required", {"target_new"}}}}},
            {"additionalProperties", false}};
  }

  Json object_of(std::span<const AnyOption> options, const std::string& method) const {
    Json schema{{"type", "object"}}, keys = Json::object(), required = Json::array();
    Json rules = Json::array(), beside = Json::object();
    for (const AnyOption& option : options) {
      const Option& base = base_of(option);
      const std::string key(base.key);
      if (!method.empty() && !has_option(base, method)) continue;
      keys[key] = schema_of(option, method);
      if (is_required(option)) required.push_back(key);
      if (!base.beside.empty()) beside[key] = {base.beside};
      Json replaced = Json::object();
      for (const std::string& other : split(base.replaces, ' '))
        if (!other.empty()) replaced[other] = {{"type", "null"}};
      if (!replaced.empty()) rules.push_back({{"if", given(key)}, {"then", {{"properties", replaced}}}});
      // the files of a protocol need the protocol in the list of metrics
      for (const NamedRow& protocol : tables_.protocols)
        if (protocol.name == key && options.data() == EvaluateSpec::kAll)
          rules.push_back({{"if", given(key)}, {"then", with_protocol(protocol.name)}});
    }
    schema["properties"] = keys;
    if (!required.empty()) schema["required"] = required;
    if (!beside.empty()) schema["dependentRequired"] = beside;
    if (!rules.empty()) schema["allOf"] = rules;
    schema["additionalProperties"] = false;
    return schema;
  }

  static Json with_protocol(const std::string& name) {
    const std::string key(EvaluateSpec::kMetrics.key);
    Json names{name};
    for (const ProtocolSet& set : kProtocolSets)
      if (set.has(name)) names.push_back(set.name);
    return {{"required", {key}}, {"properties", {{key, {{"type", "array"}, {"contains", {{"enum", names}}}}}}}};
  }

  Json schema_of(const AnyOption& option, const std::string& method = "") const {
    Json type = std::visit([&](const auto* one) { return type_of(*one, method); }, option);
    Json schema = is_required(option) ? type : or_null(type);
    schema["description"] = description_of(option);
    if (const std::string_view unit = base_of(option).unit; !unit.empty()) schema["x-unit"] = unit;
    if (const std::optional<Json> fallback = default_of(option)) schema["default"] = *fallback;
    return schema;
  }

  static std::optional<Json> default_of(const AnyOption& option) {
    const std::string text = default_text(option);
    if (std::holds_alternative<const SectionOption*>(option) || text.empty()) return std::nullopt;
    if (const auto* integer = std::get_if<const IntegerOption*>(&option); integer && (*integer)->fallback)
      return *(*integer)->fallback;
    if (const auto* number = std::get_if<const NumberOption*>(&option); number && (*number)->fallback)
      return *(*number)->fallback;
    if (const auto* flag = std::get_if<const FlagOption*>(&option)) return (*flag)->fallback;
    if (const auto* texts = std::get_if<const TextsOption*>(&option); texts && (*texts)->alone.empty())
      return Json((*texts)->fallback);
    if (text == "[]") return Json::array();
    return text;
  }

  static Json type_of(const IntegerOption& option, const std::string&) {
    Json schema{{"type", "integer"}};
    limit(schema, option.range);
    return option.automatic.empty() ? schema : Json{{"anyOf", {const_auto(), schema}}};
  }

  static Json type_of(const NumberOption& option, const std::string&) {
    Json schema{{"type", "number"}};
    limit(schema, option.range);
    if (option.automatic.empty()) return schema;
    Json any{const_auto(), schema};
    if (!option.share_key.empty()) {
      Json share{{"type", "number"}};
      limit(share, kShareRange);
      any.push_back({{"type", "object"},
                     {"properties", {{std::string(option.share_key), share}}},
                     {"required", {option.share_key}},
                     {"additionalProperties", false}});
    }
    return {{"anyOf", any}};
  }

  static Json type_of(const FlagOption&, const std::string&) { return {{"type", "boolean"}}; }
  static Json type_of(const ChoiceOption& option, const std::string&) { return {{"enum", Json(option.names)}}; }

  Json type_of(const TextOption& option, const std::string&) const {
    if (option.of == Vocabulary::kFree) return {{"type", kScalars}};
    Json names = names_of(option.of);
    if (option.fallback) names.push_back(*option.fallback);
    return {{"enum", names}};
  }

  static Json type_of(const PathOption& option, const std::string&) {
    Json schema{{"type", kScalars}, {"minLength", 1}};
    if (!option.pattern.empty()) schema["pattern"] = option.pattern;
    return schema;
  }

  static Json type_of(const IntegersOption& option, const std::string&) {
    Json item{{"type", "integer"}};
    limit(item, option.range);
    Json schema{{"type", "array"}, {"items", item}};
    if (option.automatic.empty()) return schema;
    schema.update({{"minItems", 1}, {"uniqueItems", true}});
    return {{"anyOf", {const_auto(), schema}}};
  }

  Json type_of(const TextsOption& option, const std::string&) const {
    Json schema{{"type", "array"}, {"items", {{"type", kScalars}}}};
    if (!option.alone.empty()) schema["type"] = {"array", "string", "number", "boolean"};
    if (option.of == Vocabulary::kProtocols) schema.update(protocol_list());
    if (option.of == Vocabulary::kMetrics) schema.update({{"items", metric()}, {"minItems", 1}});
    return schema;
  }

  Json type_of(const SectionOption& option, const std::string& method) const {
    if (&option == &JobSpec::kEditor) return reference_to("editor");
    if (option.shape == Shape::kShares) return shares();
    if (option.shape == Shape::kLabelledShares) return by_label(shares());
    if (option.shape == Shape::kLists)
      return {{"type", "object"}, {"additionalProperties", {{"type", "array"}, {"minItems", 1}}}};
    if (option.shape == Shape::kEditors) return by_label(reference_to("editor"));
    Json schema = object_of(option.keys, method);
    if (option.shape == Shape::kKeysOrAuto) {
      schema["minProperties"] = 1;
      return {{"anyOf", {const_auto(), schema}}};
    }
    if (option.shape == Shape::kKeys) return schema;
    // the rules for lists apply only to lists, and those for maps only to maps
    schema["type"] = {"array", "object"};
    if (option.shape == Shape::kKeysOrTexts)
      schema.update({{"items", {{"type", "string"}, {"pattern", kOnePlace}}}, {"contains", {{"const", "{}"}}}});
    if (option.shape == Shape::kKeysOrTasks) schema.update({{"items", {{"type", "string"}}}});
    if (option.shape == Shape::kKeysOrNames) schema.update(protocol_list());
    if (option.shape == Shape::kKeysOrRecords) schema.update({{"items", reference_to("record")}, {"minItems", 1}});
    return schema;
  }

  Json names_of(Vocabulary of) const {
    Json names = Json::array();
    if (of == Vocabulary::kFormats)
      for (const std::string& name : tables_.formats) names.push_back(name);
    else
      for (const NamedRow& row : of == Vocabulary::kMethods ? tables_.methods : tables_.protocols)
        names.push_back(row.name);
    return names;
  }

  Json protocol_list() const {
    Json names = names_of(Vocabulary::kProtocols);
    for (const ProtocolSet& set : kProtocolSets) names.push_back(set.name);
    return {{"items", {{"enum", names}}}, {"uniqueItems", true}};
  }

  /// Accepts the names of metrics, and patterns for names that end in '*'.
  Json metric() const {
    Json names = Json::array(), any = Json::array();
    for (const NamedRow& protocol : tables_.protocols)
      for (const std::string& name : protocol.metrics)
        if (name.ends_with('*'))
          any.push_back({{"type", "string"}, {"pattern", cat("^", name.substr(0, name.size() - 1))}});
        else
          names.push_back(name);
    const Json exact{{"enum", names}};
    any.insert(any.begin(), exact);
    return {{"anyOf", any}};
  }

  Json shares() const {
    Json share{{"type", "number"}, {"minimum", 0}, {"maximum", 1}}, names = Json::object(), patterns = Json::object();
    for (const NamedRow& protocol : tables_.protocols)
      for (const std::string& name : protocol.metrics)
        if (name.ends_with('*'))
          patterns[cat("^", name.substr(0, name.size() - 1))] = share;
        else
          names[name] = share;
    return {
        {"type", "object"}, {"properties", names}, {"patternProperties", patterns}, {"additionalProperties", false}};
  }

  SpecTables tables_;
};

}  // namespace

std::string job_schema(const SpecTables& tables) { return SchemaWriter(tables).job().dump(1) + "\n"; }

std::string section_schema(std::span<const AnyOption> options) { return SchemaWriter({}).section(options).dump(); }

std::vector<std::string> dotted_job_keys() {
  std::vector<std::string> keys;
  for (const PlacedOption& placed : placed_options(JobSpec::kAll, ""))
    if (std::find(keys.begin(), keys.end(), placed.key) == keys.end()) keys.push_back(placed.key);
  return keys;
}

}  // namespace lancet
