// Embeddings as a matrix of f32, a row for each line of the input: FILE.npy (NumPy), or FILE.safetensors with
// the tensor "embeddings".
#pragma once

#include <string>

namespace redco {

// Whether the name has one of the two endings.
bool is_matrix_file(const std::string& path);

// Writes the embeddings of a predictions file, lines with "embedding": [...], as such a file, which appears
// complete. ContentsError with file and line: a line without embedding, or with another size than the first.
void write_matrix_file(const std::string& predictions, const std::string& path);

}  // namespace redco
