// Numbers as text for people (sizes, durations, counts), and the nearest of several names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace redco {

// "17 B", "1.5 KiB", "31.9 GiB": powers of 1024, three significant digits.
std::string human_bytes(u64 bytes);

// Parses "32GiB", "512 MiB", "1.5 GB", "100" (bytes): a GiB is 2^30 bytes, a GB 10^9. Throws UsageError
// naming `text`.
u64 parse_bytes(std::string_view text);

// "0.42 ms", "0.35 s", "12.3 s", "4 min 05 s", "2 h 03 min", "3 d 04 h". Negative or non-finite: "?".
std::string human_duration(double seconds);

// "1 step", "2 steps", "1 micro-batch", "0 micro-batches": a number of things, with the regular English
// plural.
std::string counted(i64 n, std::string_view thing);

// "950", "12.3 k", "4.56 M", "7.89 G", "1.2 T": powers of 1000, three significant digits.
std::string human_count(double n);

// A metric with four significant digits: "2.346", "0.0125", "12346"; "3e-05" below 1e-3 and from 1e9 on.
std::string human_number(double v);
// A share of 1 as a percentage: "42%".
std::string human_percent(double share);

// Number of single-letter edits (insert, delete, replace, swap neighbours) from a to b; a distance above
// `limit` is returned as limit + 1. Takes a.size() * b.size() steps.
int edit_distance(std::string_view a, std::string_view b, int limit = 1000);

// The name nearest to `name`, at most max(1, a third of its length) edits away; "" if there is none.
std::string nearest(std::string_view name, const std::vector<std::string>& names);

// The first `most` bytes of the text on one line without control characters, for messages that quote a file.
// Ends in "..." if the text was cut.
std::string excerpt(std::string_view text, std::size_t most = 60);

// A word of a POSIX shell command: unchanged where no shell could misread it, else in single quotes.
// UsageError for words with a zero byte.
std::string shell_quote(std::string_view word);

}  // namespace redco
