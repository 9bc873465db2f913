#include "launch/host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "support/error_text.h"

namespace redco {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Host, NamesAndSlots) {
  EXPECT_THAT(parse_hosts({"node1:8", "node-2.example.org", "10.0.0.3:65536"}),
              ElementsAre(Host{"node1", 8}, Host{"node-2.example.org", 1}, Host{"10.0.0.3", 65536}));
  EXPECT_THAT(parse_hosts({"n[1-2]:4", "m"}), ElementsAre(Host{"n1", 4}, Host{"n2", 4}, Host{"m", 1}));
  EXPECT_TRUE(parse_hosts({}).empty());
}

TEST(Host, BadEntriesAreNamedWithTheReason) {
  const auto message = [](std::string bad) { return usage_error([&] { parse_hosts({"ok", bad}); }); };
  EXPECT_THAT(message("node:0"),
              HasSubstr("parallel.hosts[1]: '0' is not a number of slots; expected 1 to 65536"));
  for (const char* bad :
       {"n:", "n:x", "n:-1", "n:1x", "n: 8", "n:65537", "n:99999999999999999999", "n:8:8", "n:1.5"})
    EXPECT_THAT(message(bad), HasSubstr("is not a number of slots")) << bad;
  for (const char* bad : {"", ":8", "-oProxyCommand=x:2", "a,b", "a/b", "$(x)", "n\n", "\xff"})
    EXPECT_THAT(message(bad), HasSubstr("is not a host name")) << bad;
  EXPECT_THAT(message(std::string(254, 'a')), HasSubstr("is not a host name"));
  EXPECT_THAT(message("ok:2"), HasSubstr("hosts[1]: host ok is named twice (first: parallel.hosts[0])"));
  std::vector<std::string> many;
  for (int i = 0; i < 17; i++) many.push_back(fmt::format("n{}:65536", i));
  EXPECT_THAT(usage_error([&] { parse_hosts(many); }), HasSubstr("more than 1048576 slots"));
}

TEST(Host, EntriesMaySayHowSshReachesThem) {
  const Host n1{"n1", 8, {.user = "ann", .identity = "~/.ssh/k", .port = 2222}};
  EXPECT_THAT(parse_hosts({"n1:8 user=ann port=2222 identity=~/.ssh/k"}), ElementsAre(n1));
  EXPECT_THAT(parse_hosts({"ann@n1  slots=8 identity=~/.ssh/k port=2222"}), ElementsAre(n1));
  EXPECT_THAT(parse_hosts({text_of(n1)}), ElementsAre(n1));
  const Host six{"n2", 1, {.address = "fd00::7"}};
  EXPECT_THAT(parse_hosts({"n2 address=fd00::7", text_of({"n3"})}), ElementsAre(six, Host{"n3"}));
  EXPECT_THAT(parse_hostfile("m[1-2] slots=2 user=bo # all\n", "h"),
              ElementsAre(Host{"m1", 2, {.user = "bo"}}, Host{"m2", 2, {.user = "bo"}}));
  // As Windows' editors and Open MPI's parser have it.
  EXPECT_THAT(parse_hostfile("\xef\xbb\xbfm1 slots = 2\r\n\r\nm2 slots= 3 user =bo\r\n", "h"),
              ElementsAre(Host{"m1", 2}, Host{"m2", 3, {.user = "bo"}}));
  const auto message = [](std::string bad) { return usage_error([&] { parse_hosts({bad}); }); };
  EXPECT_THAT(message("[fd00::7]:4"), HasSubstr("like `node1 slots=8 address=fd00::7`"));
  EXPECT_THAT(message("a b"), HasSubstr("parallel.hosts[0]: 'b' is unknown; expected name or name:slots"));
  EXPECT_THAT(message("fd00::7"),
              HasSubstr("IPv6 address; give the host a name, like `node1 slots=8 address=fd00::7`"));
  for (const char* bad : {"a port=0", "a port=x", "a port=65536", "a port"})
    EXPECT_THAT(message(bad), HasSubstr("is not a port; expected port=1 to port=65535")) << bad;
  for (const char* bad : {"a user=", "a user=-oProxyCommand=x", "a identity=-x", "a address=-x"})
    EXPECT_THAT(message(bad), HasSubstr("has no usable value")) << bad;
  EXPECT_THAT(message("@a"), HasSubstr("names no user"));
  EXPECT_THAT(message("-oProxyCommand=x@a"), HasSubstr("names no user"));
  EXPECT_THAT(message("bo@a user=cy"), HasSubstr("the user of a is given twice"));
  EXPECT_THAT(message("a[1-2] address=10.0.0.1"), HasSubstr("2 hosts cannot have one address"));
}

TEST(Hosts, NamesOfOneHost) {
  EXPECT_TRUE(same_host("W.example.net", "w.EXAMPLE.net"));
  EXPECT_TRUE(same_host("w", "W.example.net"));
  EXPECT_FALSE(same_host("w.1.example.net", "w.2.example.net"));
  EXPECT_FALSE(same_host("10.0.0.1", "10.0.0.2"));
  EXPECT_FALSE(same_host("10", "10.0.0.1"));
  EXPECT_EQ(parse_hosts({"w.1.example.net", "w.2.example.net", "10.0.0.1", "10.0.0.2"}).size(), 4u);
  for (const std::vector<std::string>& twice : {std::vector<std::string>{"w.example.net", "W.example.net"},
                                                {"w.example.net", "w"},
                                                {"w", "W.example.net"}})
    EXPECT_THAT(usage_error([&] { parse_hosts(twice); }), HasSubstr("is named twice"));
}

