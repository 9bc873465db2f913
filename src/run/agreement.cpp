#include "run/agreement.h"

#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/process.h"
#include "kernels/isa.h"
#include "kernels/threads.h"

namespace redco {

namespace {

using Json = nlohmann::json;

// The build id in the notes of an ELF image in memory.
std::string build_id_of(const dl_phdr_info& image) {
  for (int i = 0; i < image.dlpi_phnum; ++i) {
    const ElfW(Phdr)& h = image.dlpi_phdr[i];
    if (h.p_type != PT_NOTE) continue;
    const char* at = reinterpret_cast<const char*>(image.dlpi_addr + h.p_vaddr);
    const char* const end = at + h.p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof note);
      const char* const name = at + sizeof note;
      const char* const value = name + (note.n_namesz + 3) / 4 * 4;
      const char* const next = value + (note.n_descsz + 3) / 4 * 4;
      if (next > end) break;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0) {
        std::string hex;
        for (const char* p = value; p < value + note.n_descsz; ++p)
          hex += fmt::format("{:02x}", static_cast<unsigned char>(*p));
        return hex;
      }
      at = next;
    }
  }
  return "";
}

struct Search {
  const void* address = nullptr;  // null means the first image, the program
  std::string found;
};

int visit_image(dl_phdr_info* image, std::size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  if (search.address) {
    const auto at = reinterpret_cast<ElfW(Addr)>(search.address);
    bool inside = false;
    for (int i = 0; i < image->dlpi_phnum; ++i) {
      const ElfW(Phdr)& h = image->dlpi_phdr[i];
      const ElfW(Addr) begin = image->dlpi_addr + h.p_vaddr;
      inside = inside || (h.p_type == PT_LOAD && at >= begin && at < begin + h.p_memsz);
    }
    if (!inside) return 0;
  }
  search.found = build_id_of(*image);
  return 1;
}

std::string build_id_at(const void* address) {
  Search search{address, ""};
  dl_iterate_phdr(visit_image, &search);
  return search.found;
}

// A fact that must be equal: its name in messages, its member, and the remedy for a difference.
struct Compared {
  const char* name;
  std::string RankFacts::*value;
  const char* remedy;
};
constexpr std::array<Compared, 7> kCompared{{
    {"program (build id)", &RankFacts::program, "install the same redco on all hosts"},
    {"library libredco (build id)", &RankFacts::library,
     "install the same redco on all hosts, and check LD_LIBRARY_PATH there"},
    {"job (hash)", &RankFacts::job, "start the command once, and let redco start the ranks"},
    {"job's shared objects (hash)", &RankFacts::shared_objects,
     "copy the same shared objects to all hosts, or put them on a shared file system"},
    {"instruction set", &RankFacts::isa, "set REDCO_ISA to the lowest of them, for example REDCO_ISA=avx2"},
    {"OpenBLAS core", &RankFacts::blas_core,
     "set OPENBLAS_CORETYPE to a type that all CPUs support, for example OPENBLAS_CORETYPE=Haswell"},
    {"number of threads", &RankFacts::threads, "set parallel.threads_per_rank"},
}};

Json to_json(const RankFacts& f) {
  Json j = {{"host", f.host}};
  for (const Compared& c : kCompared) j[c.name] = f.*c.value;
  return j;
}

RankFacts from_json(const Json& j) {
  RankFacts f;
  f.host = j.at("host");
  for (const Compared& c : kCompared) f.*c.value = j.at(c.name);
  return f;
}

std::string random_hex() {
  std::random_device device;
  std::string out;
  for (int i = 0; i < 4; ++i) out += fmt::format("{:08x}", device());
  return out;
}

}  // namespace

std::string program_build_id() { return build_id_at(nullptr); }
std::string library_build_id() { return build_id_at(reinterpret_cast<const void*>(&library_build_id)); }

RankFacts rank_facts(const std::string& job_hash, const std::vector<std::string>& shared_objects) {
  RankFacts f;
  f.host = host_name();
  f.program = program_build_id();
  f.library = library_build_id();
  f.job = job_hash;
  for (const std::string& path : shared_objects)
    f.shared_objects += (f.shared_objects.empty() ? "" : " ") + hash_file(path).hex();
  f.isa = kernels::name_of(kernels::isa());
  f.blas_core = kernels::blas_core();
  f.threads = fmt::format("{}", kernels::threads());
  return f;
}

std::string disagreement(const std::vector<RankFacts>& ranks) {
  for (const Compared& c : kCompared)
    for (std::size_t r = 1; r < ranks.size(); ++r) {
      const std::string &first = ranks[0].*c.value, &other = ranks[r].*c.value;
      if (first != other)
        return fmt::format("[run] the ranks differ in the {}: rank 0 on {} has {}, rank {} on {} has {}; {}",
                           c.name, ranks[0].host, first.empty() ? "none" : first, r, ranks[r].host,
                           other.empty() ? "none" : other, c.remedy);
    }
  return "";
}

void agree_on_program(Group& world, const RankFacts& mine) {
  const auto texts = world.gather(to_json(mine).dump(-1, ' ', false, Json::error_handler_t::replace));
  world.on_first([&] {
    std::vector<RankFacts> ranks;
    for (const std::string& t : texts) ranks.push_back(from_json(Json::parse(t)));
    if (const std::string difference = disagreement(ranks); !difference.empty())
      throw UsageError("{}", difference);
  });
}

void agree_on_workdir(Group& world, const std::string& workdir) {
  const std::string nonce = world.agree(random_hex());
  const std::string path = join_path(workdir, ".shared-" + nonce);
  world.on_first([&] { write_file_durable(path, nonce); });
  std::exception_ptr failed;
  try {
    world.together([&] {
      // A network file system may need a moment to show a new file to other hosts.
      for (int tries = 0; tries < 30; ++tries) {
        if (exists(path) && read_file(path, 64) == nonce) return;
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
      }
      throw UsageError(
          "[run] host {} does not see a file that the first rank wrote into workdir {}; put workdir on a "
          "file system that all hosts share",
          host_name(), workdir);
    });
  } catch (const Error&) {
    failed = std::current_exception();
  }
  if (world.rank() == 0) {
    try {
      remove_file(path);
    } catch (const Error&) {  // a leftover empty file must not end the run
    }
  }
  if (failed) std::rethrow_exception(failed);
}

}  // namespace redco
