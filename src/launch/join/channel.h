// Frames between the hosts of a job that is started without ssh. Both sides prove that they know the job's
// key, without sending it, and each frame has a code made from the key and its number (HMAC-SHA-256). So
// nobody without the key can join, send a command or change one. The contents are not encrypted.
//
//   each side sends 32 random bytes; then each sends HMAC(key, its role, both)
//   frame: length of the body, u32; 32 bytes of HMAC(session, sender, number, kind, body); kind, u8; body
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "launch/child_process.h"

namespace redco {

// HMAC-SHA-256 (RFC 2104), 32 bytes.
std::string hmac_sha256(std::string_view key, std::string_view text);

// The job's key: the contents of `file` without blanks at its ends, else of REDCO_KEY_FILE, else the variable
// REDCO_KEY. UsageError: none is given, the file cannot be read or is readable by others, fewer than 16
// bytes.
std::string job_key(const std::string& file);

class Channel {
 public:
  enum class Role : std::uint8_t { host0, member };
  enum class Kind : std::uint8_t {
    hello,    // member: who it is (JoinHello)
    run,      // host 0: "COMMAND ID\nCOMMAND": a shell runs it
    out,      // member: "COMMAND ID\nBYTES" of its stdout
    err,      // "COMMAND ID\nBYTES" of its stderr
    ended,    // member: "COMMAND ID\nSTATUS"
    kill,     // host 0: "COMMAND ID": the command and its children end
    signal,   // member: "NUMBER": this process got a signal; the job saves and ends
    bye,      // host 0: "CODE": the job has ended with this code
    alive,    // both sides, about every second
    refused,  // host 0: why this process cannot take part in the job
  };
  struct Frame {
    Kind kind = Kind::alive;
    std::string body;
  };

  // Takes over a connected socket and proves the key, within `seconds`. nullopt: the other side does not know
  // it, is no redco, or is too slow.
  static std::optional<Channel> open(Fd& socket, const std::string& key, Role role, double seconds);
  Channel(Channel&& other) noexcept;
  Channel& operator=(Channel&&) = delete;
  ~Channel() = default;

  int fd() const { return fd_.fd; }
  // False if the connection is broken, or the other side has read nothing for 10 s. One thread at a time.
  bool send(Kind kind, std::string_view body);
  // Reads what has arrived without waiting; false if the connection has ended or a frame is not genuine. Then
  // next() gives the complete frames, the oldest first. One thread at a time, which may be another one.
  bool receive();
  std::optional<Frame> next();

 private:
  Channel() = default;
  Fd fd_;
  std::string session_, held_;
  char me_ = '0', other_ = 'm';
  std::uint64_t sent_ = 0, received_ = 0;
  bool forged_ = false;
};

}  // namespace redco
