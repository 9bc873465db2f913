#include "tokenizers/sentencepiece/sp_classes.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_fields.h"
#include "tokenizers/load/class_tokens.h"
#include "tokenizers/load/config_tokens.h"
#include "tokenizers/sentencepiece/sp_pipeline.h"

namespace redco {
namespace {

using nlohmann::json;

// In transformers' order, which gives the ids.
constexpr std::string_view kMBartCodes =
    "ar_AR cs_CZ de_DE en_XX es_XX et_EE fi_FI fr_XX gu_IN hi_IN it_IT ja_XX kk_KZ ko_KR lt_LT lv_LV my_MM "
    "ne_NP nl_XX ro_RO ru_RU si_LK tr_TR vi_VN zh_CN";
constexpr std::string_view kMBart50Codes =
    " af_ZA az_AZ bn_IN fa_IR he_IL hr_HR id_ID ka_GE km_KH mk_MK ml_IN mn_MN mr_IN pl_PL ps_AF pt_XX sv_SE "
    "sw_KE ta_IN te_IN th_TH tl_XX uk_UA ur_PK xh_ZA gl_ES sl_SI";

// How the vocabulary is built from the pieces of the model.
enum class Layout {
  as_is,
  fairseq,    // <s> <pad> </s> <unk>, the pieces from 3, language codes, <mask>
  camembert,  // five tokens of fairseq, the pieces from 1, <mask>
  nllb,       // <s> <pad> </s> <unk>, all other pieces; BPE
  pegasus     // <pad> </s>, masks, <unk_2> ..., the pieces from 2
};
enum class Normal { charsmap, charsmap_spaces, albert, deberta, none };
enum class Template { bos_eos, cls_sep, eos, eos_language, language_eos };

struct SpClass {
  const char* name;
  Layout layout;
  Normal normal;
  bool white_space_split;  // before Metaspace
  Template around;
  bool mask_lstrip;
  const char* language;  // the default src_lang; nullptr: the class has no languages
};

constexpr SpClass kSpClasses[] = {
    {"AlbertTokenizer", Layout::as_is, Normal::albert, true, Template::cls_sep, false, nullptr},
    {"CamembertTokenizer", Layout::camembert, Normal::charsmap, true, Template::bos_eos, true, nullptr},
    {"DebertaV2Tokenizer", Layout::as_is, Normal::deberta, false, Template::cls_sep, false, nullptr},
    {"MBartTokenizer", Layout::fairseq, Normal::none, true, Template::eos_language, true, "en_XX"},
    {"MBart50Tokenizer", Layout::fairseq, Normal::charsmap_spaces, false, Template::language_eos, true,
     "en_XX"},
    {"NllbTokenizer", Layout::nllb, Normal::charsmap_spaces, false, Template::language_eos, true, "eng_Latn"},
    {"PegasusTokenizer", Layout::pegasus, Normal::charsmap_spaces, false, Template::eos, false, nullptr},
    {"XLMRobertaTokenizer", Layout::fairseq, Normal::charsmap, true, Template::bos_eos, false, nullptr}};

constexpr const char* kRoleNames[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                      "pad_token", "cls_token", "mask_token"};  // as ClassTokens::tokens

const SpClass* sp_class(std::string_view name) {
  for (const SpClass& c : kSpClasses)
    if (name == c.name) return &c;
  return nullptr;
}

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> out;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = std::min(text.find(' ', from), text.size());
    if (end > from) out.emplace_back(text.substr(from, end - from));
    from = end + 1;
  }
  return out;
}

// added: the tokens in which the language code is looked up.
json language_template(const SpClass& c, const json& added, const json& eos, const json& config,
                       const std::string& source) {
  JsonFields f(config, source);
  const std::string code = f.text("src_lang", c.language);
  if (!std::ranges::any_of(added, [&](const json& t) { return t["content"] == code; }))
    throw ContentsError(
        "{}: the language code '{}' has no token. Set src_lang to one of the language codes, or list the "
        "codes of the model in additional_special_tokens",
        f.at("src_lang"), code.substr(0, 100));
  const json language = entry(added, code, f.at("src_lang")), l = special_part(language, 0);
  const json a = sequence_part("A", 0), b = sequence_part("B", 0), s = special_part(eos, 0);
  if (c.around == Template::eos_language || f.boolean("legacy_behaviour", false))
    return template_of({a, s, l}, {a, b, s, l}, {eos, language});
  return template_of({l, a, s}, {l, a, b, s}, {eos, language});
}

