#include "commands/chat.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "assembly/predict_model.h"
#include "base/activity.h"
#include "base/error.h"
#include "base/log.h"
#include "base/terminal.h"
#include "base/utf8.h"
#include "comm/group.h"
#include "commands/trained_request.h"
#include "generate/generate.h"
#include "generate/text_stream.h"
#include "pipelines/text_generation.h"
#include "run/run.h"

namespace redco {

namespace {

// The default of predict.max_new_tokens in a chat.
constexpr i64 kChatNewTokens = 1024;

constexpr const char* kCommands =
    "One message per line. /tool TEXT is the result of a tool that the model called, /reset clears the "
    "conversation, /help prints this text, /exit or Ctrl-D ends the chat, Ctrl-C stops an answer.";

volatile std::sig_atomic_t interrupts = 0;
extern "C" void redco_note_interrupt(int) { interrupts = 1; }

// While it lives, SIGINT ends the answer. redco's launcher forwards SIGINT as SIGUSR1.
class Interrupts {
 public:
  explicit Interrupts(bool wanted) {
    struct sigaction act {};
    act.sa_handler = redco_note_interrupt;
    sigemptyset(&act.sa_mask);  // no SA_RESTART: read() of a line returns
    for (std::size_t i = 0; i < kSignals.size() && wanted; ++i) sigaction(kSignals[i], &act, &before_[i]);
    wanted_ = wanted;
  }
  ~Interrupts() {
    for (std::size_t i = 0; i < kSignals.size() && wanted_; ++i) sigaction(kSignals[i], &before_[i], nullptr);
  }
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

 private:
  static constexpr std::array<int, 2> kSignals{SIGINT, SIGUSR1};
  std::array<struct sigaction, 2> before_{};
  bool wanted_ = false;
};

// An answer as part of one line: line ends as \\n and \\r, backslashes doubled, as printf %b reads them.
std::string on_one_line(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n')
      out += "\\n";
    else if (c == '\r')
      out += "\\r";
    else if (c == '\\')
      out += "\\\\";
    else
      out += c;
  }
  return out;
}

// Lines of standard input.
class Lines {
 public:
  enum class Got : std::uint8_t { line, end, interrupted };
  Got next(std::string& line) {
    while (true) {
      if (const std::size_t at = held_.find('\n'); at != std::string::npos || (ended_ && !held_.empty())) {
        line = held_.substr(0, at);
        held_.erase(0, at == std::string::npos ? held_.size() : at + 1);
        if (!line.empty() && line.back() == '\r') line.pop_back();
        return Got::line;
      }
      if (ended_) return Got::end;
      if (held_.size() > (std::size_t{16} << 20)) throw ContentsError("[chat] a line of more than 16 MiB");
      char buffer[4096];
      const activity::Idle idle;
      const ssize_t n = read(0, buffer, sizeof buffer);
      if (n > 0) held_.append(buffer, static_cast<std::size_t>(n));
      if (n == 0) ended_ = true;
      if (n < 0 && errno != EINTR) throw IoError("reading standard input: {}", std::strerror(errno));
      if (n < 0 && interrupts) return Got::interrupted;
    }
  }

 private:
  std::string held_;
  bool ended_ = false;
};

class Chat {
 public:
  Chat(const JobConfig& job, bool interactive, Context& c)
      : job_(job), c_(c), interactive_(interactive), first_(c.rank() == 0) {
    m_ = open_predict_model(job, c.world());
    c.world().together([&] {
      tokenizer_of(m_);  // throws if there is none
      if (m_.model->is_encoder_decoder())
        throw UsageError("[chat] {} is a {} model; a chat needs a causal language model", m_.model->family(),
                         name_of(m_.model->task()));
      if (!m_.chat_template)
        throw UsageError(
            "[chat] {} has no chat template (chat_template.jinja, or chat_template in "
            "tokenizer_config.json). Give data.chat_template, or use `redco predict` for plain texts",
            m_.source.folder.empty() ? "the tokenizer's folder" : m_.source.folder);
    });
    c.world().together([&] { variables_ = chat_variables_of(job.predict); });
    c.random.seed = static_cast<u64>(job.train.seed);
    c.compute_dtype = job.train.compute_dtype;
    reset();
  }

  int run() {
    const ParamTree params = make_predict_params(job_, m_);
    const Interrupts handler(interactive_);
    if (first_ && interactive_) print_message(kCommands);
    while (true) {
      std::string message;
      c_.world().on_first([&] { message = read(); });
      message = c_.world().agree(message);
      if (message == kEnd) break;
      if (message == kReset) {
        reset();
      } else if (c_.coord().dp() == 0) {  // only one replica answers
        take(params, message);
      }
    }
    return 0;
  }

 private:
  // No message begins with a zero byte.
  static inline const std::string kEnd{"\0end", 4}, kReset{"\0reset", 6}, kTool{"\0tool", 5};

