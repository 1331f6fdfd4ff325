#include "viewer/panels/plot.h"

#include <cmath>
#include <cstdarg>
#include <cstdio>

#include "viewer/theme.h"

namespace mjp::app {

Plot::Plot(const char* id, ImVec2 size, Range x, Range y, float left, float bottom)
    : x_(x), y_(y), draw_(ImGui::GetWindowDrawList()) {
  const ImVec2 corner = ImGui::GetCursorScreenPos();
  ImGui::InvisibleButton(id, size);
  hovered_ = ImGui::IsItemHovered();
  clicked_ = ImGui::IsItemActive();
  low_ = ImVec2(corner.x + left, corner.y);
  high_ = ImVec2(corner.x + size.x, corner.y + size.y - bottom);
  draw_->AddRectFilled(low_, high_, color::kPlot, 3);
}

ImVec2 Plot::At(double x, double y) const {
  const double u = (x - x_.low) / (x_.high - x_.low), v = (y - y_.low) / (y_.high - y_.low);
  return ImVec2(static_cast<float>(low_.x + u * (high_.x - low_.x)),
                static_cast<float>(high_.y - v * (high_.y - low_.y)));
}

double Plot::X(float screen_x) const {
  return x_.low + (screen_x - low_.x) / (high_.x - low_.x) * (x_.high - x_.low);
}

void Plot::TickX(double x, const std::string& label) const {
  const float at = At(x, y_.low).x;
  draw_->AddLine(ImVec2(at, low_.y), ImVec2(at, high_.y), color::kGrid,
                 0.08f * ImGui::GetFontSize());
  const ImVec2 size = ImGui::CalcTextSize(label.c_str());
  const float text = std::fmin(std::fmax(at - size.x / 2, low_.x), high_.x - size.x);
  draw_->AddText(ImVec2(text, high_.y + 2), color::kDim, label.c_str());
}

void Plot::TickY(double y, const std::string& label) const {
  LineY(y, color::kGrid);
  const ImVec2 size = ImGui::CalcTextSize(label.c_str());
  const float at = At(x_.low, y).y - size.y / 2;
  draw_->AddText(ImVec2(low_.x - size.x - size.y * 0.3f,
                        std::fmin(std::fmax(at, low_.y - size.y * 0.2f), high_.y - size.y * 0.8f)),
                 color::kDim, label.c_str());
}

void Plot::LineY(double y, ImU32 color) const {
  draw_->AddLine(At(x_.low, y), At(x_.high, y), color, 0.08f * ImGui::GetFontSize());
}

double TickStep(double top, int count) {
  const double raw = top / count;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (raw <= factor * power) return factor * power;
  }
  return 10 * power;
}

double ScaleTop(double longest, double budget) {
  constexpr double kFar = 4;
  return longest > 0 && budget > kFar * longest ? longest : std::fmax(longest, budget);
}

void PanelTitle(const char* title, const std::string& caption) {
  ImGui::TextUnformatted(title);
  if (caption.empty()) return;
  const float right = ImGui::GetWindowContentRegionMax().x;
  ImGui::SameLine();
  std::string shown = caption;
  const float room = right - ImGui::GetCursorPosX();
  // whole parts of it go first
  for (size_t end; (end = shown.rfind("   ")) != std::string::npos &&
                   ImGui::CalcTextSize(shown.c_str()).x > room;) {
    shown.resize(end);
  }
  shown = Shorten(shown, room);
  ImGui::SetCursorPosX(right - ImGui::CalcTextSize(shown.c_str()).x);
  ImGui::TextDisabled("%s", shown.c_str());
  if (shown != caption && ImGui::IsItemHovered()) ImGui::SetTooltip("%s", caption.c_str());
}

std::string Shorten(const std::string& text, float width) {
  std::string shown = text;
  for (size_t kept = text.size(); kept > 0 && ImGui::CalcTextSize(shown.c_str()).x > width;) {
    // never a part of a character
    do --kept;
    while (kept > 0 && (static_cast<unsigned char>(text[kept]) & 0xc0) == 0x80);
    shown = text.substr(0, kept) + "...";
  }
  return shown;
}

std::string Format(const char* format, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  return text;
}

std::string FormatMs(double milliseconds) {
  constexpr double kLeast = 0.0005;  // what less than this rounds to says nothing
  if (milliseconds > 0 && milliseconds < kLeast) return "<0.001";
  if (milliseconds < 1) return Format("%.3f", milliseconds);
  if (milliseconds < 10) return Format("%.2f", milliseconds);
  return Format(milliseconds < 100 ? "%.1f" : "%.0f", milliseconds);
}

std::string Count(size_t count, const char* noun) {
  return Format(count == 1 ? "%zu %s" : "%zu %ss", count, noun);
}

}  // namespace mjp::app