// Builds one TokenizerSpec.
class SpClassReader {
 public:
  SpClassReader(const SpClass& c, const SpModel& model, const json& config, const std::string& folder)
      : class_(c),
        model_(model),
        config_(config),
        folder_(folder),
        source_(folder + "/tokenizer_config.json"),
        fields_(config, source_) {
    const ClassTokens* defaults = find_class_tokens(c.name);
    std::string* texts[] = {&bos_, &eos_, &unk_, &sep_, &pad_, &cls_, &mask_};
    for (std::size_t k = 0; k < std::size(kRoleNames); ++k) {
      const std::string otherwise = defaults->tokens[k];
      if (!otherwise.empty()) spec_.roles[kRoleNames[k]] = otherwise;
      const auto it = config.find(kRoleNames[k]);
      if (it == config.end() || !it->is_null())
        *texts[k] = role_text(config, kRoleNames[k], otherwise, source_);
    }
    spec_.source = source_;
    spec_.vocab.emplace();
  }

  TokenizerSpec read() {
    const std::vector<std::string> extra = fill_vocab();
    spec_.vocab->finish(folder_, true);
    json added = added_tokens(extra);
    json body;
    if (class_.layout == Layout::nllb) {
      make_merges(model_, *spec_.vocab, spec_.merges);
      spec_.has_merges = true;
      body = {{"type", "BPE"}, {"unk_token", unk_}, {"fuse_unk", true}, {"byte_fallback", false}};
    } else {
      body = {{"type", "Unigram"}, {"unk_id", unk_id()}, {"byte_fallback", false}};
    }
    json post = post_processor(added);
    const char* scheme = "always";
    const bool prefixed = class_.layout == Layout::pegasus || class_.language != nullptr ||
                          fields_.boolean("add_prefix_space", true);
    if (!prefixed) scheme = class_.normal == Normal::deberta ? "first" : "never";
    json pre = metaspace(scheme, true);
    if (class_.white_space_split)
      pre = {{"type", "Sequence"}, {"pretokenizers", {{{"type", "WhitespaceSplit"}}, std::move(pre)}}};
    if (class_.normal == Normal::deberta && fields_.boolean("split_by_punct", false))
      pre = {{"type", "Sequence"},
             {"pretokenizers", {{{"type", "Punctuation"}, {"behavior", "Isolated"}}, std::move(pre)}}};
    *spec_.rest = {{"added_tokens", std::move(added)},   {"normalizer", normalizer()},
                   {"pre_tokenizer", std::move(pre)},    {"post_processor", std::move(post)},
                   {"decoder", metaspace(scheme, true)}, {"model", std::move(body)}};
    return std::move(spec_);
  }

 private:
  void add(const std::string& text, double score) {
    spec_.vocab->add(text, spec_.vocab->count(), folder_);
    if (class_.layout != Layout::nllb) spec_.scores.push_back(score);
    texts_.push_back(text);
  }

  void add_pieces(std::size_t from) {
    for (std::size_t k = from; k < model_.pieces.size(); ++k)
      add(model_.pieces[k].text, static_cast<double>(model_.pieces[k].score));
  }