TEST(HostList, ExpandsSlurmsCompressedNames) {
  const auto names = [](const char* text) {
    std::vector<std::string> out;
    for (const Host& h : parse_list(text, "list")) out.push_back(h.name);
    return out;
  };
  EXPECT_THAT(names("n1"), ElementsAre("n1"));
  EXPECT_THAT(names("n[1-3,07],m2"), ElementsAre("n1", "n2", "n3", "n07", "m2"));
  EXPECT_THAT(names("redco-n[08-11]"), ElementsAre("redco-n08", "redco-n09", "redco-n10", "redco-n11"));
  EXPECT_THAT(names("r[1-2]n[3-4]x"), ElementsAre("r1n3x", "r1n4x", "r2n3x", "r2n4x"));
  for (const char* bad : {"", ",", "a,", "n[1-3", "n[]", "n[3-1]", "n[a]", "n[1,]", "n[1-99999999]",
                          "[1-300]x[1-300]", "n[-1]", "n[1-2-3]", "n]", "n[1,1]"})
    EXPECT_THAT(usage_error([&] { names(bad); }), HasSubstr("list: ")) << bad;
}

TEST(Hostfile, OpenMpiAndOurStyle) {
  EXPECT_THAT(
      parse_hostfile("# the cluster\n\nnode1 slots=8 # fast\n\tnode2:4\r\nnode3  slots=2 max_slots=4\nnode4\n"
                     "m[1-2] slots=3\n",
                     "h"),
      ElementsAre(Host{"node1", 8}, Host{"node2", 4}, Host{"node3", 2}, Host{"node4", 1}, Host{"m1", 3},
                  Host{"m2", 3}));
}

TEST(Hostfile, BadLinesNameFileAndLine) {
  const auto message = [](const char* text) {
    return usage_error([&] { parse_hostfile(text, "hosts.txt"); });
  };
  EXPECT_THAT(message("a\nb slots=0\n"), HasSubstr("hosts.txt:2: '0' is not a number of slots"));
  EXPECT_THAT(message("a slots"), HasSubstr("'' is not a number of slots"));
  EXPECT_THAT(message("a slots = x"), HasSubstr("'x' is not a number of slots"));
  EXPECT_THAT(message("a:2 slots=2"), HasSubstr("the slots of a are given twice"));
  EXPECT_THAT(message("a slots=2 slots=3"), HasSubstr("given twice"));
  EXPECT_THAT(message("a slots=4 max_slots=2"), HasSubstr("a has slots=4, but max_slots=2"));
  EXPECT_THAT(message("a cpus=4"), HasSubstr("'cpus=4' is unknown"));
  EXPECT_THAT(message("a\nb\na slots=3"),
              HasSubstr("hosts.txt:3: host a is named twice (first: hosts.txt:1)"));
  EXPECT_THAT(message("# nothing\n\n"), HasSubstr("hosts.txt: the hostfile names no host"));
  EXPECT_THAT(message(""), HasSubstr("hosts.txt: the hostfile names no host"));
  EXPECT_THROW(read_hostfile("/nonexistent/hosts"), UsageError);
}

TEST(Hostfile, AnyBytesEndInHostsOrAUsageError) {
  u64 x = 1;
  int read = 0, refused = 0;
  for (int round = 0; round < 2000; round++) {
    std::string text;
    for (int i = 0; i < 40; i++) {
      x = x * 6364136223846793005ull + 1442695040888963407ull;
      text += "ab:=#\n 12slotmax_-\t\r\0\xf0"[(x >> 33) % 21];
    }
    try {
      const auto hosts = parse_hostfile(text, "h");
      EXPECT_FALSE(hosts.empty());
      for (const Host& h : hosts) EXPECT_TRUE(!h.name.empty() && h.slots > 0);
      read++;
    } catch (const UsageError&) {
      refused++;
    }
  }
  EXPECT_GT(read, 0);
  EXPECT_GT(refused, 0);
}

TEST(Ranks, FillHostsInOrder) {
  const std::vector<Host> hosts{{"a", 3}, {"b", 2}, {"c", 4}};
  EXPECT_EQ(total_slots(hosts), 9);
  EXPECT_THAT(ranks_on(hosts, 9), ElementsAre(3, 2, 4));
  EXPECT_THAT(ranks_on(hosts, 4), ElementsAre(3, 1, 0));
  EXPECT_THAT(ranks_on(hosts, 0), ElementsAre(0, 0, 0));
  EXPECT_THAT(
      usage_error([&] { ranks_on(hosts, 10); }),
      HasSubstr("n_ranks=10, but the 3 hosts have 9 slots; give the hosts more slots (name:slots), or use "
                "at most 9 ranks"));
  EXPECT_THAT(usage_error([&] {
                ranks_on({{"a", 1}}, 2, {"PBS_NODEFILE", "slot", "request more"});
              }),
              HasSubstr("n_ranks=2, but PBS_NODEFILE has 1 slot; request more, or use at most 1 rank"));
}

}  // namespace
}  // namespace redco
