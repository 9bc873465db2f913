// Recordings: files in several forms, damaged files, sampling rates, and the log-mel energies of
// transformers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>
#include <random>

#include "base/error.h"
#include "data/audio/audio_source.h"
#include "data/audio/decode_audio.h"
#include "data/audio/log_mel.h"
#include "data/builtin/made_sounds.h"
#include "data/images/image_text.h"
#include "data/text/cell_values.h"
#include "support/error_text.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using test::slurp;
using test::spill;
using test::TempDir;
using ::testing::HasSubstr;

const std::string kSpeech = std::string(REDCO_FIXTURES) + "/whisper/";
constexpr i64 kRate = 16000, kAll = i64{1} << 30;

std::string little(u64 v, int n) {
  std::string s;
  for (int i = 0; i < n; ++i) s += static_cast<char>(v >> (8 * i));
  return s;
}

// A WAV file. format: 1 integers, 3 floats.
std::string wav(const std::string& data, int format, int bits, int channels, i64 rate) {
  const u64 frame = static_cast<u64>(bits / 8 * channels);
  const std::string head = "WAVEfmt " + little(16, 4) + little(static_cast<u64>(format), 2) +
                           little(static_cast<u64>(channels), 2) + little(static_cast<u64>(rate), 4) +
                           little(frame * static_cast<u64>(rate), 4) + little(frame, 2) +
                           little(static_cast<u64>(bits), 2) + "data" + little(data.size(), 4);
  return "RIFF" + little(head.size() + data.size(), 4) + head + data;
}

std::vector<float> decoded(const std::string& bytes, i64 rate = kRate, i64 most = kAll) {
  return decode_audio(bytes, rate, most, "x.wav");
}

class Audio : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!reads_audio()) GTEST_SKIP() << "built without libraries for sound";
  }
};

TEST_F(Audio, FormatsGiveTheSameSamples) {
  const std::vector<double> values = {0, 0.5, -0.5, 0.25, -1, 0.75};
  const std::vector<float> expected(values.begin(), values.end());
  const auto integers = [&](int bits) {
    std::string data;
    for (const double v : values)
      data += little(static_cast<u64>(std::llround(v * std::ldexp(1.0, bits - 1))), bits / 8);
    return data;
  };
  for (const int bits : {16, 24, 32})
    EXPECT_EQ(decoded(wav(integers(bits), 1, bits, 1, kRate)), expected) << bits;
  std::string floats, both;
  for (const float v : expected) {
    std::string one(4, '\0');
    std::memcpy(one.data(), &v, 4);
    floats += one;
    const float left = v + 0.125F, right = v - 0.125F;
    std::memcpy(one.data(), &left, 4);
    both += one;
    std::memcpy(one.data(), &right, 4);
    both += one;
  }
  EXPECT_EQ(decoded(wav(floats, 3, 32, 1, kRate)), expected);
  EXPECT_EQ(decoded(wav(both, 3, 32, 2, kRate)), expected);  // the mean of the channels
  EXPECT_EQ(decoded(wav(floats, 3, 32, 1, kRate), kRate, 2), (std::vector<float>{0, 0.5}));
}

// A tone keeps its length, frequency and loudness.
TEST_F(Audio, RatesAreConverted) {
  for (const i64 rate : {8000, 22050, 44100, 48000}) {
    std::string data;
    for (i64 i = 0; i < rate; ++i) {
      const auto v = static_cast<float>(
          0.5 * std::sin(2 * std::numbers::pi * 440 * static_cast<double>(i) / static_cast<double>(rate)));
      std::string one(4, '\0');
      std::memcpy(one.data(), &v, 4);
      data += one;
    }
    const std::vector<float> out = decoded(wav(data, 3, 32, 1, rate));
    EXPECT_NEAR(static_cast<double>(out.size()), kRate, 2) << rate;
    double worst = 0;
    for (i64 i = 1000; i + 1000 < std::ssize(out); ++i)
      worst = std::max(worst,
                       std::abs(static_cast<double>(out[i]) -
                                0.5 * std::sin(2 * std::numbers::pi * 440 * static_cast<double>(i) / kRate)));
    EXPECT_LT(worst, 1e-3) << rate;
  }
}

