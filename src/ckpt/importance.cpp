#include "ckpt/importance.h"

#include <cstring>
#include <nlohmann/json.hpp>

namespace redco::ckpt {

namespace {

using Json = nlohmann::json;

}  // namespace

std::string to_bytes(const Importances& all) {
  std::map<const gguf::ErrorFeedback*, i64> numbers;
  std::vector<const gguf::ErrorFeedback*> feedbacks;
  Json head = {{"matrices", Json::object()}, {"columns", Json::array()}};
  for (const auto& [name, importance] : all) {
    const gguf::ErrorFeedback* f = importance.feedback.get();
    if (f && numbers.emplace(f, std::ssize(feedbacks)).second) {
      feedbacks.push_back(f);
      head["columns"].push_back(importance.squares.size());
    }
    head["matrices"][name] = {{"squares", importance.squares}, {"feedback", f ? numbers.at(f) : -1}};
  }
  std::string out = head.dump() + "\n";
  for (const gguf::ErrorFeedback* f : feedbacks)
    out.append(reinterpret_cast<const char*>(f->coefficients().data()), f->coefficients().size() * 4);
  return out;
}

std::optional<Importances> importances_of_bytes(const std::string& bytes) {
  const std::size_t line = std::min(bytes.find('\n'), bytes.size());
  const Json head =
      Json::parse(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(line), nullptr, false);
  try {
    std::size_t at = line + 1;
    std::vector<std::shared_ptr<const gguf::ErrorFeedback>> feedbacks;
    for (const i64 columns : head.at("columns").get<std::vector<i64>>()) {
      constexpr i64 kMostColumns = i64{1} << 20;
      if (columns < 1 || columns > kMostColumns) return std::nullopt;
      const auto size = static_cast<std::size_t>(gguf::ErrorFeedback::size(columns));
      if (at + size * 4 > bytes.size()) return std::nullopt;
      std::vector<float> u(size);
      std::memcpy(u.data(), bytes.data() + at, u.size() * 4);
      at += u.size() * 4;
      feedbacks.push_back(std::make_shared<const gguf::ErrorFeedback>(std::move(u)));
    }
    if (at != bytes.size()) return std::nullopt;
    Importances out;
    for (const auto& [name, m] : head.at("matrices").items()) {
      Importance& to = out[name];
      to.squares = m.at("squares").get<std::vector<float>>();
      if (const i64 k = m.at("feedback"); k >= 0) to.feedback = feedbacks.at(static_cast<std::size_t>(k));
    }
    return out;
  } catch (const Json::exception&) {
    return std::nullopt;
  } catch (const std::out_of_range&) {
    return std::nullopt;
  }
}

}  // namespace redco::ckpt
