#ifndef VIEWER_PANELS_PLOT_H_
#define VIEWER_PANELS_PLOT_H_

#include <imgui.h>

#include <string>

namespace mjp::app {

// A rectangle of the current window with axes, in which panels draw by themselves.
class Plot {
 public:
  struct Range {
    double low, high;
  };

  // Takes `size` screen pixels at the cursor. `left` and `bottom` are kept for tick labels.
  Plot(const char* id, ImVec2 size, Range x, Range y, float left, float bottom);

  ImVec2 At(double x, double y) const;  // data to screen
  double X(float screen_x) const;       // screen to data
  // Grid line with its label, below or left of the plot.
  void TickX(double x, const std::string& label) const;
  void TickY(double y, const std::string& label) const;
  void LineY(double y, ImU32 color) const;

  bool hovered() const { return hovered_; }
  bool clicked() const { return clicked_; }
  ImVec2 low() const { return low_; }    // top left
  ImVec2 high() const { return high_; }  // bottom right
  ImDrawList& draw() const { return *draw_; }

 private:
  Range x_, y_;
  ImVec2 low_, high_;
  bool hovered_ = false, clicked_ = false;
  ImDrawList* draw_;
};

// Steps for about `count` ticks up to `top`: 1, 2 or 5 times a power of ten.
double TickStep(double top, int count);

// Where a scale of times ends that holds `longest` ms, and the budget too unless that is far above.
double ScaleTop(double longest, double budget);

// The title of a panel, and at the right its caption in the colour of units, shortened to the room
// that there is.
void PanelTitle(const char* title, const std::string& caption = "");

// `text`, or so much of its beginning that it is at most `width` screen pixels wide with "..."
// after it; "..." alone where nothing has room.
std::string Shorten(const std::string& text, float width);

// printf into a string.
std::string Format(const char* format, ...) IM_FMTARGS(1);

// Milliseconds with three significant digits: "0.042", "6.93", "112"; "<0.001" for less.
std::string FormatMs(double milliseconds);

// "1 decision", "2 decisions".
std::string Count(size_t count, const char* noun);

}  // namespace mjp::app

#endif  // VIEWER_PANELS_PLOT_H_
