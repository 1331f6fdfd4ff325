// Colours of the rows, as people see them: with all three kinds of cones, or without one.

#include "viewer/theme.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "viewer/stage_summary.h"

namespace mjp::app {
namespace {

using Vector = std::array<double, 3>;
using Matrix = std::array<Vector, 3>;

Vector Times(const Matrix& m, const Vector& v) {
  Vector out;
  for (int i = 0; i < 3; ++i) out[i] = m[i][0] * v[0] + m[i][1] * v[1] + m[i][2] * v[2];
  return out;
}

Vector Linear(ImU32 color) {
  Vector out;
  for (int i = 0; i < 3; ++i) {
    const double c = (color >> (8 * i) & 255) / 255.0;
    out[i] = c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  }
  return out;
}

// Bjoern Ottosson's OKLab (2020): a difference that can just be noticed is about 0.02.
Vector OkLab(const Vector& rgb) {
  constexpr Matrix kCones = {{{0.4122214708, 0.5363325363, 0.0514459929},
                              {0.2119034982, 0.6806995451, 0.1073969566},
                              {0.0883024619, 0.2817188376, 0.6299787005}}};
  constexpr Matrix kLab = {{{0.2104542553, 0.7936177850, -0.0040720468},
                            {1.9779984951, -2.4285922050, 0.4505937099},
                            {0.0259040371, 0.7827717662, -0.8086757660}}};
  Vector cones = Times(kCones, rgb);
  for (double& c : cones) c = std::cbrt(c);
  return Times(kLab, cones);
}

struct View {
  const char* name;
  Matrix matrix;  // of linear RGB
};

// Machado, Oliveira and Fernandes (2009), severity 1.
constexpr View kViews[] = {
    {"all cones", {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}},
    {"protanopia",
     {{{0.152286, 1.052583, -0.204868},
       {0.114503, 0.786281, 0.099216},
       {-0.003882, -0.048116, 1.051998}}}},
    {"deuteranopia",
     {{{0.367322, 0.860646, -0.227968},
       {0.280085, 0.672501, 0.047413},
       {-0.011820, 0.042940, 0.968881}}}},
    {"tritanopia",
     {{{1.255528, -0.076749, -0.178779},
       {-0.078411, 0.930809, 0.147602},
       {0.004733, 0.691367, 0.303900}}}},
};

double Difference(ImU32 a, ImU32 b, const View& view) {
  const auto seen = [&view](ImU32 color) {
    Vector rgb = Times(view.matrix, Linear(color));
    for (double& c : rgb) c = std::clamp(c, 0.0, 1.0);
    return OkLab(rgb);
  };
  const Vector p = seen(a), q = seen(b);
  return std::hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]);
}

TEST(Theme, RowsCanBeToldApartByEverybody) {
  constexpr double kAny = 0.07, kLong = 0.1;
  const auto is_long = [](int row) {  // what takes the time, and lies side by side in the bars
    return row == static_cast<int>(mjp::Stage::kRender) ||
           row == static_cast<int>(mjp::Stage::kPrepare) ||
           row == static_cast<int>(mjp::Stage::kEncode) ||
           row == static_cast<int>(mjp::Stage::kDenoise);
  };
  for (const View& view : kViews) {
    for (int i = 0; i < kRowCount; ++i) {
      for (int j = 0; j < i; ++j) {
        EXPECT_GE(Difference(RowColor(i), RowColor(j), view),
                  is_long(i) && is_long(j) ? kLong : kAny)
            << RowName(i) << " and " << RowName(j) << ", " << view.name;
      }
    }
  }
}

double Luminance(ImU32 color) {
  const Vector rgb = Linear(color);
  return 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2];
}

// WCAG 2: 4.5 for text.
double Contrast(ImU32 a, ImU32 b) {
  const double p = Luminance(a) + 0.05, q = Luminance(b) + 0.05;
  return std::max(p, q) / std::min(p, q);
}

TEST(Theme, TextCanBeRead) {
  for (int row = 0; row < kRowCount; ++row) {
    EXPECT_GE(Contrast(RowColor(row), color::kPlot), 4.5) << "names on bars: " << RowName(row);
  }
  for (const ImU32 ground : {color::kPanel, color::kPlot}) {
    for (const ImU32 text :
         {color::kText, color::kDim, color::kGood, color::kBad, color::kWarn, color::kAccent}) {
      EXPECT_GE(Contrast(text, ground), 4.5);
    }
  }
}

}  // namespace
}  // namespace mjp::app