  // Returns the special tokens that the layout adds.
  std::vector<std::string> fill_vocab() {
    std::vector<std::string> extra;
    switch (class_.layout) {
      case Layout::as_is:
        add_pieces(0);
        break;
      case Layout::fairseq:
        for (const std::string& t : {bos_.empty() ? cls_ : bos_, pad_, eos_, unk_}) add(t, 0);
        add_pieces(3);
        if (class_.language != nullptr) extra = words(kMBartCodes);
        if (class_.around == Template::language_eos)
          std::ranges::move(words(kMBart50Codes), std::back_inserter(extra));
        for (const std::string& code : extra) add(code, 0);
        add(mask_, 0);
        break;
      case Layout::camembert:
        add("<s>NOTUSED", 0);
        add(pad_, 0);
        add("</s>NOTUSED", 0);
        add(unk_, 0);
        add("<unk>NOTUSED", -100);
        add_pieces(1);
        add(mask_, 0);
        break;
      case Layout::nllb: {
        const std::string first[] = {bos_, pad_, eos_, unk_};
        for (const std::string& t : first) add(t, 0);
        for (const SpModel::Piece& p : model_.pieces)
          if (std::ranges::find(first, p.text) == std::end(first)) add(p.text, 0);
        break;
      }
      case Layout::pegasus: {
        // Without these keys the converter and the class of transformers name the masks differently: the
        // first has id 2.
        const std::string first = role_text(config_, "mask_token", "<mask_1>", source_);
        const std::string second = role_text(config_, "mask_token_sent", "<mask_2>", source_);
        add(pad_, 0);
        add(eos_, 0);
        add(first, 0);
        if (second != first) add(second, 0);
        const i64 offset = fields_.integer("offset", 103);
        if (offset < 2 || offset > 100'000)
          throw ContentsError("{}: found {}, expected 2 to 100000", fields_.at("offset"), offset);
        extra.push_back(role_text(config_, "mask_token_sent", "<mask_1>", source_));
        for (i64 k = 2; k < offset; ++k) {
          extra.push_back(fmt::format("<unk_{}>", k));
          add(extra.back(), -100);
        }
        add_pieces(2);
        break;
      }
    }
    return extra;
  }

  json added_tokens(const std::vector<std::string>& extra) {
    json config = config_;
    const auto it = config.find("mask_token");
    if (class_.mask_lstrip && (it == config.end() || it->is_string())) {
      json mask = added_token(mask_, 0, true);
      mask["lstrip"] = true;
      mask["normalized"] = class_.layout == Layout::nllb;
      config["mask_token"] = std::move(mask);
    }
    const json otherwise = spec_.roles;
    AddedTokenList list;
    list.add_from(config, otherwise, source_);
    // A list of additional tokens in the config replaces the control and user-defined pieces.
    if (!named_list(list))
      for (const SpModel::Piece& p : model_.pieces)
        if (p.kind == SpModel::Kind::control || p.kind == SpModel::Kind::user_defined)
          list.add(added_token(p.text, 0, p.kind == SpModel::Kind::control));
    for (const std::string& t : extra) list.add(added_token(t, 0, true));
    return list.finish(*spec_.vocab);
  }

  bool named_list(AddedTokenList& to) {
    bool any = false;
    for (const char* key : {"extra_special_tokens", "additional_special_tokens"}) {
      const auto it = config_.find(key);
      if (any || it == config_.end() || !it->is_array() || it->empty()) continue;
      for (const json& t : *it) to.add(*special_of(json{{"token", t}}, "token", source_ + ": " + key));
      any = true;
    }
    return any;
  }

  i64 unk_id() const {
    if (class_.normal == Normal::albert) return 1;
    if (class_.layout == Layout::fairseq) return 3;
    const auto it = std::ranges::find(texts_, unk_);
    if (class_.layout == Layout::as_is && it == texts_.end()) return 1;
    if (it == texts_.end())
      throw ContentsError("{}: unk_token '{}' is not in the sentencepiece model", source_, unk_);
    return it - texts_.begin();
  }

  json normalizer() {
    json steps = json::array();
    const auto spaces = [](const char* regex) -> json {
      return {{"type", "Replace"}, {"pattern", {{"Regex", regex}}}, {"content", " "}};
    };
    switch (class_.normal) {
      case Normal::none:
        return nullptr;
      case Normal::charsmap:
        return model_.charsmap.empty() ? json(nullptr) : precompiled(model_);
      case Normal::charsmap_spaces:
        if (!model_.charsmap.empty())
          steps.push_back(precompiled(model_));
        else if (class_.layout == Layout::pegasus)
          steps.push_back(spaces("\\n"));
        else if (class_.layout == Layout::nllb)
          return nullptr;
        steps.push_back(spaces(" {2,}"));
        break;
      case Normal::albert:
        steps = {replace("``", "\""), replace("''", "\"")};
        if (!fields_.boolean("keep_accents", false)) {
          steps.push_back({{"type", "NFKD"}});
          steps.push_back({{"type", "StripAccents"}});
        }
        if (fields_.boolean("do_lower_case", true)) steps.push_back({{"type", "Lowercase"}});
        if (!model_.charsmap.empty()) steps.push_back(precompiled(model_));
        break;
      case Normal::deberta:
        if (fields_.boolean("do_lower_case", false)) steps.push_back({{"type", "Lowercase"}});
        steps.push_back(spaces("\\s{2,}|[\\n\\r\\t]"));
        steps.push_back({{"type", "NFC"}});
        steps.push_back({{"type", "Strip"}, {"strip_left", false}, {"strip_right", true}});
        break;
    }
    return {{"type", "Sequence"}, {"normalizers", std::move(steps)}};
  }

  json post_processor(const json& added) {
    const auto token = [&](const std::string& text, const char* key) {
      return entry(added, text, source_ + ": " + key);
    };
    const json a = sequence_part("A", 0);
    const json eos = token(eos_, "eos_token"), s = special_part(eos, 0);
    if (class_.around == Template::eos) return template_of({a, s}, {a, sequence_part("B", 0), s}, {eos});
    if (class_.around == Template::bos_eos) {
      const json bos = token(bos_, "bos_token"), c = special_part(bos, 0);
      return template_of({c, a, s}, {c, a, s, s, sequence_part("B", 0), s}, {bos, eos});
    }
    if (class_.around == Template::cls_sep) {
      const json cls = token(cls_, "cls_token"), c = special_part(cls, 0);
      const json sep = token(sep_, "sep_token");
      return template_of({c, a, special_part(sep, 0)},
                         {c, a, special_part(sep, 0), sequence_part("B", 1), special_part(sep, 1)},
                         {cls, sep});
    }
    return language_template(class_, added, eos, config_, source_);
  }

  const SpClass& class_;
  const SpModel& model_;
  const json& config_;
  std::string folder_, source_;
  JsonFields fields_;
  std::string bos_, eos_, unk_, sep_, pad_, cls_, mask_;
  TokenizerSpec spec_;
  std::vector<std::string> texts_;  // of the vocabulary, by id
};

}  // namespace

