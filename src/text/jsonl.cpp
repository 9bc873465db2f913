#include "text/jsonl.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/gzip.h"
#include "base/words.h"

namespace redco {

namespace {

using Json = nlohmann::ordered_json;

// Lines to a file that appears at the end, or to standard output.
class LineWriter {
 public:
  explicit LineWriter(const std::string& path) {
    if (path != "-") file_.emplace(DurableFile::create(path));
  }
  void write(std::string line) {
    line += '\n';
    if (file_) {
      file_->append(line);
    } else if (std::fwrite(line.data(), 1, line.size(), stdout) != line.size()) {
      throw IoError("writing standard output: {}", std::strerror(errno));
    }
  }
  void finish() {
    if (file_) {
      file_->commit();
    } else if (std::fflush(stdout) != 0) {
      throw IoError("writing standard output: {}", std::strerror(errno));
    }
  }

 private:
  std::optional<DurableFile> file_;
};

class Lines {
 public:
  explicit Lines(const std::string& path)
      : name_(path == "-" ? "standard input" : path), reader_(path == "-" ? "/dev/stdin" : path) {}

  // The next line's object; false at the end.
  bool next(Json& j) {
    std::string line;
    while (reader_.next(line)) {
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      j = Json::parse(line, nullptr, false);
      if (!j.is_object()) throw ContentsError("{}: not a JSON object: {}", where(), excerpt(line));
      return true;
    }
    return false;
  }
  std::string where() const { return fmt::format("{}:{}", name_, reader_.line_number()); }

  std::string text(const Json& j, const char* key) const {
    const auto it = j.find(key);
    if (it == j.end()) throw ContentsError("{}: no \"{}\"; expected a text there", where(), key);
    if (!it->is_string()) throw ContentsError("{}: \"{}\" is no text but {}", where(), key, it->type_name());
    return it->get<std::string>();
  }

 private:
  std::string name_;
  LineReader reader_;
};

Json with_id(const Json& j) {
  Json out = Json::object();
  if (j.contains("id")) out["id"] = j["id"];
  return out;
}

}  // namespace

void encode_lines(const Tokenizer& t, const std::string& input, const std::string& output,
                  const TokenizerLines& o) {
  Lines lines(input);
  LineWriter out(output);
  Json j;
  while (lines.next(j)) {
    Json answer = with_id(j);
    const std::string text = lines.text(j, "text"), pair = o.pair ? lines.text(j, "pair") : "";
    try {
      if (o.pair) {
        const Encoding e = t.encode_pair(text, pair, o.max_length, o.special);
        answer["ids"] = e.ids;
        answer["type_ids"] = e.type_ids;
      } else {
        answer["ids"] =
            o.max_length ? t.encode_truncated(text, *o.max_length, o.special).ids : t.encode(text, o.special);
      }
    } catch (const ContentsError& e) {
      throw ContentsError("{}: {}", lines.where(), e.what());
    }
    out.write(answer.dump());
  }
  out.finish();
}

void decode_lines(const Tokenizer& t, const std::string& input, const std::string& output,
                  const TokenizerLines& o) {
  Lines lines(input);
  LineWriter out(output);
  Json j;
  std::vector<i32> ids;
  while (lines.next(j)) {
    const auto it = j.find("ids");
    if (it == j.end() || !it->is_array()) throw ContentsError("{}: no list under \"ids\"", lines.where());
    ids.clear();
    for (const Json& v : *it) {
      // JSON's whole numbers from 0 on are unsigned ones; others are negative, fractions, or no numbers.
      if (!v.is_number_unsigned() || v.get<u64>() >= static_cast<u64>(t.vocab_size()))
        throw ContentsError("{}: {} is no id of {}: expected whole numbers from 0 to {}", lines.where(),
                            excerpt(v.dump()), t.name(), t.vocab_size() - 1);
      ids.push_back(v.get<i32>());
    }
    Json answer = with_id(j);
    answer["text"] = t.decode(ids, !o.special);
    out.write(answer.dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  out.finish();
}

}  // namespace redco
