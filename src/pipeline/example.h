// Example and Dataset: what a pipeline reads, trains on and answers.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/pooled.h"
#include "base/types.h"

namespace redco {

// "the example has no field 'label'; it has ids: input_ids, labels"
[[noreturn]] void no_such_field(const std::string& name, const std::vector<std::string>& has);

// Values by the name of their field. at() of an absent field is an error that names the fields there are.
namespace detail {
template <class T>
using FieldPool = PooledAllocator<std::pair<const std::string, T>>;
}
template <class T>
class Fields : public std::map<std::string, T, std::less<std::string>, detail::FieldPool<T>> {
 public:
  using Map = typename Fields::map;
  using Map::Map;
  const T& at(const std::string& name) const {
    const auto it = this->find(name);
    if (it == this->end()) no_such_field(name, names());
    return it->second;
  }
  T& at(const std::string& name) { return const_cast<T&>(std::as_const(*this).at(name)); }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& [name, value] : *this) out.push_back(name);
    return out;
  }
};

// One example: ids and values by field. source() and collate() define what the fields mean.
struct Example {
  i64 ordinal = 0;  // its index in the data
  Fields<std::vector<i32>> ids;
  Fields<std::vector<float>> values;
  std::string text;
  std::string id;  // the id in its source, as JSON; "": none
};

// The length of the example's longest field of ids; 0 if it has none.
inline i64 longest_ids(const Example& e) {
  std::size_t n = 0;
  for (const auto& [name, ids] : e.ids) n = std::max(n, ids.size());
  return static_cast<i64>(n);
}

// Which threads may call length() and get() of a Dataset.
enum class Reading : std::uint8_t {
  rank_only,  // only the rank's thread
  threads,    // any threads, also several at the same time
  costly      // likewise; get() takes long (it decodes an image), so several threads read by default
};

// The examples of an epoch or an evaluation. Const, and the same on every rank.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual i64 size() const = 0;
  // The length in tokens that determines a micro-batch's padding; every rank knows it without communication.
  virtual i64 length(i64 i) const = 0;
  // The length of the target sequence, for encoder-decoder models.
  virtual i64 target_length(i64 i) const {
    (void)i;
    return 0;
  }
  virtual Example get(i64 i) const = 0;
  // Changes when the data change. A resumed run must have the same fingerprint.
  virtual std::string fingerprint() const = 0;
  // The example without what get() decodes each time (pixels). Evaluations keep one of each example, and pass
  // it to predict().
  virtual Example outline(i64 i) const { return get(i); }
  // Unless rank_only, threads of the Trainer read the next step's examples during the current step.
  virtual Reading reading() const { return Reading::rank_only; }
  // True if steps take the examples in the source's order; no epoch shuffles them.
  virtual bool ordered() const { return false; }
  // The examples of one epoch, in the data's order before any shuffle; `self` is this object. Every epoch has
  // the same size and fingerprint. Default: the same examples in each epoch.
  virtual std::shared_ptr<const Dataset> of_epoch(std::shared_ptr<const Dataset> self, u64 seed,
                                                  i64 epoch) const {
    (void)seed, (void)epoch;
    return self;
  }
  // A description for the log: "1437 images of 8 x 8 in 10 classes". May have several lines.
  virtual std::string describe() const { return ""; }
};

// The data of an evaluation. The name is empty if it is the only one; otherwise metrics are called NAME_loss.
struct EvalSet {
  std::shared_ptr<const Dataset> data;
  std::string name;
};

}  // namespace redco