std::string sp_class_names() {
  std::string out;
  for (const SpClass& c : kSpClasses) out += (out.empty() ? "" : ", ") + std::string(c.name);
  return out;
}

bool has_languages(std::string_view name) {
  const SpClass* c = sp_class(name);
  return name == "M2M100Tokenizer" || (c != nullptr && c->language != nullptr);
}

void set_language(TokenizerSpec& spec, std::string_view name, const json& config, const std::string& source) {
  const SpClass* c = sp_class(name);
  const auto code = config.find("src_lang");
  if (c == nullptr || c->language == nullptr || code == config.end() || code->is_null()) return;
  const json added = spec.rest->value("added_tokens", json::array());
  json tokens = json::array();
  for (const json& t : added)
    if (t.is_object() && t.contains("content") && t.contains("id")) tokens.push_back(t);
  const std::string eos = role_text(config, "eos_token", "</s>", source);
  (*spec.rest)["post_processor"] =
      language_template(*c, tokens, entry(tokens, eos, source + ": eos_token"), config, source);
}

bool is_sp_class(std::string_view name) { return sp_class(name) != nullptr; }

TokenizerSpec read_sp_class(std::string_view name, const SpModel& model, const json& config,
                            const std::string& folder) {
  return SpClassReader(*sp_class(name), model, config, folder).read();
}

}  // namespace redco
