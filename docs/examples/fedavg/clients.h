// The clients of federated learning: which images they have, and which of them take part in a round.
// Everything follows from the seed and the number of the round.
#pragma once

#include <algorithm>
#include <map>

#include "redco.h"

using namespace redco;

struct ClientSettings {
  i64 n_clients = 100, shards_per_client = 2, local_epochs = 5, batch_size = 10;
  void visit(SettingsVisitor& v) {
    v.field("n_clients", n_clients, "number of clients").at_least(1).at_most(100000);
    v.field("shards_per_client", shards_per_client, "parts of the data, sorted by class, that a client has")
        .at_least(1)
        .at_most(1000);
    v.field("local_epochs", local_epochs, "local epochs of a client in a round").at_least(1);
    v.field("local_batch_size", batch_size, "batch size of a client").at_least(1);
  }
};

class Clients {
 public:
  // Sorts the images by class, cuts them into shards of equal size up to one image, and deals the shards to
  // the clients (McMahan et al. 2017).
  Clients(const ClientSettings& s, const Dataset& images, u64 seed)
      : s_(s), seed_(seed), rows_of_(s.n_clients) {
    const i64 n = images.size(), shards = s.n_clients * s.shards_per_client;
    if (shards > n)
      throw UsageError("[fedavg] {} clients with {} shards each need {} images, but data.train has {}",
                       s.n_clients, s.shards_per_client, shards, n);
    std::vector<std::pair<i32, i32>> by_class;  // label, row
    for (i64 i = 0; i < n; ++i)
      by_class.emplace_back(images.outline(i).ids.at("label")[0], static_cast<i32>(i));
    std::sort(by_class.begin(), by_class.end());
    const EpochOrder dealt(shards, seed, kShards);
    for (i64 k = 0; k < shards; ++k)
      for (i64 i = k * n / shards; i < (k + 1) * n / shards; ++i)
        rows_of_[dealt.at(k) / s.shards_per_client].push_back(by_class[i].second);
  }

  // `chosen` different clients. ids["rows"]: a client's images, in another order in each local epoch, whose
  // last batch is padded with -1; values["n"]: the number of its images.
  std::vector<Example> round(i64 number, i64 chosen) const {
    if (chosen > s_.n_clients)
      throw UsageError(
          "[fedavg] train.global_batch_size is {}, but settings.n_clients is {}; use at most n_clients",
          chosen, s_.n_clients);
    std::vector<Example> out(chosen);
    const EpochOrder drawn(s_.n_clients, seed_, kRounds + number);
    for (i64 k = 0; k < chosen; ++k) {
      const std::vector<i32>& rows = rows_of_[drawn.at(k)];
      const i64 n = static_cast<i64>(rows.size());
      std::vector<i32>& seen = out[k].ids["rows"];
      for (i64 epoch = 0; epoch < s_.local_epochs; ++epoch) {
        const i64 visit = (number * s_.n_clients + drawn.at(k)) * s_.local_epochs + epoch;
        const EpochOrder shuffled(n, seed_, kVisits + visit);
        for (i64 i = 0; i < n; ++i) seen.push_back(rows[shuffled.at(i)]);
        seen.resize((seen.size() + s_.batch_size - 1) / s_.batch_size * s_.batch_size, -1);
      }
      out[k].values["n"] = {static_cast<float>(n)};
    }
    return out;
  }

 private:
  // Numbers of the random orders.
  static constexpr i64 kShards = 0, kRounds = 1, kVisits = i64{1} << 40;
  ClientSettings s_;
  u64 seed_;
  std::vector<std::vector<i32>> rows_of_;  // the images of each client
};

// The client with its images: ids["label"], kIgnoredLabel for padding, and values["pixel_values"] of all
// rows.
inline Example with_images(Example client, const Dataset& images, i64 pixels) {
  std::map<i32, Example> read;  // each image once, for all local epochs
  const std::vector<i32> rows = client.ids.at("rows");
  for (const i32 row : rows) {
    std::vector<float>& all = client.values["pixel_values"];
    if (row < 0) {
      client.ids["label"].push_back(kIgnoredLabel);
      all.resize(all.size() + pixels);
      continue;
    }
    const auto [at, first] = read.try_emplace(row);
    if (first) at->second = images.get(row);
    const Example& image = at->second;
    client.ids["label"].push_back(image.ids.at("label")[0]);
    const std::vector<float>& values = image.values.at("pixel_values");
    all.insert(all.end(), values.begin(), values.end());
  }
  return client;
}
