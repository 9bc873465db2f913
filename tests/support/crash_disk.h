// A model of the contents of a disk after a power failure. It watches the system calls (base/syscalls.h)
// below a folder and, before each call, writes states that the machine could find after a restart:
//   lost     only what was synced: a file's bytes at its last fsync, a folder's names at its last fsync
//   renamed  all current names, but only synced bytes (file systems may write names before data)
//   mixed    names and bytes of each folder and file, either synced or current, at random
// Files that were never synced are empty. Data that must survive a crash must be found in all these states.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/syscalls.h"
#include "support/temp_dir.h"

namespace redco::test {

class CrashDisk {
 public:
  struct State {
    std::string folder;  // a copy of `root` in this state
    std::string when;    // "call 12 (rename) lost"
  };

  // The current contents below root count as synced. States are written below `out`. `verdict` can also make
  // calls fail.
  CrashDisk(std::string root, std::string out, sys::Hook verdict)
      : root_(std::move(root)), out_(std::move(out)) {
    remember_tree(root_);
    sys::set_hook([this, verdict](const sys::Call& c) {
      before(c);
      return verdict(c);
    });
  }
  ~CrashDisk() {  // the caller sets another hook, or none
    for (auto& [inode, fd] : held_) ::close(fd);
  }
  CrashDisk(const CrashDisk&) = delete;
  CrashDisk& operator=(const CrashDisk&) = delete;

  const std::vector<State>& states() const { return states_; }

 private:
  struct Name {
    ino_t inode;
    mode_t mode;
    std::string target;  // of a link
  };
  using Names = std::map<std::string, Name>;

  // Inode numbers are reused after a removal unless the file is open.
  ino_t inode_of(const std::string& path, mode_t* mode) {
    struct stat st {};
    if (::lstat(path.c_str(), &st) != 0) throw std::runtime_error("lstat " + path);
    *mode = st.st_mode;
    if (!held_.count(st.st_ino)) held_[st.st_ino] = ::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
    return st.st_ino;
  }
  Names names_of(const std::string& folder) {
    Names names;
    for (const auto& e : std::filesystem::directory_iterator(folder)) {
      Name n{};
      n.inode = inode_of(e.path(), &n.mode);
      if (S_ISLNK(n.mode)) n.target = std::filesystem::read_symlink(e.path());
      names[e.path().filename()] = n;
    }
    return names;
  }
  void remember(const std::string& path) {
    mode_t mode = 0;
    ino_t inode = inode_of(path, &mode);
    if (S_ISDIR(mode)) synced_names_[inode] = names_of(path);
    if (S_ISREG(mode)) synced_bytes_[inode] = slurp(path);
  }
  void remember_tree(const std::string& folder) {
    remember(folder);
    for (const auto& e : std::filesystem::recursive_directory_iterator(folder)) remember(e.path());
  }

  void before(const sys::Call& c) {
    ++calls_;
    if (c.op != sys::Op::stat && c.op != sys::Op::read && c.op != sys::Op::list && c.op != sys::Op::close) {
      where_.clear();
      index(root_);
      for (const char* kind : {"lost", "renamed", "mixed"}) {
        State s{out_ + "/" + std::to_string(calls_) + kind,
                "call " + std::to_string(calls_) + " (" + sys::name_of(c.op) + " " + c.path + ") " + kind};
        mode_t mode = 0;
        write(inode_of(root_, &mode), s.folder, kind[0]);
        states_.push_back(s);
      }
    }
    if (c.op == sys::Op::sync) remember(c.path);
  }

  // Finds the current path of each inode.
  void index(const std::string& folder) {
    mode_t mode = 0;
    where_[inode_of(folder, &mode)] = folder;
    for (const auto& e : std::filesystem::recursive_directory_iterator(folder))
      where_[inode_of(e.path(), &mode)] = e.path();
  }

  void write(ino_t folder, const std::string& to, char kind) {
    std::filesystem::create_directory(to);
    auto at = where_.find(folder);
    bool current = at != where_.end() && (kind == 'r' || (kind == 'm' && gen_() % 2));
    for (const auto& [name, n] : current ? names_of(at->second) : synced_names_[folder]) {
      std::string path = to + "/" + name;
      if (S_ISDIR(n.mode)) {
        write(n.inode, path, kind);
      } else if (S_ISLNK(n.mode)) {
        std::filesystem::create_symlink(n.target, path);
      } else {
        auto now = where_.find(n.inode);
        bool bytes = kind == 'm' && now != where_.end() && gen_() % 2;
        spill(path, bytes ? slurp(now->second) : synced_bytes_[n.inode]);
      }
    }
  }

  std::string root_, out_;
  std::map<ino_t, Names> synced_names_;
  std::map<ino_t, std::string> synced_bytes_;
  std::map<ino_t, std::string> where_;
  std::map<ino_t, int> held_;
  std::vector<State> states_;
  std::mt19937 gen_{5};
  int calls_ = 0;
};

}  // namespace redco::test
