// A safetensors file in memory in which a test changes, adds or renames tensors.
#pragma once

#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"

namespace redco::test {

class EditedTensors {
 public:
  explicit EditedTensors(const std::string& path) {
    const std::string bytes = read_file(path, 64 << 20);
    std::uint64_t size = 0;
    std::memcpy(&size, bytes.data(), sizeof size);
    header_ = nlohmann::json::parse(bytes.substr(sizeof size, size));
    data_ = bytes.substr(sizeof size + size);
  }
  void save(const std::string& path) const {
    const std::string header = header_.dump();
    const std::uint64_t size = header.size();
    std::ofstream out(path, std::ios::binary);
    out.write(reinterpret_cast<const char*>(&size), sizeof size);
    out << header << data_;
  }

  bool has(const std::string& name) const { return header_.contains(name); }
  std::vector<std::int64_t> shape(const std::string& name) const { return header_.at(name).at("shape"); }
  // T must be the tensor's type in the file.
  template <class T>
  std::vector<T> values(const std::string& name) const {
    const std::vector<std::size_t> at = header_.at(name).at("data_offsets");
    std::vector<T> out((at[1] - at[0]) / sizeof(T));
    std::memcpy(out.data(), data_.data() + at[0], at[1] - at[0]);
    return out;
  }
  // Adds `change` to one element.
  void shift(const std::string& name, std::size_t element, float change) {
    const std::vector<std::size_t> at = header_.at(name).at("data_offsets");
    char* place = data_.data() + at[0] + element * sizeof(float);
    float value = 0;
    std::memcpy(&value, place, sizeof value);
    value += change;
    std::memcpy(place, &value, sizeof value);
  }
  void add(const std::string& name, const std::vector<std::int64_t>& shape,
           const std::vector<std::int64_t>& ids) {
    const std::size_t begin = data_.size();
    data_.append(reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof ids[0]);
    header_[name] = {{"dtype", "I64"}, {"shape", shape}, {"data_offsets", {begin, data_.size()}}};
  }
  void rename(const std::string& from, const std::string& to) {
    header_[to] = header_.at(from);
    header_.erase(from);
  }

 private:
  nlohmann::json header_;
  std::string data_;
};

}  // namespace redco::test
