// Mean squares of the inputs of linear layers: how much an error in each column of a weight matters.
#pragma once

#include <vector>

#include "tensor/tensor.h"

namespace redco {

// While it lives, the layers that linear() computes on this thread add their inputs. One at a time per
// thread.
class InputSquares {
 public:
  InputSquares();
  ~InputSquares();
  InputSquares(const InputSquares&) = delete;
  InputSquares& operator=(const InputSquares&) = delete;
  static InputSquares* current();  // null: none

  // x: the local input [..., I] of the product with this rank's block of w[O, I].
  void add(const Tensor& w, const Tensor& x);
  // [I]: of all rows and all ranks. Empty: no product had the weight. A product with another part of the same
  // columns on another rank counts as often as it was computed. Collective.
  std::vector<float> of(const Tensor& w) const;

 private:
  struct Sum {
    Tensor weight;
    double rows = 0;
    std::vector<double> squares;  // of the local columns
  };
  std::vector<Sum> sums_;
};

}  // namespace redco