TEST_F(Audio, DamagedFilesAreErrors) {
  const std::string good = slurp(kSpeech + "short.wav"), flac = slurp(kSpeech + "long.flac");
  const auto refused = [](const std::string& bytes) {
    return error_text<ContentsError>([&] { decoded(bytes); });
  };
  EXPECT_THAT(refused(""), HasSubstr("x.wav: the file is empty"));
  EXPECT_THAT(refused("no sound"), ::testing::AllOf(HasSubstr("x.wav: not a recording that libsndfile reads"),
                                                    ::testing::Not(HasSubstr(".. It begins"))));
  EXPECT_THAT(refused(wav("", 1, 16, 1, kRate)), HasSubstr("x.wav: the recording has no samples"));
  EXPECT_THAT(refused(wav(std::string(40, '\xff'), 3, 32, 1, kRate)), HasSubstr("not finite"));
  EXPECT_THAT(refused(wav(std::string(40, '\1'), 1, 16, 1, 3)), HasSubstr("1 channels at 3 Hz; expected"));
  std::mt19937_64 random(7);
  for (int i = 0; i < 300; ++i) {
    std::string b = i % 2 == 0 ? good.substr(0, 2000) : flac.substr(0, 6000);
    for (int n = 1 + static_cast<int>(random() % 4); n > 0; --n)
      b[random() % (i % 3 == 0 ? b.size() : 60)] = static_cast<char>(random());
    try {
      decoded(b, kRate, 50'000);
    } catch (const ContentsError&) {
    }
  }
}

TEST_F(Audio, LogMelIsThatOfTransformers) {
  const LogMel mel(kSpeech, 12, 100);
  EXPECT_EQ(mel.window(), kRate);
  const auto cases = nlohmann::json::parse(slurp(kSpeech + "speech.json"))["features"];
  ASSERT_EQ(cases.size(), 2u);
  for (const auto& c : cases) {
    const std::vector<float> got = mel(decoded(slurp(kSpeech + c["audio"].get<std::string>())));
    const std::vector<double> expected = c["values"];
    ASSERT_EQ(got.size(), expected.size());
    double worst = 0;
    for (size_t i = 0; i < got.size(); ++i)
      worst = std::max(worst, std::abs(static_cast<double>(got[i]) - expected[i]));
    EXPECT_LT(worst, 1e-5) << c["audio"];
  }
  const std::vector<float> silence = mel(std::vector<float>(10, 0.0F));
  EXPECT_EQ(silence, std::vector<float>(silence.size(), -1.5F));
}

TEST_F(Audio, TheExtractorsFileIsChecked) {
  TempDir dir;
  const auto refused = [&](const std::string& text) {
    spill(dir / "preprocessor_config.json", text);
    return error_text<ContentsError>([&] { LogMel(dir.path(), 80, 3000); });
  };
  EXPECT_THAT(refused(R"({"feature_size": 128})"), HasSubstr("feature_size=128: expected num_mel_bins=80"));
  EXPECT_THAT(refused(R"({"chunk_length": 20})"), HasSubstr("chunk_length=20: expected 30 seconds"));
  EXPECT_THAT(refused(R"({"dither": 0.1})"), HasSubstr("dither=0.1: expected 0"));
  EXPECT_THAT(refused(R"({"do_normalize": true})"), HasSubstr("do_normalize=true: expected no such key"));
  EXPECT_THAT(refused(R"({"n_fft": "400"})"), HasSubstr("n_fft=\"400\": expected a whole number"));
  EXPECT_THAT(refused("[]"), HasSubstr("expected an object"));
  spill(dir / "preprocessor_config.json", LogMel("", 80, 3000).to_json());
  EXPECT_EQ(LogMel(dir.path(), 80, 3000).fingerprint(), LogMel("", 80, 3000).fingerprint());
  EXPECT_THAT(error_text<UsageError>([] { LogMel("", 80, 30); }), HasSubstr("expected whole seconds"));
}

TEST_F(Audio, NamesAreFilesDataUrisAndMadeSounds) {
  const AudioSource source{std::nullopt};
  const std::vector<float> expected = decoded(slurp(kSpeech + "short.wav"));
  EXPECT_EQ(source.read("short.wav", kSpeech, kRate, kAll), expected);
  EXPECT_EQ(AudioSource(kSpeech).read("short.wav", "/none", kRate, kAll), expected);
  const std::string text = media_text_of(slurp(kSpeech + "short.wav")).value();
  EXPECT_EQ(source.read(text, ".", kRate, kAll), expected);
  EXPECT_THAT(error_text<ContentsError>([&] { source.read("none.wav", "a", kRate, kAll); }),
              HasSubstr("[data] a/none.wav: the audio file does not exist"));
  const std::vector<float> made = source.read("sounded:digits/3", ".", kRate, kAll);
  EXPECT_LT(made.size(), 16000u);
  EXPECT_EQ(make_sound("sounded:digits/3", kRate, ""), made);
  EXPECT_THAT(error_text<ContentsError>([&] { source.read("sounded:digits/x", ".", kRate, kAll); }),
              HasSubstr("no such recording"));
}

// Columns of bytes: recordings are kept, also if they are valid UTF-8, and texts stay texts.
TEST(AudioBytes, OfTables) {
  const std::string quiet = wav(std::string(64, '\0'), 1, 16, 1, 8000);
  EXPECT_THAT(text_cell(quiet, false, "c").get<std::string>(), HasSubstr("data:;base64,UklGR"));
  for (const std::string text : {"ID3 is a tag", "RIFFs", "OggS", "fLaC!", "plain"})
    EXPECT_EQ(text_cell(text, false, "c"), text);
  EXPECT_TRUE(is_audio(slurp(kSpeech + "long.flac")));
  EXPECT_TRUE(is_audio(slurp(kSpeech + "short.wav")));
}

}  // namespace
}  // namespace redco
