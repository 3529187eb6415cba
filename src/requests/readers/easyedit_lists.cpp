#include "easyedit_lists.h"

#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

struct ListKey {
  const char* list;
  const char* record;
};

constexpr ListKey kPlainLists[] = {{"prompts", "prompt"},
                                   {"target_new", "target_new"},
                                   {"subject", "subject"},
                                   {"ground_truth", "ground_truth"},
                                   {"rephrase_prompts", "rephrase_prompt"}};
constexpr ListKey kSections[] = {{"locality_inputs", "locality"}, {"portability_inputs", "portability"}};

class ListSplitter {
 public:
  ListSplitter(const RecordJson& lists, const std::string& source) : lists_(lists), source_(source) {
    const RecordJson& prompts = lists["prompts"];
    size_ = prompts.is_array() ? prompts.size() : 1;
    records_ = RecordJson::array();
    for (size_t i = 0; i < size_; ++i) records_.push_back(RecordJson::object());
  }

  RecordJson split() {
    const Field all{"", &lists_, &asked_};
    for (const ListKey& key : kPlainLists)
      spread(all.at(key.list), [&](size_t i, const RecordJson& value) { records_[i][key.record] = value; });
    for (const ListKey& key : kSections) split_sections(all.at(key.list), key.record);
    for (const NotedKeys::Slip& slip : asked_.slips())
      problems_.push_back(cat(source_, ": ", slip.path, ": ", slip.what));
    if (!problems_.empty()) throw ConfigError(join(problems_, "\n"));
    return std::move(records_);
  }

 private:
  /// Gives each request its value. A text counts as a list of one.
  template <typename Put>
  void spread(const Field& field, const Put& put) {
    if (!field) return;
    const bool is_list = field.value->is_array();
    const size_t size = is_list ? field.value->size() : 1;
    if (size != size_)
      problems_.push_back(cat(source_, ": ", field.path, ": expected a list of ", size_, ", as many as prompts, got ",
                              is_list ? cat(size) : shown(*field.value)));
    else if (!is_list)
      put(0, *field.value);
    else
      for (size_t i = 0; i < size; ++i) put(i, (*field.value)[i]);
  }

  void split_sections(const Field& sections, const char* key) {
    if (!sections) return;
    if (!sections.value->is_object()) {
      problems_.push_back(
          cat(source_, ": ", sections.path, ": expected an object of sections, got ", shown(*sections.value)));
      return;
    }
    for (const auto& [name, unread] : sections.value->items())
      for (const char* part : {"prompt", "ground_truth"})
        spread(sections.at(name.c_str()).at(part),
               [&, &section = name](size_t i, const RecordJson& value) { records_[i][key][section][part] = value; });
  }

  const RecordJson& lists_;
  const std::string& source_;
  size_t size_ = 0;
  NotedKeys asked_;
  RecordJson records_;
  std::vector<std::string> problems_;
};

}  // namespace

RecordJson to_records(const RecordJson& lists, const std::string& source) {
  return ListSplitter(lists, source).split();
}

}  // namespace lancet