  // The next message, after kTool if it is a tool's; kReset or kEnd. First rank.
  std::string read() {
    std::string line;
    while (true) {
      if (interactive_) write_stdout("> ");
      const Lines::Got got = lines_.next(line);
      if (got == Lines::Got::interrupted) {
        interrupts = 0;
        write_stdout("\n");
        continue;
      }
      if (got == Lines::Got::end || line == "/exit" || line == "/quit") {
        if (got == Lines::Got::end && interactive_) write_stdout("\n");
        return kEnd;
      }
      if (line == "/reset") return kReset;
      if (line.find_first_not_of(" \t") == std::string::npos) continue;
      if (line == "/help") {
        print_message(kCommands);
        continue;
      }
      // A word that may be a mistyped command; "/no_think Hi" and "/etc/passwd" are messages.
      if (line[0] == '/' && line.size() > 1 && line.find_first_of(" \t/", 1) == std::string::npos) {
        print_message(fmt::format(
            "[chat] there is no command {}; /help lists the commands. Begin the line with a space to send it",
            excerpt(line)));
        continue;
      }
      try {
        if (!is_utf8(line) || line.find('\0') != std::string::npos)
          throw ContentsError("[chat] the message is not UTF-8 text");
        return line.starts_with("/tool ") ? kTool + line.substr(6) : line;
      } catch (const ContentsError& e) {
        if (!interactive_) throw;
        print_message(e.what());
      }
    }
  }

  void reset() {
    messages_.clear();
    if (job_.predict.system) messages_.push_back({"system", *job_.predict.system, "", true});
    fixed_ = messages_.size();
    turn_ = 0;
  }

  // The conversation's ids. With predict.truncate_prompt=left the oldest turns are dropped if it is too long.
  std::vector<i32> prompt() {
    PredictSettings whole = job_.predict;
    whole.truncate_prompt = "never";
    // The conversation keeps at least half of the positions.
    const i64 most = longest_prompt(*m_.model);
    const i64 room = std::max<i64>({1, most + 1 - job_.predict.max_new_tokens, (most + 1) / 2});
    while (true) {
      const bool may_drop = job_.predict.truncate_prompt == "left" &&
                            messages_.size() >= fixed_ + 3;  // one turn and the new message
      try {
        auto ids = message_ids(m_, whole, messages_, "[chat] the conversation", variables_);
        if (!may_drop || static_cast<i64>(ids.size()) <= room) return ids;
      } catch (const ContentsError&) {
        if (!may_drop) throw;
      }
      const auto oldest = messages_.begin() + static_cast<std::ptrdiff_t>(fixed_);
      messages_.erase(oldest, oldest + 2);
    }
  }

  std::string cut_off(const Answer& answer) const {
    if (static_cast<i64>(answer.ids.size()) == job_.predict.max_new_tokens)
      return fmt::format("[chat] the answer was cut off at predict.max_new_tokens={}; set it higher",
                         job_.predict.max_new_tokens);
    return fmt::format(
        "[chat] the answer was cut off: the conversation fills the model's {} positions. /reset begins a new "
        "one, predict.truncate_prompt=left drops the oldest turns",
        m_.model->length_limit());
  }

  void take(const ParamTree& params, const std::string& message) {
    const auto before = messages_;
    const bool tool = message.starts_with(kTool);
    messages_.push_back({tool ? "tool" : "user", tool ? message.substr(kTool.size()) : message, "", true});
    std::vector<i32> ids;
    try {
      ids = prompt();
    } catch (const ContentsError& e) {
      if (!interactive_) throw;
      if (first_) print_message(fmt::format("{}. /reset begins a new conversation", e.what()));
      messages_ = before;
      return;
    }
    auto replica = Context::mp_submesh(c_);
    Context::Use use(*replica);
    const Decode decode = decoder_of(*m_.tokenizer);
    const StopTexts stop(job_.predict.stop, decode);
    TextStream stream(decode, stop);
    GenerateOptions o{.batch_size = 1, .prefix = &prefix_};
    if (!stop.empty()) o.stops = [&](std::span<const i32> fresh) { return stop.ends(fresh); };
    o.on_token = [&](i64, i64, std::span<const i32> fresh, bool last) {
      const std::string piece = stream.push(fresh, last);
      write_stdout(interactive_ ? piece : on_one_line(piece));
    };
    o.interrupted = [] { return interrupts != 0; };
    interrupts = 0;
    const GenerationPrompt asked{std::move(ids), turn_++};
    const auto answers = generate(*m_.model, params, {&asked, 1}, job_.predict, m_.tokens, o);
    interrupts = 0;
    const Answer& answer = answers[0][0];
    if (first_) write_stdout("\n");
    if (first_ && answer.finish == FinishReason::length) print_message(cut_off(answer));
    messages_.push_back({"assistant", stop.cut(decode(answer.ids)), "", true});
  }

  const JobConfig& job_;
  Context& c_;
  const bool interactive_, first_;
  PredictModel m_;
  ChatVariables variables_;  // predict.tools, predict.chat_template_kwargs
  Lines lines_;
  std::vector<ChatMessage> messages_;
  std::size_t fixed_ = 0;  // messages at the beginning that are never dropped
  i64 turn_ = 0;
  PrefixCache prefix_;
};

}  // namespace

int run_chat(const RunRequest& request, bool interactive) {
  RunRequest given = request;
  given.job = [make = request.job] {
    JobConfig job = make();
    if (!job.origins.given("predict.max_new_tokens")) job.predict.max_new_tokens = kChatNewTokens;
    return job;
  };
  RunRequest r = trained_request(given, Weights::needed, JobUse::chat);
  if (interactive && !is_rank_process()) r.program.emplace_back("--interactive");  // ranks have no terminal
  r.passes_input = true;
  r.passes_interrupts = interactive;
  return run(std::move(r), [&](Run& run) { return Chat(run.job(), interactive, run.context()).run(); });
}

}  // namespace redco
