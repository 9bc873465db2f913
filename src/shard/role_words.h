// What the words of a parameter's name tell about its role. Part of shard/roles.cpp.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace redco {

using NameWords = std::vector<std::string>;  // lower case, from words_of() in shard/param_name.h

// Whether at least one of the words is in `any`.
bool has_word(const NameWords& words, std::initializer_list<std::string_view> any);
// Whether at least one of the words contains `part`.
bool has_word_part(const NameWords& words, std::string_view part);

// Whether the words give no information about the role: "dense", "linear", "0".
bool is_generic(const NameWords& words);

// The kind of module that a component of a name denotes.
enum class LayerContext : unsigned char { none, attention, mlp };
LayerContext context_of(const NameWords& words);

// Which of q, k, v the words name: 0 none, 1 q, 2 k, 3 v, 4 fused with q, 5 fused without q.
int attention_input(const NameWords& words);
bool names_attention_output(const NameWords& words);
// Whether the words name a fully-connected layer in any module.
bool names_fully_connected(const NameWords& words);
// Position in a fully-connected pair by name: 1 first, 2 second, 0 unknown.
int pair_hint(const NameWords& words);

}  // namespace redco
