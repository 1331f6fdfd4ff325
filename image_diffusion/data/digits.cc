#include <algorithm>
#include <cmath>
#include <filesystem>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "image_diffusion/data/pictures.h"
#include "kernels/shared/philox.h"
#define STB_TRUETYPE_IMPLEMENTATION
#define STBTT_STATIC
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wconversion"
#include <stb/stb_truetype.h>
#pragma GCC diagnostic pop

namespace mjp {
namespace {

// of Debian's fonts-dejavu-core, by name: other packages add more to the folder. No other fonts:
// the library's reader trusts them
constexpr char kDebianFonts[] = "/usr/share/fonts/truetype/dejavu";
const std::vector<std::string> kDebianNames = {"DejaVuSans-Bold",     "DejaVuSans",
                                               "DejaVuSansMono-Bold", "DejaVuSansMono",
                                               "DejaVuSerif-Bold",    "DejaVuSerif"};
const std::string kAdvice = "; install fonts-dejavu-core";
constexpr int kGlyphSize = 64;  // pixels of the square that a glyph is drawn in, once per font
constexpr int kDigits = 10;

// A glyph in the middle of its square; 1 is ink.
struct Glyph {
  std::vector<float> ink = std::vector<float>(size_t{kGlyphSize} * kGlyphSize);

