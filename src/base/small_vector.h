// SmallVector: a vector whose first N elements lie in the object itself, for the short lists of the hot path
// (dims of a shape, inputs of an op). The interface is that of std::vector where it exists.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <type_traits>
#include <utility>

namespace redco {

template <class T, std::size_t N>
class SmallVector {
 public:
  using value_type = T;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using reference = T&;
  using const_reference = const T&;
  using pointer = T*;
  using const_pointer = const T*;
  using iterator = T*;
  using const_iterator = const T*;

  SmallVector() = default;
  explicit SmallVector(std::size_t n) { resize(n); }
  SmallVector(std::size_t n, const T& value) { resize(n, value); }
  SmallVector(std::initializer_list<T> values) { append(values.begin(), values.end()); }
  template <std::input_iterator I>
  SmallVector(I first, I last) {
    append(first, last);
  }
  SmallVector(const SmallVector& other) {
    if (kPlain && other.is_inside())
      take_room(other);
    else
      append(other.begin(), other.end());
  }
  SmallVector(SmallVector&& other) noexcept { take(other); }
  SmallVector& operator=(const SmallVector& other) {
    if (this == &other) return *this;
    if (kPlain && is_inside() && other.is_inside()) {
      take_room(other);
    } else {
      clear();
      append(other.begin(), other.end());
    }
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this != &other) {
      release();
      take(other);
    }
    return *this;
  }
  SmallVector& operator=(std::initializer_list<T> values) {
    assign(values.begin(), values.end());
    return *this;
  }
  ~SmallVector() {
    std::destroy_n(data_, size_);
    if (!is_inside()) std::allocator<T>().deallocate(data_, capacity_);
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  const T* cbegin() const { return data_; }
  const T* cend() const { return data_ + size_; }
  auto rbegin() { return std::reverse_iterator(end()); }
  auto rend() { return std::reverse_iterator(begin()); }
  auto rbegin() const { return std::reverse_iterator(end()); }
  auto rend() const { return std::reverse_iterator(begin()); }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  T& front() { return data_[0]; }
  const T& front() const { return data_[0]; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }

  void reserve(std::size_t n) {
    if (n > capacity_) grow(n);
  }
  void clear() {
    std::destroy_n(data_, size_);
    size_ = 0;
  }
  void push_back(const T& value) { emplace_back(value); }
  void push_back(T&& value) { emplace_back(std::move(value)); }
  template <class... A>
  T& emplace_back(A&&... args) {
    if (size_ == capacity_) {
      T value(std::forward<A>(args)...);  // an argument may lie in this vector
      grow(size_ + 1);
      return *std::construct_at(data_ + size_++, std::move(value));
    }
    return *std::construct_at(data_ + size_++, std::forward<A>(args)...);
  }
  void pop_back() { std::destroy_at(data_ + --size_); }
  void resize(std::size_t n) {
    reserve(n);
    while (size_ > n) pop_back();
    while (size_ < n) std::construct_at(data_ + size_++);
  }
  void resize(std::size_t n, const T& value) {
    const T copy = value;
    reserve(n);
    while (size_ > n) pop_back();
    while (size_ < n) std::construct_at(data_ + size_++, copy);
  }
  void assign(std::size_t n, const T& value) {
    const T copy = value;
    clear();
    resize(n, copy);
  }
  template <std::input_iterator I>
  void assign(I first, I last) {  // not from this vector
    clear();
    append(first, last);
  }
  T* insert(const T* at, const T& value) {
    const std::size_t i = static_cast<std::size_t>(at - data_);
    emplace_back(value);
    std::rotate(data_ + i, data_ + size_ - 1, data_ + size_);
    return data_ + i;
  }
  template <std::input_iterator I>
  T* insert(const T* at, I first, I last) {  // not from this vector
    const std::size_t i = static_cast<std::size_t>(at - data_), before = size_;
    append(first, last);
    std::rotate(data_ + i, data_ + before, data_ + size_);
    return data_ + i;
  }
  T* insert(const T* at, std::size_t n, const T& value) {
    const std::size_t i = static_cast<std::size_t>(at - data_), before = size_;
    resize(size_ + n, value);
    std::rotate(data_ + i, data_ + before, data_ + size_);
    return data_ + i;
  }
  T* insert(const T* at, std::initializer_list<T> values) { return insert(at, values.begin(), values.end()); }
  T* erase(const T* at) { return erase(at, at + 1); }
  T* erase(const T* first, const T* last) {
    T* const to = data_ + (first - data_);
    const std::size_t left = size_ - static_cast<std::size_t>(last - first);
    std::move(data_ + (last - data_), end(), to);
    while (size_ > left) pop_back();
    return to;
  }

  friend bool operator==(const SmallVector& a, const SmallVector& b) {
    if (a.size_ != b.size_) return false;
    for (std::size_t i = 0; i < a.size_; ++i)
      if (!(a.data_[i] == b.data_[i])) return false;
    return true;
  }
  friend bool operator<(const SmallVector& a, const SmallVector& b) {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  // The room is copied as a whole, so it is zero at first.
  static constexpr bool kPlain = std::is_trivially_copyable_v<T> && N * sizeof(T) <= 64;
  struct Room {
    Room() {  // NOLINT: other elements are constructed
      if constexpr (kPlain) std::memset(bytes, 0, sizeof bytes);
    }
    alignas(T) std::byte bytes[N * sizeof(T)];
  };

  T* inside() { return reinterpret_cast<T*>(room_.bytes); }
  bool is_inside() const { return data_ == reinterpret_cast<const T*>(room_.bytes); }

  template <class I>
  void append(I first, I last) {
    if constexpr (std::forward_iterator<I>)
      reserve(size_ + static_cast<std::size_t>(std::distance(first, last)));
    for (; first != last; ++first) emplace_back(*first);
  }
  void grow(std::size_t n) {
    n = std::max(n, 2 * capacity_);
    T* const to = std::allocator<T>().allocate(n);
    std::uninitialized_move_n(data_, size_, to);
    std::destroy_n(data_, size_);
    if (!is_inside()) std::allocator<T>().deallocate(data_, capacity_);
    data_ = to;
    capacity_ = n;
  }
  void release() {
    std::destroy_n(data_, size_);
    if (!is_inside()) std::allocator<T>().deallocate(data_, capacity_);
    data_ = inside();
    size_ = 0;
    capacity_ = N;
  }
  void take_room(const SmallVector& other) {
    room_ = other.room_;
    size_ = other.size_;
  }
  // REQUIRES: this vector is empty and holds no heap memory.
  void take(SmallVector& other) {
    if (kPlain && other.is_inside()) {
      take_room(other);
      other.size_ = 0;
    } else if (other.is_inside()) {
      std::uninitialized_move_n(other.data_, other.size_, data_);
      size_ = other.size_;
      other.clear();
    } else {
      data_ = std::exchange(other.data_, other.inside());
      size_ = std::exchange(other.size_, 0);
      capacity_ = std::exchange(other.capacity_, N);
    }
  }

  T* data_ = inside();
  std::size_t size_ = 0, capacity_ = N;
  Room room_;
};

}  // namespace redco
