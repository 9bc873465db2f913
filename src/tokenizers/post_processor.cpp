#include "tokenizers/post_processor.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_fields.h"
#include "tokenizers/models/vocab.h"

namespace redco {
namespace {

using nlohmann::json;
using Part = PostProcessor::Part;

i32 checked_id(const json& v, const std::string& where, i32 vocab_size) {
  if (!v.is_number_integer() || v.get<i64>() < 0 || v.get<i64>() >= vocab_size)
    throw ContentsError("{}: {} is not an id; expected an integer from 0 to below {}", where,
                        v.dump().substr(0, 100), vocab_size);
  return v.get<i32>();
}

// ["</s>", 2]
i32 token_and_id(JsonFields& f, const char* name, i32 vocab_size) {
  const json& v = f.array(name);
  if (v.size() != 2 || !v[0].is_string()) throw ContentsError("{}: expected [token, id]", f.at(name));
  return checked_id(v[1], f.at(name), vocab_size);
}

std::vector<Part> read_template(JsonFields& f, const char* name, const json& special, i32 vocab_size) {
  std::vector<Part> parts;
  int first = 0, second = 0;
  const bool pair = std::string(name) == "pair";
  const json& list = f.array(name);
  for (std::size_t k = 0; k < list.size(); ++k) {
    const std::string where = fmt::format("{}[{}]", f.at(name), k);
    JsonFields item(list[k], where);
    const bool is_special = item.find("SpecialToken") != nullptr;
    const char* kind = is_special ? "SpecialToken" : "Sequence";
    JsonFields body(item.need(kind), where + "." + kind);
    item.finish();
    const std::string id = body.text("id");
    const i64 type = body.integer("type_id");
    if (type < 0 || type > 255) throw ContentsError("{}: {} is outside of 0..255", body.at("type_id"), type);
    body.finish();
    Part part;
    part.type = static_cast<i32>(type);
    if (is_special) {
      const auto it = special.find(id);
      if (it == special.end())
        throw ContentsError("{}: '{}' is not listed in special_tokens; add it there", body.at("id"),
                            id.substr(0, 100));
      JsonFields token(*it, f.at("special_tokens") + "." + id.substr(0, 100));
      token.inert({"id", "tokens"});
      const json& ids = token.array("ids");
      for (std::size_t j = 0; j < ids.size(); ++j)
        part.special.push_back(checked_id(ids[j], token.at("ids"), vocab_size));
      token.finish();
      if (part.special.empty()) throw ContentsError("{}: the special token has no ids", token.at("ids"));
    } else if (id == "A" || id == "B") {
      part.second = id == "B";
      ++(part.second ? second : first);
    } else {
      throw ContentsError("{}: sequence '{}'; expected A or B", body.at("id"), id.substr(0, 100));
    }
    parts.push_back(std::move(part));
  }
  if (first != 1 || second != (pair ? 1 : 0))
    throw ContentsError("{}: the template has A {} times and B {} times; expected {}", f.at(name), first,
                        second, pair ? "each once" : "A once");
  return parts;
}

Part sequence(bool second, i32 type) { return {{}, second, type}; }
Part special(i32 id, i32 type) { return {{id}, false, type}; }

}  // namespace

PostProcessor::PostProcessor(const json* value, const std::string& where, i32 vocab_size) {
  if (value == nullptr || value->is_null() || !read(*value, where, vocab_size)) {
    single_ = {sequence(false, 0)};
    pair_ = {sequence(false, 0), sequence(true, 1)};
  }
}

// Whether `value` adds ids.
bool PostProcessor::read(const json& value, const std::string& where, i32 vocab_size) {
  JsonFields f(value, where);
  const std::string type = f.text("type");
  bool made = true;
  if (type == "ByteLevel") {
    f.inert({"add_prefix_space", "trim_offsets", "use_regex"});
    made = false;
  } else if (type == "TemplateProcessing") {
    const json& tokens = f.need("special_tokens");
    if (!tokens.is_object()) throw ContentsError("{}: expected an object", f.at("special_tokens"));
    single_ = read_template(f, "single", tokens, vocab_size);
    pair_ = read_template(f, "pair", tokens, vocab_size);
  } else if (type == "RobertaProcessing") {
    f.inert({"trim_offsets", "add_prefix_space"});
    const i32 cls = token_and_id(f, "cls", vocab_size), sep = token_and_id(f, "sep", vocab_size);
    single_ = {special(cls, 0), sequence(false, 0), special(sep, 0)};
    pair_ = {special(cls, 0), sequence(false, 0), special(sep, 0),
             special(sep, 0), sequence(true, 0),  special(sep, 0)};
  } else if (type == "BertProcessing") {
    const i32 cls = token_and_id(f, "cls", vocab_size), sep = token_and_id(f, "sep", vocab_size);
    single_ = {special(cls, 0), sequence(false, 0), special(sep, 0)};
    pair_ = {special(cls, 0), sequence(false, 0), special(sep, 0), sequence(true, 1), special(sep, 1)};
  } else if (type == "Sequence") {
    const json& list = f.array("processors");
    made = false;
    for (std::size_t k = 0; k < list.size(); ++k) {
      const std::string at = fmt::format("{}[{}]", f.at("processors"), k);
      const bool one = read(list[k], at, vocab_size);
      if (one && made) throw ContentsError("{}: a second processor that adds tokens is not supported", at);
      made |= one;
    }
  } else {
    unknown_type(where, type, "ByteLevel, TemplateProcessing, RobertaProcessing, BertProcessing, Sequence");
  }
  f.finish();
  return made;
}

i64 PostProcessor::n_special(bool pair) const {
  i64 n = 0;
  for (const Part& p : pair ? pair_ : single_) n += static_cast<i64>(p.special.size());
  return n;
}

void PostProcessor::apply(const std::vector<i32>& a, const std::vector<i32>* b, bool add_special,
                          std::vector<i32>& ids, std::vector<i32>* types) const {
  for (const Part& p : b != nullptr ? pair_ : single_) {
    if (!p.special.empty() && !add_special) continue;
    if (end_once_ >= 0 && !ids.empty() && ids.back() == end_once_ && p.special == std::vector{end_once_})
      continue;
    const std::vector<i32>& from = !p.special.empty() ? p.special : p.second ? *b : a;
    ids.insert(ids.end(), from.begin(), from.end());
    if (types != nullptr) types->insert(types->end(), from.size(), p.type);
  }
}

}  // namespace redco
