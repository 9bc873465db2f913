// Second moments of the inputs of linear layers: how much errors in the columns of a weight matter.
#pragma once

#include <functional>
#include <vector>

#include "tensor/tensor.h"

namespace redco {

// While it lives, the layers that linear() computes on this thread add their inputs. One at a time per
// thread.
class InputMoments {
 public:
  // weights: layers with none of these are not counted (a weight that is made in each pass is not one of
  // them). bytes: for products of the inputs of two columns, of each rank and equal on all of them. Layers
  // that come later than these allow have mean squares only.
  InputMoments(Tensors weights, i64 bytes);
  ~InputMoments();
  InputMoments(const InputMoments&) = delete;
  InputMoments& operator=(const InputMoments&) = delete;
  static InputMoments* current();  // null: none

  // x: the local input [..., I] of the products with this rank's blocks of each w[O, I]. Collective where x
  // is cut along I.
  void add(const Tensors& w, const Tensor& x);

  // Of one product, all rows and all ranks.
  struct Product {
    Tensors weights;
    std::vector<float> squares;   // [I]: means
    std::vector<float> products;  // [I, I]: means; empty: not within `bytes`
  };
  // Calls f for each product, in the order of their first calls, and forgets it. A product with another part
  // of the same columns on another rank counts as often as it was computed. Collective.
  void take(const std::function<void(const Product&)>& f);

 private:
  struct Sum {
    Tensors weights;
    double rows = 0;
    std::vector<double> squares;  // of the local columns
    Tensor products;              // of all columns, of the rows of this rank
  };
  Sum& of(const Tensors& w, const Tensor& x);

  Tensors weights_;
  i64 bytes_;
  std::vector<Sum> sums_;
};

}  // namespace redco