  // Bilinear; nothing outside.
  float At(float x, float y) const {
    const int left = static_cast<int>(std::floor(x)), top = static_cast<int>(std::floor(y));
    const float fx = x - static_cast<float>(left), fy = y - static_cast<float>(top);
    const auto pixel = [&](int row, int column) {
      const bool inside = row >= 0 && row < kGlyphSize && column >= 0 && column < kGlyphSize;
      return inside ? ink[row * kGlyphSize + column] : 0.0f;
    };
    return (1 - fy) * ((1 - fx) * pixel(top, left) + fx * pixel(top, left + 1)) +
           fy * ((1 - fx) * pixel(top + 1, left) + fx * pixel(top + 1, left + 1));
  }
};

Glyph DrawGlyph(const stbtt_fontinfo& font, char digit) {
  constexpr float kHeight = 56;
  int width = 0, height = 0, x = 0, y = 0;
  const float scale = stbtt_ScaleForPixelHeight(&font, kHeight);
  uint8_t* bitmap = stbtt_GetCodepointBitmap(&font, scale, scale, digit, &width, &height, &x, &y);
  Glyph glyph;
  for (int row = 0; row < std::min(height, kGlyphSize); ++row) {
    for (int column = 0; column < std::min(width, kGlyphSize); ++column) {
      const int to_row = row + (kGlyphSize - height) / 2;
      const int to_column = column + (kGlyphSize - width) / 2;
      if (to_row < 0 || to_column < 0 || to_row >= kGlyphSize || to_column >= kGlyphSize) continue;
      glyph.ink[to_row * kGlyphSize + to_column] =
          static_cast<float>(bitmap[row * width + column]) / 255;
    }
  }
  stbtt_FreeBitmap(bitmap, nullptr);
  return glyph;
}

// (fonts, 10)
std::vector<Glyph> DrawGlyphs() {
  constexpr uint64_t kFontLimit = uint64_t{32} << 20;
  std::vector<Glyph> glyphs;
  for (const std::string& name : kDebianNames) {
    const std::string file = std::string(kDebianFonts) + "/" + name + ".ttf";
    if (!std::filesystem::exists(file)) throw BadInput(file + ": is not there" + kAdvice);
    const std::vector<uint8_t> bytes = ReadFile(file, kFontLimit);
    stbtt_fontinfo font;
    if (!stbtt_InitFont(&font, bytes.data(), stbtt_GetFontOffsetForIndex(bytes.data(), 0)) ||
        stbtt_FindGlyphIndex(&font, '0') == 0) {
      throw BadInput(file + ": is not a TrueType font with digits" + kAdvice);
    }
    for (int digit = 0; digit < kDigits; ++digit) {
      glyphs.push_back(DrawGlyph(font, static_cast<char>('0' + digit)));
    }
  }
  return glyphs;
}

// A digit turned, moved, scaled and coloured, bright on dark: (size, size, 3).
std::vector<uint8_t> DrawDigit(const Glyph& glyph, int size, PictureDraws& draws) {
  const float angle = draws.Uniform(-0.25f, 0.25f), zoom = draws.Uniform(0.85f, 1.1f);
  const float shift_x = draws.Uniform(-5, 5), shift_y = draws.Uniform(-5, 5);
  float ink[3], paper[3];
  for (int c = 0; c < 3; ++c) ink[c] = draws.Uniform(130, 255), paper[c] = draws.Uniform(0, 40);
  constexpr int kSamples = 2;  // per pixel, both ways
  const float step = static_cast<float>(kGlyphSize) / static_cast<float>(size * kSamples) / zoom;
  const float middle = kGlyphSize / 2.0f, half = static_cast<float>(size * kSamples) / 2;
  std::vector<uint8_t> rgb(size_t{3} * size * size);
  for (int row = 0; row < size; ++row) {
    for (int column = 0; column < size; ++column) {
      float covered = 0;
      for (int i = 0; i < kSamples * kSamples; ++i) {
        const int across = column * kSamples + i % kSamples, down = row * kSamples + i / kSamples;
        const float x = (static_cast<float>(across) + 0.5f - half) * step;
        const float y = (static_cast<float>(down) + 0.5f - half) * step;
        covered += glyph.At(middle + shift_x - 0.5f + x * std::cos(angle) + y * std::sin(angle),
                            middle + shift_y - 0.5f - x * std::sin(angle) + y * std::cos(angle));
      }
      covered /= kSamples * kSamples;
      for (int c = 0; c < 3; ++c) {
        rgb[(row * size + column) * 3 + c] =
            static_cast<uint8_t>(std::lround(paper[c] + (ink[c] - paper[c]) * covered));
      }
    }
  }
  return rgb;
}

}  // namespace

float PictureDraws::Uniform(float low, float high) {
  const PhiloxWords bits = Philox({{count_++, picture_, 0, 3}}, static_cast<uint32_t>(seed_),
                                  static_cast<uint32_t>(seed_ >> 32));
  return low + (high - low) * static_cast<float>(bits.w[0] >> 8) * 0x1p-24f;
}

PictureSet DrawDigits(const PictureOptions& options) {
  const std::vector<Glyph> glyphs = DrawGlyphs();
  const int fonts = static_cast<int>(glyphs.size()) / kDigits;
  PictureSet set{.size = options.size, .channels = options.channels};
  for (int digit = 0; digit < kDigits; ++digit) set.classes.push_back(std::to_string(digit));
  for (const DrawnClass& each : options.drawn) set.classes.push_back(each.name);
  CheckRoom(options.digits, set, "--pictures");
  set.pixels.resize(options.digits * set.PictureBytes());
  set.labels.resize(options.digits);
  const auto draw = [&](int64_t i) {
    PictureDraws draws(options.seed, static_cast<uint32_t>(i));
    const int label = static_cast<int>(i % static_cast<int64_t>(set.classes.size()));
    const bool digit = label < kDigits;
    const std::vector<uint8_t> rgb =
        digit ? DrawDigit(glyphs[draws.Below(fonts) * kDigits + label], options.size, draws)
              : options.drawn[label - kDigits].draw(draws);
    const int edge = digit ? options.size : options.drawn[label - kDigits].size;
    const std::vector<uint8_t> fitted =
        FitPicture(rgb.data(), edge, edge, 3, options.size, options.channels);
    std::copy(fitted.begin(), fitted.end(), set.pixels.begin() + i * set.PictureBytes());
    set.labels[i] = static_cast<uint8_t>(label);
  };
  const int threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  std::vector<std::jthread> workers;
  workers.reserve(threads);
  for (int t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      for (int64_t i = t; i < options.digits; i += threads) draw(i);
    });
  }
  workers.clear();
  return set;
}

}  // namespace mjp
