// Belief as multiple choice: whether the model picks the letter of the new answer, rather than that of the old answer
// or of two answers of other requests. Each order of the options is asked separately, because models prefer some
// letters.
#include <algorithm>
#include <array>
#include <cmath>

#include "lancet/core/strings.h"
#include "lancet/text_metrics/answer_match.h"
#include "protocols.h"

namespace lancet {
namespace {

constexpr size_t kOptions = 4;
constexpr size_t kNewPlace = 0, kOldPlace = 1;  // indices among the options

using Order = std::array<size_t, kOptions>;  ///< index of the option at each letter

std::vector<Order> orders_of(OptionOrders which) {
  std::vector<Order> orders;
  Order order{0, 1, 2, 3};
  if (which == OptionOrders::kRotations) {
    for (size_t i = 0; i < kOptions; ++i) {
      orders.push_back(order);
      std::rotate(order.begin(), order.begin() + 1, order.end());
    }
    return orders;
  }
  do orders.push_back(order);
  while (std::next_permutation(order.begin(), order.end()));
  return orders;
}

char letter(size_t place) { return static_cast<char>('A' + place); }

class BeliefProtocol final : public Protocol {
 public:
  explicit BeliefProtocol(OptionOrders orders) : orders_(orders_of(orders)) {}

  void see(std::span<const EditRequest> requests) override { requests_ = requests; }

  void ask(const EditRequest& request, QuestionCollector& collector) override {
    std::vector<Letters>& asked = asked_.emplace_back();
    const std::vector<std::string> options = options_of(request, asked_.size() - 1);
    if (options.size() < kOptions) return;
    for (const Order& order : orders_) {
      std::string prompt = request.prompt.text;
      for (size_t place = 0; place < kOptions; ++place) prompt += cat("\n", letter(place), ". ", options[order[place]]);
      prompt += "\nAnswer:";
      Letters& letters = asked.emplace_back();
      for (size_t place = 0; place < kOptions; ++place)
        letters[order[place]] = collector.score(prompt, std::string(1, letter(place)));
    }
  }

  std::vector<MetricRow> metrics() const override {
    const std::string where =
        cat(" of a question with the new answer, the true one and those of the next two requests ", "with others, in ",
            orders_.size(), " orders");
    return {{"belief_prob", "belief", "mean probability of the new answer's letter among the four" + where},
            {"belief_choice", "belief", "share of orders in which the new answer's letter is the likeliest" + where},
            {"belief_old", "belief", "share of orders in which the true answer's letter is the likeliest" + where,
             Unit::kShare, Better::kLower}};
  }

  Tallies judge(size_t request, const ModelAnswers& now, const ModelAnswers& /*before*/) const override {
    Tally prob, choice, old;
    for (const Letters& letters : asked_[request]) {
      std::array<double, kOptions> likelihood{};
      double all = 0;
      for (size_t option = 0; option < kOptions; ++option) {
        const TargetAnswer& answer = *now.scores[letters[option]];
        likelihood[option] = std::exp(-answer.nll * static_cast<double>(answer.argmax.size()));
        all += likelihood[option];
      }
      const auto chosen = static_cast<size_t>(std::ranges::max_element(likelihood) - likelihood.begin());
      prob.add(all > 0 ? likelihood[kNewPlace] / all : 0);
      choice.add(chosen == kNewPlace ? 1 : 0);
      old.add(chosen == kOldPlace ? 1 : 0);
    }
    return {{"belief_prob", prob}, {"belief_choice", choice}, {"belief_old", old}};
  }

 private:
  using Letters = std::array<size_t, kOptions>;  ///< indices of the scores of the options' letters

  /// Returns the new answer, the old one, and the first two different answers of the next requests; after the last
  /// request follows the first.
  std::vector<std::string> options_of(const EditRequest& request, size_t place) const {
    if (!request.target_true) return {};
    std::vector<std::string> options{request.target, *request.target_true};
    const auto is_there = [&](const std::string& answer) { return is_wholly(answer, options); };
    if (is_wholly(options[kOldPlace], std::span(options).first(1))) return {};
    for (size_t step = 1; step < requests_.size() && options.size() < kOptions; ++step) {
      const std::string& answer = requests_[(place + step) % requests_.size()].target;
      if (!is_there(answer)) options.push_back(answer);
    }
    return options;
  }

  std::vector<Order> orders_;
  std::span<const EditRequest> requests_;
  std::vector<std::vector<Letters>> asked_;  ///< the questions of each request, one for each order
};

}  // namespace

std::unique_ptr<Protocol> make_belief(const EvaluationOptions& options) {
  return std::make_unique<BeliefProtocol>(options.belief_orders);
}

}  // namespace lancet
