// Checks before the work that all ranks run the same program and library, with the same job and kernels, in
// the same workdir. A difference is one error that names the hosts, the values and the remedy.
#pragma once

#include <string>
#include <vector>

#include "comm/group.h"

namespace redco {

// The facts that must be equal on all ranks.
struct RankFacts {
  std::string host;
  std::string program, library;  // ELF build ids, hexadecimal; "" if the file has none
  std::string job;               // hash of the ResolvedJob
  std::string shared_objects;    // hashes of the job's shared objects; "": none
  std::string isa, blas_core;    // instruction set of the kernels, core type of OpenBLAS
  std::string threads;           // threads per rank
};

// The facts of this process. shared_objects: the paths of the job's (job/job_config.h).
RankFacts rank_facts(const std::string& job_hash, const std::vector<std::string>& shared_objects);

// The message about the first difference; "" if all ranks are equal. Pure.
std::string disagreement(const std::vector<RankFacts>& ranks);

// UsageError on every rank if the ranks differ. Collective.
void agree_on_program(Group& world, const RankFacts& mine);

// UsageError on every rank if a rank does not see a file that the first rank writes into `workdir`: the
// folder is not shared. Collective.
void agree_on_workdir(Group& world, const std::string& workdir);

// The GNU build id of the running program, and of the library that contains this function.
std::string program_build_id();
std::string library_build_id();

}  // namespace redco
