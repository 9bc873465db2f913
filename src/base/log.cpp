#include "base/log.h"

#include <spdlog/details/log_msg.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>

#include "base/file.h"
#include "base/terminal.h"
#include "base/unread_messages.h"

namespace redco {

namespace {

spdlog::level::level_enum to_spdlog(LogLevel l) {
  switch (l) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warn:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
    case LogLevel::off:
      break;
  }
  return spdlog::level::off;
}

std::string_view view(const spdlog::string_view_t& s) { return {s.data(), s.size()}; }

class ConsoleSink : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& m) override {
    std::string text;
    const bool color = stderr_has_color();
    if (m.level == spdlog::level::warn) text = color ? "\x1b[33mwarning:\x1b[0m " : "warning: ";
    if (m.level == spdlog::level::err) text = color ? "\x1b[31merror:\x1b[0m " : "error: ";
    if (m.level == spdlog::level::debug && color) text = "\x1b[2m";
    text += view(m.payload);
    if (m.level == spdlog::level::debug && color) text += "\x1b[0m";
    print_message(text);
  }
  void flush_() override {}
};

class FileSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  // `first`: lines that a file which does not exist yet begins with.
  FileSink(const std::string& path, const std::string& first)
      : path_(path), file_(open(path, first)), lines_(first) {
    set_level(spdlog::level::debug);
    set_formatter_(std::make_unique<spdlog::pattern_formatter>("%Y-%m-%d %H:%M:%S.%e %-8l %v",
                                                               spdlog::pattern_time_type::local, "\n"));
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& m) override {
    spdlog::memory_buf_t line;
    formatter_->format(m, line);
    file_.append({line.data(), line.size()});
    if (lines_.size() < kKept) lines_.append(line.data(), line.size());
  }
  void flush_() override {}

 public:
  const std::string& path() const { return path_; }
  // What was appended, or its beginning.
  std::string lines() {
    const std::lock_guard lock(mutex_);
    return lines_;
  }

 private:
  static constexpr std::size_t kKept = 64 << 10;
  static AppendFile open(const std::string& path, const std::string& first) {
    const bool is_new = !exists(path);
    AppendFile file = AppendFile::open(path);
    if (is_new && !first.empty()) file.append(first);
    return file;
  }
  std::string path_;
  AppendFile file_;
  std::string lines_;
};

struct Log {
  std::shared_ptr<ConsoleSink> console = std::make_shared<ConsoleSink>();
  std::shared_ptr<FileSink> file;
  std::shared_ptr<spdlog::logger> logger, file_logger;
  std::mutex mutex;  // guards file and the loggers, which set_log_file replaces
  std::atomic<LogLevel> level{LogLevel::info};
  std::atomic<bool> told{false};
  std::atomic<bool> unread{false}, noted{false};  // see note_unread_messages()

  Log() {
    rebuild();
    set_level(LogLevel::info);
    const char* env = std::getenv("REDCO_LOG");
    if (!env || !*env) return;
    const char* names[] = {"debug", "info", "warn", "error", "off"};
    for (int i = 0; i < 5; ++i) {
      if (std::string_view(env) != names[i]) continue;
      set_level(static_cast<LogLevel>(i));
      return;
    }
    print_message(
        fmt::format("warning: REDCO_LOG='{}' is not a log level; use debug, info, warn, error or off", env));
  }

  void set_level(LogLevel l) {
    level = l;
    console->set_level(to_spdlog(l));
  }

  void rebuild() {
    logger = make_logger(file ? std::vector<spdlog::sink_ptr>{console, file}
                              : std::vector<spdlog::sink_ptr>{console});
    file_logger = file ? make_logger({file}) : nullptr;
  }

  std::shared_ptr<spdlog::logger> make_logger(const std::vector<spdlog::sink_ptr>& sinks) {
    auto l = std::make_shared<spdlog::logger>("redco", sinks.begin(), sinks.end());
    l->set_level(spdlog::level::debug);
    l->set_error_handler([this](const std::string& what) {
      if (!told.exchange(true)) print_message("warning: the log cannot be written: " + what);
    });
    return l;
  }
};

// Never destroyed, because destructors of other globals may log.
Log& the_log() {
  static Log* log = new Log;
  return *log;
}

}  // namespace

void log_message(LogLevel level, std::string_view text) {
  if (level == LogLevel::off) return;
  Log& log = the_log();
  std::shared_ptr<spdlog::logger> logger;
  {
    const std::lock_guard lock(log.mutex);
    if (level == LogLevel::debug && log.level != LogLevel::debug) return;
    logger = log.logger;
  }
  logger->log(to_spdlog(level), spdlog::string_view_t(text.data(), text.size()));
  if ((log.unread || stderr_is_lost()) && !log.noted) note_unread_messages();
}

void note_unread_messages() {
  Log& log = the_log();
  log.unread = true;
  std::shared_ptr<spdlog::logger> to;
  {
    const std::lock_guard lock(log.mutex);
    to = log.file_logger;
  }
  if (to && !log.noted.exchange(true))
    to->warn("[log] nobody reads standard error any more: this file alone has the later messages");
}

void log_to_file(std::string_view text) {
  Log& log = the_log();
  std::shared_ptr<spdlog::logger> to;
  {
    const std::lock_guard lock(log.mutex);
    to = log.file_logger;
  }
  if (to) to->info(spdlog::string_view_t(text.data(), text.size()));
}

void set_log_level(LogLevel level) { the_log().set_level(level); }
LogLevel log_level() { return the_log().level; }

void set_log_file(const std::string& path) {
  Log& log = the_log();
  const std::lock_guard lock(log.mutex);
  const bool again = log.file && log.file->path() == path;
  const std::string first = again ? log.file->lines() : "";
  auto file = path.empty() ? nullptr : std::make_shared<FileSink>(path, first);
  log.file = std::move(file);
  log.told = false;
  if (!again) log.noted = false;
  log.rebuild();
}

}  // namespace redco
