// Long recordings as consecutive windows (Radford et al. 2022, section 3.8): the next window begins at the
// last time that the model gave, or at the end of a window that has no such time.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "generate/text_stream.h"
#include "pipelines/speech_tokens.h"

namespace redco {

// A part of a recording, in seconds, and what it says.
struct SpeechSegment {
  double start = 0, end = 0;
  std::vector<i32> ids;  // with the tokens of time
};

// The segments of a window's answer, and the seconds from the window's beginning to that of the next one, as
// transformers cuts them. `seconds`: the length of the window's speech.
struct WindowSegments {
  std::vector<SpeechSegment> segments;  // times from the window's beginning
  double next = 0;
};
WindowSegments segments_of(std::span<const i32> ids, const SpeechTokens& tokens, double seconds);

// The text of an answer's tokens, without special tokens and times. The arguments outlive the result.
Decode speech_decoder(const Tokenizer& tokenizer, const SpeechTokens& tokens);

}  // namespace redco
